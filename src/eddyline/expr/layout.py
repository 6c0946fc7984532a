"""Arrow buffers as NumPy arrays and back, and both numeric layouts as kernel words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.kernels.numeric import MAX_DIGITS, PER_VALUE
from eddyline.repr.types import SqlType, arrow_type

__all__ = [
    "EXACT",
    "Words",
    "decimals_of",
    "empty_scalar",
    "fixed_array",
    "numeric_array",
    "numeric_from_coefficients",
    "numeric_words",
    "pack_numeric",
    "unpack_numeric",
    "validity",
    "values_of",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

#: decimal context in which 38-digit coefficients stay exact
EXACT: Final = Context(prec=120, Emax=999_999, Emin=-999_999)
_WORD: Final = (1 << 64) - 1


class Words(NamedTuple):
    """A numeric column as kernels see it: int64[n, 2 or 3] and the column's scale or ``PER_VALUE``.  A NULL's words
    are anything."""

    words: Int64s
    scale: int


def validity(array: pa.Array) -> Bools | None:
    """bool[n], or None if no value is NULL."""
    if array.null_count == 0:
        return None
    valid: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def values_of(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """The values of a fixed-width array, without a copy, read-only; a NULL's value is anything."""
    rows = len(array)
    width = np.dtype(dtype).itemsize
    buffer = array.buffers()[1]
    if rows == 0 or buffer is None:
        return np.zeros(rows, dtype)
    result: npt.NDArray[np.generic] = np.frombuffer(buffer, dtype, rows, array.offset * width)
    return result


def empty_scalar(layout: pa.DataType) -> pa.Scalar:
    """The value of no bytes in a large_string or large_binary layout.

    For modules' constants: ``pa.scalar`` would import pandas where that is installed, which takes long.
    """
    return pa.Array.from_buffers(layout, 1, [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")])[0]


def fixed_array(values: npt.NDArray[np.generic], sql_type: SqlType, valid: Bools | None = None) -> pa.Array:
    """A column over the values' memory (not copied): any C-contiguous array whose rows have the layout's width."""
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.array(valid, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(arrow_type(sql_type), len(values), [bitmap, pa.py_buffer(values)])


def numeric_words(array: pa.Array, sql_type: SqlType) -> Words:
    """The words of a numeric column of either layout, without a copy."""
    width = 3 if sql_type.scale is None else 2
    rows = len(array)
    buffer = array.buffers()[1]
    scale = PER_VALUE if sql_type.scale is None else sql_type.scale
    if rows == 0 or buffer is None:
        return Words(np.zeros((rows, width), np.int64), scale)
    words = np.frombuffer(buffer, np.int64, rows * width, array.offset * width * 8).reshape(rows, width)
    return Words(words, scale)


def numeric_array(words: Int64s, sql_type: SqlType, valid: Bools | None = None) -> pa.Array:
    """The numeric column of words in the layout of ``sql_type``."""
    return fixed_array(words, sql_type, valid)


def pack_numeric(coefficient: int, scale: int) -> bytes:
    """The 24 bytes of one per-value numeric."""
    return coefficient.to_bytes(16, "little", signed=True) + scale.to_bytes(8, "little", signed=True)


def unpack_numeric(data: bytes) -> Decimal:
    coefficient = int.from_bytes(data[:16], "little", signed=True)
    return Decimal(coefficient).scaleb(-int.from_bytes(data[16:], "little", signed=True), EXACT)


def numeric_from_coefficients(
    values: Sequence[tuple[int, int] | None], sql_type: SqlType
) -> tuple[pa.Array, list[int]]:
    """A column of (coefficient, scale) pairs, whose scale is the column's if that has one; None is NULL.

    Returns the rows with more than 38 digits as well; they are NULL.  Slow: a Python step per row.
    """
    limit = 10**MAX_DIGITS
    overflowed = [i for i, v in enumerate(values) if v is not None and abs(v[0]) >= limit]
    kept = list(values)
    for i in overflowed:
        kept[i] = None
    valid = np.array([v is not None for v in kept], np.bool_)
    pairs = [(0, 0) if v is None else v for v in kept]
    if sql_type.scale is None:
        raw = b"".join(pack_numeric(c, s) for c, s in pairs)
    else:
        raw = b"".join(c.to_bytes(16, "little", signed=True) for c, _ in pairs)
    width = 3 if sql_type.scale is None else 2
    words = np.frombuffer(raw, np.int64).reshape(len(pairs), width) if pairs else np.zeros((0, width), np.int64)
    return numeric_array(words, sql_type, valid), overflowed


def decimals_of(array: pa.Array, sql_type: SqlType) -> list[Decimal | None]:
    """The values, each with its display scale.  Slow: a Python object per row; call it in slices."""
    if sql_type.scale is not None:
        decimals: list[Decimal | None] = array.to_pylist()
        return decimals
    return [None if v is None else unpack_numeric(v) for v in array.to_pylist()]
