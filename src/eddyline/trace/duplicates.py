"""Which rows are equal to SQL, within one set of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.types import SqlType
from eddyline.trace.compare import rows_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.order import order_rows

__all__ = ["all_ascend", "first_equal"]


class _Ascending(NamedTuple):
    column: int
    desc: bool = False
    nulls_first: bool = False


def all_ascend(numbers: npt.NDArray[np.integer]) -> bool:
    """Whether each is more than the one before it, so that none is there twice.  O(n)."""
    return bool((numbers[1:] > numbers[:-1]).all())


def first_equal(
    columns: Sequence[pa.Array], types: Sequence[SqlType], rows: int, hasher: Hasher
) -> npt.NDArray[np.int64]:
    """int64[rows]: for each row the lowest row that SQL calls equal to it (NULLs equal).

    Hashes find candidates, equality decides.  O(rows log rows).
    """
    first = np.arange(rows, dtype=np.int64)
    if rows < 2:
        return first
    if not columns:
        return np.zeros(rows, np.int64)
    hashes = hasher.hash_rows(columns, types, rows)
    by_hash = np.argsort(hashes, kind="stable")
    same = hashes[by_hash[1:]] == hashes[by_hash[:-1]]
    if not same.any():
        return first
    shared = np.zeros(rows, bool)
    shared[1:] |= same
    shared[:-1] |= same
    candidates = np.sort(by_hash[shared])
    taken = tuple(c.take(pa.array(candidates)) for c in columns)
    # SQL order puts equal rows side by side, whatever their hashes are.
    order = order_rows(taken, types, tuple(_Ascending(i) for i in range(len(types))))
    equal = rows_equal(taken, types, order[1:], taken, order[:-1], null_equal=(True,) * len(types))
    starts = np.flatnonzero(np.concatenate([[True], ~equal]))
    lowest = np.minimum.reduceat(order, starts)
    group = np.cumsum(np.concatenate([[0], ~equal]))
    first[candidates[order]] = candidates[lowest[group]]
    return first
