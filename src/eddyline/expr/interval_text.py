"""Interval input and output: one value at a time in, PostgreSQL's style "postgres" out.

Input forms: "1 year 2 mons -3 days 04:05:06.7", "1-2", "3 4:05" , "… ago", ISO 8601 ("P1Y2M3DT4H5M6S",
"P0001-02-03T04:05:06").  Malformed text is 22007, a field that does not fit 22015, a result that does not 22008.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import make_error
from eddyline.expr.calendar import DAY_US, HOUR_US, MINUTE_US, SECOND_US, Bools, Int64s
from eddyline.expr.datetime_columns import truncated_divmod
from eddyline.expr.datetime_fields import (
    FieldError,
    FieldKind,
    Token,
    bad_format,
    parse_clock,
    round_half_even,
    tokenize,
)
from eddyline.expr.interval import Intervals
from eddyline.expr.layout import empty_scalar

__all__ = ["UNITS", "Span", "format_interval", "format_intervals", "parse_interval"]


class Span(NamedTuple):
    months: int
    days: int
    micros: int


_TEXT: Final = pa.large_string()
_EMPTY: Final = empty_scalar(_TEXT)
_INT32: Final = 2**31
_INT64: Final = 2**63
_ISO_CHARS: Final = 250
_UNIT_CHARS: Final = 10  # only so many characters of a unit's name count

UNITS: Final[dict[str, str]] = {
    word[:_UNIT_CHARS]: unit
    for unit, words in {
        "microsecond": "us usec usecs usecond useconds microsecon microsecond microseconds",
        "millisecond": "ms msec msecs msecond mseconds millisecon millisecond milliseconds",
        "second": "s sec secs second seconds",
        "minute": "m min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "day": "d day days",
        "week": "w week weeks",
        "month": "mon mons month months",
        "year": "y yr yrs year years",
        "decade": "dec decs decade decades",
        "century": "c cent century centuries",
        "millennium": "mil mils millennia millennium",
    }.items()
    for word in words.split()
}
_MICROS: Final = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND_US,
    "minute": MINUTE_US,
    "hour": HOUR_US,
}
_MONTHS: Final = {"year": 12, "decade": 120, "century": 1200, "millennium": 12000}


class _Sum:
    """The interval so far.  Fractions of a unit spill into the next smaller one, towards zero."""

    def __init__(self) -> None:
        self.years = 0  # apart from months: either must fit int32 by itself
        self.months = 0
        self.days = 0
        self.micros = 0
        self.seen: set[str] = set()

    def add(self, unit: str, whole: int, fraction: float) -> None:
        """``fraction``: in (-1, 1), with the sign of the number as written."""
        if unit in _MICROS:
            scale = _MICROS[unit]
            self.micros += whole * scale + _micros(fraction, scale)
        elif unit == "day":
            self.days += whole
            self.micros += _micros(fraction, DAY_US)
        elif unit == "week":
            self.days += whole * 7
            self._add_days(fraction * 7)
        elif unit == "month":
            self.months += whole
            self._add_days(fraction * 30)
        else:
            scale = _MONTHS[unit]
            self.years += whole * (scale // 12)
            self.months += int(round_half_even(fraction * scale))
        self.check()

    def _add_days(self, days: float) -> None:
        whole = int(days)
        self.days += whole
        self.micros += _micros(days - whole, DAY_US)

    def mark(self, *parts: str) -> None:
        if not self.seen.isdisjoint(parts):
            raise bad_format()
        self.seen.update(parts)

    def check(self) -> None:
        if not (all(-_INT32 <= n < _INT32 for n in (self.years, self.months, self.days)) and self.fits_micros()):
            raise _overflow()

    def fits_micros(self) -> bool:
        return -_INT64 <= self.micros < _INT64


def _overflow() -> FieldError:
    return FieldError("22015", 'interval field value out of range: "{text}"')


def _micros(fraction: float, scale: int) -> int:
    scaled = fraction * scale
    whole = int(scaled)
    rest = scaled - whole
    return whole + (rest > 0.5) - (rest < -0.5)


def parse_interval(text: str) -> Span:
    """The interval that ``text`` means; 22007, 22015 or 22008."""
    try:
        total = _decode(text)
    except FieldError as error:
        raise error.sql_error(text, "interval") from None
    months = total.years * 12 + total.months
    if not -_INT32 <= months < _INT32:
        raise make_error("22008", "interval out of range")
    return Span(months, total.days, total.micros)


def _decode(text: str) -> _Sum:
    try:
        return _decode_fields(tokenize(text))
    except FieldError as error:
        if error.sqlstate != "22007" or not text.startswith("P") or len(text) > _ISO_CHARS:
            raise
        return _decode_iso(text)


def _decode_fields(tokens: list[Token]) -> _Sum:
    """Fields from last to first, so that a unit is known before its number."""
    total = _Sum()
    unit = ""
    negate = False
    for token in reversed(tokens):
        match token.kind:
            case FieldKind.TIME:
                _add_clock(total, token.text, 1)
                unit = "day"
            case FieldKind.ZONE if ":" in token.text:
                _add_clock(total, token.text[1:], -1 if token.text[0] == "-" else 1)
                unit = "day"
            case FieldKind.ZONE | FieldKind.DATE | FieldKind.NUMBER:
                _add_number(total, token.text, unit or "second")
            case FieldKind.WORD | FieldKind.SPECIAL:
                if token.text == "ago":
                    negate, unit = True, "ago"
                elif token.text[:_UNIT_CHARS] in UNITS:
                    unit = UNITS[token.text[:_UNIT_CHARS]]
                else:
                    raise bad_format()
    if not total.seen:
        raise bad_format()
    if negate:
        total.years, total.months = -total.years, -total.months
        total.days, total.micros = -total.days, -total.micros
        total.check()
    return total


_CLOCK_PARTS: Final = ("hour", "minute", "second", "millisecond", "microsecond")


def _add_clock(total: _Sum, text: str, sign: int) -> None:
    total.mark(*_CLOCK_PARTS)
    try:
        hours, minutes, seconds, micros = parse_clock(text)
    except FieldError as error:
        raise _overflow() if error.sqlstate == "22008" else error from None
    total.micros += sign * (((hours * 60 + minutes) * 60 + seconds) * SECOND_US + micros)
    total.check()


_NUMBER: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*)|-([0-9]+))?")


def _add_number(total: _Sum, text: str, unit: str) -> None:
    match = _NUMBER.fullmatch(text)
    if match is None or unit == "ago" or not (match[2] or match[3]):
        raise bad_format()
    sign = -1 if match[1] == "-" else 1
    whole = sign * int(match[2] or 0)
    if not -_INT64 <= whole < _INT64:
        raise _overflow()
    if match[4] is not None:  # years-months
        months = int(match[4])
        if months > 11:
            raise _overflow()
        total.mark("year", "month")
        total.add("month", whole * 12 + sign * months, 0.0)
        return
    fraction = sign * float("0." + match[3]) if match[3] else 0.0
    total.mark(*(("second", "millisecond", "microsecond") if unit == "second" and fraction else (unit,)))
    total.add(unit, whole, fraction)


_ISO_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class _IsoHalf(NamedTuple):
    """How the date or the time half of a duration is written."""

    designators: dict[str, str]
    units: tuple[str, str, str]
    separator: str
    width: int  # digits when run together
    cuts: tuple[int, int]


_ISO_DATE: Final = _IsoHalf(
    {"Y": "year", "M": "month", "W": "week", "D": "day"}, ("year", "month", "day"), "-", 8, (4, 6)
)
_ISO_TIME: Final = _IsoHalf({"H": "hour", "M": "minute", "S": "second"}, ("hour", "minute", "second"), ":", 6, (2, 4))


def _decode_iso(text: str) -> _Sum:
    """ISO 8601 durations: with designators, or "P[yyyy-mm-dd][Thh:mm:ss]", or "P[yyyymmdd][Thhmmss]"."""
    if len(text) < 2:
        raise bad_format()
    total = _Sum()
    date_text, _, time_text = text[1:].partition("T")
    _add_iso_half(total, date_text, _ISO_DATE)
    _add_iso_half(total, time_text, _ISO_TIME)
    return total


def _add_iso_half(total: _Sum, text: str, half: _IsoHalf) -> None:
    position = 0
    while position < len(text):
        match = _ISO_NUMBER.match(text, position)
        if match is None:
            raise bad_format()
        designator = text[match.end() : match.end() + 1]
        if designator in half.designators:
            _add_iso(total, half.designators[designator], match[0])
            position = match.end() + 1
            continue
        if position or designator not in ("", half.separator):
            raise bad_format()
        _add_iso_plain(total, text, half, alone=not designator)
        return


def _add_iso_plain(total: _Sum, text: str, half: _IsoHalf, *, alone: bool) -> None:
    """Numbers without designators."""
    numbers = text.split(half.separator)
    digits = text.lstrip("+-").partition(".")[0]
    if alone and len(digits) == half.width:
        first, second = (cut + len(text) - len(text.lstrip("+-")) for cut in half.cuts)
        numbers = [text[:first], text[first:second], text[second:]]
    if len(numbers) > 3:
        raise bad_format()
    for unit, number in zip(half.units, numbers, strict=False):
        if _ISO_NUMBER.fullmatch(number) is None:
            raise bad_format()
        _add_iso(total, unit, number)


def _add_iso(total: _Sum, unit: str, number: str) -> None:
    try:
        value = float(number)
    except ValueError:
        raise bad_format() from None
    if abs(value) >= _INT32 * 2**32:
        raise _overflow()
    exact = number.partition(".")[0] if "e" not in number.lower() else ""
    whole = int(exact) if exact.lstrip("+-") else int(value)
    fraction = value - whole
    total.add(unit, whole, fraction)


def format_interval(months: int, days: int, micros: int) -> str:
    """PostgreSQL's text of one interval: "1 year 2 mons -3 days +04:05:06.7"."""
    pieces: list[str] = []
    before_negative = False
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    for value, unit in ((sign * years, "year"), (sign * rest, "mon"), (days, "day")):
        if value:
            plus = "+" if before_negative and value > 0 else ""
            pieces.append(f"{plus}{value} {unit}{'' if value == 1 else 's'}")
            before_negative = value < 0
    if micros or not pieces:
        mark = "-" if micros < 0 else "+" if before_negative else ""
        seconds, fraction = divmod(abs(micros), SECOND_US)
        decimals = f".{fraction:06}".rstrip("0") if fraction else ""
        pieces.append(f"{mark}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{decimals}")
    return " ".join(pieces)


