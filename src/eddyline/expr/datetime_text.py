"""Text input and output of date, time, timestamp and timestamptz (DateStyle ISO, MDY).

``parse_*`` and ``format_*`` take one value, ``*_from_text`` and ``*_to_text`` columns.  Values are what columns
store: days, µs of the day, µs since 1970.  A time zone is always a parameter.  Input errors: 22007 malformed,
22008 out of range, 22009 bad offset, 22023 unknown zone, 0A000 for words that mean the current time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.calendar import (
    DATE_INFINITY,
    DATE_MAX,
    DATE_MIN,
    DATE_MINUS_INFINITY,
    DAY_US,
    SECOND_US,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    TIMESTAMP_MINUS_INFINITY,
    Int64s,
    civil,
)
from eddyline.expr.datetime_fields import FieldError, Parts
from eddyline.expr.datetime_parse import civil_day, decode, decode_time
from eddyline.expr.interval import INTERVAL_DTYPE, intervals_of
from eddyline.expr.interval_text import format_interval, format_intervals, parse_interval
from eddyline.expr.registry import Evaluated
from eddyline.expr.rowwise import map_rows
from eddyline.expr.timezone import UTC, Zone, zone_of

__all__ = [
    "dates_from_text",
    "dates_to_text",
    "format_date",
    "format_interval",
    "format_offset",
    "format_time",
    "format_timestamp",
    "format_timestamptz",
    "intervals_from_text",
    "intervals_to_text",
    "parse_date",
    "parse_interval",
    "parse_time",
    "parse_timestamp",
    "parse_timestamptz",
    "times_from_text",
    "times_to_text",
    "timestamps_from_text",
    "timestamps_to_text",
    "timestamptzs_from_text",
    "timestamptzs_to_text",
]


def _decoded(text: str, type_name: str, decoder: Callable[[str], Parts] = decode) -> Parts:
    try:
        return decoder(text)
    except FieldError as error:
        raise error.sql_error(text, type_name) from None


def _out_of_range(type_name: str, text: str) -> DatabaseError:
    return make_error("22008", f'{type_name} out of range: "{text}"')


def _day_of(parts: Parts) -> int:
    return parts.day if parts.special == "julian" else civil_day(parts.year, parts.month, parts.day)


def parse_date(text: str) -> int:
    """Days since 1970-01-01."""
    parts = _decoded(text, "date")
    match parts.special:
        case "epoch":
            return 0
        case "infinity":
            return DATE_INFINITY
        case "-infinity":
            return DATE_MINUS_INFINITY
    day = _day_of(parts)
    if not DATE_MIN <= day <= DATE_MAX:
        raise _out_of_range("date", text)
    return day


def parse_time(text: str) -> int:
    """µs of the day, 24:00:00 included."""
    return _decoded(text, "time", decode_time).micros


def parse_timestamp(text: str) -> int:
    """µs since 1970-01-01; a time zone in the text is ignored."""
    parts = _decoded(text, "timestamp")
    special = _special_timestamp(parts)
    if special is not None:
        return special
    micros = _day_of(parts) * DAY_US + parts.micros
    if not TIMESTAMP_MIN <= micros <= TIMESTAMP_MAX:
        raise _out_of_range("timestamp", text)
    return micros


def parse_timestamptz(text: str, zone: Zone = UTC) -> int:
    """µs since 1970-01-01 UTC; ``zone`` is that of texts without one."""
    parts = _decoded(text, "timestamp with time zone")
    special = _special_timestamp(parts)
    if special is not None:
        return special
    micros = _day_of(parts) * DAY_US + parts.micros
    if not TIMESTAMP_MIN <= micros <= TIMESTAMP_MAX:
        raise _out_of_range("timestamp", text)
    micros -= _offset_of(parts, micros, zone) * SECOND_US
    if not TIMESTAMP_MIN <= micros <= TIMESTAMP_MAX:
        raise _out_of_range("timestamp", text)
    return micros


def _offset_of(parts: Parts, local: int, zone: Zone) -> int:
    if "zone" in parts.seen and parts.zone is None:
        return parts.offset
    named = zone_of(parts.zone) if parts.zone is not None else zone
    return int(named.offset_of_local(np.array([local], np.int64))[0])


def _special_timestamp(parts: Parts) -> int | None:
    match parts.special:
        case "epoch":
            return 0
        case "infinity":
            return TIMESTAMP_INFINITY
        case "-infinity":
            return TIMESTAMP_MINUS_INFINITY
    return None


def format_date(days: int) -> str:
    if days in (DATE_INFINITY, DATE_MINUS_INFINITY):
        return "infinity" if days > 0 else "-infinity"
    date, era = _civil_text(days)
    return date + era


def _civil_text(days: int) -> tuple[str, str]:
    year, month, day = (int(part[0]) for part in civil(np.array([days], np.int64)))
    era = ""
    if year <= 0:
        year, era = 1 - year, " BC"
    return f"{year:04}-{month:02}-{day:02}", era


def format_time(micros: int) -> str:
    seconds, fraction = divmod(micros, SECOND_US)
    decimals = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{decimals}"


def format_timestamp(micros: int) -> str:
    return _timestamp_text(micros, "")


def format_timestamptz(micros: int, zone: Zone = UTC) -> str:
    if micros in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY):
        return format_timestamp(micros)
    offset = int(zone.offset_at(np.array([micros], np.int64))[0])
    return _timestamp_text(micros + offset * SECOND_US, format_offset(offset))


def _timestamp_text(micros: int, suffix: str) -> str:
    if micros in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY):
        return "infinity" if micros > 0 else "-infinity"
    days, rest = divmod(micros, DAY_US)
    date, era = _civil_text(days)
    return f"{date} {format_time(rest)}{suffix}{era}"


def format_offset(seconds: int) -> str:
    """ "+02", "-03:30", "-04:56:02"."""
    sign = "-" if seconds < 0 else "+"
    minutes, second = divmod(abs(seconds), 60)
    hours, minute = divmod(minutes, 60)
    text = f"{sign}{hours:02}"
    if minute or second:
        text += f":{minute:02}"
    return f"{text}:{second:02}" if second else text


# Columns.  Years 1000 to 9999 print through Arrow's casts, which pad no shorter and no longer year.

_PLAIN_DAYS: Final = (civil_day(1, 1, 1), civil_day(9999, 12, 31))
_ISO_DATE: Final = r"^\d{4}-\d{2}-\d{2}$"
_ISO_TIMESTAMP: Final = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?$"


def dates_from_text(array: pa.Array) -> Evaluated:
    fast = _from_iso(array, _ISO_DATE, pa.date32())
    return Evaluated(fast) if fast is not None else map_rows([array], parse_date, pa.date32())


def times_from_text(array: pa.Array) -> Evaluated:
    return map_rows([array], parse_time, pa.time64("us"))


def timestamps_from_text(array: pa.Array) -> Evaluated:
    fast = _from_iso(array, _ISO_TIMESTAMP, pa.timestamp("us"))
    return Evaluated(fast) if fast is not None else map_rows([array], parse_timestamp, pa.timestamp("us"))


def timestamptzs_from_text(array: pa.Array, zone: Zone = UTC) -> Evaluated:
    layout = pa.timestamp("us", tz="UTC")
    if len(zone.transitions) == 0 and zone.offsets[0] == 0:
        fast = _from_iso(array, _ISO_TIMESTAMP, pa.timestamp("us"))
        if fast is not None:
            return Evaluated(fast.view(layout))
    return map_rows([array], lambda text: parse_timestamptz(text, zone), layout)


def intervals_from_text(array: pa.Array) -> Evaluated:
    def packed(text: str) -> bytes:
        return np.array([tuple(parse_interval(text))], INTERVAL_DTYPE).tobytes()

    return map_rows([array], packed, pa.binary(16))


def _from_iso(array: pa.Array, pattern: str, layout: pa.DataType) -> pa.Array | None:
    """The parsed column if every value has the plain ISO form and exists, else None."""
    if not pc.all(pc.match_substring_regex(array, pattern), min_count=0).as_py():
        return None
    if pc.any(pc.starts_with(array, "0000"), min_count=0).as_py():
        return None
    try:
        return pc.cast(array, layout)
    except pa.ArrowInvalid:
        return None  # some value is no date: the slow path says which and why


def dates_to_text(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32())
    if _within(days, *_PLAIN_DAYS):
        return pc.cast(array, pa.large_string())
    return map_rows([days], format_date, pa.large_string()).array


def times_to_text(array: pa.Array) -> pa.Array:
    micros = array.view(pa.int64())
    if _within(micros, 0, DAY_US - 1):
        return _without_zeros(pc.cast(array, pa.large_string()), micros)
    return map_rows([micros], format_time, pa.large_string()).array


def timestamps_to_text(array: pa.Array) -> pa.Array:
    micros = array.view(pa.int64())
    if not _within(micros, _PLAIN_DAYS[0] * DAY_US, (_PLAIN_DAYS[1] + 1) * DAY_US - 1):
        return map_rows([micros], format_timestamp, pa.large_string()).array
    return _without_zeros(pc.cast(micros.view(pa.timestamp("us")), pa.large_string()), micros)


def timestamptzs_to_text(array: pa.Array, zone: Zone = UTC) -> pa.Array:
    micros = array.view(pa.int64())
    low, high = _PLAIN_DAYS[0] * DAY_US + DAY_US, _PLAIN_DAYS[1] * DAY_US
    if not _within(micros, low, high):

        def formatted(value: int) -> str:
            return format_timestamptz(value, zone)

        return map_rows([micros], formatted, pa.large_string()).array
    offsets = zone.offset_at(_filled(micros))
    local = pc.add(micros, pa.array(offsets * SECOND_US))
    distinct, codes = np.unique(offsets, return_inverse=True)
    suffixes = pa.array([format_offset(int(o)) for o in distinct], pa.large_string()).take(pa.array(codes))
    printed = _without_zeros(pc.cast(local.view(pa.timestamp("us")), pa.large_string()), local)
    return pc.binary_join_element_wise(printed, suffixes, pa.scalar("", pa.large_string()))


def intervals_to_text(array: pa.Array) -> pa.Array:
    text = format_intervals(intervals_of(array))
    return text if array.null_count == 0 else pc.if_else(array.is_valid(), text, pa.scalar(None, pa.large_string()))


def _filled(integers: pa.Array) -> Int64s:
    result: Int64s = integers.fill_null(0).to_numpy(zero_copy_only=False)
    return result


def _within(integers: pa.Array, low: int, high: int) -> bool:
    extremes = pc.min_max(integers)
    smallest, largest = extremes["min"].as_py(), extremes["max"].as_py()
    return smallest is None or (smallest >= low and largest <= high)


def _without_zeros(printed: pa.Array, micros: pa.Array) -> pa.Array:
    """Trailing zeros of six decimals dropped, and the point with them."""
    trimmed = pc.utf8_rtrim(printed, "0")
    whole = pc.equal(pc.subtract(micros, pc.multiply(pc.divide(micros, SECOND_US), SECOND_US)), 0)
    return pc.if_else(whole, pc.utf8_slice_codeunits(printed, 0, -7), trimmed)
