"""Equality and identity of rows, pair by pair.

*Equal* is SQL's word; *identical* rows also print alike (1.0 and 1.00 are equal, not identical; so are -0 and 0, and
1 month and 30 days).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.kernels.rows import pairs_equal
from eddyline.repr.types import SqlType
from eddyline.trace.columns import SHORT_BYTES, SHORT_ROWS, cell_kinds, describe, varlen_bytes

__all__ = ["rows_equal", "rows_identical"]


def rows_identical(
    columns: Sequence[pa.Array],
    types: Sequence[SqlType],
    left: npt.NDArray[np.int64],
    right_columns: Sequence[pa.Array],
    right: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """bool[m]: whether row ``left[k]`` and row ``right[k]`` of the right columns print alike.  O(cells)."""
    return _compare(columns, types, left, right_columns, right, [True] * len(types), identical=True)


def rows_equal(
    columns: Sequence[pa.Array],
    types: Sequence[SqlType],
    left: npt.NDArray[np.int64],
    right_columns: Sequence[pa.Array],
    right: npt.NDArray[np.int64],
    *,
    null_equal: Sequence[bool],
) -> npt.NDArray[np.bool_]:
    """bool[m]: SQL equality of the pairs; NULLs of column *c* equal each other iff ``null_equal[c]``."""
    return _compare(columns, types, left, right_columns, right, null_equal, identical=False)


def _compare(
    columns: Sequence[pa.Array],
    types: Sequence[SqlType],
    left: npt.NDArray[np.int64],
    right_columns: Sequence[pa.Array],
    right: npt.NDArray[np.int64],
    null_equal: Sequence[bool],
    *,
    identical: bool,
) -> npt.NDArray[np.bool_]:
    kinds = cell_kinds(types)
    out = np.empty(len(left), np.uint8)
    described = describe(columns, kinds)
    short = len(left) <= SHORT_ROWS and (not columns or sum(varlen_bytes(described, len(columns[0]))) <= SHORT_BYTES)
    (pairs_equal.short if short else pairs_equal)(
        described[None],
        np.ascontiguousarray(left, np.int64),
        describe(right_columns, kinds)[None],
        np.zeros(len(left), np.int64),
        np.ascontiguousarray(right, np.int64),
        np.array(null_equal, np.uint8),
        1 if identical else 0,
        out,
    )
    return out.view(np.bool_)
