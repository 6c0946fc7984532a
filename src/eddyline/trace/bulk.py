"""One run from all updates of one time, however many: each row is hashed, sorted and copied once.

Inserting a snapshot piece by piece copies each row once a level of merges; this leaves out the levels.  Batches are
kept by reference until the run is made, in bounded steps: ``add`` each, then ``work`` until it is done.

Reading cells at random from all that was added would cost a cache miss each.  Fixed-width columns without NULLs are
therefore dealt into the buckets with their rows, and put in order there, a few buckets at a time: what was dealt is the
run, and no second copy of it is ever there.

Invariants:
I1  the run is the one that ``build_run`` makes of the concatenation, row for row;
I2  a step handles about ``fuel_rows`` rows, or one bucket of hashes if that has more; ``skewed`` says when some bucket
    is so large that whoever wants bounded steps should insert the batches one by one;
I3  beside what was added, which others may hold as well, and the run itself there are at most 16 bytes a row while
    batches wait or are dealt, and the columns that are not dealt; where all diffs are one, those of the run come
    after that;
I4  a step touches no more fresh memory than ``trace.fresh`` has in a piece, and what its rows take.
One thread works on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
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
from eddyline.kernels.gather import OUT, gather
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.taking import take_values
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType, arrow_type
from eddyline.trace.columns import ColumnBuffers, address_of, cell_kinds, describe, varlen_bytes
from eddyline.trace.fresh import apart, touch
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, Retracted, Run, Uint64s, hashes_of, summed_rows

__all__ = ["RunBuilder"]

#: so many rows tell whether many of a batch are alike
_TRIAL_ROWS: Final = 1024
_LARGEST_BUCKET_ROWS: Final = 1 << 16
#: buckets have about so many rows, so that one fits a cache, as long as there are not too many of them
_BUCKET_ROWS: Final = 1 << 11
_LOW32: Final = 0xFFFFFFFF


class _Added(NamedTuple):
    """One batch that waits: its columns, how kernels see them, and of each row the hash, second word and diff."""

    columns: tuple[pa.Array, ...]
    described: Int64s
    hashes: Uint64s
    words: Uint64s
    diffs: Int64s


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
        #: what waits; while the rows are dealt, the batches that are dealt leave their columns behind in ``_sources``
        self._added: deque[_Added] = deque()
        self._sources: list[tuple[pa.Array, ...]] = []
        self._counts = np.zeros(BUCKETS, np.int64)
        self._steps: Iterator[int] | None = None
        #: columns, hashes, second words, times and diffs, once they are made
        self._made: tuple[tuple[pa.Array, ...], Uint64s, Uint64s, Int64s, Int64s] | None = None
        #: whether each row came once
        self._once = True
        #: rows of the run with a negative diff, so far
        self._retracted = 0
        #: bytes of what waits to be built, shared buffers included
        self.nbytes = 0

    @property
    def skewed(self) -> bool:
        """Whether a single step would have to handle very many rows."""
        return int(self._counts.max()) > _LARGEST_BUCKET_ROWS

    def add(self, batch: Batch) -> None:
        """More updates, all at ``time``, whatever the batch calls it.  DataError 22003 if a multiplicity leaves int64.
        O(rows).

        A batch of many identical rows is kept as its different ones, so that memory follows these.
        """
        columns = batch.columns
        described = describe(columns, self._kinds)
        hashes, words = hashes_of(described, self.layout, self._hasher, len(batch))
        diffs = np.ascontiguousarray(batch.diffs, np.int64)
        if len(batch) > 4 * _TRIAL_ROWS:
            summed = summed_rows(described, hashes, words, np.zeros(len(batch), np.int64), diffs, _TRIAL_ROWS)
            if summed is not None:
                first, sums = summed
                columns = tuple([take_values(c, first) for c in columns])
                described = describe(columns, self._kinds)
                hashes, words, diffs = hashes[first], words[first], sums[first]
        if not len(diffs):
            return
        count_buckets(hashes, self._counts)
        hashes, words = apart((hashes, words))
        self._once = self._once and bool((diffs == 1).all())
        self._added.append(_Added(columns, described, hashes, words, diffs))
        self.rows += len(diffs)
        self.nbytes += sum(int(c.nbytes) for c in columns) + diffs.nbytes + hashes.nbytes + words.nbytes

    def pieces(self, max_rows: int) -> Iterator[Batch]:
        """What was added, in batches of at most ``max_rows``, for who inserts it so; small ones as one."""
        small: list[Batch] = []
        rows = 0
        for added in self._added:
            batch = Batch(self.layout.types, added.columns, np.full(len(added.diffs), self.time, np.int64), added.diffs)
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
        columns, hashes, words, times, diffs = self._made
        retracted = Retracted(self._retracted, self._retracted if self.time > since else 0)
        return Run(
            self.layout,
            columns,
            key_hashes=hashes,
            value_hashes=words,
            times=times,
            diffs=diffs,
            lower=lower,
            upper=upper,
            since=since,
            retracted=retracted,
        )

    def _build(self, fuel_rows: int) -> Iterator[int]:
        """Deals the rows into buckets, sorts the buckets, puts the rows in order; yields after each bounded part."""
        if not self.rows:
            return
        bits = min(max((self.rows // _BUCKET_ROWS).bit_length(), 1), BUCKET_BITS)
        counts = self._counts.reshape(1 << bits, -1).sum(axis=1)
        starts = np.concatenate(([0], np.cumsum(counts)))
        shift = 64 - bits
        ranges = list(_ranges(starts, fuel_rows))
        most = max(int(starts[stop] - starts[first]) for first, stop in ranges)
        dealt = _Dealt(self.layout.types, self._kinds, self._added, self.rows, most, once=self._once)
        yield from touch(dealt.scattered())
        cursors = starts[:-1].copy()
        while self._added:
            added = self._added.popleft()
            dealt.take(len(self._sources), added, shift, cursors)
            self._sources.append(added.columns)
            yield len(added.diffs)
        largest = 3 * int(counts.max()) + 3
        rows, spare = np.empty(largest, np.int64), np.empty(largest, np.int64)
        places, diffs = np.empty(most, np.int64), np.empty(most, np.int64)
        parts = np.empty(256, np.int64)
        out = 0
        for first, stop in ranges:
            before = out
            out = sort_buckets(
                dealt.descs, dealt.picks, dealt.dealt_diffs, starts, shift, first, stop, out,
                dealt.hashes, dealt.words, places, diffs, rows, spare, parts,
            )  # fmt: skip
            if out == SUM_OVERFLOW:
                raise make_error("22003", "row multiplicity out of range")
            yield int(starts[stop] - starts[first])
            if out > before:
                dealt.settle(places[: out - before], diffs[: out - before], before, self.time)
                self._retracted += int(np.count_nonzero(diffs[: out - before] < 0))
                yield out - before
        if out:
            self._made = (*dealt.finish(out), dealt.diffs[:out])
        self._sources = []


class _Dealt:
    """All rows by place: what ``kernels.build`` sorts, and the cells of plain columns.

    The rows before those of the buckets that are yet to be sorted are the run's: hashes, second words, diffs and the
    cells of plain columns are put in order in place, and picks become times.
    """

    def __init__(
        self,
        types: tuple[SqlType, ...],
        kinds: tuple[int, ...],
        added: Collection[_Added],
        rows: int,
        most: int,
        *,
        once: bool,
    ) -> None:
        """``most``: rows that are settled at once.  ``once``: whether all diffs are one."""
        self.descs = np.stack([a.described for a in added])
        self.hashes = np.empty(rows, np.uint64)
        self.words = np.empty(rows, np.uint64)
        self.diffs = np.empty(rows, np.int64)
        #: none where they are all one: the run's are written with its rows, when nothing waits any more
        self.dealt_diffs = np.empty(0, np.int64) if once else self.diffs
        self.picks = np.empty(rows, np.int64)
        nullable = (self.descs[:, :, 3] != 0).any(axis=0).tolist()
        plain = [c for c, kind in enumerate(kinds) if WIDTHS[kind] and not nullable[c]]
        others = [c for c in range(len(kinds)) if c not in plain]
        self._types = types
        self._plain = np.array(plain, np.int64)
        self._cells = [np.empty((rows, WIDTHS[kinds[c]]), np.uint8) for c in plain]
        self._addresses = np.array([address_of(c) for c in self._cells], np.int64)
        self._plain_descs = np.zeros((1, len(plain), WIDTH), np.int64)
        self._plain_descs[0, :, 0] = [kinds[c] for c in plain]
        self._plain_descs[0, :, 1] = self._addresses
        #: the cells of the rows that are being settled, in their order
        self._settled = [np.empty((most, WIDTHS[kinds[c]]), np.uint8) for c in plain]
        self._settled_outs = np.zeros((len(plain), OUT), np.int64)
        self._settled_outs[:, 0] = [address_of(c) for c in self._settled]
        self._others = others
        self._other_descs = np.ascontiguousarray(self.descs[:, others])
        sizes = np.array([varlen_bytes(a.described, len(a.diffs)) for a in added]).sum(axis=0)
        #: the other columns of the run; kernels keep the bytes written so far in its ``outs``
        self._columns = ColumnBuffers(
            [types[c] for c in others], [kinds[c] for c in others], rows, [int(sizes[c]) for c in others],
            [nullable[c] for c in others],
        )  # fmt: skip

    def scattered(self) -> list[npt.NDArray[Any]]:
        """What rows are dealt to, at places all over it."""
        return [self.hashes, self.words, self.picks, self.dealt_diffs, *self._cells]

    def take(self, number: int, added: _Added, shift: int, cursors: Int64s) -> None:
        """Deals the rows of batch ``number``."""
        places = np.empty(len(added.diffs), np.int64)
        deal_rows(
            added.hashes, added.words, added.diffs, number, shift, cursors, places,
            self.hashes, self.words, self.dealt_diffs, self.picks,
        )  # fmt: skip
        deal_cells(added.described, self._plain, places, self._addresses)

    def settle(self, places: Int64s, diffs: Int64s, first: int, time: Time) -> None:
        """Puts the rows at ``places``, which are of ``time``, to the run's rows from ``first`` on; calls come in the
        order of the rows, and those of a bucket in one call."""
        rows = len(places)
        stop = first + rows
        self.diffs[first:stop] = diffs
        zeros = np.zeros(rows, np.int64)
        if self._others:
            picks = self.picks[places]
            gather(self._other_descs, 0, picks >> 32, picks & _LOW32, 0, rows, first, self._columns.outs)
        if self._cells:
            gather(self._plain_descs, 0, zeros, places, 0, rows, 0, self._settled_outs)
            for cells, settled in zip(self._cells, self._settled, strict=True):
                cells[first:stop] = settled[:rows]
        self.picks[first:stop] = time  # of what is settled: none before it is picked any more

    def finish(self, rows: int) -> tuple[tuple[pa.Array, ...], Uint64s, Uint64s, Int64s]:
        """(columns, hashes, second words, times) of the run, whose first ``rows`` rows they are."""
        made = iter(self._columns.finish(rows))
        cells = iter(self._cells)
        columns = []
        for number, sql_type in enumerate(self._types):
            if number in self._others:
                columns.append(next(made))
            else:
                columns.append(pa.Array.from_buffers(arrow_type(sql_type), rows, [None, pa.py_buffer(next(cells))]))
        return tuple(columns), self.hashes[:rows], self.words[:rows], self.picks[:rows]


def _ranges(starts: Int64s, fuel_rows: int) -> Iterator[tuple[int, int]]:
    """Neighbouring buckets [first, stop) that hold about ``fuel_rows`` rows together."""
    first = 0
    while starts[first] < starts[-1]:
        stop = int(np.searchsorted(starts, starts[first] + fuel_rows, "right")) - 1
        stop = max(stop, first + 1)
        yield first, stop
        first = stop
