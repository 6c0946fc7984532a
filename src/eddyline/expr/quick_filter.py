"""Predicates over few rows without Arrow, whose calls cost more than comparing the rows does.

A comparison of a column with a literal or another column, of kinds that are plain integers underneath, and AND and OR
of such.  Where a column has NULLs, or a value is beyond what is plain here, ``evaluate`` decides: ``quick_truth`` is
equal to ``true_rows`` of its result, or None.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.expr.frame import Frame
from eddyline.expr.ir import And, Call, Cast, Column, Expr, Literal, Or
from eddyline.expr.literals import literal_scalar
from eddyline.repr.types import Kind, SqlType

__all__ = ["QUICK_ROWS", "quick_truth"]

#: NumPy gives the interpreter's lock up for more
QUICK_ROWS: Final = 512

Bools = npt.NDArray[np.bool_]
Values: TypeAlias = "npt.NDArray[Any] | int"
#: the values of the rows, or None where they are not plain
_Operand: TypeAlias = Callable[[Frame], "Values | None"]
_Test: TypeAlias = Callable[[Frame], "Bools | None"]

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_LAYOUTS: Final[dict[Kind, np.dtype[Any]]] = {
    Kind.SMALLINT: np.dtype(np.int16),
    Kind.INTEGER: np.dtype(np.int32),
    Kind.BIGINT: np.dtype(np.int64),
    Kind.DATE: np.dtype(np.int32),
    Kind.TIME: np.dtype(np.int64),
    Kind.TIMESTAMP: np.dtype(np.int64),
    Kind.TIMESTAMPTZ: np.dtype(np.int64),
}
_WORD: Final = np.dtype(np.int64)
_DAY_MICROS: Final = 86_400_000_000
#: dates of the next 20,000 years are timestamps too; infinity is not among them
_PLAIN_DAYS: Final = 7_300_000
_DEEPEST: Final = 8
_REMEMBERED: Final = 1024

#: by the identity of the expression, which stays alive by this: a plan asks with the same one for every batch
_tests: dict[int, tuple[Expr, _Test | None]] = {}


def quick_truth(expr: Expr, frame: Frame) -> Bools | None:
    """bool[rows]: where the predicate is true, if it is of the kinds above and cannot fail on these rows; else None."""
    if not 0 < frame.rows <= QUICK_ROWS:
        return None
    known = _tests.get(id(expr))
    if known is None:
        if len(_tests) >= _REMEMBERED:
            _tests.clear()
        known = _tests[id(expr)] = (expr, _test_of(expr, 0))
    test = known[1]
    return None if test is None else test(frame)


def _test_of(expr: Expr, depth: int) -> _Test | None:
    if depth > _DEEPEST:
        return None
    match expr:
        case And() | Or():
            tests = [_test_of(arg, depth + 1) for arg in expr.args]
            known = [test for test in tests if test is not None]
            if len(known) < len(tests):
                return None
            return _combined(known, np.logical_and if isinstance(expr, And) else np.logical_or)
        case Call() if expr.func in _COMPARISONS and len(expr.args) == 2:
            left, right = expr.args
            first, second = _operand_of(left, right.type), _operand_of(right, left.type)
            if first is None or second is None or (isinstance(left, Literal) and isinstance(right, Literal)):
                return None
            return _compared(_COMPARISONS[expr.func], first, second)
    return None


def _combined(tests: list[_Test], connective: Callable[[Any, Any], Any]) -> _Test:
    def test(frame: Frame) -> Bools | None:
        whole: Bools | None = None
        for part in tests:
            truth = part(frame)
            if truth is None:
                return None
            whole = truth if whole is None else connective(whole, truth)
        return whole

    return test


def _compared(comparison: Callable[[Any, Any], Any], left: _Operand, right: _Operand) -> _Test:
    def test(frame: Frame) -> Bools | None:
        first = left(frame)
        second = right(frame)
        if first is None or second is None:
            return None
        truth: Bools = comparison(first, second)
        return truth

    return test


def _operand_of(expr: Expr, other: SqlType) -> _Operand | None:
    """``other``: the type that it is compared with; of one kind, and numerics of one scale."""
    kind = expr.type.kind
    if kind is not other.kind or (kind is Kind.NUMERIC and (expr.type.scale is None or expr.type.scale != other.scale)):
        return None
    if kind is not Kind.NUMERIC and kind not in _LAYOUTS:
        return None
    match expr:
        case Column():
            return _numeric_column(expr.index) if kind is Kind.NUMERIC else _column(expr.index, _LAYOUTS[kind])
        case Literal():
            return _literal(expr)
        case Cast(input=Column() as column) if kind is Kind.TIMESTAMP and column.type.kind is Kind.DATE:
            return _date_as_timestamp(column.index) if expr.type.precision is None else None
    return None


def _column(index: int, layout: np.dtype[Any]) -> _Operand:
    def values(frame: Frame) -> Values | None:
        array = frame.column(index)
        if array.null_count:
            return None
        return np.frombuffer(array.buffers()[1], layout, len(array), array.offset * layout.itemsize)

    return values


def _date_as_timestamp(index: int) -> _Operand:
    days_of = _column(index, _LAYOUTS[Kind.DATE])

    def values(frame: Frame) -> Values | None:
        days = days_of(frame)
        if (
            days is None
            or isinstance(days, int)
            or int(days.max()) > _PLAIN_DAYS
            or int(days.min()) < -_PLAIN_DAYS // 10
        ):
            return None
        return days * np.int64(_DAY_MICROS)

    return values


def _numeric_column(index: int) -> _Operand:
    """Coefficients, where all are of one word."""

    def values(frame: Frame) -> Values | None:
        array = frame.column(index)
        if array.null_count:
            return None
        words = np.frombuffer(array.buffers()[1], _WORD, 2 * len(array), array.offset * 16)
        low = words[::2]
        return low if bool((words[1::2] == low >> 63).all()) else None

    return values


def _literal(expr: Literal) -> _Operand | None:
    scalar = literal_scalar(expr.value, expr.type)
    if not scalar.is_valid:
        return None
    if expr.type.kind is Kind.NUMERIC:
        assert expr.type.scale is not None
        value = int(scalar.as_py().scaleb(expr.type.scale))
    elif expr.type.kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        value = scalar.as_py()
    else:
        value = scalar.value
    return (lambda frame: value) if -(2**63) <= value < 2**63 else None
