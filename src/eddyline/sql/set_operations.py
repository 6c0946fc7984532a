"""UNION, INTERSECT and EXCEPT: their arms brought to common column types, and combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column, Expr
from eddyline.repr.types import SqlType
from eddyline.sql.algebra import Distinct, Ids, Map, Node, SetKind, SetOperation, Union, outputs
from eddyline.sql.ast import AstNode, enum_name, expect_fields
from eddyline.sql.binding import Context
from eddyline.sql.conversion import Parameters, coerce, common_type, exactly
from eddyline.sql.targets import SortItem, Target

__all__ = ["FIELDS", "Arm", "bind_chain", "check_order", "check_width", "typed_columns"]

FIELDS = ("op", "all", "larg", "rarg", "sort_clause", "limit_offset", "limit_count", "limit_option", "with_clause")
_WORDS = {"SETOP_UNION": "UNION", "SETOP_INTERSECT": "INTERSECT", "SETOP_EXCEPT": "EXCEPT"}


@dataclass(slots=True)
class Arm:
    """One side: outputs still as expressions over ``node``."""

    node: Node
    targets: list[Target]


def bind_chain(stmt: AstNode, context: Context, bind_arm: Callable[[AstNode, Context], Arm]) -> Arm:
    """The whole of a set operation; left-deep chains are walked iteratively."""
    spine = [stmt]
    while _is_plain(spine[-1].larg):
        spine.append(spine[-1].larg)
    left = bind_arm(spine[-1].larg, context)
    for step in reversed(spine):
        expect_fields(step, FIELDS)
        right = bind_arm(step.rarg, context)
        left = _combine(step, left, right, context)
    return left


def _is_plain(stmt: AstNode) -> bool:
    """Whether the left arm is a set operation of its own without clauses, so that the walk may go on."""
    extra = ("sort_clause", "limit_offset", "limit_count", "with_clause")
    return enum_name(stmt, "op") in _WORDS and not any(f.name in extra for f, _ in stmt.ListFields())


def _combine(step: AstNode, left: Arm, right: Arm, context: Context) -> Arm:
    operation = enum_name(step, "op")
    word = _WORDS.get(operation)
    if word is None:
        raise unsupported(operation)
    check_width(word, left, right)
    types = [
        common_type((a.expr, b.expr), word, (a.position, b.position))
        for a, b in zip(left.targets, right.targets, strict=True)
    ]
    ids = context.binding.ids
    first, second = (typed_columns(a, types, ids, context.binding.parameters) for a in (left, right))
    out = ids.new_all(types)
    node: Node
    if operation == "SETOP_UNION":
        node = _union(first, second, out, every=bool(step.all))
    else:
        kind = SetKind.INTERSECT if operation == "SETOP_INTERSECT" else SetKind.EXCEPT
        node = SetOperation(kind, bool(step.all), first, second, out)
    names = [t.name for t in left.targets]
    for name, number in zip(names, out, strict=True):
        ids.labels[number] = name
    targets = [Target(n, ids.column(i), t.position) for n, i, t in zip(names, out, left.targets, strict=True)]
    return Arm(node, targets)


def _union(
    first: tuple[Node, tuple[int, ...]], second: tuple[Node, tuple[int, ...]], out: tuple[int, ...], *, every: bool
) -> Node:
    """Chains of the same kind become one operator of many arms."""
    node, columns = first
    inner = node if every else node.input if isinstance(node, Distinct) else None
    if isinstance(inner, Union) and inner.ids == columns and (every or isinstance(node, Distinct)):
        union = Union((*inner.arms, second), out)
    else:
        union = Union((first, second), out)
    return union if every else Distinct(union, out)


def check_width(word: str, left: Arm, right: Arm) -> None:
    """42601 unless both sides have as many columns."""
    if len(left.targets) != len(right.targets):
        raise make_error(
            "42601",
            f"each {word} query must have the same number of columns",
            position=right.targets[0].position if right.targets else None,
        )


def typed_columns(arm: Arm, types: Sequence[SqlType], ids: Ids, parameters: Parameters) -> tuple[Node, tuple[int, ...]]:
    """The side with its outputs as columns of exactly ``types``, and their ids."""
    columns: list[int] = []
    computed: list[tuple[int, Expr]] = []
    available = outputs(arm.node)
    for target, sql_type in zip(arm.targets, types, strict=True):
        expr = exactly(coerce(target.expr, sql_type, parameters, position=target.position), sql_type)
        if isinstance(expr, Column) and expr.index in available:
            columns.append(expr.index)
        else:
            columns.append(ids.new(sql_type))
            computed.append((columns[-1], expr))
    return (Map(arm.node, tuple(computed)) if computed else arm.node), tuple(columns)


def check_order(items: list[SortItem], targets: list[Target]) -> None:
    """0A000 unless every ORDER BY item of a set operation is an output column, as in PostgreSQL."""
    shown = {t.expr for t in targets}
    for item in items:
        if item.expr not in shown:
            raise make_error(
                "0A000",
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                position=item.position,
                detail="Only result column names can be used, not expressions or functions.",
                hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
            )
