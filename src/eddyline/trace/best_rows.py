"""The first rows of each group in an order, out of batches that come in any order: what a one-time read keeps.

Invariants:
I1  a row that was left out has at least ``limit`` rows of its group before it among those that came;
I2  ``_bars[g]`` is no smaller than the prefix of the last of the group's first ``limit`` rows, so that a row with a
    greater prefix is out; the greatest word while the group has fewer.
Rows never leave again: it is an error to add negative diffs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT, SqlType
from eddyline.trace.columns import SortItem
from eddyline.trace.order import order_rows, sort_prefix

__all__ = ["BestRows", "Chosen"]

_OPEN = np.uint64(2**64 - 1)
#: rows kept beside those that are surely wanted before they are sorted out
_SLACK_ROWS = 16_384


class Chosen(NamedTuple):
    """Rows by ascending group, in order inside; ``multiplicities`` may exceed the limit at a group's last row."""

    groups: Int64s
    rows: Batch


class _Item(NamedTuple):
    column: int
    desc: bool
    nulls_first: bool


class BestRows:
    """``order`` decides, ties by canonical row order; ``limit`` counts multiplicities.

    Cost: O(rows) to look at each once, O(k log k) for the k that are kept for a while; memory follows those.
    """

    def __init__(self, types: tuple[SqlType, ...], order: Sequence[SortItem], limit: int) -> None:
        self._types = types
        self._limit = limit
        #: without an order the canonical one decides, which begins with the first column
        self._order = tuple(_Item(o.column, o.desc, o.nulls_first) for o in order) or (
            (_Item(0, False, False),) if types else ()
        )
        self._pool: list[Batch] = []
        self._pool_groups: list[Int64s] = []
        self._pool_rows = 0
        self._shrink_at = _SLACK_ROWS
        self._bars = np.full(1, _OPEN, np.uint64)

    def add(self, batch: Batch, groups: Int64s | None = None, count: int = 1) -> None:
        """``groups``: int64[n], the group of each row, all below ``count``; None: one group, 0.  Diffs > 0."""
        if not len(batch) or not self._limit:
            return
        if count > len(self._bars):
            bars = np.full(max(count, 2 * len(self._bars)), _OPEN, np.uint64)
            bars[: len(self._bars)] = self._bars
            self._bars = bars
        words = self._words(batch)
        kept = self._inside(words) if groups is None else self._inside_groups(words, groups)
        if not len(kept):
            return
        whole = len(kept) == len(batch)
        self._pool.append(batch if whole else batch.take(kept))
        if groups is None:
            self._pool_groups.append(np.zeros(len(kept), np.int64))
        else:
            self._pool_groups.append(groups if whole else groups[kept])
        self._pool_rows += len(kept)
        if self._pool_rows > self._shrink_at:
            self._shrink()

    def chosen(self) -> Chosen:
        """The first rows of every group that has any."""
        self._shrink()
        if not self._pool:
            return Chosen(np.empty(0, np.int64), Batch.empty(self._types))
        return Chosen(self._pool_groups[0], self._pool[0])

    @property
    def nbytes(self) -> int:
        """Of the rows that are kept now."""
        return sum(b.nbytes for b in self._pool) + 8 * self._pool_rows + self._bars.nbytes

    def _words(self, batch: Batch) -> npt.NDArray[np.uint64]:
        if not self._order:
            return np.zeros(len(batch), np.uint64)
        first = self._order[0]
        return sort_prefix(
            batch.columns[first.column], self._types[first.column], desc=first.desc, nulls_first=first.nulls_first
        )

    def _inside(self, words: npt.NDArray[np.uint64]) -> Int64s:
        """The rows of the one group that may be among its first."""
        if len(words) > self._limit:
            last = self._limit - 1
            bar = np.partition(words, last)[last] if last else words.min()
            self._bars[0] = min(self._bars[0], bar)
        return np.flatnonzero(words <= self._bars[0])

    def _inside_groups(self, words: npt.NDArray[np.uint64], groups: Int64s) -> Int64s:
        if self._limit == 1:
            np.minimum.at(self._bars, groups, words)
        return np.flatnonzero(words <= self._bars[groups])

    def _shrink(self) -> None:
        """Leaves the first rows of each group, sorted."""
        if not self._pool_rows:
            return
        rows = Batch.concat(self._types, self._pool)
        groups = np.concatenate(self._pool_groups)
        columns = (pa.array(groups), *rows.columns)
        items = (_Item(0, False, False), *(i._replace(column=i.column + 1) for i in self._order))
        order = order_rows(columns, (BIGINT, *self._types), items, len(rows))
        groups, diffs = groups[order], rows.diffs[order]
        ends = np.cumsum(diffs)
        first = np.searchsorted(groups, groups)  # the first row of the row's group
        before = ends - diffs
        kept = np.flatnonzero(before - before[first] < self._limit)
        full = np.zeros(len(self._bars), np.bool_)
        full[groups[kept[(ends - before[first])[kept] >= self._limit]]] = True
        groups = groups[kept]
        rows = rows.take(order[kept])
        self._pool, self._pool_groups, self._pool_rows = [rows], [groups], len(kept)
        self._shrink_at = 2 * len(kept) + _SLACK_ROWS
        last = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
        last = last[full[groups[last]]]
        if self._limit > 1 and len(last):
            self._bars[groups[last]] = self._words(rows)[last]
