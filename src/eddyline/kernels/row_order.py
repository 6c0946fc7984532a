"""The comparison of rows that every kernel shares: canonical order, by the addresses of columns' descriptors.

*Canonical order*: SQL order of the items left to right (NULL last unless an item's flags say otherwise), then image.
What a name means never changes (add a new name instead): cached kernels of other files hold the old code.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

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
    WIDTH,
)
from eddyline.kernels.kernel import subroutine
from eddyline.kernels.memory import load_f32, load_f64, load_i16, load_i32, load_i64
from eddyline.kernels.orders import (
    bit,
    compare_bytes,
    compare_floats,
    compare_ints,
    compare_numeric,
    compare_wide,
    unpadded,
)

__all__ = ["ITEM_BYTES", "compare_cells", "compare_images", "compare_rows", "is_null"]

_DAY_US: Final = np.int64(86_400_000_000)
_ZERO: Final = np.uint64(0)
#: bytes of one column's descriptor
ITEM_BYTES: Final = 8 * WIDTH


@subroutine
def is_null(item: Any, row: Any) -> Any:
    """``item``: the address of a column's descriptor, here and below."""
    validity = load_i64(item + 24)
    return validity != 0 and bit(validity, load_i64(item + 32) + row) == _ZERO


@subroutine
def compare_cells(p: Any, i: Any, q: Any, j: Any) -> Any:
    """SQL order of two cells that are not NULL."""
    kind = load_i64(p)
    x = load_i64(p + 8)
    y = load_i64(q + 8)
    if kind == INT64:
        return compare_ints(load_i64(x + 8 * i), load_i64(y + 8 * j))
    if kind == INT32:
        return compare_ints(load_i32(x + 4 * i), load_i32(y + 4 * j))
    if kind in (BYTES, PADDED):
        i_offset = load_i64(p + 16) + 8 * i
        j_offset = load_i64(q + 16) + 8 * j
        start = load_i64(i_offset)
        other = load_i64(j_offset)
        i_size = load_i64(i_offset + 8) - start
        j_size = load_i64(j_offset + 8) - other
        if kind == PADDED:
            i_size = unpadded(x + start, i_size)
            j_size = unpadded(y + other, j_size)
        return compare_bytes(x + start, i_size, y + other, j_size)
    if kind == DECIMAL:
        return compare_wide(x + 16 * i, y + 16 * j)
    if kind == NUMERIC:
        return compare_numeric(x + 24 * i, y + 24 * j)
    if kind == FLOAT64:
        return compare_floats(load_f64(x + 8 * i), load_f64(y + 8 * j))
    if kind == FLOAT32:
        return compare_floats(load_f32(x + 4 * i), load_f32(y + 4 * j))
    if kind == BITS:
        i_bit = np.int64(bit(x, load_i64(p + 32) + i))
        return compare_ints(i_bit, np.int64(bit(y, load_i64(q + 32) + j)))
    if kind == INT16:
        return compare_ints(load_i16(x + 2 * i), load_i16(y + 2 * j))
    if kind == INTERVAL:
        i_micros = load_i64(x + 16 * i + 8)
        j_micros = load_i64(y + 16 * j + 8)
        i_days = load_i32(x + 16 * i) * 30 + load_i32(x + 16 * i + 4) + i_micros // _DAY_US
        j_days = load_i32(y + 16 * j) * 30 + load_i32(y + 16 * j + 4) + j_micros // _DAY_US
        if i_days != j_days:
            return compare_ints(i_days, j_days)
        return compare_ints(i_micros % _DAY_US, j_micros % _DAY_US)
    return compare_bytes(x + 16 * i, 16, y + 16 * j, 16)  # UUID


@subroutine
def compare_images(p: Any, i: Any, q: Any, j: Any) -> Any:
    """Order of two cells that SQL calls equal, by how they print; 0 iff identical."""
    kind = load_i64(p)
    x = load_i64(p + 8)
    y = load_i64(q + 8)
    if kind == NUMERIC:
        return compare_ints(load_i64(x + 24 * i + 16), load_i64(y + 24 * j + 16))
    if kind == FLOAT64:
        if load_f64(x + 8 * i) != 0.0:
            return 0
        return compare_ints(load_i64(x + 8 * i), load_i64(y + 8 * j))
    if kind == FLOAT32:
        if load_f32(x + 4 * i) != 0.0:
            return 0
        return compare_ints(load_i32(x + 4 * i), load_i32(y + 4 * j))
    if kind == INTERVAL:
        order = compare_ints(load_i32(x + 16 * i), load_i32(y + 16 * j))
        if order != 0:
            return order
        return compare_ints(load_i32(x + 16 * i + 4), load_i32(y + 16 * j + 4))
    if kind == PADDED:
        i_offset = load_i64(p + 16) + 8 * i
        j_offset = load_i64(q + 16) + 8 * j
        return compare_ints(load_i64(i_offset + 8) - load_i64(i_offset), load_i64(j_offset + 8) - load_i64(j_offset))
    return 0


@subroutine
def compare_rows(items: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Canonical order: -1, 0 (identical), 1.  ``a``, ``b``: the addresses of the rows' ``items`` descriptors, not the
    arrays: passing an array costs more than most comparisons.  ORDER BY flags are those of ``a``."""
    for item in range(items):
        p = a + ITEM_BYTES * item
        q = b + ITEM_BYTES * item
        i_null = is_null(p, i)
        j_null = is_null(q, j)
        if i_null or j_null:
            if i_null and j_null:
                continue
            order = 1 if i_null else -1
            return -order if load_i64(p + 40) & NULLS_FIRST else order
        order = compare_cells(p, i, q, j)
        if order != 0:
            return -order if load_i64(p + 40) & DESC else order
    for item in range(items):
        if not is_null(a + ITEM_BYTES * item, i):
            order = compare_images(a + ITEM_BYTES * item, i, b + ITEM_BYTES * item, j)
            if order != 0:
                return order
    return 0
