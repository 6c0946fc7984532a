"""Values in PostgreSQL's binary formats: whole columns and single values, out and in.

The formats are those of the types' send and receive functions; times count from 2000-01-01, as there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.array_binary import ElementBytes, array_octets, read_array
from eddyline.expr.interval import INTERVAL_DTYPE
from eddyline.expr.ir import LiteralValue
from eddyline.expr.layout import fixed_array, validity, values_of
from eddyline.expr.literals import literal_scalar
from eddyline.expr.text_output import padded, text_of
from eddyline.expr.timezone import UTC, Zone
from eddyline.kernels.wire import append_cells, begin_messages, decimal_binary, decimal_binary_sizes
from eddyline.repr.types import Kind, SqlType, arrow_type, is_array

__all__ = [
    "BadValue",
    "Cells",
    "binary_cells",
    "framed",
    "messages",
    "parse_binary",
    "read_column",
    "text_cells",
]

_EPOCH_DAYS: Final = 10_957  # from 1970-01-01 to 2000-01-01
_EPOCH_MICROS: Final = _EPOCH_DAYS * 86_400_000_000
_DAY_MICROS: Final = 86_400_000_000
#: up to here kernels keep the GIL: they take less than giving it up
_SHORT_BYTES: Final = 64 << 10
_NO_NULLS: Final = np.empty(0, np.uint8)
_NO_BYTES: Final = np.empty(0, np.uint8)
_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)
_WIDE_INTERVAL: Final = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
_MAX_DIGITS: Final = 38
_NOT_FINITE: Final = (0xC000, 0xD000, 0xF000)


class Cells(NamedTuple):
    """The bytes of a column's values: value *i* is ``data[offsets[i]:offsets[i + 1]]``.

    ``valid``: uint8 per value, 0 where it is NULL; empty if none is.
    """

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    valid: npt.NDArray[np.uint8]


def text_cells(array: pa.Array, sql_type: SqlType, zone: Zone = UTC) -> Cells:
    """Output text of the values, char(n) padded."""
    return _varlen(padded(text_of(array, sql_type, zone), sql_type))


def binary_cells(array: pa.Array, sql_type: SqlType) -> Cells:
    """The values in binary form.  Cost: linear, in kernels and NumPy."""
    if is_array(sql_type):
        offsets, octets = array_octets(array, sql_type, _element_bytes)
        return Cells(offsets, octets, _valid(array))
    match sql_type.kind:
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR | Kind.JSON:
            return _varlen(padded(array, sql_type))
        case Kind.BYTEA:
            return _varlen(array)
        case Kind.NUMERIC:
            return _numeric(array, sql_type)
        case Kind.BOOLEAN:
            values = array.fill_null(False).to_numpy(zero_copy_only=False).view(np.uint8)
            return _fixed(values, array)
        case Kind.SMALLINT:
            return _fixed(values_of(array, np.int16).astype(">i2"), array)
        case Kind.INTEGER:
            return _fixed(values_of(array, np.int32).astype(">i4"), array)
        case Kind.BIGINT | Kind.TIME:
            return _fixed(values_of(array, np.int64).astype(">i8"), array)
        case Kind.REAL:
            return _fixed(values_of(array, np.int32).astype(">i4"), array)
        case Kind.DOUBLE:
            return _fixed(values_of(array, np.int64).astype(">i8"), array)
        case Kind.DATE:
            days = _moved(values_of(array, np.int32).astype(np.int64), _EPOCH_DAYS, np.int32)
            return _fixed(days.astype(">i4"), array)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            stored: npt.NDArray[np.int64] = values_of(array, np.int64)  # type: ignore[assignment]  # what dtype says
            return _fixed(_moved(stored, _EPOCH_MICROS, np.int64).astype(">i8"), array)
        case Kind.INTERVAL:
            return _fixed(_interval(array), array)
        case Kind.UUID:
            return _fixed(values_of(array, np.dtype("V16")), array)
    raise ValueError(f"{sql_type} has no binary form")


def _element_bytes(array: pa.Array, sql_type: SqlType) -> ElementBytes:
    cells = binary_cells(array, sql_type)
    return cells.data, cells.offsets, cells.valid.view(np.bool_) if len(cells.valid) else None


def _valid(array: pa.Array) -> npt.NDArray[np.uint8]:
    valid = validity(array)
    return _NO_NULLS if valid is None else valid.view(np.uint8)


def _varlen(array: pa.Array) -> Cells:
    _, offsets, data = array.buffers()
    if offsets is None:
        return Cells(np.zeros(len(array) + 1, np.int64), _NO_BYTES, _valid(array))
    places = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    octets = _NO_BYTES if data is None or not data.size else np.frombuffer(data, np.uint8)
    return Cells(places, octets, _valid(array))


def _fixed(values: npt.NDArray[np.generic], array: pa.Array) -> Cells:
    width = values.dtype.itemsize
    octets = np.frombuffer(np.ascontiguousarray(values), np.uint8) if len(values) else _NO_BYTES
    return Cells(np.arange(len(values) + 1, dtype=np.int64) * width, octets, _valid(array))


def _moved(values: npt.NDArray[np.int64], by: int, stored: type[np.signedinteger]) -> npt.NDArray[np.int64]:
    """Counted from 2000 instead of 1970; the extremes are the infinities and stay."""
    limits = np.iinfo(stored)
    finite = (values != limits.min) & (values != limits.max)
    moved: npt.NDArray[np.int64] = np.where(finite, values - np.where(finite, by, 0), values)
    return moved


def _interval(array: pa.Array) -> npt.NDArray[np.void]:
    stored = values_of(array, INTERVAL_DTYPE)
    turned = np.empty(len(stored), _WIDE_INTERVAL)
    for part in ("micros", "days", "months"):
        turned[part] = stored[part]  # type: ignore[call-overload]  # a structured array, as its dtype says
    return turned


def _numeric(array: pa.Array, sql_type: SqlType) -> Cells:
    text = _varlen(text_of(array, sql_type))
    sizes = np.empty(len(array), np.int64)
    decimal_binary_sizes(text.offsets, text.data, sizes)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    decimal_binary(text.offsets, text.data, offsets, data)
    return Cells(offsets, data, text.valid)


def messages(tag: int, columns: Sequence[Cells], rows: int) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Rows of cells as messages one behind another, each beginning with the count of its cells; where each starts, and
    their end.  ``tag`` 0: without tag and length.
    """
    sizes = np.full(rows, (7 if tag else 2) + 4 * len(columns), np.int64)
    for cells in columns:
        lengths = np.diff(cells.offsets)
        sizes += lengths * cells.valid if len(cells.valid) else lengths
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    begin, append = begin_messages, append_cells
    if offsets[-1] <= _SHORT_BYTES:
        begin, append = begin_messages.short, append_cells.short
    out, positions = np.empty(int(offsets[-1]), np.uint8), np.empty(rows, np.int64)
    begin(tag, len(columns), sizes, positions, out)
    for cells in columns:
        append(cells.offsets, cells.data, cells.valid, 1, positions, out)
    return out.tobytes(), offsets


