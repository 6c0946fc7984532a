"""One run from all updates of one time, however many: each row is hashed, sorted and copied once.

Inserting a snapshot piece by piece copies each row once a level of merges; this leaves out the levels.  Batches are
kept by reference until the run is made, in bounded steps: ``add`` each, then ``work`` until it is done.

Reading cells at random from all that was added would cost a cache miss each.  Fixed-width columns without NULLs are
therefore dealt into the buckets with their rows, and copied from there once a bucket is in order.

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
from eddyline.kernels.build import (
    BUCKET_BITS,
    BUCKETS,
    SUM_OVERFLOW,
    count_buckets,
    deal_cells,
    deal_rows,
    sort_buckets,
)
from eddyline.kernels.cells import WIDTH, WIDTHS
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
#: buckets have about so many rows, so that one fits a cache, as long as there are not too many of them
_BUCKET_ROWS: Final = 1 << 11
_LOW32: Final = 0xFFFFFFFF


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
        if not self.rows:
            return
        bits = min(max((self.rows // _BUCKET_ROWS).bit_length(), 1), BUCKET_BITS)
        counts = self._counts.reshape(1 << bits, -1).sum(axis=1)
        starts = np.concatenate(([0], np.cumsum(counts)))
        dealt = _Dealt(self._descs, self._kinds, self.rows)
        shift = 64 - bits
        cursors = starts[:-1].copy()
        for number in range(len(self._batches)):
            dealt.take(number, self._descs[number], self._hashes[number], self._words[number], self._diffs[number],
                       shift=shift, cursors=cursors)  # fmt: skip
            yield len(self._hashes[number])
        self._hashes, self._words, self._diffs = [], [], []
        columns = self._buffers(dealt.descs)
        largest = 3 * int(counts.max()) + 3
        rows, spare = np.empty(largest, np.int64), np.empty(largest, np.int64)
        places, diffs = np.empty(self.rows, np.int64), np.empty(self.rows, np.int64)
        parts = np.empty(256, np.int64)
        out = 0
        for first, stop in _ranges(starts, fuel_rows):
            before = out
            out = sort_buckets(
                dealt.descs, dealt.picks, dealt.diffs, starts, shift, first, stop, out,
                dealt.hashes, dealt.words, places, diffs, rows, spare, parts,
            )  # fmt: skip
            if out == SUM_OVERFLOW:
                raise make_error("22003", "row multiplicity out of range")
            yield int(starts[stop] - starts[first])
            if out > before:
                dealt.gather(places[before:out], before, columns)
                yield out - before
        self._batches, self._descs = [], []
        if out:
            self._made = columns.finish(out), dealt.hashes[:out], dealt.words[:out], diffs[:out]

    def _buffers(self, descs: Int64s) -> ColumnBuffers:
        sizes = [varlen_bytes(d, len(b)) for d, b in zip(self._descs, self._batches, strict=True)]
        nullable = (descs[:, :, 3] != 0).any(axis=0).tolist()
        return ColumnBuffers(
            self.layout.types, self._kinds, self.rows, [sum(s) for s in zip(*sizes, strict=True)], nullable
        )


class _Dealt:
    """All rows by place: what ``kernels.build`` sorts, and the cells of plain columns."""

    def __init__(self, descs: list[Int64s], kinds: tuple[int, ...], rows: int) -> None:
        self.descs = np.stack(descs)
        self.hashes = np.empty(rows, np.uint64)
        self.words = np.empty(rows, np.uint64)
        self.diffs = np.empty(rows, np.int64)
        self.picks = np.empty(rows, np.int64)
        plain = [c for c, kind in enumerate(kinds) if WIDTHS[kind] and not self.descs[:, c, 3].any()]
        self._plain = np.array(plain, np.int64)
        self._others = np.array([c for c in range(len(kinds)) if c not in plain], np.int64)
        self._cells = [np.empty(rows * WIDTHS[kinds[c]], np.uint8) for c in plain]
        self._addresses = np.array([address_of(c) for c in self._cells], np.int64)
        self._plain_descs = np.zeros((1, len(plain), WIDTH), np.int64)
        self._plain_descs[0, :, 0] = [kinds[c] for c in plain]
        self._plain_descs[0, :, 1] = self._addresses
        self._other_descs = np.ascontiguousarray(self.descs[:, self._others])
        #: where the cells of the other columns go next; kernels keep the bytes written so far in it
        self._other_outs: Int64s | None = None

    def take(
        self,
        number: int,
        described: Int64s,
        hashes: Uint64s,
        words: Uint64s,
        diffs: Int64s,
        *,
        shift: int,
        cursors: Int64s,
    ) -> None:
        places = np.empty(len(hashes), np.int64)
        deal_rows(hashes, words, diffs, number, shift, cursors, places, self.hashes, self.words, self.diffs, self.picks)
        deal_cells(described, self._plain, places, self._addresses)

    def gather(self, places: Int64s, first: int, columns: ColumnBuffers) -> None:
        """Copies the rows at ``places`` to the output's rows from ``first`` on; calls come in the order of the rows."""
        rows = len(places)
        if len(self._plain):
            outs = columns.outs[self._plain]
            gather(self._plain_descs, 0, np.zeros(rows, np.int64), places, 0, rows, first, outs)
        if len(self._others):
            if self._other_outs is None:
                self._other_outs = columns.outs[self._others]
            picks = self.picks[places]
            gather(self._other_descs, 0, picks >> 32, picks & _LOW32, 0, rows, first, self._other_outs)


def _ranges(starts: Int64s, fuel_rows: int) -> Iterator[tuple[int, int]]:
    """Neighbouring buckets [first, stop) that hold about ``fuel_rows`` rows together."""
    first = 0
    while starts[first] < starts[-1]:
        stop = int(np.searchsorted(starts, starts[first] + fuel_rows, "right")) - 1
        stop = max(stop, first + 1)
        yield first, stop
        first = stop
