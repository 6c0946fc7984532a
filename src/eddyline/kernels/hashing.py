"""Seeded 64-bit row hashes that follow SQL equality: rows that SQL calls equal hash alike.

NULLs hash alike; so do -0 and 0, all NaNs, integers of any width, numerics of equal value whatever their scale, and
intervals that span equally long (30-day months, 24-hour days).  Source of the mixing step: the 64-bit finaliser of
MurmurHash3; of the loop over bytes: the tail step of xxHash64.
"""

from __future__ import annotations

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
    PADDED,
    VARLEN,
    Descriptors,
    cell,
    sql_key,
)
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import load_f32, load_f64, load_i16, load_i32, load_i64, load_u8, load_u64
from eddyline.kernels.orders import unpadded
from eddyline.kernels.signatures import DESCS, I64, U64, VOID, write

__all__ = ["hash_rows", "hash_rows_twin"]

_P1: Final = np.uint64(0x9E3779B185EBCA87)
_P2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P4: Final = np.uint64(0x85EBCA77C2B2AE63)
_M1: Final = np.uint64(0xFF51AFD7ED558CCD)
_M2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_NULL: Final = np.uint64(0x6E756C6C6E756C6C)
_NAN: Final = np.uint64(0x7FF8000000000000)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_27: Final = np.uint64(27)
_31: Final = np.uint64(31)
_32: Final = np.uint64(32)
_33: Final = np.uint64(33)
_37: Final = np.uint64(37)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_TEN: Final = np.uint64(10)
_DAY_US: Final = np.int64(86_400_000_000)


@subroutine
def _absorb(state: Any, word: Any) -> Any:
    x = (state ^ word) * _P1 + _P4
    x = (x ^ (x >> _33)) * _M1
    x = (x ^ (x >> _33)) * _M2
    return x ^ (x >> _33)


@subroutine
def _absorb_bytes(state: Any, address: Any, size: Any) -> Any:
    h = state + np.uint64(size) * _P2
    at = address
    end = address + size
    while at + 8 <= end:
        w = load_u64(at) * _P2
        h ^= ((w << _31) | (w >> _33)) * _P1
        h = ((h << _27) | (h >> _37)) * _P1 + _P4
        at += 8
    tail = _ZERO
    shift = _ZERO
    while at < end:
        tail |= load_u8(at) << shift
        shift += np.uint64(8)
        at += 1
    return _absorb(h, tail)


@subroutine
def _absorb_float(state: Any, value: Any) -> Any:
    if np.isnan(value):
        return _absorb(state, _NAN)
    if value == 0.0:
        return _absorb(state, _ZERO)
    return _absorb(state, np.float64(value).view(np.uint64))


@subroutine
def _absorb_numeric(state: Any, address: Any) -> Any:
    """Strips trailing zeros, so that only the value counts."""
    low = load_u64(address)
    high = load_u64(address + 8)
    scale = load_i64(address + 16)
    negative = load_i64(address + 8) < 0
    if negative:
        low = ~low + _ONE
        high = ~high
        if low == _ZERO:
            high += _ONE
    if low == _ZERO and high == _ZERO:
        return _absorb(_absorb(state, _ZERO), _ZERO)
    while scale > 0:
        # one long division by ten, in 32-bit digits
        q3 = (high >> _32) // _TEN
        r = (high >> _32) - q3 * _TEN
        d = (r << _32) | (high & _LOW32)
        q2 = d // _TEN
        r = d - q2 * _TEN
        d = (r << _32) | (low >> _32)
        q1 = d // _TEN
        r = d - q1 * _TEN
        d = (r << _32) | (low & _LOW32)
        q0 = d // _TEN
        if d - q0 * _TEN != _ZERO:
            break
        high = (q3 << _32) | q2
        low = (q1 << _32) | q0
        scale -= 1
    state = _absorb(_absorb(state, low), high)
    return _absorb(state, np.uint64(scale * 2 + (1 if negative else 0) + 1))


@subroutine
def _absorb_interval(state: Any, address: Any) -> Any:
    micros = load_i64(address + 8)
    days = load_i32(address) * 30 + load_i32(address + 4) + micros // _DAY_US
    return _absorb(_absorb(state, np.uint64(days)), np.uint64(micros % _DAY_US))


