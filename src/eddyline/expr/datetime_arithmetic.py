"""Operators over dates, times and timestamps: +, -, age, date_bin, isfinite.

Calendar steps of timestamptz happen in a time zone; it is an extra last argument (text, constant) of these
implementations, UTC if absent.  Errors are 22008 unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.expr.calendar import DATE_MAX, DATE_MIN, DAY_US, Bools, Int64s, civil, days_in_month, timestamp_in_range
from eddyline.expr.datetime_columns import (
    TIMESTAMP_LAYOUT,
    TIMESTAMPTZ_LAYOUT,
    add_checked,
    date_column,
    days_to_micros,
    infinite_date,
    infinite_timestamp,
    integers,
    multiply_overflows,
    shift_civil,
    time_column,
    timestamp_column,
    truncated_divmod,
)
from eddyline.expr.interval import Intervals, interval_array, intervals_of
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements, merge_errors
from eddyline.expr.timezone import UTC, Zone, zone_of
from eddyline.repr.types import BOOLEAN, DATE, INTEGER, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType

__all__ = ["add_interval", "age_between", "zone_argument"]

K = Kind


def zone_argument(args: Arguments, index: int) -> Zone:
    """The session's zone, if the binder passed it as argument ``index``."""
    if len(args) <= index:
        return UTC
    scalar = args.constant(index)
    text = scalar.as_py() if scalar is not None else args[index][0].as_py() if len(args[index]) else None
    return UTC if text is None else zone_of(text)


def _negated(step: Intervals) -> Intervals:
    """Exact in int64 but for µs at the very minimum, which wraps to itself."""
    return Intervals(-step.months, -step.days, -step.micros)


def add_interval(micros: Int64s, step: Intervals, zone: Zone | None = None) -> tuple[Int64s, Bools]:
    """Timestamps plus intervals and where that is out of range; ``zone``: for timestamptz, else None."""
    infinite = infinite_timestamp(micros)
    finite = np.where(infinite, 0, micros)
    result, bad = finite, np.zeros(len(micros), np.bool_)
    if step.months.any() or step.days.any():
        local = finite if zone is None else zone.to_local(finite)
        moved, bad = shift_civil(local, step)
        moved = np.where(bad, 0, moved)
        if zone is not None:
            moved = zone.to_utc(moved)
        result = np.where((step.months != 0) | (step.days != 0), moved, finite)
        bad &= (step.months != 0) | (step.days != 0)
    result, overflow = add_checked(result, step.micros)
    bad = (bad | overflow | ~timestamp_in_range(result)) & ~infinite
    return np.where(infinite, micros, result), bad


def _timestamp_step(args: Arguments, ts: int, sign: int, layout: pa.DataType, zone: Zone | None) -> Evaluated:
    step = intervals_of(args[1 - ts])
    result, bad = add_interval(integers(args[ts]), step if sign > 0 else _negated(step), zone)
    return Evaluated(timestamp_column(result, layout), failures(bad, "22008", "timestamp out of range"))


@implements("timestamp_add_interval", fallible=True)
def _timestamp_add(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 0, 1, TIMESTAMP_LAYOUT, None)


@implements("timestamp_sub_interval", fallible=True)
def _timestamp_sub(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 0, -1, TIMESTAMP_LAYOUT, None)


@implements("interval_add_timestamp", fallible=True)
def _interval_timestamp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 1, 1, TIMESTAMP_LAYOUT, None)


@implements("timestamptz_add_interval", fallible=True)
def _timestamptz_add(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 0, 1, TIMESTAMPTZ_LAYOUT, zone_argument(args, 2))


@implements("timestamptz_sub_interval", fallible=True)
def _timestamptz_sub(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 0, -1, TIMESTAMPTZ_LAYOUT, zone_argument(args, 2))


