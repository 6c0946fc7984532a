"""extract and date_part: one field of a date, time, timestamp or interval.

A field's value is an integer over a power of ten (the display scale that extract's numeric has).  The julian field
alone is computed in decimal.  Unknown fields are 22023, fields that the type lacks 0A000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.calendar import (
    DAY_US,
    HOUR_US,
    MINUTE_US,
    SECOND_US,
    UNIX_EPOCH_JULIAN,
    Bools,
    Int64s,
    civil,
    days_from_civil,
    iso_week,
)
from eddyline.expr.constants import per_constant
from eddyline.expr.datetime_arithmetic import zone_argument
from eddyline.expr.datetime_columns import infinite_date, infinite_timestamp, integers, truncated_divmod
from eddyline.expr.datetime_fields import RELATIVE_WORDS
from eddyline.expr.interval import Intervals, intervals_of
from eddyline.expr.interval_text import UNITS
from eddyline.expr.registry import Arguments, Evaluated, Overload, RowErrors, declare, failures, implements
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import DOUBLE, NUMERIC, NUMERIC_BYTES, Kind, SqlType, arrow_type

__all__ = ["has_field", "normal_unit", "unit_error"]

K = Kind

_FIELDS: Final = {
    "quarter": "quarter", "qtr": "quarter", "dow": "dow", "isodow": "isodow", "doy": "doy", "isoyear": "isoyear",
    "julian": "julian", "jd": "julian", "j": "julian", "epoch": "epoch", "timezone": "timezone",
    "timezone_h": "timezone_hour", "timezone_m": "timezone_minute",
}  # fmt: skip
_MONOTONE: Final = frozenset(("year", "decade", "century", "millennium", "julian", "isoyear", "epoch"))
_ZONED: Final = frozenset(("timezone", "timezone_hour", "timezone_minute"))
_DATE_FIELDS: Final = _MONOTONE | frozenset(("day", "month", "quarter", "week", "dow", "isodow", "doy"))
_RESERVED: Final = RELATIVE_WORDS | {"infinity", "-infinity", "allballs"}
_TIME_SCALES: Final = {"microsecond": 0, "millisecond": 3, "second": 6}


def normal_unit(text: str) -> str | None:
    """The canonical name of a field, None if there is no such field."""
    word = text.lower()[:10]
    return UNITS.get(word) or _FIELDS.get(word)


def unit_error(text: str, kind: Kind, *, known: bool) -> DatabaseError:
    unit = text.lower()
    if known:
        return make_error("0A000", f'unit "{unit}" not supported for type {kind.value}')
    return make_error("22023", f'unit "{unit}" not recognized for type {kind.value}')


def _clock(unit: str, micros: Int64s) -> tuple[Int64s, int] | None:
    """Fields of µs (of the day, or an interval's, which may be negative)."""
    minutes_rest = np.fmod(micros, MINUTE_US)
    if unit in _TIME_SCALES:
        return minutes_rest, _TIME_SCALES[unit]
    if unit == "minute":
        return truncated_divmod(np.fmod(micros, HOUR_US), MINUTE_US)[0], 0
    if unit == "hour":
        return truncated_divmod(micros, HOUR_US)[0], 0
    return None


def _era_steps(year: Int64s, size: int) -> Int64s:
    """Which century or millennium a year is in: the first has the years 1 to ``size``."""
    return np.where(year > 0, (year + size - 1) // size, -((size - 1 - (year - 1)) // size))


def _calendar(unit: str, days: Int64s) -> Int64s | None:
    """Fields of dates, finite."""
    date = civil(days)
    year = date.year
    ones = np.ones_like(days)
    compute: dict[str, Callable[[], Int64s]] = {
        "day": lambda: date.day,
        "month": lambda: date.month,
        "quarter": lambda: (date.month - 1) // 3 + 1,
        "year": lambda: np.where(year > 0, year, year - 1),
        "decade": lambda: np.where(year >= 0, year // 10, -((8 - (year - 1)) // 10)),
        "century": lambda: _era_steps(year, 100),
        "millennium": lambda: _era_steps(year, 1000),
        "dow": lambda: (days + 4) % 7,
        "isodow": lambda: (days + 3) % 7 + 1,
        "doy": lambda: days - days_from_civil(year, ones, ones) + 1,
        "week": lambda: iso_week(days)[1],
        "isoyear": lambda: _iso_year(days),
    }
    return compute[unit]() if unit in compute else None


def _iso_year(days: Int64s) -> Int64s:
    year = iso_week(days)[0]
    return np.where(year > 0, year, year - 1)


def _date_part(unit: str, days: Int64s) -> tuple[Int64s, int] | None:
    if unit == "julian":
        return days + UNIX_EPOCH_JULIAN, 0
    if unit == "epoch":
        return days * 86_400, 0
    value = _calendar(unit, days) if unit in _DATE_FIELDS else None
    return None if value is None else (value, 0)


def _timestamp_part(unit: str, micros: Int64s, zone: Zone | None) -> tuple[Int64s, int] | None:
    """``micros``: finite; ``zone``: of a timestamptz, else None."""
    if unit == "epoch":
        return micros, 6
    if unit in _ZONED:
        if zone is None:
            return None
        offset = zone.offset_at(micros)
        whole = truncated_divmod(offset, 3600)[0]
        minutes = truncated_divmod(np.fmod(offset, 3600), 60)[0]
        return {"timezone": offset, "timezone_hour": whole, "timezone_minute": minutes}[unit], 0
    local = micros if zone is None else zone.to_local(micros)
    days = local // DAY_US
    clock = _clock(unit, local - days * DAY_US)
    if clock is not None:
        return clock
    value = _calendar(unit, days)
    return None if value is None else (value, 0)


def _interval_part(unit: str, value: Intervals) -> tuple[Int64s, int] | None:
    clock = _clock(unit, value.micros)
    if clock is not None:
        return clock
    years, months = truncated_divmod(value.months, 12)
    if unit == "epoch":  # a year is 365.25 days here
        seconds = (1461 * years + 120 * months + 4 * value.days) * 21_600
        return seconds * SECOND_US + value.micros, 6
    sizes = {"decade": 10, "century": 100, "millennium": 1000}
    if unit in sizes:
        return truncated_divmod(years, sizes[unit])[0], 0
    parts = {"year": years, "month": months, "day": value.days}
    if unit == "quarter":
        return truncated_divmod(months, 3)[0] + 1, 0
    return (parts[unit], 0) if unit in parts else None


_Part = tuple[npt.NDArray[np.int64], int]


class _Field:
    """One field of one column: its integers and scale, and the rows that are infinite (sign) instead."""

    def __init__(self, text: str, kind: Kind, column: pa.Array, zone: Zone | None) -> None:
        unit = normal_unit(text)
        self.unit = unit or ""
        self.interval: Intervals | None = None
        self.infinite: Bools = np.zeros(len(column), np.bool_)
        if unit is None:
            known = text.lower() in _RESERVED and kind not in (K.TIME, K.INTERVAL)
            raise unit_error(text, kind, known=known)
        if kind is K.INTERVAL:
            self.interval = intervals_of(column)
            part = _interval_part(unit, self.interval)
        else:
            values = integers(column)
            self.negative: Bools = values < 0
            if kind is not K.TIME:
                self.infinite = infinite_date(values) if kind is K.DATE else infinite_timestamp(values)
            self.finite = np.where(self.infinite, 0, values)
            part = self._part(unit, kind, zone)
        if part is None:
            raise unit_error(text, kind, known=True)
        self.value, self.scale = part

    def _part(self, unit: str, kind: Kind, zone: Zone | None) -> _Part | None:
        if kind is K.DATE:
            return _date_part(unit, self.finite)
        if kind is K.TIME:
            return (self.finite, 6) if unit == "epoch" else _clock(unit, self.finite)
        if unit == "julian":
            return (self.finite if zone is None else zone.to_local(self.finite)), -1
        return _timestamp_part(unit, self.finite, zone)

    def nulls(self) -> Bools | None:
        """Where the value is NULL: fields of infinity that do not grow with time."""
        return self.infinite if self.unit not in _MONOTONE and self.infinite.any() else None

    def numeric(self) -> Evaluated:
        """numeric with a scale per value; infinity does not fit it."""
        nulls = self.nulls()
        bad: RowErrors | None = None
        if nulls is None:
            bad = failures(self.infinite, "0A000", "numeric infinity is not supported")
        words = _julian_words(self.value) if self.scale < 0 else _words(self.value, self.scale)
        valid = None if nulls is None else pa.array(~nulls).buffers()[1]
        layout = pa.binary(NUMERIC_BYTES)
        return Evaluated(pa.Array.from_buffers(layout, len(words), [valid, pa.py_buffer(words)]), bad)

    @staticmethod
    def _interval_seconds(value: Intervals) -> npt.NDArray[np.float64]:
        """The sum in PostgreSQL's order, so that it rounds the same."""
        years, months = truncated_divmod(value.months, 12)
        seconds: npt.NDArray[np.float64] = value.micros / 1e6
        for count, size in ((years, 365.25), (months, 30.0), (value.days, 1.0)):
            seconds = seconds + size * 86_400.0 * count
        return seconds

    def double(self) -> Evaluated:
        value = self.value.astype(np.float64)
        if self.scale < 0:
            days = self.value // DAY_US
            result = (days + UNIX_EPOCH_JULIAN) + (self.value - days * DAY_US) / float(DAY_US)
        elif self.unit in ("second", "millisecond"):
            whole, rest = truncated_divmod(self.value, SECOND_US)
            per_second = 1.0 if self.unit == "second" else 1000.0
            result = whole * per_second + rest / (1e6 / per_second)
        elif self.interval is not None and self.unit == "epoch":
            result = self._interval_seconds(self.interval)
        else:
            result = value / 10.0**self.scale
        if self.infinite.any():
            result = np.where(self.infinite, np.where(self.negative, -np.inf, np.inf), result)
        nulls = self.nulls()
        return Evaluated(pa.array(result, pa.float64(), mask=nulls))


def _words(value: Int64s, scale: int) -> Int64s:
    return np.ascontiguousarray(np.column_stack([value, value >> 63, np.full(len(value), scale, np.int64)]))


_EXACT: Final = Context(prec=60)
_DAY_LEAD: Final = 864  # leading base-10000 digit of the µs of a day, which have three


def _julian_words(micros: Int64s) -> Int64s:
    """Julian days as numeric words: whole days plus a quotient with PostgreSQL's division scale."""
    distinct, codes = np.unique(micros, return_inverse=True)
    rows = [_julian(int(m)) for m in distinct]
    words = np.array(rows, np.uint64).view(np.int64).reshape(-1, 3) if rows else np.empty((0, 3), np.int64)
    return np.ascontiguousarray(words[codes.ravel()])


def _julian(micros: int) -> tuple[int, int, int]:
    days, rest = divmod(micros, DAY_US)
    weight, lead = 0, rest
    while lead >= 10_000:
        weight, lead = weight + 1, lead // 10_000
    scale = 16 - 4 * (weight - 2 - (lead <= _DAY_LEAD))
    quotient = _EXACT.divide(Decimal(rest), Decimal(DAY_US)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    coefficient = (days + UNIX_EPOCH_JULIAN) * 10**scale + int(quotient.scaleb(scale, _EXACT))
    return coefficient & (2**64 - 1), (coefficient >> 64) & (2**64 - 1), scale


def has_field(text: str, kind: Kind) -> bool:
    """Whether values of ``kind`` have the field."""
    try:
        _Field(text, kind, pa.array([], arrow_type(SqlType(kind))), UTC if kind is K.TIMESTAMPTZ else None)
    except DatabaseError:  # it is reported where a row meets it
        return False
    return True


def _field(args: Arguments, types: Sequence[SqlType], rows: int, *, exact: bool) -> Evaluated:
    kind = types[1].kind
    zone = zone_argument(args, 2) if kind is K.TIMESTAMPTZ else None
    operands = Arguments([args.operand(0), args.operand(1)], rows)

    def compute(text: str, others: Sequence[pa.Array]) -> Evaluated:
        field = _Field(text, kind, others[0], zone)
        return field.numeric() if exact else field.double()

    return per_constant(operands, 0, pa.binary(NUMERIC_BYTES) if exact else pa.float64(), rows, compute)


@implements("extract", fallible=True)
def _extract(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _field(args, types, rows, exact=True)


@implements("date_part", fallible=True)
def _part(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return _field(args, types, rows, exact=False)


_KINDS: Final = (K.DATE, K.TIME, K.TIMESTAMP, K.TIMESTAMPTZ, K.INTERVAL)

declare(
    *(Overload("extract", (K.TEXT, kind), NUMERIC, "extract") for kind in _KINDS),
    *(Overload("date_part", (K.TEXT, kind), DOUBLE, "date_part") for kind in _KINDS if kind is not K.DATE),
    Overload("date_part", (K.TEXT, K.DATE), DOUBLE, "date_part", evaluated=(K.TEXT, K.TIMESTAMP)),
)
