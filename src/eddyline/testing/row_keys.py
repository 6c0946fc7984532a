"""Rows as byte strings that order as the canonical row order, and are equal iff the rows are identical: an oracle.

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
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eddyline.kernels.cells import (
    BITS,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NUMERIC,
    PADDED,
    UUID,
    VARLEN,
    cell,
    image,
    sql_key,
)
from eddyline.repr.types import SqlType
from eddyline.trace.columns import cell_kinds, describe

__all__ = ["row_keys"]

_DAY_US: Final = 86_400_000_000
_EXPONENT_BIAS: Final = 1 << 31


def row_keys(columns: Sequence[pa.Array], types: Sequence[SqlType], rows: int) -> list[bytes]:
    """The encoding of each row.  Python per row, so for small columns."""
    kinds = cell_kinds(types)
    described = describe(columns, kinds)
    out = []
    for row in range(rows):
        values = [(kind, cell(d, row)) for kind, d in zip(kinds, described, strict=True)]
        key = b"".join(b"\2" if value is None else b"\1" + _value(kind, value) for kind, value in values)
        out.append(key + b"".join(_image(kind, value) for kind, value in values if value is not None))
    return out


def _signed(value: int, size: int = 8) -> bytes:
    return (value + (1 << (8 * size - 1))).to_bytes(size, "big")


def _value(kind: int, value: Any) -> bytes:
    if kind in (INT16, INT32, INT64):
        return _signed(value)
    if kind == DECIMAL:
        return _signed(value, 16)
    if kind in (FLOAT32, FLOAT64):
        return _float(value)
    if kind == BITS:
        return bytes([value])
    if kind == UUID:
        return bytes(value)
    if kind in VARLEN:
        return bytes(sql_key(kind, value)).replace(b"\0", b"\0\xff") + b"\0\0"
    if kind == NUMERIC:
        return _numeric(*value)
    assert kind == INTERVAL
    days, micros = divmod(sql_key(kind, value), _DAY_US)
    return _signed(days) + int(micros).to_bytes(8, "big")


def _float(value: float) -> bytes:
    if np.isnan(value):
        return b"\xff" * 8
    bits = int(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
    return (2**64 - 1 - bits if bits >> 63 else bits | 1 << 63).to_bytes(8, "big")


def _numeric(coefficient: int, scale: int) -> bytes:
    if coefficient == 0:
        return b"\2"
    digits = str(abs(coefficient))
    exponent = len(digits) - scale + _EXPONENT_BIAS
    tail = exponent.to_bytes(4, "big") + bytes(int(d) + 1 for d in digits.rstrip("0")) + b"\0"
    return b"\3" + tail if coefficient > 0 else b"\1" + bytes(255 - b for b in tail)


def _image(kind: int, value: Any) -> bytes:
    """What tells equal values apart."""
    if kind == PADDED:
        return len(value).to_bytes(8, "big")
    if kind in (FLOAT32, FLOAT64):
        return bytes([image(kind, value)])
    if kind == NUMERIC:
        return int(value[1]).to_bytes(8, "big")
    if kind == INTERVAL:
        return _signed(value[0]) + _signed(value[1])
    return b""
