"""Many rows in the order of their keys' hashes, so that who looks the keys up walks along a table and does not jump.

A table of a million groups does not fit a cache: a row whose key may be anywhere waits for memory several times, one
whose neighbours came before it does not.  Each batch is put in order as it comes; the rows of all of them leave in
pieces, each a part of the range of hashes.

Invariants:
I1  rows with one hash leave in the order in which they came;
I2  a step handles one batch, or gives back at most twice the rows that are asked for and those of one batch.
One thread works on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Batch
from eddyline.repr.taking import take_values
from eddyline.trace.run import Uint64s

__all__ = ["KeyOrder"]

#: The order is that of the bits above the lowest few, as many as NumPy sorts in linear time.  In a group table, whose
#: buckets are the low bits, the rows of one place are neighbours.
_LOW_BITS: Final = 4
_PLACES: Final = 1 << 16


class KeyOrder:
    """Rows of one time with their keys' hashes.  ``rows``: how many wait."""

    def __init__(self) -> None:
        self.rows = 0
        #: bytes of what waits
        self.nbytes = 0
        self._batches: list[tuple[Batch, Uint64s, npt.NDArray[np.uint16]]] = []

    def add(self, rows: Batch, hashes: Uint64s) -> None:
        """Copies the rows, in order.  O(rows)."""
        places = ((hashes >> np.uint64(_LOW_BITS)) & np.uint64(_PLACES - 1)).astype(np.uint16)
        order = np.argsort(places, kind="stable")
        picked = pa.array(order)
        columns = tuple([take_values(c, order, picked) for c in rows.columns])
        batch = Batch(rows.types, columns, rows.times, rows.diffs[order])  # the times are one
        self._batches.append((batch, hashes[order], places[order]))
        self.rows += len(rows)
        self.nbytes += batch.nbytes + 10 * len(rows)

    def pieces(self, rows: int) -> Iterator[tuple[Batch, Uint64s]]:
        """All that waits, about ``rows`` rows at a time, with their hashes; of rows that are added later, none."""
        batches, self._batches = self._batches, []
        parts = max(self.rows // rows, 1)
        self.rows = self.nbytes = 0
        bounds = np.linspace(0, _PLACES, parts + 1).astype(np.int64)[1:-1]
        cuts = [[0, *np.searchsorted(places, bounds).tolist(), len(places)] for _, _, places in batches]
        for part in range(parts):
            taken: list[tuple[Batch, Uint64s]] = []
            count = 0
            for (batch, hashes, _), cut in zip(batches, cuts, strict=True):
                first, stop = cut[part : part + 2]
                if first == stop:
                    continue
                taken.append((batch.slice(first, stop), hashes[first:stop]))
                count += stop - first
                if count >= 2 * rows:
                    yield _joined(taken)
                    taken, count = [], 0
            if taken:
                yield _joined(taken)


def _joined(parts: Sequence[tuple[Batch, Uint64s]]) -> tuple[Batch, Uint64s]:
    return Batch.concat(parts[0][0].types, [rows for rows, _ in parts]), np.concatenate([hashes for _, hashes in parts])
