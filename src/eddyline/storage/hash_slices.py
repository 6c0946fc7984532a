"""A table's rows at one time, in bounded slices that do not overlap, to be written one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Run, consolidate
from eddyline.trace.snapshot import Snapshot

__all__ = ["hash_slices"]

_SLICE_ROWS = 1 << 16
_HASH_BITS = 64


def hash_slices(snapshot: Snapshot, at: Time, hasher: Hasher) -> Iterator[Batch]:
    """The rows at ``at``, each once with its multiplicity, about 64 Ki updates at a time.

    Each slice is a range of key hashes, which every run is sorted by: equal rows of all runs are in one.  Rows whose
    keys are all alike come in one slice.
    """
    runs = [run for run in snapshot.runs if len(run)]
    count = max(1, -(-sum(map(len, runs)) // _SLICE_ROWS))
    starts = [0] * len(runs)
    for i in range(1, count + 1):
        stops = [_position(run, i, count) for run in runs]
        parts = [run.batch().slice(a, b) for run, a, b in zip(runs, starts, stops, strict=True) if a < b]
        starts = stops
        if not parts:
            continue
        rows = Batch.concat(snapshot.layout.types, [_upto(part, at) for part in parts])
        rows = consolidate(Batch(rows.types, rows.columns, np.full(len(rows), at, np.int64), rows.diffs), hasher)
        if len(rows):
            yield rows


def _position(run: Run, i: int, count: int) -> int:
    """Where the ``i``-th of ``count`` equal ranges of hashes ends in the run."""
    if i == count:
        return len(run)
    return int(np.searchsorted(run.key_hashes, np.uint64((i << _HASH_BITS) // count)))


def _upto(batch: Batch, at: Time) -> Batch:
    keep = batch.times <= at
    return batch if keep.all() else batch.take(np.flatnonzero(keep))
