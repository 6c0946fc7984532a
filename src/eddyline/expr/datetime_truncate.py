"""date_trunc: timestamps, timestamptz (in the session's or a given zone) and intervals cut to a unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.expr.calendar import (
    DAY_US,
    HOUR_US,
    MINUTE_US,
    SECOND_US,
    Int64s,
    civil,
    days_from_civil,
    timestamp_in_range,
)
from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_arithmetic import zone_argument
from eddyline.expr.datetime_columns import (
    TIMESTAMP_LAYOUT,
    TIMESTAMPTZ_LAYOUT,
    infinite_timestamp,
    integers,
    timestamp_column,
    truncated_divmod,
)
from eddyline.expr.datetime_parts import normal_unit, unit_error
from eddyline.expr.interval import Intervals, interval_array, intervals_of
from eddyline.expr.registry import Arguments, Evaluated, Overload, declare, failures, implements
from eddyline.expr.timezone import Zone, zone_of
from eddyline.repr.types import INTERVAL, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType

__all__: list[str] = []

K = Kind

_CLOCK_STEPS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND_US,
    "minute": MINUTE_US,
    "hour": HOUR_US,
}
_MONTH_STEPS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_UNITS: Final = frozenset((*_CLOCK_STEPS, *_MONTH_STEPS, "day", "week"))


def _unit(text: str, kind: Kind) -> str:
    unit = normal_unit(text)
    if unit is not None and unit in _UNITS and not (kind is K.INTERVAL and unit == "week"):
        return unit
    raise unit_error(text, kind, known=unit in ("week", "timezone", "timezone_hour", "timezone_minute"))


def _truncated_local(unit: str, micros: Int64s) -> Int64s:
    """The start of the unit that holds each local time, finite."""
    if unit in _CLOCK_STEPS:
        step = _CLOCK_STEPS[unit]
        return micros // step * step
    days = micros // DAY_US
    if unit == "week":
        days = days - (days + 3) % 7
    elif unit != "day":
        date = civil(days)
        year, month = date.year, date.month
        if unit in ("century", "millennium"):
            size = _MONTH_STEPS[unit] // 12
            year = (year - 1) // size * size + 1  # the first century began with the year 1
        elif unit == "decade":
            year = year // 10 * 10
        month = (month - 1) // 3 * 3 + 1 if unit == "quarter" else month if unit == "month" else np.ones_like(month)
        days = days_from_civil(year, month, np.ones_like(days))
    return days * DAY_US


def _truncated(text: str, kind: Kind, column: pa.Array, zone: Zone | None) -> Evaluated:
    values = integers(column)
    infinite = infinite_timestamp(values)
    layout = TIMESTAMP_LAYOUT if zone is None else TIMESTAMPTZ_LAYOUT
    if infinite.all() and len(values):
        return Evaluated(timestamp_column(values, layout))
    unit = _unit(text, kind)
    finite = np.where(infinite, 0, values)
    if zone is None:
        result = _truncated_local(unit, finite)
    else:
        offset = zone.offset_at(finite) * SECOND_US
        local = _truncated_local(unit, finite + offset)
        # Within a day the offset in force stays; a day or more starts at its own offset.
        result = local - offset if unit in _CLOCK_STEPS else zone.to_utc(local)
    bad = ~infinite & ~timestamp_in_range(result)
    result = np.where(infinite, values, result)
    return Evaluated(timestamp_column(result, layout), failures(bad, "22008", "timestamp out of range"))


@implements("date_trunc_timestamp", fallible=True)
def _trunc_timestamp(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    def compute(text: str, others: Sequence[pa.Array]) -> Evaluated:
        return _truncated(text, K.TIMESTAMP, others[0], None)

    return per_constant(args, 0, TIMESTAMP_LAYOUT, rows, compute)


@implements("date_trunc_timestamptz", fallible=True)
def _trunc_timestamptz(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    zone = zone_argument(args, 2)

    def compute(text: str, others: Sequence[pa.Array]) -> Evaluated:
        return _truncated(text, K.TIMESTAMPTZ, others[0], zone)

    return per_constant(Arguments([args.operand(0), args.operand(1)], rows), 0, TIMESTAMPTZ_LAYOUT, rows, compute)


@implements("date_trunc_zone", fallible=True)
def _trunc_zone(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    def in_zone(name: str, others: Sequence[pa.Array]) -> Evaluated:
        zone = zone_of(name)

        def compute(text: str, values: Sequence[pa.Array]) -> Evaluated:
            return _truncated(text, K.TIMESTAMPTZ, values[0], zone)

        return per_constant(Arguments(others, len(others[0])), 0, TIMESTAMPTZ_LAYOUT, len(others[0]), compute)

    return per_constant(args, 2, TIMESTAMPTZ_LAYOUT, rows, in_zone)


@implements("date_trunc_interval", fallible=True)
def _trunc_interval(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    def compute(text: str, others: Sequence[pa.Array]) -> Evaluated:
        unit = _unit(text, K.INTERVAL)
        value = intervals_of(others[0])
        zeros = np.zeros(len(others[0]), np.int64)
        if unit in _CLOCK_STEPS:
            step = _CLOCK_STEPS[unit]
            cut = Intervals(value.months, value.days, truncated_divmod(value.micros, step)[0] * step)
        elif unit == "day":
            cut = Intervals(value.months, value.days, zeros)
        else:
            step = _MONTH_STEPS[unit]
            cut = Intervals(truncated_divmod(value.months, step)[0] * step, zeros, zeros)
        return Evaluated(interval_array(cut, None))

    return per_constant(args, 0, pa.binary(16), rows, compute)


declare(
    Overload("date_trunc", (K.TEXT, K.TIMESTAMP), TIMESTAMP, "date_trunc_timestamp"),
    Overload("date_trunc", (K.TEXT, K.TIMESTAMPTZ), TIMESTAMPTZ, "date_trunc_timestamptz"),
    Overload("date_trunc", (K.TEXT, K.TIMESTAMPTZ, K.TEXT), TIMESTAMPTZ, "date_trunc_zone"),
    Overload("date_trunc", (K.TEXT, K.INTERVAL), INTERVAL, "date_trunc_interval"),
)