def framed(tag: int, data: bytes, offsets: npt.NDArray[np.int64]) -> bytes:
    """A message with ``tag`` around each of the pieces ``data[offsets[i]:offsets[i + 1]]``."""
    sizes = np.diff(offsets) + 5
    out, positions = np.empty(int(sizes.sum()), np.uint8), np.empty(len(sizes), np.int64)
    begin_messages(tag, -1, sizes, positions, out)
    append_cells(offsets, np.frombuffer(data, np.uint8) if data else _NO_BYTES, _NO_NULLS, 0, positions, out)
    return out.tobytes()


# -- single values in -------------------------------------------------------------------------------------------------


def parse_binary(data: bytes, sql_type: SqlType) -> LiteralValue:
    """The literal that ``data`` is in the type's binary format; no modifier is applied.

    22P03 for bytes that are no value of it, 22021 for text that is not UTF-8, 22003 and 22008 for values that are out
    of range here.
    """
    if is_array(sql_type):
        return read_array(data, sql_type, parse_binary)
    kind = sql_type.kind
    if kind in _TEXTS:
        return _text(data)
    if kind is Kind.BYTEA:
        return data.hex()
    if kind is Kind.NUMERIC:
        return _read_numeric(data)
    width, read = _READERS[kind]
    if len(data) != width:
        raise _malformed(kind)
    return read(data)


