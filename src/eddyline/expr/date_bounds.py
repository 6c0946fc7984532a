"""Dates compared with a constant timestamp are compared with a constant date.

The cast of each row's date costs more than the comparison, and may fail: PostgreSQL's operators between the two types
do not, and what cannot fail may be evaluated before joins.
"""

from __future__ import annotations

from typing import Final

from eddyline.expr.calendar import DAY_US, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY
from eddyline.expr.ir import Call, Cast, Expr, Literal
from eddyline.repr.types import DATE, Kind

__all__ = ["with_date_bound"]

_MIRRORED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
#: what a comparison with an instant in the course of a day says of the day
_WITHIN_A_DAY: Final = {"lt": "le", "le": "le", "gt": "gt", "ge": "gt"}


def with_date_bound(call: Call) -> Call:
    """The same comparison over dates, if ``call`` is one of a date, made a timestamp for it, with a finite constant."""
    if call.func not in _MIRRORED or len(call.args) != 2:
        return call
    left, right = call.args
    if isinstance(left, Literal):
        turned = _bounded(_MIRRORED[call.func], right, left)
        return call if turned is None else Call(_MIRRORED[turned[0]], (turned[2], turned[1]), call.type)
    found = _bounded(call.func, left, right)
    return call if found is None else Call(found[0], found[1:], call.type)


def _bounded(func: str, value: Expr, bound: Expr) -> tuple[str, Expr, Literal] | None:
    if not isinstance(value, Cast) or value.explicit or not isinstance(bound, Literal):
        return None
    kinds = (value.input.type.kind, value.type.kind, bound.type.kind)
    if kinds != (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP) or not isinstance(bound.value, int):
        return None
    if bound.value in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY):
        return None
    day, rest = divmod(bound.value, DAY_US)
    if rest and func not in _WITHIN_A_DAY:
        return None
    return (_WITHIN_A_DAY[func] if rest else func), value.input, Literal(day, DATE)