def format_intervals(value: Intervals) -> pa.Array:
    """large_string[n]: what ``format_interval`` prints, column by column."""
    years, months = truncated_divmod(value.months, 12)
    negative = np.zeros(len(years), np.bool_)
    pieces: list[pa.Array] = []
    for count, unit in ((years, "year"), (months, "mon"), (value.days, "day")):
        given = count != 0
        plus = _where(negative & (count > 0), "+", "")
        ending = _where(count == 1, f" {unit}", f" {unit}s")
        text = pc.binary_join_element_wise(plus, pc.cast(pa.array(count), _TEXT), ending, _EMPTY)
        pieces.append(pc.if_else(pa.array(given), text, pa.scalar(None, _TEXT)))
        negative = np.where(given, count < 0, negative)
    silent = (value.micros == 0) & ((value.months != 0) | (value.days != 0))
    sign = pc.if_else(pa.array(value.micros < 0), pa.scalar("-", _TEXT), _where(negative, "+", ""))
    clock = pc.binary_join_element_wise(sign, _clock_texts(value.micros), _EMPTY)
    pieces.append(pc.if_else(pa.array(silent), pa.scalar(None, _TEXT), clock))
    return pc.binary_join_element_wise(*pieces, pa.scalar(" ", _TEXT), null_handling="skip")


def _where(condition: Bools, true: str, false: str) -> pa.Array:
    return pc.if_else(pa.array(condition), pa.scalar(true, _TEXT), pa.scalar(false, _TEXT))


def _clock_texts(micros: Int64s) -> pa.Array:
    """ "hh:mm:ss[.f]" of the absolute time; hours have two digits or more."""
    size = np.abs(micros).view(np.uint64)  # the least int64 has no positive twin there
    seconds, fraction = size // SECOND_US, size % SECOND_US
    fields = [
        pc.utf8_lpad(pc.cast(pa.array(part), _TEXT), 2, "0")
        for part in (seconds // 3600, seconds // 60 % 60, seconds % 60)
    ]
    text = pc.binary_join_element_wise(*fields, pa.scalar(":", _TEXT))
    if not fraction.any():
        return text
    decimals = pc.utf8_rtrim(pc.utf8_lpad(pc.cast(pa.array(fraction), _TEXT), 6, "0"), "0")
    point = _where(fraction != 0, ".", "")
    return pc.binary_join_element_wise(text, point, decimals, _EMPTY)