@implements("interval_add_timestamptz", fallible=True)
def _interval_timestamptz(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _timestamp_step(args, 1, 1, TIMESTAMPTZ_LAYOUT, zone_argument(args, 2))


def _date_step(args: Arguments, date: int, sign: int) -> Evaluated:
    micros, unfit = days_to_micros(integers(args[date]))
    step = intervals_of(args[1 - date])
    result, bad = add_interval(micros, step if sign > 0 else _negated(step))
    return Evaluated(
        timestamp_column(result),
        merge_errors(
            failures(unfit, "22008", "date out of range for timestamp"),
            failures(bad, "22008", "timestamp out of range"),
        ),
    )


@implements("date_add_interval", fallible=True)
def _date_add_interval(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_step(args, 0, 1)


@implements("date_sub_interval", fallible=True)
def _date_sub_interval(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_step(args, 0, -1)


@implements("interval_add_date", fallible=True)
def _interval_add_date(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_step(args, 1, 1)


def _date_plus(days: Int64s, count: Int64s) -> Evaluated:
    infinite = infinite_date(days)
    total = np.where(infinite, days, days + count)
    bad = ~infinite & ((total < DATE_MIN) | (total > DATE_MAX))
    return Evaluated(date_column(np.where(bad, 0, total)), failures(bad, "22008", "date out of range"))


@implements("date_add_int", fallible=True)
def _date_add_int(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_plus(integers(args[0]), integers(args[1]))


@implements("int_add_date", fallible=True)
def _int_add_date(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_plus(integers(args[1]), integers(args[0]))


@implements("date_sub_int", fallible=True)
def _date_sub_int(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_plus(integers(args[0]), -integers(args[1]))


@implements("date_sub_date", fallible=True)
def _date_sub_date(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    left, right = integers(args[0]), integers(args[1])
    bad = infinite_date(left) | infinite_date(right)
    difference = np.where(bad, 0, left - right).astype(np.int32)
    return Evaluated(pa.array(difference), failures(bad, "22008", "cannot subtract infinite dates"))


def _date_time(days: Int64s, micros: Int64s) -> Evaluated:
    midnight, unfit = days_to_micros(days)
    infinite = infinite_timestamp(midnight)
    total = np.where(infinite, midnight, midnight + micros)
    late = ~infinite & ~unfit & ~timestamp_in_range(total)
    return Evaluated(
        timestamp_column(total),
        merge_errors(
            failures(unfit, "22008", "date out of range for timestamp"),
            failures(late, "22008", "timestamp out of range"),
        ),
    )


@implements("date_add_time", fallible=True)
def _date_add_time(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_time(integers(args[0]), integers(args[1]))


@implements("time_add_date", fallible=True)
def _time_add_date(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _date_time(integers(args[1]), integers(args[0]))


def _time_plus(micros: Int64s, step: Int64s) -> pa.Array:
    return time_column((micros + np.fmod(step, DAY_US)) % DAY_US)


@implements("time_add_interval")
def _time_add(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _time_plus(integers(args[0]), intervals_of(args[1]).micros)


@implements("interval_add_time")
def _interval_add_time(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _time_plus(integers(args[1]), intervals_of(args[0]).micros)


@implements("time_sub_interval")
def _time_sub(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    return _time_plus(integers(args[0]), -np.fmod(intervals_of(args[1]).micros, DAY_US))


@implements("time_sub_time")
def _time_sub_time(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    zeros = np.zeros(rows, np.int64)
    return interval_array(Intervals(zeros, zeros, integers(args[0]) - integers(args[1])), None)


@implements("timestamp_sub_timestamp", fallible=True)
def _timestamp_difference(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    left, right = integers(args[0]), integers(args[1])
    infinite = infinite_timestamp(left) | infinite_timestamp(right)
    wrapped = left - right
    overflow = (((left ^ right) & (left ^ wrapped)) < 0) & ~infinite
    days, rest = truncated_divmod(np.where(infinite, 0, wrapped), DAY_US)
    return Evaluated(
        interval_array(Intervals(np.zeros(rows, np.int64), days, rest), None),
        merge_errors(
            failures(infinite, "22008", "cannot subtract infinite timestamps"),
            failures(overflow, "22008", "interval out of range"),
        ),
    )


def age_between(left: Int64s, right: Int64s) -> Intervals:
    """years/months, days and time from ``right`` to ``left``, both local and finite, as a calendar counts them.

    The days of a borrowed month are those of the earlier date's month.
    """
    sign = np.where(left < right, -1, 1)
    late, early = np.maximum(left, right), np.minimum(left, right)
    late_day, early_day = civil(late // DAY_US), civil(early // DAY_US)
    time = late % DAY_US - early % DAY_US
    borrow = time < 0
    time = np.where(borrow, time + DAY_US, time)
    day = late_day.day - early_day.day - borrow
    months = (late_day.year - early_day.year) * 12 + late_day.month - early_day.month
    length = days_in_month(early_day.year, early_day.month)
    for _ in range(2):
        short = day < 0
        day = np.where(short, day + length, day)
        months = months - short
    return Intervals(sign * months, sign * day, sign * time)


def _age(args: Arguments, zone: Zone | None) -> Evaluated:
    left, right = integers(args[0]), integers(args[1])
    bad = infinite_timestamp(left) | infinite_timestamp(right)
    left, right = np.where(bad, 0, left), np.where(bad, 0, right)
    if zone is not None:
        left, right = zone.to_local(left), zone.to_local(right)
    return Evaluated(interval_array(age_between(left, right), None), failures(bad, "22008", "timestamp out of range"))


@implements("age_timestamp", fallible=True)
def _age_timestamp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _age(args, None)


@implements("age_timestamptz", fallible=True)
def _age_timestamptz(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _age(args, zone_argument(args, 2))


@implements("date_bin", fallible=True)
def _date_bin(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The start of the bin of width ``args[0]`` that holds ``args[1]``, bins aligned to ``args[2]``."""
    stride, source, origin = intervals_of(args[0]), integers(args[1]), integers(args[2])
    infinite_source, bad_origin = infinite_timestamp(source), infinite_timestamp(origin)
    calendar = stride.months != 0
    width, overflow = add_checked(stride.days * DAY_US, stride.micros)
    overflow |= multiply_overflows(stride.days, DAY_US)
    distance, far = add_checked(np.where(infinite_source, 0, source), -np.where(bad_origin, 0, origin))
    modulo = np.fmod(distance, np.maximum(width, 1))
    delta = distance - modulo - np.where(modulo < 0, np.maximum(width, 0), 0)
    start, late = add_checked(np.where(bad_origin, 0, origin), delta)
    late |= ~timestamp_in_range(start)
    layout = TIMESTAMP_LAYOUT if types[1].kind is K.TIMESTAMP else TIMESTAMPTZ_LAYOUT
    live = ~infinite_source
    return Evaluated(
        timestamp_column(np.where(infinite_source, source, start), layout),
        merge_errors(
            failures(live & bad_origin, "22008", "origin out of range"),
            failures(live & calendar, "0A000", "timestamps cannot be binned into intervals containing months or years"),
            failures(live & (overflow | far), "22008", "interval out of range"),
            failures(live & (width <= 0), "22008", "stride must be greater than zero"),
            failures(live & late, "22008", "timestamp out of range"),
        ),
    )


@implements("isfinite")
def _isfinite(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> pa.Array:
    if types[0].kind is K.INTERVAL:
        return pa.array(np.ones(rows, np.bool_))
    values = integers(args[0])
    return pa.array(~(infinite_date(values) if types[0].kind is K.DATE else infinite_timestamp(values)))


declare(
    Overload("+", (K.TIMESTAMP, K.INTERVAL), TIMESTAMP, "timestamp_add_interval"),
    Overload("+", (K.INTERVAL, K.TIMESTAMP), TIMESTAMP, "interval_add_timestamp"),
    Overload("-", (K.TIMESTAMP, K.INTERVAL), TIMESTAMP, "timestamp_sub_interval"),
    Overload("+", (K.TIMESTAMPTZ, K.INTERVAL), TIMESTAMPTZ, "timestamptz_add_interval"),
    Overload("+", (K.INTERVAL, K.TIMESTAMPTZ), TIMESTAMPTZ, "interval_add_timestamptz"),
    Overload("-", (K.TIMESTAMPTZ, K.INTERVAL), TIMESTAMPTZ, "timestamptz_sub_interval"),
    Overload("+", (K.DATE, K.INTERVAL), TIMESTAMP, "date_add_interval"),
    Overload("+", (K.INTERVAL, K.DATE), TIMESTAMP, "interval_add_date"),
    Overload("-", (K.DATE, K.INTERVAL), TIMESTAMP, "date_sub_interval"),
    Overload("+", (K.DATE, K.INTEGER), DATE, "date_add_int"),
    Overload("+", (K.INTEGER, K.DATE), DATE, "int_add_date"),
    Overload("-", (K.DATE, K.INTEGER), DATE, "date_sub_int"),
    Overload("-", (K.DATE, K.DATE), INTEGER, "date_sub_date"),
    Overload("+", (K.DATE, K.TIME), TIMESTAMP, "date_add_time"),
    Overload("+", (K.TIME, K.DATE), TIMESTAMP, "time_add_date"),
    Overload("+", (K.TIME, K.INTERVAL), TIME, "time_add_interval"),
    Overload("+", (K.INTERVAL, K.TIME), TIME, "interval_add_time"),
    Overload("-", (K.TIME, K.INTERVAL), TIME, "time_sub_interval"),
    Overload("-", (K.TIME, K.TIME), INTERVAL, "time_sub_time"),
    Overload("-", (K.TIMESTAMP, K.TIMESTAMP), INTERVAL, "timestamp_sub_timestamp"),
    Overload("-", (K.TIMESTAMPTZ, K.TIMESTAMPTZ), INTERVAL, "timestamp_sub_timestamp"),
    Overload("age", (K.TIMESTAMP, K.TIMESTAMP), INTERVAL, "age_timestamp"),
    Overload("age", (K.TIMESTAMPTZ, K.TIMESTAMPTZ), INTERVAL, "age_timestamptz"),
    Overload("date_bin", (K.INTERVAL, K.TIMESTAMP, K.TIMESTAMP), TIMESTAMP, "date_bin"),
    Overload("date_bin", (K.INTERVAL, K.TIMESTAMPTZ, K.TIMESTAMPTZ), TIMESTAMPTZ, "date_bin"),
    Overload("isfinite", (K.DATE,), BOOLEAN, "isfinite"),
    Overload("isfinite", (K.TIMESTAMP,), BOOLEAN, "isfinite"),
    Overload("isfinite", (K.TIMESTAMPTZ,), BOOLEAN, "isfinite"),
    Overload("isfinite", (K.INTERVAL,), BOOLEAN, "isfinite"),
)