def _malformed(kind: Kind) -> DatabaseError:
    return make_error("22P03", "incorrect binary data format", hint=f"It was read as {kind.value}.")


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        shown = " ".join(f"0x{b:02x}" for b in data[problem.start : problem.end])
        raise make_error("22021", f'invalid byte sequence for encoding "UTF8": {shown}') from problem
    if "\x00" in text:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _integer(layout: str) -> Callable[[bytes], LiteralValue]:
    return lambda data: struct.unpack(layout, data)[0]


def _date(data: bytes) -> LiteralValue:
    days: int = struct.unpack("!i", data)[0]
    if days in (-(2**31), 2**31 - 1):
        return days
    return _within(days + _EPOCH_DAYS, 32, "date")


def _timestamp(data: bytes) -> LiteralValue:
    micros: int = struct.unpack("!q", data)[0]
    if micros in (-(2**63), 2**63 - 1):
        return micros
    return _within(micros + _EPOCH_MICROS, 64, "timestamp")


def _within(value: int, bits: int, what: str) -> int:
    """Below the extreme, which is infinity."""
    if not -(2 ** (bits - 1)) < value < 2 ** (bits - 1) - 1:
        raise make_error("22008", f"{what} out of range")
    return value


def _time(data: bytes) -> LiteralValue:
    micros: int = struct.unpack("!q", data)[0]
    if not 0 <= micros <= _DAY_MICROS:
        raise make_error("22008", "time out of range")
    return micros


def _read_interval(data: bytes) -> LiteralValue:
    micros, days, months = struct.unpack("!qii", data)
    return f"{months} {days} {micros}"


def _read_numeric(data: bytes) -> LiteralValue:
    """Digits beyond its scale are cut off.  It stays text: there may be more digits than an int is read from."""
    if len(data) < 8:
        raise _malformed(Kind.NUMERIC)
    count, weight, sign, scale = struct.unpack_from("!hhHh", data)
    if sign in _NOT_FINITE:
        raise make_error("0A000", "numeric NaN and Infinity are not supported")
    if count < 0 or scale < 0 or sign not in (0, 0x4000) or len(data) != 8 + 2 * count:
        raise _malformed(Kind.NUMERIC)
    groups = struct.unpack_from(f"!{count}h", data, 8)
    if not all(0 <= g <= 9999 for g in groups):
        raise _malformed(Kind.NUMERIC)
    digits, point = "".join(f"{g:04}" for g in groups), 4 * (weight + 1)
    whole = digits[: max(0, point)].ljust(point, "0").lstrip("0")
    fraction = ("0" * -point + digits[max(0, point) :])[:scale].ljust(scale, "0")
    shown = (whole + fraction).lstrip("0")
    if len(shown) > _MAX_DIGITS or scale > _MAX_DIGITS:
        raise make_error("22003", "value overflows numeric format")
    return ("-" if sign and shown else "") + (whole or "0") + ("." + fraction if scale else "")


_READERS: Final[dict[Kind, tuple[int, Callable[[bytes], LiteralValue]]]] = {
    Kind.BOOLEAN: (1, lambda data: data != b"\x00"),
    Kind.SMALLINT: (2, _integer("!h")),
    Kind.INTEGER: (4, _integer("!i")),
    Kind.BIGINT: (8, _integer("!q")),
    Kind.REAL: (4, _integer("!f")),
    Kind.DOUBLE: (8, _integer("!d")),
    Kind.DATE: (4, _date),
    Kind.TIME: (8, _time),
    Kind.TIMESTAMP: (8, _timestamp),
    Kind.TIMESTAMPTZ: (8, _timestamp),
    Kind.INTERVAL: (16, _read_interval),
    Kind.UUID: (16, lambda data: data.hex()),
}


# -- columns in -------------------------------------------------------------------------------------------------------


class BadValue(NamedTuple):
    """The first value of a column that is none of its type."""

    row: int
    error: DatabaseError


_FIXED: Final = {
    Kind.BOOLEAN: 1, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8, Kind.REAL: 4, Kind.DOUBLE: 8, Kind.DATE: 4,
    Kind.TIME: 8, Kind.TIMESTAMP: 8, Kind.TIMESTAMPTZ: 8, Kind.INTERVAL: 16, Kind.UUID: 16,
}  # fmt: skip


