"""The content of a trace at one time, in bounded slices of whole rows.

Runs are sorted by (key hash, value hash), and identical rows agree in both.  A range of that order is therefore cut
out of every run by binary search and netted by itself: the slices together are the content.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.net import net_updates
from eddyline.trace.run import Run
from eddyline.trace.snapshot import Snapshot

__all__ = ["walk_at"]


def walk_at(snapshot: Snapshot, time: Time, slice_rows: int, hasher: Hasher) -> Iterator[Batch]:
    """The rows at ``time``, each in one slice only, in slices of about ``slice_rows`` updates.

    Requires since <= ``time``, and a layout without ORDER BY (unchecked).  Rows that are gone do not appear, negative
    multiplicities do; a row that was never retracted may come apart, its multiplicities add up.  A slice is longer only
    where more updates have equal hashes.
    Cost: per slice O(its updates, and runs × log(rows)).
    """
    runs = [r for r in snapshot.runs if len(r) and r.lower <= time]
    if not runs:
        return
    guide = max(runs, key=len)
    step = max(1, slice_rows * len(guide) // sum(map(len, runs)))
    starts = [0] * len(runs)
    position = 0
    while any(start < len(run) for start, run in zip(starts, runs, strict=True)):
        position = _next_hash(guide, position + step)
        stops = [len(r) if position == len(guide) else _first_at(r, guide, position) for r in runs]
        ranges = zip(runs, starts, stops, strict=True)
        pieces = [_updates(run, start, stop, time) for run, start, stop in ranges if stop > start]
        starts = stops
        filled = [p for p in pieces if len(p)]
        if any(int(p.diffs.min()) < 0 for p in filled):
            filled = list(net_updates(snapshot.layout.types, filled, hasher))
        if filled:
            yield Batch.concat(snapshot.layout.types, filled)


def _next_hash(run: Run, position: int) -> int:
    """The first row at or past ``position`` whose hashes differ from those of the row before it."""
    if position >= len(run):
        return len(run)
    key, value = run.key_hashes[position - 1], run.value_hashes[position - 1]
    end = position + int(np.searchsorted(run.key_hashes[position:], key, "right"))
    return position + int(np.searchsorted(run.value_hashes[position:end], value, "right"))


def _first_at(run: Run, guide: Run, position: int) -> int:
    """The first row of ``run`` that is not below the guide's row at ``position``."""
    if run is guide:
        return position
    key, value = guide.key_hashes[position], guide.value_hashes[position]
    low = int(np.searchsorted(run.key_hashes, key, "left"))
    high = low + int(np.searchsorted(run.key_hashes[low:], key, "right"))
    return low + int(np.searchsorted(run.value_hashes[low:high], value, "left"))


def _updates(run: Run, start: int, stop: int, time: Time) -> Batch:
    piece = run.batch().slice(start, stop)
    if int(piece.times.max()) > time:
        piece = piece.take(np.flatnonzero(piece.times <= time))
    return Batch(piece.types, piece.columns, np.full(len(piece), time, np.int64), piece.diffs)
