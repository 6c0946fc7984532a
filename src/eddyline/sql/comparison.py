"""Comparisons beyond one operator: rows, IN lists, BETWEEN, IS DISTINCT FROM, with three-valued logic throughout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import And, Call, Column, Expr, Literal, Or, walk
from eddyline.expr.properties import can_fail
from eddyline.repr.types import BOOLEAN, TEXT
from eddyline.sql.binding import Context, RowValue
from eddyline.sql.conversion import is_unknown
from eddyline.sql.resolution import bind_operator

__all__ = [
    "Value",
    "all_of",
    "any_of",
    "compare",
    "conjuncts",
    "distinct",
    "mentions",
    "negate",
    "not_distinct",
    "null_test",
]

Value: TypeAlias = Expr | RowValue
_Pair: TypeAlias = tuple[tuple[Expr, Expr], tuple[int | None, int | None]]


def negate(expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN)


def all_of(args: Sequence[Expr]) -> Expr:
    """AND of the arguments, flattened; true over none."""
    flat = [a for arg in args for a in (arg.args if isinstance(arg, And) else (arg,))]
    if not flat:
        return Literal(True, BOOLEAN)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(args: Sequence[Expr]) -> Expr:
    """OR of the arguments, flattened; false over none."""
    flat = [a for arg in args for a in (arg.args if isinstance(arg, Or) else (arg,))]
    if not flat:
        return Literal(False, BOOLEAN)
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def compare(
    context: Context,
    name: str,
    left: Value,
    right: Value,
    position: int | None,
    *,
    places: Sequence[int | None] = (),
) -> Expr:
    """``left name right`` for single values and for rows.  ``places``: where the two sides stand."""
    if not isinstance(left, RowValue) and not isinstance(right, RowValue):
        return bind_operator(name, (left, right), context.binding.parameters, position, places)
    pairs = _pairs(left, right, position)

    def one(operator: str, pair: _Pair) -> Expr:
        return bind_operator(operator, pair[0], context.binding.parameters, position, pair[1])

    match name:
        case "=":
            return all_of([one("=", p) for p in pairs])
        case "<>":
            return any_of([one("<>", p) for p in pairs])
        case "<" | "<=" | ">" | ">=":
            result = one(name, pairs[-1])
            for pair in reversed(pairs[:-1]):
                result = any_of([one(name[0], pair), all_of([one("=", pair), result])])
            return result
    raise unsupported(f"operator {name} on rows", position=position)


def _pairs(left: Value, right: Value, position: int | None) -> list[_Pair]:
    """The items of two rows side by side, each with where it stands."""
    if not isinstance(left, RowValue) or not isinstance(right, RowValue):
        raise unsupported("comparing a row with a single value", position=position)
    if len(left.items) != len(right.items):
        raise make_error("42601", "unequal number of entries in row expressions", position=position)
    if not left.items:
        raise unsupported("comparing rows of zero length", position=position)
    nowhere = (None,) * len(left.items)
    places = zip(left.places or nowhere, right.places or nowhere, strict=True)
    return list(zip(zip(left.items, right.items, strict=True), places, strict=True))


def distinct(
    context: Context, left: Value, right: Value, position: int | None, *, places: Sequence[int | None] = ()
) -> Expr:
    """``left IS DISTINCT FROM right``: never NULL."""
    if isinstance(left, RowValue) or isinstance(right, RowValue):
        pairs = _pairs(left, right, position)
        return any_of([distinct(context, *pair, position, places=where) for pair, where in pairs])
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Literal) and side.value is None and is_unknown(side) and not is_unknown(other):
            return Call("is_not_null", (other,), BOOLEAN)
    equal = bind_operator("=", (left, right), context.binding.parameters, position, places)
    if not isinstance(equal, Call):
        raise unsupported("IS DISTINCT FROM on these types", position=position)
    return Call("is_distinct_from", equal.args, BOOLEAN)


def not_distinct(
    context: Context, left: Value, right: Value, position: int | None, *, places: Sequence[int | None] = ()
) -> Expr:
    """``left IS NOT DISTINCT FROM right``: null-safe equality, in the form that joins recognise."""
    if isinstance(left, RowValue) or isinstance(right, RowValue):
        pairs = _pairs(left, right, position)
        return all_of([not_distinct(context, *pair, position, places=where) for pair, where in pairs])
    result = distinct(context, left, right, position, places=places)
    if isinstance(result, Call) and result.func == "is_distinct_from":
        return Call("is_not_distinct_from", result.args, BOOLEAN)
    assert isinstance(result, Call)
    return Call("is_null", result.args, BOOLEAN)


def null_test(value: Value, *, is_null: bool) -> Expr:
    """``IS [NOT] NULL``; of a row: all its fields are (not) NULL."""
    name = "is_null" if is_null else "is_not_null"
    if isinstance(value, RowValue):
        return all_of([null_test(item, is_null=is_null) for item in value.items])
    if isinstance(value, Literal) and is_unknown(value):
        value = Literal(value.value, TEXT)
    return Call(name, (value,), BOOLEAN)


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The AND-ed parts in source order.  One that may fail keeps its guards with it: the parts before it that share
    a column are repeated in one ``And`` with it, so that no rewrite separates them."""
    parts = condition.args if isinstance(condition, And) else (condition,)
    result: list[Expr] = []
    for number, part in enumerate(parts):
        guards = [p for p in parts[:number] if mentions(p) & mentions(part)] if can_fail(part) else []
        result.append(And((*guards, part)) if guards else part)
    return tuple(result)


def mentions(expr: Expr) -> frozenset[int]:
    """The ids of the columns in ``expr``, subqueries' included."""
    return frozenset(e.index for e in walk(expr) if isinstance(e, Column))
