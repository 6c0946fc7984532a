"""A private multiset of rows by key, as it stands now: a trace without readers of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from eddyline.trace.snapshot import Matches, OrderedRows
from eddyline.trace.trace import Trace

__all__ = ["KeyedState"]


class KeyedState:
    """Insertions are numbered, and the number is the time: the trace is always read at its end, and compacts there."""

    def __init__(self, layout: Layout, hasher: Hasher) -> None:
        self._layout = layout
        self._hasher = hasher
        self._trace = Trace(layout)
        self._handle = self._trace.handle(since=Frontier(MIN_TIME), through=EMPTY)
        self._next = 0
        self._key_types = tuple(layout.types[k] for k in layout.key)

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self._layout.types

    def insert(self, batch: Batch) -> None:
        """Adds the rows with their diffs, whatever their times.  Amortised O(rows × log(state))."""
        if not len(batch):
            return
        number = self._next
        self._next += 1
        times = np.full(len(batch), number, np.int64)
        run = build_run(
            Batch(batch.types, batch.columns, times, batch.diffs),
            self._layout,
            self._hasher,
            lower=Frontier(number),
            upper=Frontier(number + 1),
            since=self._trace.since,
        )
        self._trace.insert(run)
        self._handle.downgrade(Frontier(number))

    def work(self, fuel_rows: int) -> bool:
        """Merges; True if more is left."""
        return self._trace.work(fuel_rows)

    def hashes(self, keys: Sequence[pa.Array], rows: int) -> npt.NDArray[np.uint64]:
        return self._hasher.hash_rows(keys, self._key_types, rows)

    def rows_of(self, keys: Sequence[pa.Array], hashes: npt.NDArray[np.uint64]) -> Matches:
        """All updates of the groups with these keys (NULLs equal), not consolidated, in the order of the keys.

        ``hashes``: of the keys, as ``hashes`` gives them.
        """
        return self._trace.snapshot().probe(
            keys,
            self._key_types,
            hashes,
            below=EMPTY,
            null_safe=[True] * len(self._key_types),
        )

    def first_rows(
        self,
        keys: Sequence[pa.Array],
        hashes: npt.NDArray[np.uint64],
        limits: Int64s | None,
        starts: npt.NDArray[np.uint64] | None = None,
    ) -> OrderedRows:
        """The first rows of each group in the layout's order, ``limits`` counted in multiplicities.

        ``starts``: see ``Snapshot.ordered_group``.

        Logarithmic in the state plus the rows walked; rows that are gone and were walked over are paid by merging.
        """
        found = self._trace.snapshot().ordered_group(
            keys, self._key_types, hashes, below=EMPTY, limits=limits, starts=starts
        )
        if found.dead_rows:
            self._trace.add_debt(found.dead_rows)
        return found

    def key_ranges(self, piece_rows: int) -> Iterator[tuple[pa.Array, ...]]:
        """The key columns of the state in ranges of key hash, each of about ``piece_rows`` rows, repeats included.

        Every row of a group is in the same range.
        """
        runs = self._trace.snapshot().runs
        total = sum(len(run) for run in runs)
        if not total:
            return
        largest = max(runs, key=len)
        pieces = max(1, -(-total // piece_rows))
        cuts = np.unique(largest.key_hashes[np.linspace(0, len(largest) - 1, pieces + 1).astype(np.int64)[1:-1]])
        bounds = [np.concatenate(([0], np.searchsorted(run.key_hashes, cuts), [len(run)])) for run in runs]
        for piece in range(len(cuts) + 1):
            parts = [
                [run.columns[k].slice(int(b[piece]), int(b[piece + 1] - b[piece])) for k in self._layout.key]
                for run, b in zip(runs, bounds, strict=True)
            ]
            yield tuple(pa.concat_arrays(list(column)) for column in zip(*parts, strict=True))

    @property
    def trace(self) -> Trace:
        """For who asks how large it is."""
        return self._trace

    def close(self) -> None:
        self._handle.close()
