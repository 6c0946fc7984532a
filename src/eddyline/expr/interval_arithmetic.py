"""Operators and functions over intervals: + - * /, unary minus, justify_*, make_interval.

Overflow of a part is 22008 "interval out of range".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.calendar import DAY_US, HOUR_US, MINUTE_US, Bools, Int64s
from eddyline.expr.datetime_columns import add_checked, integers, multiply_overflows, truncated_divmod
from eddyline.expr.interval import Intervals, interval_array, intervals_of
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements, merge_errors
from eddyline.repr.types import INTERVAL, Kind, SqlType

__all__ = ["INTERVAL_OVERFLOW", "doubles", "fits_int32"]

K = Kind
Doubles = npt.NDArray[np.float64]
INTERVAL_OVERFLOW: Final = "interval out of range"
_INT32: Final = 2**31


def doubles(array: pa.Array) -> Doubles:
    """float64[n]; NULL is 1, which divides well."""
    filled = pc.fill_null(array, 1.0) if array.null_count else array
    result: Doubles = filled.to_numpy(zero_copy_only=False)
    return result


def fits_int32(value: Int64s) -> Bools:
    result: Bools = (value >= -_INT32) & (value < _INT32)
    return result


def _checked(value: Intervals, bad: Bools) -> Evaluated:
    bad = bad | ~fits_int32(value.months) | ~fits_int32(value.days)
    if bad.any():
        value = Intervals(*(np.where(bad, 0, part) for part in value))
    return Evaluated(interval_array(value, None), failures(bad, "22008", INTERVAL_OVERFLOW))


def _added(left: Intervals, right: Intervals) -> Evaluated:
    micros, overflow = add_checked(left.micros, right.micros)
    return _checked(Intervals(left.months + right.months, left.days + right.days, micros), overflow)


@implements("interval_add", fallible=True)
def _add(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _added(intervals_of(args[0]), intervals_of(args[1]))


@implements("interval_sub", fallible=True)
def _sub(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    left, right = intervals_of(args[0]), intervals_of(args[1])
    micros = left.micros - right.micros
    overflow = ((left.micros ^ right.micros) & (left.micros ^ micros)) < 0
    return _checked(Intervals(left.months - right.months, left.days - right.days, micros), overflow)


@implements("interval_neg", fallible=True)
def _neg(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    value = intervals_of(args[0])
    overflow = value.micros == np.iinfo(np.int64).min
    return _checked(Intervals(-value.months, -value.days, -value.micros), overflow)


@implements("interval_pos")
def _pos(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return args[0]


@implements("interval_mul", fallible=True)
def _mul(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _scaled(intervals_of(args[0]), doubles(args[1]), np.multiply)


@implements("mul_interval", fallible=True)
def _mul_reversed(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _scaled(intervals_of(args[1]), doubles(args[0]), np.multiply)


@implements("interval_div", fallible=True)
def _div(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    divisor = doubles(args[1])
    zero = divisor == 0
    scaled = _scaled(intervals_of(args[0]), np.where(zero, 1.0, divisor), np.divide)
    return Evaluated(scaled.array, merge_errors(failures(zero, "22012", "division by zero"), scaled.errors))


def _scaled(value: Intervals, factor: Doubles, apply: Any) -> Evaluated:
    """Each part times (or by) the factor; what is left of a month spills into days, of a day into time."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact_months: Doubles = apply(value.months, factor)
        exact_days: Doubles = apply(value.days, factor)
        months, bad_months = _whole(exact_months, _INT32)
        days, bad_days = _whole(exact_days, _INT32)
        spilled_days = _rounded_micros((exact_months - months) * 30.0)
        spilled_whole = np.trunc(np.where(np.isfinite(spilled_days), spilled_days, 0))
        seconds = _rounded_micros((exact_days - days + spilled_days - spilled_whole) * 86_400.0)
        seconds = np.where(np.isfinite(seconds), seconds, 0)
        carried = np.trunc(seconds / 86_400.0)
        days = days + carried.astype(np.int64) + spilled_whole.astype(np.int64)
        seconds = seconds - carried * 86_400.0
        micros, bad_micros = _whole(np.rint(apply(value.micros, factor) + seconds * 1e6), 2**63)
    return _checked(Intervals(months, days, micros), bad_months | bad_days | bad_micros)


