"""SELECT, SELECT … AS OF and SUBSCRIBE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Expr, Literal
from eddyline.plan.late import split
from eddyline.plan.recursion import has_recursion
from eddyline.repr.types import BIGINT, TIMESTAMPTZ, Kind
from eddyline.sql.ast import AstNode
from eddyline.sql.extensions import AsOfSyntax, SubscribeSyntax
from eddyline.sql.signal_calls import bind_signalling
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Select, Statement, Subscribe

__all__ = ["bind_as_of", "bind_select", "bind_subscribe"]


def bind_select(binding: StatementBinding) -> Statement:
    query, signals = bind_signalling(binding, binding.parsed.node)
    if not query.volatile:
        return Select(query, signals=signals)
    if signals:
        raise unsupported("nextval beside pg_cancel_backend or pg_terminate_backend")
    parts = split(query.relation)
    relation, late = parts.finished(range(len(parts.columns)))
    return Select(replace(query, relation=relation), late=late)


def bind_as_of(binding: StatementBinding) -> Statement:
    syntax: AsOfSyntax = binding.parsed.node
    query = binding.query(syntax.query, place="a SELECT … AS OF")
    return Select(query, _time(syntax.as_of, "AS OF", binding))


def bind_subscribe(binding: StatementBinding) -> Statement:
    syntax: SubscribeSyntax = binding.parsed.node
    query: Any = syntax.query
    bound = binding.query(query, place="a subscription")
    if has_recursion(bound.relation):
        raise unsupported("a recursive query in a subscription")
    return Subscribe(
        query=bound,
        name=_subscribed_name(query),
        as_of=None if syntax.as_of is None else _time(syntax.as_of, "AS OF", binding),
        up_to=None if syntax.up_to is None else _time(syntax.up_to, "UP TO", binding),
        snapshot=syntax.snapshot,
        progress=syntax.progress,
    )


def _subscribed_name(query: AstNode) -> str | None:
    """The relation's name when the whole query is ``TABLE name``, as SUBSCRIBE to a name is parsed."""
    fields = {f.name for f, _ in query.ListFields()}
    if not fields <= {"target_list", "from_clause", "limit_option", "op"} or len(query.from_clause) != 1:
        return None
    item = query.from_clause[0]
    if item.WhichOneof("node") != "range_var" or item.range_var.HasField("alias") or len(query.target_list) != 1:
        return None
    value = query.target_list[0].res_target.val
    is_star = value.WhichOneof("node") == "column_ref" and value.column_ref.fields[0].WhichOneof("node") == "a_star"
    return str(item.range_var.relname) if is_star else None


def _time(node: AstNode, clause: str, binding: StatementBinding) -> Expr:
    """A constant bigint (µs) or timestamptz; integers widen, text is read as timestamptz, 42804 for other types."""
    value = binding.constant(node, clause)
    position = binding.position_of(node)
    match value.type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return binding.coerce(value, BIGINT, position)
        case Kind.TIMESTAMPTZ:
            return value
        case Kind.DATE | Kind.TIMESTAMP:
            return binding.coerce(value, TIMESTAMPTZ, position)
        case Kind.NUMERIC if isinstance(value, Literal) and value.type.scale == 0:
            raise make_error("22003", f"{clause} is out of range", position=position)
        case Kind.UNKNOWN:
            return binding.coerce(value, _time_type(value), position)
        case _:
            raise make_error(
                "42804",
                f"argument of {clause} must be type bigint or timestamp with time zone, "
                f"not type {value.type.kind.value}",
                position=position,
            )


def _time_type(value: Expr) -> Any:
    """A quoted number is µs; any other text, and a parameter, … is a timestamptz or a bigint respectively."""
    if isinstance(value, Literal) and isinstance(value.value, str) and not value.value.strip().lstrip("+-").isdigit():
        return TIMESTAMPTZ
    return BIGINT