def read_column(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], kind: Kind
) -> tuple[pa.Array, BadValue | None]:
    """A column of ``kind`` without modifiers: value *i* has ``lengths[i]`` bytes (-1: NULL) of ``data`` from
    ``starts[i]`` on.  With a bad value the column is of no use.

    Cost: linear, in NumPy; numerics and arrays take a Python step each.
    """
    sql_type, valid = SqlType(kind), lengths >= 0
    if not valid.any():
        return pa.nulls(len(starts), arrow_type(sql_type)), None
    width = _FIXED.get(kind)
    if width is None:
        return _read_varlen(data, starts, lengths, sql_type)
    wrong = valid & (lengths != width)
    if wrong.any():
        return None, BadValue(int(wrong.argmax()), _malformed(kind))
    octets = data[np.where(valid, starts, 0)[:, None] + np.arange(width)] if len(data) >= width else None
    assert octets is not None, "a value of that width is there"
    values, bad = _fixed_values(np.ascontiguousarray(octets), kind)
    if bad is not None and (bad & valid).any():
        row = int((bad & valid).argmax())
        return None, BadValue(row, make_error("22008", f"{kind.value.partition(' ')[0]} out of range"))
    if kind is Kind.BOOLEAN:
        return pa.array(values, pa.bool_(), mask=~valid), None
    return fixed_array(values, sql_type, valid), None


def _fixed_values(
    octets: npt.NDArray[np.uint8], kind: Kind
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_] | None]:
    """Values in the engine's layout, and which of them are out of range."""
    rows = len(octets)
    match kind:
        case Kind.BOOLEAN:
            return octets[:, 0] != 0, None
        case Kind.UUID:
            return octets.view("V16").reshape(rows), None
        case Kind.INTERVAL:
            given = octets.view(_WIDE_INTERVAL).reshape(rows)
            turned = np.empty(rows, INTERVAL_DTYPE)
            for part in ("micros", "days", "months"):
                turned[part] = given[part]
            return turned, None
    size = octets.shape[1]
    values = octets.view(f">i{size}").reshape(rows).astype(f"i{size}")
    match kind:
        case Kind.DATE:
            return _from_2000(values, _EPOCH_DAYS)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _from_2000(values, _EPOCH_MICROS)
        case Kind.TIME:
            return values, (values < 0) | (values > _DAY_MICROS)
        case _:
            return values, None  # floats are their bits


def _from_2000(
    values: npt.NDArray[np.signedinteger], epoch: int
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    limits = np.iinfo(values.dtype)
    infinite = (values == limits.min) | (values == limits.max)
    late = ~infinite & (values >= limits.max - epoch)
    moved = np.where(infinite | late, values, values + np.where(infinite | late, 0, epoch).astype(values.dtype))
    return moved.astype(values.dtype), late


def _read_varlen(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], sql_type: SqlType
) -> tuple[pa.Array, BadValue | None]:
    if sql_type.kind is Kind.NUMERIC or is_array(sql_type):
        return _read_singly(data, starts, lengths, sql_type)
    sizes = np.maximum(lengths, 0)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    octets = data[np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])]
    bitmap = None if (lengths >= 0).all() else pa.array(lengths >= 0).buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(octets)]
    values = pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)
    if sql_type.kind is Kind.BYTEA:
        return values, None
    try:
        text = values.cast(pa.large_string())
    except pa.ArrowInvalid:
        text = None
    if text is not None and octets.all():
        return text, None
    for row, value in enumerate(values.to_pylist()):  # one of them is wrong: which, and how
        try:
            _text(b"" if value is None else value)
        except DatabaseError as error:
            return None, BadValue(row, error)
    raise AssertionError("a value was refused that is text")


def _read_singly(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], sql_type: SqlType
) -> tuple[pa.Array, BadValue | None]:
    raw = data.tobytes()
    scalars = []
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        try:
            literal = None if length < 0 else parse_binary(raw[start : start + length], sql_type)
        except DatabaseError as error:
            return None, BadValue(row, error)
        scalars.append(literal_scalar(literal, sql_type))
    return pa.array(scalars, arrow_type(sql_type)), None