@subroutine
def _absorb_column(descriptor: Any, start: Any, out: Any) -> None:
    kind = descriptor[0]
    values = descriptor[1]
    offsets = descriptor[2]
    validity = descriptor[3]
    bit_offset = descriptor[4]
    for i in range(out.shape[0]):
        row = start + i
        state = out[i]
        if validity != 0:
            bit = bit_offset + row
            if (load_u8(validity + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE == _ZERO:
                out[i] = _absorb(state, _NULL)
                continue
        if kind == INT64:
            out[i] = _absorb(state, load_u64(values + 8 * row))
        elif kind == INT32:
            out[i] = _absorb(state, np.uint64(load_i32(values + 4 * row)))
        elif kind in (BYTES, PADDED):
            begin = load_i64(offsets + 8 * row)
            size = load_i64(offsets + 8 * row + 8) - begin
            if kind == PADDED:
                size = unpadded(values + begin, size)
            out[i] = _absorb_bytes(state, values + begin, size)
        elif kind == INT16:
            out[i] = _absorb(state, np.uint64(load_i16(values + 2 * row)))
        elif kind == BITS:
            bit = bit_offset + row
            out[i] = _absorb(state, (load_u8(values + (bit >> 3)) >> np.uint64(bit & 7)) & _ONE)
        elif kind == FLOAT64:
            out[i] = _absorb_float(state, load_f64(values + 8 * row))
        elif kind == FLOAT32:
            out[i] = _absorb_float(state, load_f32(values + 4 * row))
        elif kind == NUMERIC:
            out[i] = _absorb_numeric(state, values + 24 * row)
        elif kind == INTERVAL:
            out[i] = _absorb_interval(state, values + 16 * row)
        else:  # DECIMAL, UUID
            out[i] = _absorb(_absorb(state, load_u64(values + 16 * row)), load_u64(values + 16 * row + 8))


@kernel(VOID(DESCS, I64, U64, U64, write(U64)), short=True)
def hash_rows(descriptors: Descriptors, start: int, seed: int, mask: int, out: npt.NDArray[np.uint64]) -> None:
    """Fills ``out`` with the hashes of rows ``start .. start + len(out)``, and-ed with ``mask``.  O(cells)."""
    for i in range(out.shape[0]):
        out[i] = seed
    for column in range(descriptors.shape[0]):
        _absorb_column(descriptors[column], start, out)
    for i in range(out.shape[0]):
        # a last step, so that the order of columns and their number matter and low bits are good
        out[i] = _absorb(out[i], _P2) & mask


_WORD = (1 << 64) - 1


def _absorb_twin(state: int, word: int) -> int:
    x = ((state ^ (word & _WORD)) * int(_P1) + int(_P4)) & _WORD
    x = (x ^ x >> 33) * int(_M1) & _WORD
    x = (x ^ x >> 33) * int(_M2) & _WORD
    return x ^ x >> 33


def _absorb_cell_twin(state: int, kind: int, value: Any) -> int:
    if value is None:
        return _absorb_twin(state, int(_NULL))
    if kind == PADDED:
        value = sql_key(kind, value)
    if kind in VARLEN:
        h = (state + len(value) * int(_P2)) & _WORD
        whole = len(value) // 8 * 8
        for at in range(0, whole, 8):
            w = int.from_bytes(value[at : at + 8], "little") * int(_P2) & _WORD
            h ^= (w << 31 & _WORD | w >> 33) * int(_P1) & _WORD
            h = ((h << 27 & _WORD | h >> 37) * int(_P1) + int(_P4)) & _WORD
        return _absorb_twin(h, int.from_bytes(value[whole:], "little"))
    if kind in (FLOAT32, FLOAT64):
        bits = int(_NAN) if np.isnan(value) else int(np.float64(value + 0.0).view(np.uint64))
        return _absorb_twin(state, bits)
    if kind == INTERVAL:
        days, micros = divmod((value[0] * 30 + value[1]) * int(_DAY_US) + value[2], int(_DAY_US))
        return _absorb_twin(_absorb_twin(state, days), micros)
    if kind == NUMERIC:
        coefficient, scale = value
        if coefficient == 0:
            return _absorb_twin(_absorb_twin(state, 0), 0)
        while scale > 0 and coefficient % 10 == 0:
            coefficient, scale = coefficient // 10, scale - 1
        size = abs(coefficient)
        state = _absorb_twin(_absorb_twin(state, size), size >> 64)
        return _absorb_twin(state, scale * 2 + (1 if coefficient < 0 else 0) + 1)
    if kind in (BITS, INT16, INT32, INT64):
        return _absorb_twin(state, int(value))
    wide = value if kind == DECIMAL else int.from_bytes(value, "little")
    return _absorb_twin(_absorb_twin(state, wide), wide >> 64)


def hash_rows_twin(descriptors: Descriptors, start: int, seed: int, mask: int, out: npt.NDArray[np.uint64]) -> None:
    """What ``hash_rows`` computes."""
    for i in range(len(out)):
        state = int(seed)
        for descriptor in descriptors:
            state = _absorb_cell_twin(state, int(descriptor[0]), cell(descriptor, start + i))
        out[i] = _absorb_twin(state, int(_P2)) & int(mask)
