"""How kernels see columns: one descriptor row of int64 per column, so that one compiled kernel serves every type.

A descriptor is ``int64[WIDTH]``: cell kind, address of the values, address of the int64 offsets (varlen only, one per
row and one more), address of the validity bitmap (0: no NULLs), bit offset of the bitmaps, flags.  Addresses are
already advanced by the array's offset, except those of bitmaps, where the bit offset does it.  Whoever passes a
descriptor keeps the buffers alive.  ``cell`` decodes one value in plain Python; the twins are written with it.
"""

from __future__ import annotations

import ctypes
import struct
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "BITS",
    "BYTES",
    "DECIMAL",
    "DESC",
    "FLOAT32",
    "FLOAT64",
    "HEAD",
    "INT16",
    "INT32",
    "INT64",
    "INTERVAL",
    "NULLS_FIRST",
    "NUMERIC",
    "PADDED",
    "UUID",
    "VARLEN",
    "WIDTH",
    "WIDTHS",
    "WORDS",
    "Descriptors",
    "cell",
    "compare_rows_twin",
    "head_row",
    "image",
    "sql_key",
]

#: int64[columns, WIDTH], C-contiguous
Descriptors = npt.NDArray[np.int64]

WIDTH: Final = 6

BITS: Final = 0
INT16: Final = 1
INT32: Final = 2
INT64: Final = 3
DECIMAL: Final = 4  # 128-bit integer, low word first
NUMERIC: Final = 5  # 128-bit coefficient, then the scale
FLOAT32: Final = 6
FLOAT64: Final = 7
BYTES: Final = 8
INTERVAL: Final = 9  # int32 months, int32 days, int64 µs
UUID: Final = 10
PADDED: Final = 11  # bytes whose trailing blanks are shown, and count for nothing else

#: a run's head, int64: 0 key hashes, 1 rows, 2 second words, 3 their stride, 4 times, 5 stride, 6 diffs, 7 stride
HEAD: Final = 8

#: bytes per value by cell kind; 0 for bits and varlen
WIDTHS: Final = (0, 2, 4, 8, 16, 24, 4, 8, 0, 16, 16, 0)

#: the kinds whose values are hashed as one word of 64 bits, the same for those that SQL calls equal and no others
WORDS: Final = (BITS, INT16, INT32, INT64, FLOAT32, FLOAT64)

#: the kinds with 64-bit offsets
VARLEN: Final = (BYTES, PADDED)

#: flags of a descriptor that stands for an ORDER BY item
DESC: Final = 1
NULLS_FIRST: Final = 2

_DAY_US: Final = 86_400_000_000


def _bit(address: int, position: int) -> bool:
    return bool(ctypes.string_at(address + position // 8, 1)[0] >> (position % 8) & 1)


def cell(descriptor: npt.NDArray[np.int64], row: int) -> Any:
    """The value as a Python object: bool, int, (coefficient, scale), float, bytes, (months, days, µs), None."""
    kind, values, offsets, validity, bit_offset, _ = (int(x) for x in descriptor)
    row = int(row)
    if validity and not _bit(validity, bit_offset + row):
        return None
    if kind == BITS:
        return _bit(values, bit_offset + row)
    if kind in VARLEN:
        start, stop = struct.unpack("<qq", ctypes.string_at(offsets + 8 * row, 16))
        return ctypes.string_at(values + start, stop - start)
    width = WIDTHS[kind]
    raw = ctypes.string_at(values + width * row, width)
    if kind in (INT16, INT32, INT64, DECIMAL):
        return int.from_bytes(raw, "little", signed=True)
    if kind == NUMERIC:
        return int.from_bytes(raw[:16], "little", signed=True), int.from_bytes(raw[16:], "little", signed=True)
    if kind == INTERVAL:
        return struct.unpack("<iiq", raw)
    if kind == UUID:
        return raw
    return struct.unpack("<f" if kind == FLOAT32 else "<d", raw)[0]


def sql_key(kind: int, value: Any) -> Any:
    """What SQL compares and hashes of a value that is not NULL: values are equal iff their keys are."""
    if kind in (FLOAT32, FLOAT64):
        return (1, 0.0) if np.isnan(value) else (0, value + 0.0)
    if kind == NUMERIC:
        return Fraction(value[0], 10 ** value[1])
    if kind == INTERVAL:
        return (value[0] * 30 + value[1]) * _DAY_US + value[2]
    return value.rstrip(b" ") if kind == PADDED else value


def image(kind: int, value: Any) -> Any:
    """Orders values that are equal to SQL; those with equal images are identical (print alike)."""
    if kind in (FLOAT32, FLOAT64):
        return 0 if value == 0.0 and np.copysign(1.0, value) < 0 else 1
    if kind == NUMERIC:
        return value[1]
    if kind == INTERVAL:
        return value
    return len(value) if kind == PADDED else 0


def compare_rows_twin(a: Any, ra: int, i: int, b: Any, rb: int, j: int) -> int:
    """Canonical order of two rows: -1, 0 (identical), 1."""
    images: list[tuple[Any, Any]] = []
    for x, y in zip(a[ra], b[rb], strict=True):
        kind, flags = int(x[0]), int(x[5])
        p, q = cell(x, i), cell(y, j)
        if p is None or q is None:
            if p is None and q is None:
                continue
            return (1 if p is None else -1) * (-1 if flags & NULLS_FIRST else 1)
        left, right = sql_key(kind, p), sql_key(kind, q)
        if left != right:
            return (-1 if left < right else 1) * (-1 if flags & DESC else 1)
        images.append((image(kind, p), image(kind, q)))
    for left, right in images:
        if left != right:
            return -1 if left < right else 1
    return 0


def head_row(heads: Any, run: int, row: int) -> tuple[int, int, int, int]:
    """(key hash, second word, time, diff) of a row of a run."""
    arrays = ((heads[run, 0], 8), heads[run, 2:4], heads[run, 4:6], heads[run, 6:8])
    values = [ctypes.c_int64.from_address(int(address + stride * row)).value for address, stride in arrays]
    return values[0] % 2**64, values[1] % 2**64, values[2], values[3]
