"""Runs: immutable sorted updates over an interval of times.

Invariants of a run:
I1  rows are sorted by (key hash, second word, canonical row order, time), where the second word is the value hash, or
    for a layout with an ORDER BY the monotone prefix of its first item, and the canonical order then starts with the
    ORDER BY items: the rows of a key stand in ORDER BY order;
I2  no two rows have the same image and time, and no diff is zero;
I3  every update of the collection with lower <= time < upper is in it, with times advanced to ``since``;
I4  every array is flat: NumPy for hashes, times and diffs, contiguous Arrow for columns.
Key and value hashes only order: equality of rows is decided by comparing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.kernels.rows import FEW_ALIKE, OVERFLOW, compact_rows, sort_rows, sum_identical
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.columns import (
    SortItem,
    address_of,
    cell_kinds,
    describe,
    gather_columns,
    is_small,
    order_descriptors,
    varlen_bytes,
)
from eddyline.trace.hasher import Hasher
from eddyline.trace.order import prefixes_of

__all__ = [
    "Layout", "Retracted", "Run", "Total", "Uint64s", "build_run", "consolidate", "count_retracted", "hashes_of",
    "sort_order", "summed_rows",
]  # fmt: skip

Uint64s = npt.NDArray[np.uint64]

_BUCKET_ROWS: Final = 8
_BUCKET_BITS: Final = 14
#: so many rows tell whether many of a batch are alike (of the words of a text, most of a few hundred still differ)
_TRIAL_ROWS: Final = 1024
#: a one-row run may pin this much of what its row was cut from
_SMALL_BYTES: Final = 4096


class Layout(NamedTuple):
    """Row type, key columns, and for top-k arrangements the ORDER BY inside a key."""

    types: tuple[SqlType, ...]
    key: tuple[int, ...]
    order: tuple[SortItem, ...] = ()


class Total(NamedTuple):
    """What the updates of a run come to from ``time`` on: ``run``, all at that time; None: nothing."""

    time: int
    run: Run | None


class Retracted(NamedTuple):
    """Updates with a negative diff, and those of them that are later than the run's since."""

    all: int
    late: int

    def and_also(self, other: Retracted) -> Retracted:
        """Those of two parts of a run."""
        return Retracted(self.all + other.all, self.late + other.late)


def count_retracted(times: Int64s, diffs: Int64s, since: Frontier) -> Retracted:
    """Of these rows, of a run with that since.  O(rows)."""
    back = diffs < 0
    found = int(np.count_nonzero(back))
    return Retracted(found, int(np.count_nonzero(back & (times > since))) if found else 0)


class Run:
    """Updates with lower <= time < upper (before advancing to ``since``); see the module's invariants."""

    __slots__ = (
        "_nbytes",
        "_retracted",
        "columns",
        "descriptors",
        "diffs",
        "head",
        "key_hashes",
        "layout",
        "level",
        "lower",
        "since",
        "times",
        "total",
        "upper",
        "value_hashes",
    )

    def __init__(
        self,
        layout: Layout,
        columns: tuple[pa.Array, ...],
        *,
        key_hashes: Uint64s,
        value_hashes: Uint64s,
        times: Int64s,
        diffs: Int64s,
        lower: Frontier,
        upper: Frontier,
        since: Frontier,
        descriptors: Int64s | None = None,
        retracted: Retracted | None = None,
    ) -> None:
        """``descriptors``: those of ``columns`` and their order, if they are at hand; ``retracted`` likewise."""
        self.layout = layout
        self.columns = columns
        self.key_hashes = key_hashes
        #: the second sort word: a hash of the columns outside the key, or the ORDER BY prefix
        self.value_hashes = value_hashes
        self.times = times
        self.diffs = diffs
        self.lower = lower
        self.upper = upper
        self.since = since
        self._nbytes = -1
        self._retracted = retracted
        #: once somebody has asked (``totals``); any thread
        self.total: Total | None = None
        #: runs of one level are within a factor of four in length
        self.level = len(times).bit_length() >> 1
        described = describe(columns, cell_kinds(layout.types)) if descriptors is None else descriptors
        if layout.order and descriptors is None:
            described = np.concatenate((order_descriptors(described, layout.order), described))
        #: int64[items, WIDTH]: the ORDER BY items, if any, then the columns
        self.descriptors = described
        #: int64[HEAD], see ``kernels.cells``
        self.head = np.array(
            (
                address_of(key_hashes),
                len(times),
                address_of(value_hashes),
                value_hashes.strides[0],
                address_of(times),
                times.strides[0],
                address_of(diffs),
                diffs.strides[0],
            ),
            np.int64,
        )

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return f"Run({len(self)} × {len(self.columns)}, [{self.lower}, {self.upper}), since {self.since})"

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.layout.types

    @property
    def skip(self) -> int:
        """Descriptors before the columns'."""
        return len(self.layout.order)

    @property
    def retracted(self) -> Retracted:
        """How many updates take rows back.  O(rows) the first time, unless whoever made the run counted; a race counts
        them twice, alike."""
        if self._retracted is None:
            self._retracted = count_retracted(self.times, self.diffs, self.since)
        return self._retracted

    @property
    def nbytes(self) -> int:
        """Bytes of the live rows.  O(columns) the first time; a race counts them twice, alike."""
        if self._nbytes < 0:
            self._nbytes = 32 * len(self) + sum(int(c.nbytes) for c in self.columns)
        return self._nbytes

    def rebounded(self, lower: Frontier, upper: Frontier) -> Run:
        """The same rows with other bounds, by reference."""
        return Run(
            self.layout,
            self.columns,
            key_hashes=self.key_hashes,
            value_hashes=self.value_hashes,
            times=self.times,
            diffs=self.diffs,
            lower=lower,
            upper=upper,
            since=self.since,
            descriptors=self.descriptors,
            retracted=self._retracted,
        )

    def varlen_bytes(self) -> list[int]:
        """Bytes of values per column; 0 unless varlen."""
        return varlen_bytes(self.descriptors[self.skip :], len(self))

    def batch(self) -> Batch:
        """The run's updates, by reference."""
        return Batch(self.layout.types, self.columns, self.times, self.diffs)


