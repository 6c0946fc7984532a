"""WITH: its queries bound in the order in which they need each other, those that refer to themselves included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from eddyline.errors import make_error, unsupported
from eddyline.repr.types import NUMERIC, TEXT, Kind, SqlType
from eddyline.sql.algebra import Cte, Recursive, With, Working
from eddyline.sql.ast import AstNode, expect_fields, kind_of, name_list
from eddyline.sql.binding import Context, CteEntry
from eddyline.sql.conversion import common_type
from eddyline.sql.recursive_syntax import Item, binding_order, check_recursion
from eddyline.sql.set_operations import FIELDS, Arm, check_width, typed_columns

__all__ = ["bind_ctes"]

BindArm = Callable[[AstNode, Context], Arm]


def bind_ctes(clause: AstNode, context: Context, bind_arm: BindArm) -> tuple[Context, tuple[Cte, ...]]:
    """``context`` with the names of the clause, and what they stand for, each after those it reads."""
    nodes = [n.common_table_expr for n in clause.ctes]
    for number, node in enumerate(nodes):
        expect_fields(node, ("ctename", "aliascolnames", "ctematerialized", "ctequery", "location"), context.at(node))
        if any(node.ctename == earlier.ctename for earlier in nodes[:number]):
            raise make_error(
                "42712", f'WITH query name "{node.ctename}" specified more than once', position=context.at(node)
            )
    items = [Item(node) for node in nodes]
    if clause.recursive:
        items = binding_order(nodes, context.binding.locate)
        for item in items:
            if item.recursive:
                check_recursion(item.node, context.binding.locate)
    known: Mapping[str, CteEntry] = context.ctes
    found: list[Cte] = []
    for number, item in enumerate(items):
        later = context.later if clause.recursive else context.later | {other.name for other in items[number:]}
        bind = _bind_recursive if item.recursive else _bind_plain
        cte, names = bind(item.node, replace(context, ctes=known, later=later), bind_arm)
        known = {**known, item.name: CteEntry(cte, names)}
        found.append(cte)
    return replace(context, ctes=known), tuple(found)


def _bind_plain(cte: AstNode, context: Context, bind_arm: BindArm) -> tuple[Cte, tuple[str, ...]]:
    if kind_of(cte.ctequery) != "select_stmt":
        raise unsupported("a data-modifying statement in WITH", position=context.at(cte))
    result = context.binding.subselect(cte.ctequery, context)
    return Cte(cte.ctename, result.node, result.ids), _names(cte, result.names, context)


def _names(cte: AstNode, own: Sequence[str], context: Context) -> tuple[str, ...]:
    aliases = name_list(cte.aliascolnames)
    if len(aliases) > len(own):
        raise make_error(
            "42P10",
            f'WITH query "{cte.ctename}" has {len(own)} columns available but {len(aliases)} columns specified',
            position=context.at(cte),
        )
    return (*aliases, *own[len(aliases) :])


def _bind_recursive(cte: AstNode, context: Context, bind_arm: BindArm) -> tuple[Cte, tuple[str, ...]]:
    """The non-recursive term says what the columns are; 42804 where the recursive one would make others of them."""
    name, select = str(cte.ctename), cte.ctequery.select_stmt
    expect_fields(select, FIELDS)
    own: tuple[Cte, ...] = ()
    if select.HasField("with_clause"):
        context, own = bind_ctes(select.with_clause, context, bind_arm)
    base = bind_arm(select.larg, context)
    names = _names(cte, [t.name for t in base.targets], context)
    declared = tuple(_settled(t.expr.type) for t in base.targets)
    ids = context.binding.ids
    working = Working(name, ids.new_all(declared))
    step = bind_arm(select.rarg, replace(context, ctes={**context.ctes, name: CteEntry(working, names)}))
    check_width("UNION", base, step)
    for number, (first, second, wanted) in enumerate(zip(base.targets, step.targets, declared, strict=True), 1):
        overall = _settled(common_type((first.expr, second.expr), "UNION", (first.position, second.position)))
        if overall != wanted:
            raise make_error(
                "42804",
                f'recursive query "{name}" column {number} has type {wanted} in non-recursive term '
                f"but type {overall} overall",
                position=first.position,
                hint="Cast the output of the non-recursive term to the correct type.",
            )
    arms = [typed_columns(arm, declared, ids, context.binding.parameters) for arm in (base, step)]
    out = ids.new_all(declared)
    for number, label in zip(out, names, strict=True):
        ids.labels[number] = label
    recursion = Recursive(working, arms[0], arms[1], bool(select.all), names, out)
    working.recursion = recursion
    return Cte(name, With(own, recursion) if own else recursion, out), names


def _settled(sql_type: SqlType) -> SqlType:
    """A column's type before the recursive term is looked at.  Numerics without a precision have a scale each."""
    if sql_type.kind is Kind.UNKNOWN:
        return TEXT
    return NUMERIC if sql_type.kind is Kind.NUMERIC and sql_type.precision is None else sql_type
