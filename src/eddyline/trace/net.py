"""Updates of one time with what cancels taken out, at the cost of what may cancel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import consolidate

__all__ = ["net_updates"]

#: with a retraction among so many updates nearly all rows are touched
_FEW_UPDATES: Final = 8


def net_updates(types: tuple[SqlType, ...], batches: Iterable[Batch], hasher: Hasher) -> Iterator[Batch]:
    """The updates of ``batches``, which are all at one time, in batches none of whose rows cancel another's.

    Rows whose hash a retraction has are consolidated, together, and come last; all others pass as they are, so that
    an identical row may come in several batches.  Where retractions are many, everything is consolidated.
    Cost: expected O(rows); for a row that none cancels, little more than a hash.
    """
    held = list(batches)
    if sum(int(np.count_nonzero(b.diffs < 0)) for b in held) * _FEW_UPDATES >= sum(map(len, held)):
        if len(left := consolidate(Batch.concat(types, held), hasher)):
            yield left
        return
    hashes = [hasher.hash_rows(b.columns, types, len(b)) for b in held]
    retracted = [h[b.diffs < 0] for h, b in zip(hashes, held, strict=True)]
    wanted = np.unique(np.concatenate(retracted)) if retracted else np.empty(0, np.uint64)
    touched: list[Batch] = []
    for i, batch in enumerate(held):
        hit = np.isin(hashes[i], wanted)
        if not hit.any():
            yield batch
            continue
        touched.append(batch.take(np.flatnonzero(hit)))
        rest = np.flatnonzero(~hit)
        if len(rest):
            yield batch.take(rest)
    if touched:
        left = consolidate(Batch.concat(types, touched), hasher)
        if len(left):
            yield left
