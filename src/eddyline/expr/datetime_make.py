"""Dates and times made from numbers (make_date, make_time, make_timestamp, to_timestamp), and AT TIME ZONE.

Parts out of range are 22008, zones that do not exist 22023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.calendar import (
    DATE_MAX,
    DATE_MIN,
    DAY_US,
    SECOND_US,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    TIMESTAMP_MINUS_INFINITY,
    Bools,
    Int64s,
    days_from_civil,
    days_in_month,
    timestamp_in_range,
)
from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_arithmetic import zone_argument
from eddyline.expr.datetime_columns import (
    TIMESTAMP_LAYOUT,
    TIMESTAMPTZ_LAYOUT,
    date_column,
    infinite_timestamp,
    integers,
    time_column,
    timestamp_column,
)
from eddyline.expr.datetime_fields import FieldError, parse_offset
from eddyline.expr.interval import Intervals, intervals_of
from eddyline.expr.interval_arithmetic import doubles
from eddyline.expr.interval_text import format_interval
from eddyline.expr.registry import (
    Arguments,
    Evaluated,
    Overload,
    RowErrors,
    declare,
    failures,
    implements,
    merge_errors,
)
from eddyline.expr.timezone import Zone, fixed_zone, zone_of
from eddyline.repr.types import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType

__all__: list[str] = []

K = Kind

_EPOCH_2000 = 946_684_800.0  # seconds, exact in a double


def _messages(where: Bools, template: str, *parts: Any) -> RowErrors | None:
    rows = np.flatnonzero(where)
    return failures(rows, "22008", [template % tuple(p[row] for p in parts) for row in rows.tolist()])


def _days(args: Arguments) -> tuple[Int64s, RowErrors | None]:
    """Days of (year, month, day); a negative year is BC."""
    year, month, day = (integers(args[i]) for i in range(3))
    astronomical = np.where(year < 0, year + 1, year)
    bad = (year == 0) | (month < 1) | (month > 12) | (day < 1)
    month_in = np.where(bad, 1, month)
    bad |= day > days_in_month(astronomical, month_in)
    days = days_from_civil(np.where(bad, 2000, astronomical), month_in, np.where(bad, 1, day))
    return days, _messages(bad, "date field value out of range: %d-%02d-%02d", astronomical, month, day)


def _clock(args: Arguments, first: int) -> tuple[Int64s, RowErrors | None]:
    """µs of (hour, minute, second); 24:00:00 is allowed, and 60 seconds, which carry."""
    hour, minute = integers(args[first]), integers(args[first + 1])
    second = doubles(args[first + 2])
    nan = np.isnan(second)
    micros = np.rint(np.where(nan | (np.abs(second) > 61), 61, second) * 1e6).astype(np.int64)
    bad = (hour < 0) | (hour > 24) | (minute < 0) | (minute > 59) | nan | (micros < 0) | (micros > 60 * SECOND_US)
    total = np.where(bad, 0, (hour * 60 + minute) * 60 * SECOND_US + micros)
    bad |= total > DAY_US
    shown = [_seconds_text(float(s)) for s in second] if bad.any() else []
    return np.where(bad, 0, total), _messages(bad, "time field value out of range: %d:%02d:%s", hour, minute, shown)


def _seconds_text(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if math.isnan(value) else f"{value:02g}"


@implements("make_date", fallible=True)
def _make_date(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    days, errors = _days(args)
    far = (days < DATE_MIN) | (days > DATE_MAX)
    year, month, day = (integers(args[i]) for i in range(3))
    return Evaluated(
        date_column(np.where(far, 0, days)),
        merge_errors(errors, _messages(far, "date out of range: %d-%02d-%02d", year, month, day)),
    )


@implements("make_time", fallible=True)
def _make_time(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    micros, errors = _clock(args, 0)
    return Evaluated(time_column(micros), errors)


def _timestamp(args: Arguments) -> tuple[Int64s, RowErrors | None]:
    days, bad_date = _days(args)
    micros, bad_time = _clock(args, 3)
    no_date = (days < DATE_MIN) | (days > DATE_MAX)
    far = np.abs(days) > TIMESTAMP_MAX // DAY_US
    total = np.where(far, 0, days) * DAY_US + micros
    far |= ~timestamp_in_range(total)
    parts = [integers(args[i]) for i in range(5)]
    seconds = [_seconds_text(float(s)) for s in doubles(args[5])] if far.any() else []
    unfit = _messages(no_date, "date out of range: %d-%02d-%02d", *parts[:3])
    late = _messages(far, "timestamp out of range: %d-%02d-%02d %d:%02d:%s", *parts, seconds)
    return np.where(far, 0, total), merge_errors(bad_date, unfit, bad_time, late)


@implements("make_timestamp", fallible=True)
def _make_timestamp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    micros, errors = _timestamp(args)
    return Evaluated(timestamp_column(micros), errors)


@implements("make_timestamptz", fallible=True)
def _make_timestamptz(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """Year to second, in the zone of a seventh argument."""
    local, errors = _timestamp(args)

    def compute(name: str, others: Sequence[pa.Array]) -> Evaluated:
        return _to_utc(integers(others[0]), _zone_or_offset(name))

    if len(args) == 6:
        placed = _to_utc(local, zone_argument(args, 6))
    else:
        operands = Arguments([timestamp_column(local), args.operand(6)], rows)
        placed = per_constant(operands, 1, TIMESTAMPTZ_LAYOUT, rows, compute)
    return Evaluated(placed.array, merge_errors(errors, placed.errors))


def _zone_or_offset(name: str) -> Zone:
    """A zone, or an offset with a sign: positive is east here."""
    if name[:1] not in ("+", "-"):
        if name[:1].isdigit():
            raise make_error(
                "22023",
                f'invalid input syntax for type numeric time zone: "{name}"',
                hint='Numeric time zones must have "-" or "+" as first character.',
            )
        return zone_of(name)
    try:
        return fixed_zone(parse_offset(name))
    except FieldError as error:
        if error.sqlstate == "22009":
            raise make_error("22023", f'numeric time zone "{name}" out of range') from None
        raise make_error("22023", f'time zone "{name}" not recognized') from None


@implements("to_timestamp", fallible=True)
def _to_timestamp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """timestamptz of seconds since 1970."""
    seconds = doubles(args[0])
    nan, infinite = np.isnan(seconds), np.isinf(seconds)
    with np.errstate(over="ignore", invalid="ignore"):
        micros = np.rint((seconds - _EPOCH_2000) * 1e6) + _EPOCH_2000 * 1e6  # rounded at the distance from 2000
    far = ~nan & ~infinite & ~((micros >= TIMESTAMP_MIN) & (micros < float(TIMESTAMP_MAX)))
    value = np.where(nan | infinite | far, 0, micros).astype(np.int64)
    value = np.where(infinite, np.where(seconds > 0, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY), value)
    return Evaluated(
        timestamp_column(value, TIMESTAMPTZ_LAYOUT),
        merge_errors(
            failures(nan, "22008", "timestamp cannot be NaN"),
            _messages(far, 'timestamp out of range: "%g"', seconds),
        ),
    )


def _to_utc(local: Int64s, zone: Zone) -> Evaluated:
    return _moved(local, zone.to_utc(local), TIMESTAMPTZ_LAYOUT)


def _to_local(micros: Int64s, zone: Zone) -> Evaluated:
    return _moved(micros, zone.to_local(micros), TIMESTAMP_LAYOUT)


def _moved(before: Int64s, after: Int64s, layout: pa.DataType) -> Evaluated:
    infinite = infinite_timestamp(before)
    # An offset is less than two days, so that a wrapped sum has the other sign.
    wrapped = (np.abs(before) > TIMESTAMP_MAX // 2) & ((before < 0) != (after < 0))
    bad = ~infinite & (wrapped | ~timestamp_in_range(after))
    return Evaluated(timestamp_column(after, layout), failures(bad, "22008", "timestamp out of range"))


@implements("timezone_timestamp", fallible=True)
def _at_zone(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """timestamp AT TIME ZONE name: the moment at which clocks there show it."""

    def compute(name: str, others: Sequence[pa.Array]) -> Evaluated:
        return _to_utc(integers(others[0]), zone_of(name))

    return per_constant(args, 0, TIMESTAMPTZ_LAYOUT, rows, compute)


@implements("timezone_timestamptz", fallible=True)
def _in_zone(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """timestamptz AT TIME ZONE name: what clocks there show."""

    def compute(name: str, others: Sequence[pa.Array]) -> Evaluated:
        return _to_local(integers(others[0]), zone_of(name))

    return per_constant(args, 0, TIMESTAMP_LAYOUT, rows, compute)


def _interval_zone(packed: bytes) -> Zone:
    offset = intervals_of(pa.array([packed], pa.binary(16)))
    value = Intervals(*(part[:1] for part in offset))
    months, days, micros = (int(part[0]) for part in value)
    if months or days:
        shown = format_interval(months, days, micros)
        raise make_error("22023", f'interval time zone "{shown}" must not include months or days')
    return fixed_zone(int(micros / SECOND_US))


@implements("timezone_interval_timestamp", fallible=True)
def _at_offset(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    def compute(packed: bytes, others: Sequence[pa.Array]) -> Evaluated:
        return _to_utc(integers(others[0]), _interval_zone(packed))

    return per_constant(args, 0, TIMESTAMPTZ_LAYOUT, rows, compute)


@implements("timezone_interval_timestamptz", fallible=True)
def _in_offset(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    def compute(packed: bytes, others: Sequence[pa.Array]) -> Evaluated:
        return _to_local(integers(others[0]), _interval_zone(packed))

    return per_constant(args, 0, TIMESTAMP_LAYOUT, rows, compute)


_DATE_PARTS = (K.INTEGER, K.INTEGER, K.INTEGER)
_TIME_PARTS = (K.INTEGER, K.INTEGER, K.DOUBLE)

declare(
    Overload("make_date", _DATE_PARTS, DATE, "make_date"),
    Overload("make_time", _TIME_PARTS, TIME, "make_time"),
    Overload("make_timestamp", _DATE_PARTS + _TIME_PARTS, TIMESTAMP, "make_timestamp"),
    Overload("make_timestamptz", _DATE_PARTS + _TIME_PARTS, TIMESTAMPTZ, "make_timestamptz"),
    Overload("make_timestamptz", (*_DATE_PARTS, *_TIME_PARTS, K.TEXT), TIMESTAMPTZ, "make_timestamptz"),
    Overload("to_timestamp", (K.DOUBLE,), TIMESTAMPTZ, "to_timestamp"),
    Overload("timezone", (K.TEXT, K.TIMESTAMP), TIMESTAMPTZ, "timezone_timestamp"),
    Overload("timezone", (K.TEXT, K.TIMESTAMPTZ), TIMESTAMP, "timezone_timestamptz"),
    Overload("timezone", (K.INTERVAL, K.TIMESTAMP), TIMESTAMPTZ, "timezone_interval_timestamp"),
    Overload("timezone", (K.INTERVAL, K.TIMESTAMPTZ), TIMESTAMP, "timezone_interval_timestamptz"),
)
