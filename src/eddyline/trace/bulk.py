"""One run from all updates of one time, however many: each row is hashed, sorted and copied once.

Inserting a snapshot piece by piece copies each row once a level of merges; this leaves out the levels.  Batches are
kept by reference until the run is made, in bounded steps: ``add`` each, then ``work`` until it is done.

Invariants:
I1  the run is the one that ``build_run`` makes of the concatenation, row for row;
I2  a step handles about ``fuel_rows`` rows, or one bucket of hashes if that has more; ``skewed`` says when some bucket
    is so large that whoever wants bounded steps should insert the batches one by one.
One thread works on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.kernels.build import BUCKETS, SUM_OVERFLOW, count_buckets, deal_rows, sort_buckets
from eddyline.kernels.gather import gather
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Frontier, Time
from eddyline.trace.columns import ColumnBuffers, address_of, cell_kinds, describe, varlen_bytes
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, Run, Uint64s, hashes_of, summed_rows

__all__ = ["RunBuilder"]

#: so many rows tell whether many of a batch are alike
_TRIAL_ROWS: Final = 1024
_LARGEST_BUCKET_ROWS: Final = 1 << 16


class RunBuilder:
    """Of ``layout``, which has no ORDER BY (ValueError), at ``time``."""

    def __init__(self, layout: Layout, hasher: Hasher, time: Time) -> None:
        if layout.order:
            raise ValueError("rows in ORDER BY order are not built at once")
        self.layout = layout
        self.time = time
        self.rows = 0
        self._hasher = hasher
        self._kinds = cell_kinds(layout.types)
        self._batches: list[Batch] = []
        self._descs: list[Int64s] = []
        self._hashes: list[Uint64s] = []
        self._words: list[Uint64s] = []
        self._diffs: list[Int64s] = []
        self._counts = np.zeros(BUCKETS, np.int64)
        self._steps: Iterator[int] | None = None
        #: columns, hashes, second words and diffs, once they are made
        self._made: tuple[tuple[pa.Array, ...], Uint64s, Uint64s, Int64s] | None = None
        #: bytes of what waits to be built, shared buffers included
        self.nbytes = 0

    @property
    def skewed(self) -> bool:
        """Whether a single step would have to handle very many rows."""
        return int(self._counts.max()) > _LARGEST_BUCKET_ROWS

    def add(self, batch: Batch) -> None:
        """More updates, all at ``time`` (unchecked).  DataError 22003 if a multiplicity leaves int64.  O(rows).

        A batch of many identical rows is kept as its different ones, so that memory follows these.
        """
        described = describe(batch.columns, self._kinds)
        hashes, words = hashes_of(described, self.layout, self._hasher, len(batch))
        diffs = np.ascontiguousarray(batch.diffs, np.int64)
        if len(batch) > 4 * _TRIAL_ROWS:
            summed = summed_rows(described, hashes, words, np.zeros(len(batch), np.int64), diffs, _TRIAL_ROWS)
            if summed is not None:
                first, sums = summed
                batch = Batch(batch.types, batch.take(first).columns, batch.times[first], sums[first])
                described = describe(batch.columns, self._kinds)
                hashes, words, diffs = hashes[first], words[first], np.ascontiguousarray(batch.diffs, np.int64)
        if not len(batch):
            return
        count_buckets(hashes, self._counts)
        self._batches.append(batch)
        self._descs.append(described)
        self._hashes.append(hashes)
        self._words.append(words)
        self._diffs.append(diffs)
        self.rows += len(batch)
        self.nbytes += batch.nbytes + hashes.nbytes + words.nbytes

    def pieces(self, max_rows: int) -> Iterator[Batch]:
        """What was added, in batches of at most ``max_rows``, for who inserts it so; small ones as one."""
        small: list[Batch] = []
        rows = 0
        for batch in self._batches:
            for start in range(0, len(batch), max_rows):
                piece = batch.slice(start, min(start + max_rows, len(batch)))
                if small and rows + len(piece) > max_rows:
                    yield Batch.concat(self.layout.types, small)
                    small, rows = [], 0
                small.append(piece)
                rows += len(piece)
        if small:
            yield Batch.concat(self.layout.types, small)

    def work(self, fuel_rows: int) -> bool:
        """One bounded step; False once the run is made.  No ``add`` after the first call.  DataError 22003."""
        if self._steps is None:
            self._steps = self._build(fuel_rows)
        done = next(self._steps, None)
        return done is not None

    def result(self, *, lower: Frontier, upper: Frontier, since: Frontier) -> Run | None:
        """The run, None if nothing remains; it is an error to call this before ``work`` is done."""
        if self._made is None:
            return None
        columns, hashes, words, diffs = self._made
        return Run(
            self.layout,
            columns,
            key_hashes=hashes,
            value_hashes=words,
            times=np.full(len(diffs), self.time, np.int64),
            diffs=diffs,
            lower=lower,
            upper=upper,
            since=since,
        )

    def _build(self, fuel_rows: int) -> Iterator[int]:
        """Deals the rows into buckets, sorts the buckets, copies the rows; yields after each bounded part."""
        rows = self.rows
        if not rows:
            return
        starts = np.concatenate(([0], np.cumsum(self._counts)))
        hashes, picks = np.empty(rows, np.uint64), np.empty(rows, np.int64)
        cursors = starts[:-1].copy()
        for number in range(len(self._batches)):
            deal_rows(self._hashes[number], number, cursors, hashes, picks)
            yield len(self._hashes[number])
        self._hashes.clear()
        descs = np.stack(self._descs)
        columns = self._buffers(descs)
        words, diffs = np.empty(rows, np.uint64), np.empty(rows, np.int64)
        word_addresses = np.array([address_of(w) for w in self._words], np.int64)
        diff_addresses = np.array([address_of(d) for d in self._diffs], np.int64)
        largest = int(self._counts.max())
        spare_hashes, spare_picks = np.empty((2, largest), np.uint64), np.empty((2, largest), np.int64)
        counts = np.empty(256, np.int64)
        out = 0
        for first, stop in _ranges(starts, fuel_rows):
            before = out
            out = sort_buckets(
                descs,
                word_addresses,
                diff_addresses,
                starts,
                first,
                stop,
                out,
                hashes,
                picks,
                words,
                diffs,
                spare_hashes,
                spare_picks,
                counts,
            )
            if out == SUM_OVERFLOW:
                raise make_error("22003", "row multiplicity out of range")
            yield int(starts[stop] - starts[first])
            if out > before:
                made = picks[before:out]
                gather(descs, 0, made >> 32, made & 0xFFFFFFFF, 0, len(made), before, columns.outs)
                yield len(made)
        self._batches, self._descs, self._words, self._diffs = [], [], [], []
        if out:
            self._made = columns.finish(out), hashes[:out], words[:out], diffs[:out]

    def _buffers(self, descs: Int64s) -> ColumnBuffers:
        sizes = [varlen_bytes(d, len(b)) for d, b in zip(self._descs, self._batches, strict=True)]
        nullable = (descs[:, :, 3] != 0).any(axis=0).tolist()
        return ColumnBuffers(
            self.layout.types, self._kinds, self.rows, [sum(s) for s in zip(*sizes, strict=True)], nullable
        )


def _ranges(starts: Int64s, fuel_rows: int) -> Iterator[tuple[int, int]]:
    """Neighbouring buckets [first, stop) that hold about ``fuel_rows`` rows together."""
    first = 0
    while first < BUCKETS and starts[first] < starts[-1]:
        stop = int(np.searchsorted(starts, starts[first] + fuel_rows, "right")) - 1
        stop = min(max(stop, first + 1), BUCKETS)
        yield first, stop
        first = stop
