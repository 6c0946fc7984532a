"""Monotone 64-bit prefixes of ORDER BY items: where two values differ in order, their prefixes are not the other way.

Equal prefixes decide nothing; the full comparison does.
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
    DESC,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NULLS_FIRST,
    NUMERIC,
    PADDED,
    UUID,
    cell,
    sql_key,
)
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import load_f32, load_f64, load_i16, load_i32, load_i64, load_u8, load_u64
from eddyline.kernels.orders import unpadded
from eddyline.kernels.signatures import I64, U64, VOID, read, write

__all__ = ["prefixes", "prefixes_twin"]

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_10: Final = np.uint64(10)
_32: Final = np.uint64(32)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_SIGN: Final = np.uint64(1 << 63)
_ALL: Final = np.uint64(2**64 - 1)
_MAX: Final = np.int64(2**63 - 1)
_MIN: Final = np.int64(-(2**63))
_DAY_US: Final = np.int64(86_400_000_000)
#: days whose microseconds still fit 63 bits next to a time of day of 37 bits
_DAYS: Final = np.int64(1 << 26)


@subroutine
def _signed(value: Any) -> Any:
    return np.uint64(value) ^ _SIGN


@subroutine
def _of_float(value: Any) -> Any:
    if np.isnan(value):
        return _ALL
    if value == 0.0:
        return _SIGN
    bits = np.float64(value).view(np.uint64)
    return ~bits if bits & _SIGN else bits | _SIGN


@subroutine
def _of_bytes(address: Any, size: Any) -> Any:
    word = _ZERO
    for k in range(8):
        word <<= np.uint64(8)
        if k < size:
            word |= load_u8(address + k)
    return word


@subroutine
def _saturated(low: Any, high: Any) -> Any:
    """A 128-bit integer clamped to int64."""
    if high > 0 or (high == 0 and low & _SIGN):
        return _signed(_MAX)
    if high < -1 or (high == -1 and not low & _SIGN):
        return _signed(_MIN)
    return _signed(np.int64(low))


@subroutine
def _of_numeric(address: Any) -> Any:
    """The integer part, rounded towards zero, clamped."""
    low = load_u64(address)
    high = load_u64(address + 8)
    scale = load_i64(address + 16)
    negative = load_i64(address + 8) < 0
    if negative:
        low = ~low + _ONE
        high = ~high + (_ONE if low == _ZERO else _ZERO)
    while scale > 0 and (low != _ZERO or high != _ZERO):
        q3 = (high >> _32) // _10
        d = (((high >> _32) - q3 * _10) << _32) | (high & _LOW32)
        q2 = d // _10
        d = ((d - q2 * _10) << _32) | (low >> _32)
        q1 = d // _10
        d = ((d - q1 * _10) << _32) | (low & _LOW32)
        high = (q3 << _32) | q2
        low = (q1 << _32) | (d // _10)
        scale -= 1
    if high != _ZERO or low & _SIGN:
        return _signed(-_MAX if negative else _MAX)
    return _signed(-np.int64(low) if negative else np.int64(low))


@subroutine
def _of_interval(address: Any) -> Any:
    micros = load_i64(address + 8)
    days = load_i32(address) * 30 + load_i32(address + 4) + micros // _DAY_US
    if days >= _DAYS:
        return _signed(_MAX)
    if days < -_DAYS:
        return _signed(_MIN)
    return _signed((days << 37) + micros % _DAY_US)


@subroutine
def _prefix(kind: Any, values: Any, offsets: Any, bit_offset: Any, row: Any) -> Any:
    if kind == INT64:
        return _signed(load_i64(values + 8 * row))
    if kind == INT32:
        return _signed(load_i32(values + 4 * row))
    if kind == INT16:
        return _signed(load_i16(values + 2 * row))
    if kind == FLOAT64:
        return _of_float(load_f64(values + 8 * row))
    if kind == FLOAT32:
        return _of_float(load_f32(values + 4 * row))
    if kind in (BYTES, PADDED):
        begin = load_i64(offsets + 8 * row)
        size = load_i64(offsets + 8 * row + 8) - begin
        if kind == PADDED:
            size = unpadded(values + begin, size)
        return _of_bytes(values + begin, size)
    if kind == DECIMAL:
        return _saturated(load_u64(values + 16 * row), load_i64(values + 16 * row + 8))
    if kind == NUMERIC:
        return _of_numeric(values + 24 * row)
    if kind == INTERVAL:
        return _of_interval(values + 16 * row)
    if kind == BITS:
        bit = bit_offset + row
        return (load_u8(values + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE
    return _of_bytes(values + 16 * row, 8)  # UUID


@kernel(VOID(read(I64), write(U64)))
def prefixes(descriptor: npt.NDArray[np.int64], out: npt.NDArray[np.uint64]) -> None:
    """Fills ``out`` with the prefixes of the first ``len(out)`` rows under the descriptor's ORDER BY flags.  O(n)."""
    kind = descriptor[0]
    validity = descriptor[3]
    bit_offset = descriptor[4]
    descending = descriptor[5] & DESC != 0
    null = _ZERO if descriptor[5] & NULLS_FIRST else _ALL
    for row in range(out.shape[0]):
        if validity != 0:
            bit = bit_offset + row
            if (load_u8(validity + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE == _ZERO:
                out[row] = null
                continue
        word = _prefix(kind, descriptor[1], descriptor[2], bit_offset, row)
        out[row] = ~word if descending else word


def _prefix_twin(kind: int, value: Any) -> int:
    bias = 1 << 63
    if kind in (INT16, INT32, INT64):
        return int(value) + bias
    if kind == BITS:
        return int(value)
    if kind == DECIMAL:
        return int(min(max(value, -bias), bias - 1)) + bias
    if kind == NUMERIC:
        return min(max(int(sql_key(kind, value)), 1 - bias), bias - 1) + bias
    if kind == INTERVAL:
        days, micros = divmod(sql_key(kind, value), int(_DAY_US))
        if not -int(_DAYS) <= days < int(_DAYS):
            return 0 if days < 0 else 2 * bias - 1
        return int((days << 37) + micros) + bias
    if kind in (BYTES, PADDED, UUID):
        value = sql_key(kind, value)
        return int.from_bytes(bytes(value[:8]).ljust(8, b"\0"), "big")
    if np.isnan(value):
        return 2 * bias - 1
    bits = int(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
    return 2 * bias - 1 - bits if bits & bias else bits | bias


def prefixes_twin(descriptor: Any, rows: int) -> list[int]:
    """What ``prefixes`` fills in."""
    out = []
    for row in range(rows):
        value = cell(descriptor, row)
        if value is None:
            out.append(0 if descriptor[5] & NULLS_FIRST else 2**64 - 1)
            continue
        word = _prefix_twin(int(descriptor[0]), value)
        out.append(2**64 - 1 - word if descriptor[5] & DESC else word)
    return out
