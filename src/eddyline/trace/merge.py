"""Merges of runs, a bounded slice at a time.

The result is allocated whole at the start (its size is bounded by the inputs; untouched pages cost nothing) and filled
slice by slice.  The inputs stay as they are: readers go on with them until the owner swaps in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.kernels.gather import gather
from eddyline.kernels.rows import MERGE_STATE, OVERFLOW, merge_rows
from eddyline.repr.batch import Int64s
from eddyline.repr.time import EMPTY, Frontier
from eddyline.trace.columns import ColumnBuffers, cell_kinds
from eddyline.trace.run import Layout, Retracted, Run, count_retracted

__all__ = ["Merge", "RunSet"]

_SLICE_ROWS: Final = 1 << 16


class RunSet:
    """Runs of one layout with their addresses stacked, so that a kernel sees them all.  Immutable.

    The stacks are made on first use; a race makes them twice, equal.
    """

    def __init__(self, layout: Layout, runs: tuple[Run, ...]) -> None:
        self.layout = layout
        self.runs = runs

    @cached_property
    def heads(self) -> Int64s:
        """int64[runs, HEAD]"""
        return np.array([run.head for run in self.runs], np.int64).reshape(len(self.runs), 8)

    @cached_property
    def descs(self) -> Int64s:
        """int64[runs, items, WIDTH]"""
        items = len(self.layout.order) + len(self.layout.types)
        return np.array([run.descriptors for run in self.runs], np.int64).reshape(len(self.runs), items, 6)

    @cached_property
    def key_descs(self) -> Int64s:
        """int64[runs, key columns, WIDTH]"""
        skip = len(self.layout.order)
        return np.ascontiguousarray(self.descs[:, [skip + c for c in self.layout.key]])

    @cached_property
    def rows(self) -> int:
        return sum(len(run) for run in self.runs)

    def appended(self, run: Run) -> RunSet:
        """With one more run.  What was stacked is copied, and not stacked anew.  O(runs)."""
        more = RunSet(self.layout, (*self.runs, run))
        known = self.__dict__
        if self.runs and "heads" in known:
            more.heads = np.concatenate((self.heads, run.head[None]))
        if self.runs and "descs" in known:
            more.descs = np.concatenate((self.descs, run.descriptors[None]))
            if "key_descs" in known:
                skip = len(self.layout.order)
                keys = run.descriptors.take([skip + c for c in self.layout.key], axis=0)
                more.key_descs = np.concatenate((self.key_descs, keys[None]))
        if "rows" in known:
            more.rows = self.rows + len(run)
        return more


class Merge:
    """The consolidated merge of ``runs`` (contiguous, oldest first), at times advanced to ``since``, below ``below``.

    One thread works on it.  ``done`` once every input row is consumed; then ``result`` may be asked for.
    """

    def __init__(
        self,
        layout: Layout,
        runs: Sequence[Run],
        since: Frontier,
        *,
        below: Frontier = EMPTY,
        set_: RunSet | None = None,
    ) -> None:
        self.runs = set_ if set_ is not None else RunSet(layout, tuple(runs))
        self.since = since
        self.done = False
        #: input rows still to consume
        self.left_rows = self.runs.rows
        self._below = below
        #: of the rows that are closed: nobody has to look at all of them again
        self._retracted = Retracted(0, 0)
        rows = self.left_rows
        kinds = cell_kinds(layout.types)
        varlen = [sum(sizes) for sizes in zip(*(r.varlen_bytes() for r in self.runs.runs), strict=True)]
        nullable = (self.runs.descs[:, len(layout.order) :, 3] != 0).any(axis=0).tolist()
        self._columns = ColumnBuffers(layout.types, kinds, rows, varlen or [0] * len(kinds), nullable)
        self._out = [np.empty(rows, np.int64) for _ in range(4)]
        slice_rows = min(rows, _SLICE_ROWS) + 1
        self._pick_runs = np.empty(slice_rows, np.int64)
        self._pick_rows = np.empty(slice_rows, np.int64)
        self._cursors = np.zeros(len(self.runs.runs), np.int64)
        self._order = np.empty(len(self.runs.runs), np.int64)
        self._state = np.array((-1, 0, 0), np.int64)
        assert len(self._state) == MERGE_STATE

    def work(self, fuel_rows: int) -> int:
        """Consumes up to ``fuel_rows`` input rows; returns what is left of the fuel.  O(fuel × columns).

        DataError 22003 if a multiplicity leaves int64.
        """
        while fuel_rows > 0 and not self.done:
            fuel = min(fuel_rows, _SLICE_ROWS, max(self.left_rows, 1))
            self._slice(fuel)
            used = min(fuel, self.left_rows)
            self.left_rows -= used
            fuel_rows -= max(used, 1)
        return max(fuel_rows, 0)

    def _slice(self, fuel: int) -> None:
        runs, state = self.runs, self._state
        hashes, words, times, diffs = self._out
        status = merge_rows(
            runs.heads,
            runs.descs,
            self.since,
            self._below,
            fuel,
            self._cursors,
            self._order,
            state,
            self._pick_runs,
            self._pick_rows,
            hashes.view(np.uint64),
            words.view(np.uint64),
            times,
            diffs,
        )
        if status == OVERFLOW:
            raise make_error("22003", "row multiplicity out of range")
        self.done = status == 1
        out, final = int(state[1]), int(state[2])
        # the last row out stays open: the next slice may add to it or drop it
        closed = out if self.done else max(out - 1, final)
        count = closed - final
        if count > 0:
            skip = len(runs.layout.order)
            gather(runs.descs, skip, self._pick_runs, self._pick_rows, 0, count, final, self._columns.outs)
        if not self.done and count > 0 and out > closed:
            self._pick_runs[0] = self._pick_runs[count]
            self._pick_rows[0] = self._pick_rows[count]
        self._retracted = self._retracted.and_also(
            count_retracted(times[final:closed], diffs[final:closed], self.since)
        )
        state[2] = closed

    def columns(self) -> tuple[pa.Array, ...]:
        """The merged columns; it is an error to call this before ``done``."""
        return self._columns.finish(int(self._state[1]))

    def updates(self) -> tuple[Int64s, Int64s]:
        """The merged times and diffs."""
        rows = int(self._state[1])
        return self._out[2][:rows], self._out[3][:rows]

    def result(self) -> Run | None:
        """The merged run, None if nothing remains; it is an error to call this before ``done``."""
        rows = int(self._state[1])
        if rows == 0:
            return None
        first, last = self.runs.runs[0], self.runs.runs[-1]
        hashes, words, times, diffs = (a[:rows] for a in self._out)
        return Run(
            self.runs.layout,
            self.columns(),
            key_hashes=hashes.view(np.uint64),
            value_hashes=words.view(np.uint64),
            times=times,
            diffs=diffs,
            lower=first.lower,
            upper=last.upper,
            since=self.since,
            retracted=self._retracted,
        )
