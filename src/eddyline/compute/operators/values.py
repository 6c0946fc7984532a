"""Arrow columns as NumPy arrays, nulls apart, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Int64s
from eddyline.repr.types import Kind, SqlType, arrow_type

__all__ = [
    "INTEGERS",
    "booleans_of",
    "coefficients_of",
    "floats_of",
    "from_integers",
    "from_numbers",
    "from_words",
    "integers_of",
    "valid_of",
    "words_of",
]

Bools = npt.NDArray[np.bool_]


def valid_of(array: pa.Array) -> Bools:
    """bool[n]: the value is not NULL."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def booleans_of(array: pa.Array) -> Bools:
    """bool[n]: the value is true."""
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _data(array: pa.Array, dtype: Any, per_row: int = 1) -> npt.NDArray[Any]:
    """The value buffer of a fixed-width array; undefined at NULLs."""
    width = np.dtype(dtype).itemsize * per_row
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) * per_row, dtype)
    return np.frombuffer(buffer, dtype, count=len(array) * per_row, offset=array.offset * width)


#: the kinds that are integers underneath, and ordered like them
INTEGERS: Final = {
    Kind.SMALLINT: np.int16,
    Kind.INTEGER: np.int32,
    Kind.BIGINT: np.int64,
    Kind.DATE: np.int32,
    Kind.TIME: np.int64,
    Kind.TIMESTAMP: np.int64,
    Kind.TIMESTAMPTZ: np.int64,
}


def integers_of(array: pa.Array, sql_type: SqlType) -> Int64s:
    """int64[n] of a column of one of the kinds above; undefined at NULLs."""
    return _data(array, INTEGERS[sql_type.kind]).astype(np.int64, copy=False)


def floats_of(array: pa.Array, sql_type: SqlType) -> npt.NDArray[np.float64]:
    """float64[n] of a real or double precision column; undefined at NULLs."""
    return _data(array, np.float32 if sql_type.kind is Kind.REAL else np.float64).astype(np.float64)


def coefficients_of(array: pa.Array) -> Int64s:
    """int64[n, 2]: low and high word of a numeric column with one scale, without a copy; undefined at NULLs."""
    return _data(array, np.int64, 2).reshape(-1, 2)


def words_of(array: pa.Array, sql_type: SqlType) -> tuple[Int64s, Int64s, Int64s]:
    """(low word, high word, scale), int64[n] each, of an integer or numeric column; undefined at NULLs."""
    if sql_type.kind is not Kind.NUMERIC:
        low = integers_of(array, sql_type)
        return low, low >> 63, np.zeros(len(array), np.int64)
    per_row = 3 if sql_type.scale is None else 2
    words = _data(array, np.int64, per_row).reshape(-1, per_row)
    scale = words[:, 2].copy() if sql_type.scale is None else np.full(len(array), sql_type.scale, np.int64)
    return words[:, 0].copy(), words[:, 1].copy(), scale


def from_numbers(values: npt.NDArray[Any], valid: Bools, sql_type: SqlType) -> pa.Array:
    """A column of integers, floats or booleans, NULL where not ``valid``."""
    return pa.array(values, type=arrow_type(sql_type), mask=None if valid.all() else ~valid)


def from_integers(values: Int64s, valid: Bools, sql_type: SqlType) -> pa.Array:
    """A column of one of the kinds of ``INTEGERS``, NULL where not ``valid``."""
    return from_words(values.astype(INTEGERS[sql_type.kind]), valid, sql_type)


def from_words(words: npt.NDArray[Any], valid: Bools, sql_type: SqlType) -> pa.Array:
    """A column from its fixed-width image: ``words`` is C-contiguous with the type's bytes in each row."""
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    image = np.ascontiguousarray(words)
    return pa.Array.from_buffers(arrow_type(sql_type), len(valid), [bitmap, pa.py_buffer(image)])
