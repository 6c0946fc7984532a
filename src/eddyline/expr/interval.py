"""Interval columns as three NumPy arrays and back; an interval's order.

An interval is (months, days, µs), each with its own sign, as PostgreSQL stores it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.expr.calendar import DAY_US, Bools, Int64s

__all__ = ["INTERVAL_DTYPE", "Intervals", "compare_spans", "interval_array", "intervals_of", "valid_of"]

INTERVAL_DTYPE: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
_LAYOUT: Final = pa.binary(16)


class Intervals(NamedTuple):
    """One column: months, days, micros: int64[n], also where the first two are stored as int32."""

    months: Int64s
    days: Int64s
    micros: Int64s


def valid_of(array: pa.Array) -> Bools | None:
    """bool[n], or None when no value is NULL."""
    if array.null_count == 0:
        return None
    result: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return result


def intervals_of(array: pa.Array) -> Intervals:
    """The parts of an interval column; a NULL's are zero."""
    rows = len(array)
    buffer = array.buffers()[1]
    if rows == 0 or buffer is None:
        zeros = np.zeros(rows, np.int64)
        return Intervals(zeros, zeros, zeros)
    raw = np.frombuffer(buffer, INTERVAL_DTYPE, rows, array.offset * 16)
    parts = [raw[name].astype(np.int64) for name in ("months", "days", "micros")]
    valid = valid_of(array)
    if valid is not None:
        parts = [np.where(valid, part, 0) for part in parts]
    return Intervals(*parts)


def interval_array(value: Intervals, valid: Bools | None) -> pa.Array:
    """The interval column of parts that fit (months and days in int32: unchecked, the caller has)."""
    raw = np.empty(len(value.months), INTERVAL_DTYPE)
    raw["months"], raw["days"], raw["micros"] = value
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.array(valid, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(_LAYOUT, len(raw), [bitmap, pa.py_buffer(raw)])


def compare_spans(left: Intervals, right: Intervals) -> Int64s:
    """-1, 0, 1 by PostgreSQL's order: a month is 30 days, a day 24 hours.

    The span can pass int64, so whole days and the µs within one are compared in turn.
    """
    left_days, left_rest = _normal(left)
    right_days, right_rest = _normal(right)
    by_days = np.sign(left_days - right_days)
    result: Int64s = np.where(by_days != 0, by_days, np.sign(left_rest - right_rest)).astype(np.int64)
    return result


def _normal(value: Intervals) -> tuple[Int64s, Int64s]:
    carried = value.micros // DAY_US
    return value.months * 30 + value.days + carried, value.micros - carried * DAY_US
