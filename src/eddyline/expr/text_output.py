"""Columns as PostgreSQL's output text."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.array_text import arrays_to_text
from eddyline.expr.datetime_text import (
    dates_to_text,
    intervals_to_text,
    times_to_text,
    timestamps_to_text,
    timestamptzs_to_text,
)
from eddyline.expr.layout import numeric_words, validity
from eddyline.expr.rowwise import map_rows
from eddyline.expr.timezone import UTC, Zone
from eddyline.kernels.numeric import numeric_format, numeric_text_sizes
from eddyline.repr.types import Kind, SqlType, is_array

__all__ = ["format_float", "padded", "text_of"]

_TEXT = pa.large_string()
_FIXED_DOUBLES: Final = 1e15
_DENSE_DOUBLES: Final = 2.0**53  # from here on doubles are whole numbers apart
_DENSE_SINGLES: Final = 2.0**24


def padded(text: pa.Array, sql_type: SqlType) -> pa.Array:
    """The values of a char(n) column with their trailing blanks; other text as it is."""
    if sql_type.kind is Kind.BPCHAR and sql_type.length is not None:
        return pc.utf8_rpad(text, sql_type.length, " ")
    return text


def text_of(array: pa.Array, sql_type: SqlType, zone: Zone = UTC) -> pa.Array:
    """Output text of each value (a boolean is ``t`` or ``f``, char(n) comes without its padding); NULL stays NULL.

    ``zone``: the time zone in which a timestamptz is shown.
    """
    if is_array(sql_type):
        return arrays_to_text(array, sql_type, lambda part, element: padded(text_of(part, element, zone), element))
    match sql_type.kind:
        case Kind.BOOLEAN:
            return pc.if_else(array, pa.scalar("t", _TEXT), pa.scalar("f", _TEXT))
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return array.cast(_TEXT)
        case Kind.NUMERIC:
            return _numeric_text(array, sql_type)
        case Kind.REAL:
            return map_rows([array.view(pa.int32())], _real_text, _TEXT).array
        case Kind.DOUBLE:
            return map_rows([array.view(pa.int64())], _double_text, _TEXT).array
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR | Kind.JSON:
            return array
        case Kind.BYTEA:
            return map_rows([array], lambda value: "\\x" + value.hex(), _TEXT).array
        case Kind.UUID:
            return map_rows([array], _uuid_text, _TEXT).array
        case Kind.DATE:
            return dates_to_text(array)
        case Kind.TIME:
            return times_to_text(array)
        case Kind.TIMESTAMP:
            return timestamps_to_text(array)
        case Kind.TIMESTAMPTZ:
            return timestamptzs_to_text(array, zone)
        case Kind.INTERVAL:
            return intervals_to_text(array)
    raise ValueError(f"{sql_type} has no output text")


def _numeric_text(array: pa.Array, sql_type: SqlType) -> pa.Array:
    words, scale = numeric_words(array, sql_type)
    valid = validity(array)
    if valid is not None:
        words = np.where(valid[:, None], words, 0)
    sizes = np.empty(len(array), np.int64)
    numeric_text_sizes(words, scale, sizes)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    numeric_format(words, scale, offsets, data)
    bitmap = None if valid is None else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(_TEXT, len(array), [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])


def _double_text(bits: int) -> str:
    return format_float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _real_text(bits: int) -> str:
    (value,) = struct.unpack("<f", struct.pack("<i", bits))
    return format_float(value, single=True)


def format_float(value: float, *, single: bool = False) -> str:
    """The shortest text that reads back as the same double (or single): PostgreSQL's ``extra_float_digits = 1``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if not single and abs(value) < _FIXED_DOUBLES:
        return repr(value).removesuffix(".0")
    text = _shortest(float(np.float32(value)) if single else value, single=single)
    mantissa, _, power = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    exponent = int(power)
    if not -4 <= exponent < (6 if single else 15):
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def _shortest(value: float, *, single: bool) -> str:
    """In scientific notation.

    Halfway between two neighbours a text still reads back as the even one, but PostgreSQL prints no such text.  Only
    where neighbours are whole numbers apart is a text of so few digits ever halfway.
    """
    text = np.format_float_scientific(np.float32(value) if single else value, trim="-")
    if abs(value) < (_DENSE_SINGLES if single else _DENSE_DOUBLES):
        return text
    exact = abs(int(value))
    above = 1 << (math.frexp(value)[1] - (24 if single else 53))
    below = above // 2 if exact & (exact - 1) == 0 else above
    digits = len(text.partition("e")[0].lstrip("-").replace(".", ""))
    while True:
        gap = (abs(int(Decimal(text))) - exact) * 2
        if -below < gap < above:
            return text
        digits += 1
        text = f"{value:.{digits - 1}e}"


def _uuid_text(value: bytes) -> str:
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
