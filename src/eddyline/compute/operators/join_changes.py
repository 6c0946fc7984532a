"""The changes of one input of a join, as few of them as the join's result tells apart.

A change that differs only in columns that the result drops would meet every row of its key, once to take the old
result back and once to give the same again.  So the columns are dropped and what one side decides alone is decided
before, and what then cancels never meets the other input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.stateless import run_updates
from eddyline.compute.stream import Sealed
from eddyline.expr.ir import Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.run import Layout, Run, Uint64s, build_run

__all__ = ["PROBE_ROWS", "Changes", "JoinChanges"]

#: rows that are narrowed in one call
PROBE_ROWS = 8192


class Changes(NamedTuple):
    """Updates to be matched, and the hashes of their keys.  The columns that the result is made of come first."""

    batch: Batch
    hashes: Uint64s


class JoinChanges:
    """``own``: what is done to the rows of the input, which come in ``layout``, before they are matched.

    Rows come out with own's columns and those of the key: ``key`` are the places of the latter.
    """

    def __init__(self, layout: Layout, own: Mfp, context: OperatorContext) -> None:
        self._context = context
        self._whole = layout
        everything = tuple(range(len(layout.types)))
        kept = list(own.projection)
        kept.extend(k for k in layout.key if k not in own.projection)
        types: tuple[SqlType, ...] = (*own.types, *(layout.types[c] for c in kept[len(own.projection) :]))
        self._mfp = Mfp(own.steps, tuple(kept), types)
        #: how many columns the result is made of
        self.picked = len(own.projection)
        self.types = own.types
        self._layout = Layout(types, tuple(kept.index(k) for k in layout.key))
        self._as_they_are = not own.steps and tuple(kept) == everything
        #: whether different rows of the input may become equal
        self._nets = not set(everything) <= set(kept)

    @property
    def key(self) -> tuple[int, ...]:
        return self._layout.key

    def of(self, sealed: Sealed) -> Iterator[Changes]:
        """The changes of an interval in pieces of at most ``PROBE_ROWS``, in the order of their keys' hashes within a
        run; they cancel within a piece, and over all runs of an interval that is no larger than an activation takes.
        O(rows), O(n log n) for rows that may cancel.
        """
        pieces = (self._narrowed(*piece) for run in sealed.runs for piece in _pieces(run, sealed, self._context.as_of))
        if self._nets and len(sealed.runs) > 1 and sum(map(len, sealed.runs)) <= self._context.budget_rows:
            yield from self._together(list(pieces))
        else:
            yield from map(self._netted, pieces)

    def of_rows(self, batch: Batch) -> Changes:
        """Rows of the input that stand in no run, to be matched as they are.  O(rows)."""
        layout = self._whole
        keys = [batch.columns[k] for k in layout.key]
        hashes = self._context.hasher.hash_rows(keys, [layout.types[k] for k in layout.key], len(batch))
        return self._narrowed(batch, hashes)

    def _together(self, pieces: Sequence[Changes]) -> Iterator[Changes]:
        if not pieces:
            return
        batch = Batch.concat(self._layout.types, [p.batch for p in pieces])
        batch, hashes = self._netted(Changes(batch, np.concatenate([p.hashes for p in pieces])))
        for start in range(0, len(batch), PROBE_ROWS):
            stop = min(start + PROBE_ROWS, len(batch))
            yield Changes(batch.slice(start, stop), hashes[start:stop])

    def _narrowed(self, batch: Batch, hashes: Uint64s) -> Changes:
        if self._as_they_are:
            return Changes(batch, hashes)
        if not self._mfp.steps:
            return Changes(apply_mfp(self._mfp, batch)[0], hashes)
        # Numbers in the place of times tell which rows are left.
        numbered = Batch(batch.types, batch.columns, np.arange(len(batch)), batch.diffs)
        left, _ = apply_mfp(self._mfp, numbered)  # nothing that stands here can fail
        if len(left) == len(batch):
            return Changes(Batch(left.types, left.columns, batch.times, batch.diffs), hashes)
        return Changes(Batch(left.types, left.columns, batch.times[left.times], left.diffs), hashes[left.times])

    def _netted(self, changes: Changes) -> Changes:
        batch = changes.batch
        if not self._nets or len(batch) < 2 or not _both_signs(batch):
            return changes
        lower = Frontier(int(batch.times.min()))
        upper = Frontier(int(batch.times.max()) + 1)
        run = build_run(batch, self._layout, self._context.hasher, lower=lower, upper=upper, since=lower)
        return Changes(run_updates(run, lower, upper), np.asarray(run.key_hashes))


def _pieces(run: Run, sealed: Sealed, as_of: int) -> Iterator[tuple[Batch, Uint64s]]:
    updates = run_updates(run, as_of, sealed.upper)
    hashes = np.asarray(run.key_hashes)
    if len(updates) != len(hashes):
        hashes = hashes[np.asarray(run.times) < sealed.upper]
    for start in range(0, len(updates), PROBE_ROWS):
        stop = min(start + PROBE_ROWS, len(updates))
        yield updates if stop - start == len(updates) else updates.slice(start, stop), hashes[start:stop]


def _both_signs(batch: Batch) -> bool:
    """Whether something may cancel, and no sum leaves an int64."""
    least, most = int(batch.diffs.min()), int(batch.diffs.max())
    return least < 0 < most and max(-least, most) * len(batch) < 2**62