def sort_order(
    descriptors: Int64s, hashes: Uint64s, words: Uint64s, times: Int64s, picked: Int64s | None = None
) -> Int64s:
    """int64[n]: the stable order by (hash, word, canonical row order, time) of all rows, or of those ``picked``."""
    picked = np.arange(len(times)) if picked is None else picked.copy()
    rows = len(picked)
    if rows <= 1:
        return picked
    order = np.empty(rows, np.int64)
    bits = min(max((rows // _BUCKET_ROWS).bit_length() - 1, 0), _BUCKET_BITS)
    sort_rows(descriptors[None], hashes, words, times, np.empty((1 << bits) + 1, np.int64), order, picked)
    return order


def summed_rows(
    descriptors: Int64s, hashes: Uint64s, words: Uint64s, times: Int64s, diffs: Int64s, trial_rows: int
) -> tuple[Int64s, Int64s] | None:
    """(the first row of each identical (row, time), in order; int64[n] with their total diffs), zeros gone.

    None if adding up by hash is not worth it: see ``kernels.rows.sum_identical``.  DataError 22003.  Expected O(n).
    """
    rows = len(times)
    table = np.full(1 << (rows + rows // 2).bit_length(), -1, np.int64)
    first, sums = np.empty(rows, np.int64), np.empty(rows, np.int64)
    kept = sum_identical(descriptors[None], hashes, words, times, diffs, trial_rows, table, first, sums)
    if kept == OVERFLOW:
        raise make_error("22003", "row multiplicity out of range")
    return None if kept == FEW_ALIKE else (first[:kept], sums)


def hashes_of(described: Int64s, layout: Layout, hasher: Hasher, rows: int) -> tuple[Uint64s, Uint64s]:
    """(key hash, second word) of each row of described columns, whose buffers the caller keeps alive.  O(cells)."""
    hashes = hasher.hash_described(described[list(layout.key)], rows)
    if layout.order:
        return hashes, prefixes_of(order_descriptors(described, layout.order)[0], rows)
    rest = [c for c in range(len(layout.types)) if c not in layout.key]
    return hashes, hasher.hash_described(described[rest], rows) if rest else np.zeros(rows, np.uint64)


def build_run(
    batch: Batch, layout: Layout, hasher: Hasher, *, lower: Frontier, upper: Frontier, since: Frontier
) -> Run:
    """The run of a batch, in any order and not consolidated, with lower <= time < upper (ValueError, checked).

    Times below ``since`` are advanced to it.  DataError 22003 if a multiplicity leaves int64.  O(n log n).
    """
    rows = len(batch)
    times = np.ascontiguousarray(batch.times, np.int64)
    diffs = np.ascontiguousarray(batch.diffs, np.int64)
    if rows:
        _check_times(times, lower, upper)
        if since > lower:
            times = np.maximum(times, since)
    kinds = cell_kinds(layout.types)
    described = describe(batch.columns, kinds)
    hashes, words = hashes_of(described, layout, hasher, rows)
    items = np.concatenate((order_descriptors(described, layout.order), described)) if layout.order else described
    if rows == 1 and diffs[0] and is_small(batch.columns, _SMALL_BYTES):
        return Run(
            layout,
            batch.columns,
            key_hashes=hashes,
            value_hashes=words,
            times=times,
            diffs=diffs,
            lower=lower,
            upper=upper,
            since=since,
            descriptors=items,
        )
    summed = summed_rows(items, hashes, words, times, diffs, _TRIAL_ROWS) if rows > 4 * _TRIAL_ROWS else None
    if summed is None:
        order = sort_order(items, hashes, words, times)
    else:
        first, diffs = summed
        order = sort_order(items, hashes, words, times, first)
    out = np.empty((4, len(order)), np.int64)
    out_hashes, out_words = out[0].view(np.uint64), out[1].view(np.uint64)
    kept = compact_rows(items[None], hashes, words, times, diffs, order, out_hashes, out_words, out[2], out[3])
    if kept == OVERFLOW:
        raise make_error("22003", "row multiplicity out of range")
    picks = order[:kept]
    columns = gather_columns(layout.types, kinds, described[None], 0, np.zeros(kept, np.int64), picks)
    return Run(
        layout,
        columns,
        key_hashes=out_hashes[:kept],
        value_hashes=out_words[:kept],
        times=out[2, :kept],
        diffs=out[3, :kept],
        lower=lower,
        upper=upper,
        since=since,
    )


def _check_times(times: Int64s, lower: Frontier, upper: Frontier) -> None:
    first, last = (times[0], times[0]) if len(times) == 1 else (times.min(), times.max())
    if first < lower or last >= upper:
        raise ValueError(f"times {first} .. {last} outside [{lower}, {upper})")


def consolidate(batch: Batch, hasher: Hasher) -> Batch:
    """The batch with the diffs of identical (row, time) summed and zeros gone, in no promised order.

    DataError 22003 if a multiplicity leaves int64.  Expected O(n).
    """
    rows = len(batch)
    if rows == 0:
        return batch
    described = describe(batch.columns, cell_kinds(batch.types))
    times = np.ascontiguousarray(batch.times, np.int64)
    diffs = np.ascontiguousarray(batch.diffs, np.int64)
    if rows == 1:
        return batch if diffs[0] else Batch.empty(batch.types)
    hashes = hasher.hash_described(described, rows)
    words = np.zeros(rows, np.uint64)
    summed = summed_rows(described, hashes, words, times, diffs, rows)
    if summed is None:
        return _consolidate_sorted(batch, described, hashes, words, times, diffs)
    first, sums = summed
    if len(first) == rows and _pins_little(batch.columns):
        return batch
    columns = gather_columns(
        batch.types, cell_kinds(batch.types), described[None], 0, np.zeros(len(first), np.int64), first
    )
    return Batch(batch.types, columns, times[first], sums[first])


def _pins_little(columns: Sequence[pa.Array]) -> bool:
    """Whether the arrays are most of what their buffers hold."""
    held = sum(b.size for c in columns for b in c.buffers() if b is not None)
    return bool(held <= _SMALL_BYTES + 2 * sum(c.nbytes for c in columns))


def _consolidate_sorted(
    batch: Batch, described: Int64s, hashes: Uint64s, words: Uint64s, times: Int64s, diffs: Int64s
) -> Batch:
    """As ``consolidate``, where hashes tell few rows apart.  O(n log n)."""
    rows = len(times)
    order = sort_order(described, hashes, words, times)
    out = np.empty((4, rows), np.int64)
    kept = compact_rows(
        described[None],
        hashes,
        words,
        times,
        diffs,
        order,
        out[0].view(np.uint64),
        out[1].view(np.uint64),
        out[2],
        out[3],
    )
    if kept == OVERFLOW:
        raise make_error("22003", "row multiplicity out of range")
    columns = gather_columns(
        batch.types, cell_kinds(batch.types), described[None], 0, np.zeros(kept, np.int64), order[:kept]
    )
    return Batch(batch.types, columns, out[2, :kept], out[3, :kept])
