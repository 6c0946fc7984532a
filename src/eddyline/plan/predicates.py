"""Properties of expressions that decide where a plan may evaluate them.

A *fallible* expression may fail on some row.  It must never be evaluated on a row that the query would not have
shown it: such a row may be the very one that a filter or a join was there to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eddyline.expr.casts import cast_can_fail
from eddyline.expr.functions import implementation
from eddyline.expr.ir import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Expr,
    Literal,
    Or,
    Parameter,
    children,
    columns_of,
    rewrite,
)
from eddyline.expr.properties import can_fail
from eddyline.repr.types import Kind, SqlType, element_type, is_array, shows_blanks

__all__ = [
    "COMPARISONS",
    "ambiguous",
    "conjuncts",
    "fallible",
    "image_blind",
    "is_constant",
    "is_false",
    "is_true",
    "links_sides",
    "lossless_cast",
    "null_when",
    "rejects_nulls",
    "substitute",
]

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from"})
_NULL_TESTS = frozenset({"is_null", "is_not_null"})
_REJECTING_TESTS = frozenset({"is_not_null", "is_true", "is_false", "is_not_unknown"})
#: kinds of which SQL-equal values may differ (1.0 and 1.00, -0 and 0, 1 month and 30 days)
_AMBIGUOUS = frozenset({Kind.REAL, Kind.DOUBLE, Kind.INTERVAL})


def conjuncts(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    """The predicates with nested ANDs spread out, in evaluation order, without the literal true."""
    out: list[Expr] = []
    stack = list(predicates)[::-1]
    while stack:
        predicate = stack.pop()
        if isinstance(predicate, And):
            stack.extend(reversed(predicate.args))
        elif not is_true(predicate):
            out.append(predicate)
    return tuple(out)


def is_true(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is True


def is_false(expr: Expr) -> bool:
    """A literal that no row passes: false or NULL."""
    return isinstance(expr, Literal) and (expr.value is False or expr.value is None)


def is_constant(expr: Expr) -> bool:
    """One value for the whole statement: a literal or a parameter."""
    return isinstance(expr, (Literal, Parameter))


def lossless_cast(source: SqlType, target: SqlType) -> bool:
    """Whether the cast cannot fail."""
    return source == target or not cast_can_fail(source, target, explicit=False)


def fallible(expr: Expr) -> bool:
    """Whether some row may make ``expr`` fail."""
    return can_fail(expr)


def image_blind(expr: Expr) -> bool:
    """Whether SQL-equal inputs always give the same result.

    Only then may ``expr`` move below a grouping, which keeps one of several equal values.
    """
    stack = [(expr, False)]
    while stack:
        node, compared = stack.pop()
        if isinstance(node, Column) and not compared and ambiguous(node.type):
            return False
        inside = isinstance(node, Call) and (node.func in COMPARISONS or node.func in _NULL_TESTS)
        stack.extend((child, inside) for child in children(node))
    return True


def ambiguous(sql_type: SqlType) -> bool:
    """Whether values that SQL calls equal may differ."""
    if is_array(sql_type):
        return ambiguous(element_type(sql_type))
    if sql_type.kind is Kind.NUMERIC:
        return sql_type.scale is None
    return sql_type.kind in _AMBIGUOUS or shows_blanks(sql_type)


def null_when(expr: Expr, columns: frozenset[int]) -> bool:
    """Whether ``expr`` is NULL for certain when all of ``columns`` are (it may fail instead)."""
    match expr:
        case Column():
            return expr.index in columns
        case Literal():
            return expr.value is None
        case Cast():
            return null_when(expr.input, columns)
        case Call():
            return implementation(expr.func).strict and any(null_when(a, columns) for a in expr.args)
        case Coalesce():
            return all(null_when(a, columns) for a in expr.args)
        case Case():
            return all(null_when(r, columns) for _, r in expr.whens) and null_when(expr.otherwise, columns)
        case _:
            return False


def rejects_nulls(predicate: Expr, columns: frozenset[int]) -> bool:
    """Whether ``predicate`` is not true for certain when all of ``columns`` are NULL."""
    match predicate:
        case And():
            return any(rejects_nulls(a, columns) for a in predicate.args)
        case Or():
            return all(rejects_nulls(a, columns) for a in predicate.args)
        case Call() if predicate.func in _REJECTING_TESTS:
            return null_when(predicate.args[0], columns)
        case _:
            return is_false(predicate) or null_when(predicate, columns)


def links_sides(predicate: Expr, left_width: int) -> bool:
    """Whether ``predicate`` equates an expression of a join's left side with one of its right side."""
    if not isinstance(predicate, Call) or predicate.func not in ("eq", "is_not_distinct_from"):
        return False
    first, second = (columns_of(a) for a in predicate.args)
    if not first or not second:
        return False
    return max(first) < left_width <= min(second) or max(second) < left_width <= min(first)


def substitute(expr: Expr, columns: Sequence[Expr]) -> Expr:
    """``expr`` with column *i* replaced by ``columns[i]``."""

    def replace(node: Expr) -> Expr:
        return columns[node.index] if isinstance(node, Column) else node

    return rewrite(expr, replace)
