"""Rows as byte strings whose memcmp order is the canonical row order, and which are equal iff the rows are identical.

Per column: 1, then the SQL value; or 2 for NULL.  After the last column, per value that has one, its image.

* integers, times: 8 bytes big-endian, sign flipped; decimals 16 bytes; booleans 1 byte; uuids as they are
* floats: 8 bytes, ordered bits, every NaN all ones; image: 0 for -0, else 1
* varlen: the bytes with 00 written 00 FF, then 00 00
* numeric: sign 1, 2, 3 (zero: 2 alone), then 4 bytes of exponent and the digits + 1 without trailing zeros, ended by 0,
  all complemented when negative; image: the scale, 8 bytes
* interval: whole days and the microseconds of the rest, 8 bytes each; image: months, days, 8 bytes each
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import (
    BITS,
    BYTES,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NUMERIC,
    UUID,
    Descriptors,
    cell,
    image,
    sql_key,
)
from eddyline.kernels.kernel import ADDRESS, DESCS, I64, VOID, kernel, subroutine, write
from eddyline.kernels.memory import load_f32, load_f64, load_i16, load_i32, load_i64, load_u8, load_u64, store_u8

__all__ = ["encode_rows", "encode_rows_twin"]

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TWO: Final = np.uint64(2)
_THREE: Final = np.uint64(3)
_10: Final = np.uint64(10)
_32: Final = np.uint64(32)
_BYTE: Final = np.uint64(255)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_SIGN: Final = np.uint64(1 << 63)
_ALL: Final = np.uint64(2**64 - 1)
_DAY_US: Final = np.int64(86_400_000_000)
_EXPONENT_BIAS: Final = np.int64(1 << 31)


@subroutine
def _put(out: Any, at: Any, byte: Any) -> Any:
    if out != 0:
        store_u8(out + at, byte)
    return at + 1


@subroutine
def _put_word(out: Any, at: Any, word: Any, size: Any) -> Any:
    """The low ``size`` bytes, most significant first."""
    for k in range(size):
        at = _put(out, at, (word >> np.uint64(8 * (size - 1 - k))) & _BYTE)
    return at


@subroutine
def _put_bytes(out: Any, at: Any, address: Any, size: Any) -> Any:
    for k in range(size):
        byte = load_u8(address + k)
        at = _put(out, at, byte)
        if byte == _ZERO:
            at = _put(out, at, _BYTE)
    at = _put(out, at, _ZERO)
    return _put(out, at, _ZERO)


@subroutine
def _put_float(out: Any, at: Any, value: Any) -> Any:
    if np.isnan(value):
        return _put_word(out, at, _ALL, 8)
    if value == 0.0:
        return _put_word(out, at, _SIGN, 8)
    bits = np.float64(value).view(np.uint64)
    return _put_word(out, at, ~bits if bits & _SIGN else bits | _SIGN, 8)


@subroutine
def _put_numeric(out: Any, at: Any, address: Any) -> Any:
    low = load_u64(address)
    high = load_u64(address + 8)
    negative = load_i64(address + 8) < 0
    if negative:
        low = ~low + _ONE
        high = ~high + (_ONE if low == _ZERO else _ZERO)
    if low == _ZERO and high == _ZERO:
        return _put(out, at, _TWO)
    at = _put(out, at, _ONE if negative else _THREE)
    flip = _ALL if negative else _ZERO
    digits = np.empty(40, np.uint64)  # least significant first
    count = 0
    while low != _ZERO or high != _ZERO:
        q3 = (high >> _32) // _10
        d = (((high >> _32) - q3 * _10) << _32) | (high & _LOW32)
        q2 = d // _10
        d = ((d - q2 * _10) << _32) | (low >> _32)
        q1 = d // _10
        d = ((d - q1 * _10) << _32) | (low & _LOW32)
        q0 = d // _10
        digits[count] = d - q0 * _10
        count += 1
        high = (q3 << _32) | q2
        low = (q1 << _32) | q0
    exponent = np.uint64(count - load_i64(address + 16) + _EXPONENT_BIAS)
    at = _put_word(out, at, exponent ^ flip, 4)
    last = 0
    while digits[last] == _ZERO:
        last += 1
    for k in range(count - 1, last - 1, -1):
        at = _put(out, at, ((digits[k] + _ONE) ^ flip) & _BYTE)
    return _put(out, at, flip & _BYTE)


@subroutine
def _put_value(out: Any, at: Any, kind: Any, values: Any, offsets: Any, bit_offset: Any, row: Any) -> Any:
    if kind == INT64:
        return _put_word(out, at, load_u64(values + 8 * row) ^ _SIGN, 8)
    if kind == INT32:
        return _put_word(out, at, np.uint64(load_i32(values + 4 * row)) ^ _SIGN, 8)
    if kind == INT16:
        return _put_word(out, at, np.uint64(load_i16(values + 2 * row)) ^ _SIGN, 8)
    if kind == BYTES:
        begin = load_i64(offsets + 8 * row)
        return _put_bytes(out, at, values + begin, load_i64(offsets + 8 * row + 8) - begin)
    if kind == DECIMAL:
        at = _put_word(out, at, load_u64(values + 16 * row + 8) ^ _SIGN, 8)
        return _put_word(out, at, load_u64(values + 16 * row), 8)
    if kind == NUMERIC:
        return _put_numeric(out, at, values + 24 * row)
    if kind == FLOAT64:
        return _put_float(out, at, load_f64(values + 8 * row))
    if kind == FLOAT32:
        return _put_float(out, at, load_f32(values + 4 * row))
    if kind == BITS:
        bit = bit_offset + row
        return _put(out, at, (load_u8(values + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE)
    if kind == INTERVAL:
        micros = load_i64(values + 16 * row + 8)
        days = load_i32(values + 16 * row) * 30 + load_i32(values + 16 * row + 4) + micros // _DAY_US
        at = _put_word(out, at, np.uint64(days) ^ _SIGN, 8)
        return _put_word(out, at, np.uint64(micros % _DAY_US), 8)
    for k in range(16):  # UUID
        at = _put(out, at, load_u8(values + 16 * row + k))
    return at


@subroutine
def _put_image(out: Any, at: Any, kind: Any, values: Any, row: Any) -> Any:
    if kind == FLOAT64:
        value = load_f64(values + 8 * row)
        return _put(out, at, _ZERO if value == 0.0 and load_i64(values + 8 * row) != 0 else _ONE)
    if kind == FLOAT32:
        value = load_f32(values + 4 * row)
        return _put(out, at, _ZERO if value == 0.0 and load_i32(values + 4 * row) != 0 else _ONE)
    if kind == NUMERIC:
        return _put_word(out, at, load_u64(values + 24 * row + 16), 8)
    if kind == INTERVAL:
        at = _put_word(out, at, np.uint64(load_i32(values + 16 * row)) ^ _SIGN, 8)
        return _put_word(out, at, np.uint64(load_i32(values + 16 * row + 4)) ^ _SIGN, 8)
    return at


@subroutine
def _null(descriptors: Any, column: Any, row: Any) -> Any:
    validity = descriptors[column, 3]
    if validity == 0:
        return False
    bit = descriptors[column, 4] + row
    return (load_u8(validity + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE == _ZERO


@kernel(VOID(DESCS, ADDRESS, write(I64)))
def encode_rows(descriptors: Descriptors, out: int, offsets: npt.NDArray[np.int64]) -> None:
    """Writes the encodings of rows 0 .. len(offsets) - 1 one after another to address ``out`` and their ends to
    ``offsets[1:]``; with ``out`` 0 it only fills the offsets.  O(bytes).
    """
    at = 0
    offsets[0] = 0
    for row in range(offsets.shape[0] - 1):
        for column in range(descriptors.shape[0]):
            if _null(descriptors, column, row):
                at = _put(out, at, _TWO)
                continue
            at = _put(out, at, _ONE)
            d = descriptors[column]
            at = _put_value(out, at, d[0], d[1], d[2], d[4], row)
        for column in range(descriptors.shape[0]):
            if not _null(descriptors, column, row):
                at = _put_image(out, at, descriptors[column, 0], descriptors[column, 1], row)
        offsets[row + 1] = at


def _signed(value: int, size: int = 8) -> bytes:
    return (value + (1 << (8 * size - 1))).to_bytes(size, "big")


def _value_twin(kind: int, value: Any) -> bytes:
    if kind in (INT16, INT32, INT64):
        return _signed(value)
    if kind == DECIMAL:
        return _signed(value, 16)
    if kind == BITS:
        return bytes([value])
    if kind == UUID:
        return bytes(value)
    if kind == BYTES:
        return bytes(value).replace(b"\0", b"\0\xff") + b"\0\0"
    if kind == INTERVAL:
        days, micros = divmod(sql_key(kind, value), int(_DAY_US))
        return _signed(days) + int(micros).to_bytes(8, "big")
    if kind == NUMERIC:
        if value[0] == 0:
            return b"\2"
        digits = str(abs(value[0]))
        exponent = len(digits) - value[1] + int(_EXPONENT_BIAS)
        tail = exponent.to_bytes(4, "big") + bytes(int(d) + 1 for d in digits.rstrip("0")) + b"\0"
        return b"\3" + tail if value[0] > 0 else b"\1" + bytes(255 - b for b in tail)
    if np.isnan(value):
        return b"\xff" * 8
    bits = int(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
    return (2**64 - 1 - bits if bits >> 63 else bits | 1 << 63).to_bytes(8, "big")


def _image_twin(kind: int, value: Any) -> bytes:
    if kind in (FLOAT32, FLOAT64):
        return bytes([image(kind, value)])
    if kind == NUMERIC:
        return int(value[1]).to_bytes(8, "big")
    if kind == INTERVAL:
        return _signed(value[0]) + _signed(value[1])
    return b""


def encode_rows_twin(descriptors: Descriptors, rows: int) -> list[bytes]:
    """The encodings that ``encode_rows`` writes."""
    out = []
    for row in range(rows):
        values = [(int(d[0]), cell(d, row)) for d in descriptors]
        key = b"".join(b"\2" if value is None else b"\1" + _value_twin(kind, value) for kind, value in values)
        out.append(key + b"".join(_image_twin(kind, value) for kind, value in values if value is not None))
    return out
