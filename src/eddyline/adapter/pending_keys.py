"""Finding a transaction's pending changes by primary key without going through all of them for every statement.

A statement's cost is one vectorised comparison over the hashes of the changes before it, about 1 ns each, and not a
copy of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eddyline.repr.batch import Batch

__all__ = ["PendingKeys"]

Uint64s = npt.NDArray[np.uint64]


class PendingKeys:
    """The key hashes of the first ``batches`` batches of one table, in order."""

    def __init__(self) -> None:
        self._hashes: Uint64s = np.empty(16, np.uint64)  # the first _stops[-1] are in use
        self._stops = [0]  # changes up to and including each batch, after a leading 0

    @property
    def batches(self) -> int:
        return len(self._stops) - 1

    def add(self, hashes: Uint64s) -> None:
        """The next batch's.  Amortised O(its rows)."""
        start = self._stops[-1]
        stop = start + len(hashes)
        if stop > len(self._hashes):
            grown = np.empty(max(stop, 2 * len(self._hashes)), np.uint64)
            grown[:start] = self._hashes[:start]
            self._hashes = grown
        self._hashes[start:stop] = hashes
        self._stops.append(stop)

    def truncate(self, batches: int) -> None:
        """Forgets all batches from number ``batches`` on."""
        del self._stops[batches + 1 :]

    def candidates(self, wanted: Uint64s, pending: Sequence[Batch], most: int) -> list[Batch] | None:
        """The changes of ``pending`` whose key hash is one of ``wanted``, in order; hashes may agree by chance.

        None if they lie in more than ``most`` batches.
        """
        found = np.flatnonzero(np.isin(self._hashes[: self._stops[-1]], wanted))
        if not len(found):
            return []
        batch_of = np.searchsorted(self._stops, found, side="right") - 1
        batches = np.unique(batch_of)
        if len(batches) > most:
            return None
        return [pending[b].take(found[batch_of == b] - self._stops[b]) for b in batches]