def _whole(value: Doubles, limit: int) -> tuple[Int64s, Bools]:
    """Towards zero, and where it is NaN or passes ``limit``."""
    fits = (value >= -float(limit)) & (value < float(limit))
    return np.trunc(np.where(fits, value, 0)).astype(np.int64), ~fits


def _rounded_micros(value: Doubles) -> Doubles:
    result: Doubles = np.rint(value * 1e6) / 1e6
    return result


def _carry(high: Int64s, low: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Signs made equal: a unit of ``high`` is ``size`` of ``low``."""
    down = (high > 0) & (low < 0)
    up = (high < 0) & (low > 0)
    return high - down + up, low + size * down.astype(np.int64) - size * up.astype(np.int64)


@implements("justify_days", fallible=True)
def _justify_days(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    value = intervals_of(args[0])
    whole, days = truncated_divmod(value.days, 30)
    months, days = _carry(value.months + whole, days, 30)
    return _checked(Intervals(months, days, value.micros), np.zeros(rows, np.bool_))


@implements("justify_hours", fallible=True)
def _justify_hours(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    value = intervals_of(args[0])
    whole, micros = truncated_divmod(value.micros, DAY_US)
    days, micros = _carry(value.days + whole, micros, DAY_US)
    return _checked(Intervals(value.months, days, micros), np.zeros(rows, np.bool_))


@implements("justify_interval", fallible=True)
def _justify_interval(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    value = intervals_of(args[0])
    whole_days, micros = truncated_divmod(value.micros, DAY_US)
    whole_months, days = truncated_divmod(value.days + whole_days, 30)
    months = value.months + whole_months
    down = (months > 0) & ((days < 0) | ((days == 0) & (micros < 0)))
    up = (months < 0) & ((days > 0) | ((days == 0) & (micros > 0)))
    months = months - down + up
    days = days + 30 * down.astype(np.int64) - 30 * up.astype(np.int64)
    days, micros = _carry(days, micros, DAY_US)
    return _checked(Intervals(months, days, micros), np.zeros(rows, np.bool_))


@implements("make_interval", fallible=True)
def _make_interval(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """years, months, weeks, days, hours, minutes (int), seconds (double); missing ones are 0."""
    parts = [integers(args[i]) for i in range(min(len(args), 6))]
    parts += [np.zeros(rows, np.int64)] * (6 - len(parts))
    years, months, weeks, days, hours, minutes = parts
    seconds = doubles(args[6]) if len(args) > 6 else np.zeros(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        micros, bad = _whole(np.rint(seconds * 1e6), 2**63)
    bad |= multiply_overflows(hours, HOUR_US)
    for part in (hours * HOUR_US, minutes * MINUTE_US):
        micros, overflow = add_checked(micros, part)
        bad |= overflow
    return _checked(Intervals(years * 12 + months, weeks * 7 + days, micros), bad)


declare(
    Overload("+", (K.INTERVAL, K.INTERVAL), INTERVAL, "interval_add"),
    Overload("-", (K.INTERVAL, K.INTERVAL), INTERVAL, "interval_sub"),
    Overload("u-", (K.INTERVAL,), INTERVAL, "interval_neg"),
    Overload("*", (K.INTERVAL, K.DOUBLE), INTERVAL, "interval_mul"),
    Overload("*", (K.DOUBLE, K.INTERVAL), INTERVAL, "mul_interval"),
    Overload("/", (K.INTERVAL, K.DOUBLE), INTERVAL, "interval_div"),
    Overload("justify_days", (K.INTERVAL,), INTERVAL, "justify_days"),
    Overload("justify_hours", (K.INTERVAL,), INTERVAL, "justify_hours"),
    Overload("justify_interval", (K.INTERVAL,), INTERVAL, "justify_interval"),
    *(
        Overload("make_interval", ((K.INTEGER,) * 6 + (K.DOUBLE,))[:count], INTERVAL, "make_interval")
        for count in range(1, 8)
    ),
)
