"""Comparisons, IS tests, NOT, greatest, least and nullif, over every type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.interval import compare_spans, intervals_of
from eddyline.expr.layout import numeric_words, values_of
from eddyline.expr.registry import Arguments, Function, implements
from eddyline.kernels.numeric import numeric_compare
from eddyline.repr.types import Kind, SqlType, arrow_type, shows_blanks

__all__ = ["compare_columns"]

Bools = npt.NDArray[np.bool_]
Order = npt.NDArray[np.int8]

_ARROW = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_BY_ORDER: dict[str, Any] = {
    "eq": lambda order: order == 0,
    "ne": lambda order: order != 0,
    "lt": lambda order: order < 0,
    "le": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "ge": lambda order: order >= 0,
}
#: kinds whose Arrow order is not SQL's, or that Arrow does not compare
_ORDERED_HERE = (Kind.REAL, Kind.DOUBLE, Kind.NUMERIC, Kind.INTERVAL, Kind.UUID)


def compare_columns(left: pa.Array, left_type: SqlType, right: pa.Array, right_type: SqlType) -> Order:
    """int8[n]: -1, 0, 1 by SQL order; where a side is NULL, anything.  Both sides have one kind."""
    kind = left_type.kind
    if kind is Kind.NUMERIC:
        return _compare_numeric(left, left_type, right, right_type)
    if kind is Kind.INTERVAL:
        return compare_spans(intervals_of(left), intervals_of(right)).astype(np.int8)
    if kind in (Kind.REAL, Kind.DOUBLE):
        return _compare_floats(left, left_type, right, right_type)
    if kind is Kind.UUID:
        return _compare_uuids(left, right)
    left, right = _without_blanks(left, left_type), _without_blanks(right, right_type)
    less = pc.fill_null(pc.less(left, right), False).to_numpy(zero_copy_only=False)
    greater = pc.fill_null(pc.greater(left, right), False).to_numpy(zero_copy_only=False)
    order: Order = greater.astype(np.int8) - less.astype(np.int8)
    return order


def _without_blanks(values: pa.Array | pa.Scalar, sql_type: SqlType) -> pa.Array | pa.Scalar:
    """Text as its type compares it."""
    return pc.utf8_rtrim(values, " ") if shows_blanks(sql_type) else values


def _compare_numeric(left: pa.Array, left_type: SqlType, right: pa.Array, right_type: SqlType) -> Order:
    out = np.empty(len(left), np.int8)
    numeric_compare(*numeric_words(left, left_type), *numeric_words(right, right_type), out)
    return out


def _compare_floats(left: pa.Array, left_type: SqlType, right: pa.Array, right_type: SqlType) -> Order:
    """NaN equals NaN and is above everything else."""
    a, b = _floats(left, left_type), _floats(right, right_type)
    order = (a > b).astype(np.int8) - (a < b).astype(np.int8)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    result: Order = np.where(a_nan | b_nan, a_nan.astype(np.int8) - b_nan.astype(np.int8), order)
    return result


def _floats(array: pa.Array, sql_type: SqlType) -> npt.NDArray[Any]:
    return values_of(array, np.float32 if sql_type.kind is Kind.REAL else np.float64)


def _compare_uuids(left: pa.Array, right: pa.Array) -> Order:
    a = values_of(left, np.dtype("V16")).view(">u8").reshape(-1, 2)
    b = values_of(right, np.dtype("V16")).view(">u8").reshape(-1, 2)
    order = np.zeros(len(left), np.int8)
    for word in (1, 0):
        order = np.where(a[:, word] < b[:, word], -1, np.where(a[:, word] > b[:, word], 1, order)).astype(np.int8)
    return order


def _compare(test: str, args: Arguments, types: Sequence[SqlType], rows: int) -> pa.Array:
    kind = types[0].kind
    if kind not in _ORDERED_HERE:
        left, right = (_without_blanks(args.operand(i), types[i]) for i in (0, 1))
        return _to_array(_ARROW[test](left, right), rows)
    order = compare_columns(args[0], types[0], args[1], types[1])
    return pa.array(_BY_ORDER[test](order))


def _to_array(value: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def _comparison(test: str) -> Function:
    def compare(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        return _compare(test, args, types, rows)

    return compare


for _test in _ARROW:
    implements(_test)(_comparison(_test))


def _distinct(args: Arguments, types: Sequence[SqlType], rows: int) -> Bools:
    left, right = args[0], args[1]
    left_null = left.is_null().to_numpy(zero_copy_only=False)
    right_null = right.is_null().to_numpy(zero_copy_only=False)
    differ = compare_columns(left, types[0], right, types[1]) != 0
    result: Bools = np.where(left_null | right_null, left_null != right_null, differ)
    return result


@implements("is_distinct_from", strict=False)
def is_distinct_from(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pa.array(_distinct(args, types, rows))


@implements("is_not_distinct_from", strict=False)
def is_not_distinct_from(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pa.array(~_distinct(args, types, rows))


@implements("is_null", strict=False)
def is_null(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return args[0].is_null()


@implements("is_not_null", strict=False)
def is_not_null(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return args[0].is_valid()


@implements("not")
def logical_not(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return pc.invert(args[0])


def _truth_test(value: bool, *, negated: bool) -> Function:
    """IS [NOT] TRUE / FALSE: NULL is neither."""

    def test(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
        same = args[0] if value else pc.invert(args[0])
        filled = pc.fill_null(same, False)
        return pc.invert(filled) if negated else filled

    return test


for _value, _name in ((True, "true"), (False, "false")):
    implements(f"is_{_name}", strict=False)(_truth_test(_value, negated=False))
    implements(f"is_not_{_name}", strict=False)(_truth_test(_value, negated=True))
implements("is_unknown", strict=False)(is_null)
implements("is_not_unknown", strict=False)(is_not_null)


def _extreme(args: Arguments, types: Sequence[SqlType], result: SqlType, sign: int) -> pa.Array:
    """The largest (sign 1) or smallest (sign -1) argument that is not NULL; of equal ones the first."""
    best = args[0]
    for i in range(1, len(args)):
        other = args[i]
        order = compare_columns(best, types[0], other, types[i]) * sign
        best_null = best.is_null().to_numpy(zero_copy_only=False)
        other_null = other.is_null().to_numpy(zero_copy_only=False)
        replace = ~other_null & (best_null | (order < 0))
        best = pc.if_else(pa.array(replace), other, best)
    return best


@implements("greatest", strict=False)
def greatest(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _extreme(args, types, result, 1)


@implements("least", strict=False)
def least(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _extreme(args, types, result, -1)


@implements("nullif", strict=False)
def nullif(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    left, right = args[0], args[1]
    both = (left.is_valid().to_numpy(zero_copy_only=False)) & (right.is_valid().to_numpy(zero_copy_only=False))
    equal = both & (compare_columns(left, types[0], right, types[1]) == 0)
    return pc.if_else(pa.array(equal), pa.scalar(None, arrow_type(result)), left)
