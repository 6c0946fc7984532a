"""Function calls: scalar functions, aggregates with FILTER, DISTINCT and ORDER BY, and GROUPING."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from eddyline.errors import make_error, unsupported
from eddyline.expr.functions import aggregate_overloads, overloads
from eddyline.expr.ir import AggregateCall, Call, Expr
from eddyline.repr.types import INTEGER, TEXT, TIMESTAMPTZ, Kind, SqlType
from eddyline.sql.algebra import FreeIds, aggregate_exprs
from eddyline.sql.ast import AstNode, expect_fields, name_list, start_of
from eddyline.sql.binding import Block, Context
from eddyline.sql.conversion import bare_name, coerce, is_unknown
from eddyline.sql.missing_functions import POSTGRESQL_ONLY, is_missing_overload
from eddyline.sql.ordering import sort_flags
from eddyline.sql.resolution import bind_aggregate, bind_call, function_error
from eddyline.sql.sequence_functions import SEQUENCE_FUNCTIONS, bind_sequence_call
from eddyline.sql.system_functions import expand_call
from eddyline.sql.type_names import TYPE_KINDS

__all__ = ["PAIRS", "SET_RETURNING", "Bind", "bind_function", "bind_grouping"]

_NOW: Final = ("now", "transaction_timestamp", "statement_timestamp")
#: set-returning functions: only in FROM, and as items of a SELECT list
#: gives the items of an array with their numbers: of information_schema
PAIRS: Final = ("information_schema", "_pg_expandarray")
SET_RETURNING: Final = frozenset(
    ("generate_series", "generate_subscripts", "string_to_table", "unnest", "_pg_expandarray")
)
_ORDER_MATTERS: Final = frozenset(("array_agg", "string_agg"))


class Bind(Protocol):
    def __call__(self, node: AstNode, context: Context, /) -> Expr: ...


class ExplicitCast(Protocol):
    def __call__(
        self, value: Expr, target: SqlType, context: Context, position: int | None, literal_position: int | None, /
    ) -> Expr: ...


@dataclass(frozen=True, slots=True)
class _Call:
    """A FuncCall being bound."""

    node: AstNode
    name: str
    context: Context
    position: int | None


def bind_function(
    node: AstNode,
    context: Context,
    bind: Bind,
    cast: ExplicitCast,
    bind_boolean: Callable[[AstNode, Context, str], Expr],
) -> Expr:
    """The call that a FuncCall means; 42883 when no function of the name takes such arguments."""
    position = context.at(node)
    names = name_list(node.funcname)
    if len(names) > 1 and names[0] != "pg_catalog" and names != PAIRS:
        raise make_error("42883", f"function {'.'.join(names)} does not exist", position=position)
    expect_fields(
        node,
        ("funcname", "args", "agg_order", "agg_filter", "agg_star", "agg_distinct", "funcformat", "over", "location"),
        position,
    )
    call = _Call(node, names[-1], context, position)
    if node.HasField("over"):
        raise unsupported("a window function in this place", position=position)
    if call.name in SET_RETURNING:
        raise unsupported(
            "a set-returning function in this place",
            position=position,
            hint="It may stand in FROM, or as an item of a SELECT list.",
        )
    if aggregate_overloads(call.name):
        return _aggregate(call, bind, bind_boolean)
    expanded = expand_call(call.name, node.args, context.binding.catalog)
    if expanded is not None:
        return bind(expanded, context)
    _refuse_aggregate_syntax(call, bind)
    args = [bind(a, context) for a in node.args]
    if call.name in _NOW and not args:
        return Call("now", (), TIMESTAMPTZ)
    if call.name in SEQUENCE_FUNCTIONS:
        return bind_sequence_call(call.name, node.args, args, context, position)
    if not overloads(call.name):
        return _without_overloads(call, args, cast)
    _refuse_missing(call, args)
    places = [context.binding.locate(start_of(a)) for a in node.args]
    if call.name == "timezone" and args[1:] and args[1].type.kind is Kind.TIME:
        raise unsupported("a time zone for a time, which gives time with time zone,", position=position)
    return bind_call(call.name, args, context.binding.parameters, position, places)


def _without_overloads(call: _Call, args: Sequence[Expr], cast: ExplicitCast) -> Expr:
    """``int4(x)``, ``text(x)`` are casts; what PostgreSQL has and we don't is 0A000."""
    kind = TYPE_KINDS.get(call.name)
    if kind is not None and len(args) == 1:
        place = call.context.binding.locate(start_of(call.node.args[0]))
        return cast(args[0], SqlType(kind), call.context, call.position, place)
    if call.name in POSTGRESQL_ONLY:
        raise unsupported(f"function {call.name}", position=call.position)
    return bind_call(call.name, args, call.context.binding.parameters, call.position)


