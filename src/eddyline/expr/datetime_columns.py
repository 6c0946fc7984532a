"""Date/time columns as NumPy integers and back, with checks: what all date/time functions are made of.

A NULL's integer is 0; results carry no NULLs of their own, because the evaluator puts them back (strict functions).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.calendar import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    DAY_US,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MINUS_INFINITY,
    Bools,
    Int64s,
    civil,
    days_from_civil,
    days_in_month,
    timestamp_in_range,
)
from eddyline.expr.interval import Intervals
from eddyline.expr.rowwise import as_storage

__all__ = [
    "TIMESTAMPTZ_LAYOUT",
    "TIMESTAMP_LAYOUT",
    "TIME_LAYOUT",
    "add_checked",
    "date_column",
    "days_to_micros",
    "infinite_date",
    "infinite_timestamp",
    "integers",
    "multiply_overflows",
    "shift_civil",
    "time_column",
    "timestamp_column",
    "truncated_divmod",
]

TIMESTAMP_LAYOUT: Final = pa.timestamp("us")
TIMESTAMPTZ_LAYOUT: Final = pa.timestamp("us", tz="UTC")
TIME_LAYOUT: Final = pa.time64("us")


def integers(array: pa.Array) -> Int64s:
    """int64[n] of an integer, date, time or timestamp column."""
    storage = as_storage(array)
    if storage.null_count:
        storage = pc.fill_null(storage, 0)
    result: Int64s = storage.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return result


def date_column(days: Int64s) -> pa.Array:
    return pa.array(days.astype(np.int32)).view(pa.date32())


def timestamp_column(micros: Int64s, layout: pa.DataType = TIMESTAMP_LAYOUT) -> pa.Array:
    return pa.array(micros).view(layout)


def time_column(micros: Int64s) -> pa.Array:
    return pa.array(micros).view(TIME_LAYOUT)


def infinite_date(days: Int64s) -> Bools:
    result: Bools = (days == DATE_INFINITY) | (days == DATE_MINUS_INFINITY)
    return result


def infinite_timestamp(micros: Int64s) -> Bools:
    result: Bools = (micros == TIMESTAMP_INFINITY) | (micros == TIMESTAMP_MINUS_INFINITY)
    return result


def days_to_micros(days: Int64s) -> tuple[Int64s, Bools]:
    """Midnights in µs with infinities mapped, and where they pass the range of timestamps."""
    infinite = infinite_date(days)
    too_large = ~infinite & (np.abs(days) > np.iinfo(np.int64).max // DAY_US)
    micros = np.where(too_large | infinite, 0, days) * DAY_US
    bad = too_large | ~timestamp_in_range(micros)
    endless = np.where(days > 0, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY)
    return np.where(infinite, endless, micros), bad


def add_checked(left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    """The wrapped sum, and where it overflowed int64."""
    total = left + right
    return total, ((left ^ total) & (right ^ total)) < 0


def multiply_overflows(left: Int64s, right: int) -> Bools:
    """Where ``left * right`` passes int64; ``right`` > 0."""
    limit = np.iinfo(np.int64).max // right
    result: Bools = (left > limit) | (left < -limit)
    return result


def truncated_divmod(value: Int64s, divisor: int | Int64s) -> tuple[Int64s, Int64s]:
    """Quotient towards zero and the remainder with the sign of ``value``."""
    remainder = np.fmod(value, divisor)
    return (value - remainder) // divisor, remainder


def shift_civil(micros: Int64s, step: Intervals) -> tuple[Int64s, Bools]:
    """Local times plus months (the day is cut to the month's length) and then days, and where that is out of range.

    ``step.micros`` is left to the caller.
    """
    days = micros // DAY_US
    rest = micros - days * DAY_US
    bad = np.zeros(len(micros), np.bool_)
    if step.months.any():
        date = civil(days)
        ordinal = date.year * 12 + (date.month - 1) + step.months
        year, month = ordinal // 12, ordinal % 12 + 1
        moved = days_from_civil(year, month, np.minimum(date.day, days_in_month(year, month)))
        days = np.where(step.months != 0, moved, days)
        bad |= _bad_day(days)
    days = days + step.days
    bad |= _bad_day(days)
    result = np.where(bad, 0, days) * DAY_US + rest
    return result, bad | ~timestamp_in_range(result)


def _bad_day(days: Int64s) -> Bools:
    result: npt.NDArray[np.bool_] = (days < -2_440_588) | (days > np.iinfo(np.int64).max // DAY_US)
    return result
