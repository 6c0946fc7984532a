"""Reading a collection: its history in morsels, then every later commit, by reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from eddyline.protocol.sources import Polled
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import MIN_TIME, Frontier
from eddyline.storage.collection import Collection, Commit, Follower
from eddyline.trace.hasher import Hasher
from eddyline.trace.snapshot import Snapshot

__all__ = ["CommitQueues", "Reader"]


class CommitQueues(Protocol):
    """The side of ``FollowerQueues`` that readers use."""

    def take(self, collection: Collection, follower: Follower, max_rows: int) -> tuple[list[Commit], Frontier]: ...

    def queued(self, collection: Collection, follower: Follower) -> tuple[bool, Frontier]: ...

    def set_steady(self, follower: Follower) -> None: ...

    def detach(self, collection: Collection, follower: Follower) -> None: ...


class Reader:
    """Share ``index`` of ``count`` of a collection: ``protocol.sources.SourceReader``.

    Morsels of the shared history and slices of each commit are dealt out by position, so the shares are disjoint
    whatever the rows are; or, with a ``key``, by the hash of its columns, which each reader works out for itself.
    The history comes with the frontier unmoved.
    """

    def __init__(
        self,
        queues: CommitQueues,
        collection: Collection,
        follower: Follower,
        *,
        snapshots: tuple[Snapshot, Snapshot],
        upper: Frontier,
        index: int,
        count: int,
        hasher: Hasher,
        key: tuple[int, ...] | None = None,
    ) -> None:
        self._queues = queues
        self._collection = collection
        self._follower = follower
        self._upper = upper
        self._index = index
        self._count = count
        self._hasher = hasher
        self._key = key
        self._rows: Iterator[Batch] | None = snapshots[0].scan(below=upper)
        self._errors: Iterator[Batch] | None = snapshots[1].scan(below=upper)
        self._dealt = 0
        self._frontier = Frontier(MIN_TIME)

    def poll(self, max_rows: int) -> Polled:
        if self._rows is not None:
            morsel = self._morsel(self._rows, self._key)
            if morsel is not None:
                return Polled(self._frontier, rows=[morsel])
            self._rows = None
        if self._errors is not None:
            morsel = self._morsel(self._errors, self._error_key())
            if morsel is not None:
                return Polled(self._frontier, errors=[morsel])
            self._errors = None
            self._frontier = self._upper
        commits, self._frontier = self._queues.take(self._collection, self._follower, max_rows)
        return Polled(
            self._frontier,
            rows=[self._share(c.rows, self._key) for c in commits if c.rows is not None],
            errors=[self._share(c.errors, self._error_key()) for c in commits if c.errors is not None],
        )

    def _error_key(self) -> Sequence[int] | None:
        return None if self._key is None else range(len(ERR_TYPES))

    def _morsel(self, batches: Iterator[Batch], key: Sequence[int] | None) -> Batch | None:
        for batch in batches:
            if key is not None:  # perhaps nothing of it: going on until something is found could take for ever
                return self._share(batch, key)
            self._dealt += 1
            if self._dealt % self._count == self._index:
                return batch
        return None

    def _share(self, batch: Batch, key: Sequence[int] | None) -> Batch:
        if self._count == 1:
            return batch
        rows = len(batch)
        if key is not None:
            columns, types = [batch.columns[k] for k in key], [batch.types[k] for k in key]
            owners = self._hasher.hash_rows(columns, types, rows) % np.uint64(self._count)
            mine = np.flatnonzero(owners == self._index)
            return batch if len(mine) == rows else batch.take(mine)
        return batch.slice(rows * self._index // self._count, rows * (self._index + 1) // self._count)

    def pending(self) -> bool:
        if self._errors is not None:
            return True
        queued, upper = self._queues.queued(self._collection, self._follower)
        return queued or upper > self._frontier

    def set_steady(self) -> None:
        self._queues.set_steady(self._follower)

    def close(self) -> None:
        self._rows = None
        self._errors = None
        self._queues.detach(self._collection, self._follower)