def _refuse_missing(call: _Call, args: Sequence[Expr]) -> None:
    types = [a.type for a in args]
    if is_missing_overload(call.name, types):
        shown = ", ".join("unknown" if t.kind is Kind.UNKNOWN else bare_name(t) for t in types)
        raise unsupported(f"function {call.name}({shown})", position=call.position)


def _refuse_aggregate_syntax(call: _Call, bind: Bind) -> None:
    """42809 for DISTINCT, FILTER, ORDER BY or * on what is no aggregate."""
    node = call.node
    words = {"agg_star": "(*)", "agg_distinct": "DISTINCT", "agg_order": "ORDER BY", "agg_filter": "FILTER"}
    for field, _ in node.ListFields():
        if field.name in words:
            if call.name in POSTGRESQL_ONLY:
                raise unsupported(f"function {call.name}", position=call.position)
            if not overloads(call.name):
                args = [bind(a, call.context).type for a in node.args]
                raise function_error(call.name, args, ambiguous=False, position=call.position)
            raise make_error(
                "42809",
                f"{words[field.name]} specified, but {call.name} is not an aggregate function",
                position=call.position,
            )


def _aggregate(call: _Call, bind: Bind, bind_boolean: Callable[[AstNode, Context, str], Expr]) -> Expr:
    """An aggregate, entered into the block it belongs to: that of its innermost column, or this one."""
    node, context, block = call.node, call.context, call.context.block
    if block.inside_aggregate:
        raise make_error("42803", "aggregate function calls cannot be nested", position=call.position)
    if not node.args and not node.agg_star:
        raise make_error(
            "42809",
            f"{call.name}(*) must be used to call a parameterless aggregate function",
            position=call.position,
        )
    forbids, block.inside_aggregate = block.forbids, True
    try:
        aggregate = _bind_parts(call, bind, bind_boolean)
    finally:
        block.forbids, block.inside_aggregate = forbids, False
    owner = _owner(aggregate, context)
    if owner.inside_aggregate:
        raise make_error("42803", "aggregate function calls cannot be nested", position=call.position)
    if owner.forbids is not None:
        raise make_error("42803", f"aggregate functions are not allowed in {owner.forbids}", position=call.position)
    for number, known in owner.aggregates.items():
        if known == aggregate:
            return context.binding.ids.column(number)
    number = context.binding.new_owned(aggregate.type, owner, call.name)
    if not owner.aggregates:
        owner.aggregate_at = call.position
    owner.aggregates[number] = aggregate
    return context.binding.ids.column(number)


def _bind_parts(call: _Call, bind: Bind, bind_boolean: Callable[[AstNode, Context, str], Expr]) -> AggregateCall:
    node, context = call.node, call.context
    parameters = context.binding.parameters
    args = [bind(a, context) for a in node.args]
    places = [context.binding.locate(start_of(a)) for a in node.args]
    _refuse_missing(call, args)
    chosen, cast, result = bind_aggregate(call.name, args, parameters, call.position, places)
    condition = bind_boolean(node.agg_filter, context, "FILTER") if node.HasField("agg_filter") else None
    order = []
    for item in node.agg_order:
        value = bind(item.sort_by.node, context)
        for arg, typed in zip(args, cast, strict=True):
            if arg == value:
                value = typed
        value = coerce(value, TEXT, parameters) if is_unknown(value) else value
        if node.agg_distinct and value not in cast:
            raise make_error(
                "42P10",
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=context.binding.locate(start_of(item.sort_by.node)),
            )
        order.append((value, *sort_flags(item.sort_by, context.binding.locate)))
    keep_order = tuple(order) if chosen.func in _ORDER_MATTERS else ()
    return AggregateCall(chosen.func, cast, result, bool(node.agg_distinct), condition, keep_order)


def _owner(aggregate: AggregateCall, context: Context) -> Block:
    binding = context.binding
    free = FreeIds(binding.ids).of_exprs(aggregate_exprs(aggregate))
    owners = [owner for number in free if (owner := binding.owners.get(number)) is not None]
    return max(owners, key=lambda b: b.depth, default=context.block)


def bind_grouping(args: list[Expr], context: Context, position: int | None) -> Expr:
    """``GROUPING(args)``: an int column of the block, given its value by the grouping sets."""
    block = context.block
    if block.forbids is not None or block.inside_aggregate:
        raise make_error(
            "42803",
            f"grouping operations are not allowed in {block.forbids or 'aggregate arguments'}",
            position=position,
        )
    if len(args) > 31:
        raise make_error("54023", "GROUPING must have fewer than 32 arguments", position=position)
    number = context.binding.new_owned(INTEGER, block, "grouping")
    block.groupings[number] = tuple(args)
    return context.binding.ids.column(number)
