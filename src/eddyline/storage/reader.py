"""Reading a collection: its history in morsels, then every later commit, by reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eddyline.protocol.sources import Polled
from eddyline.repr.batch import Batch
from eddyline.repr.time import MIN_TIME, Frontier
from eddyline.storage.collection import Collection, Commit, Follower
from eddyline.trace.snapshot import Snapshot

__all__ = ["CommitQueues", "Reader"]


class CommitQueues(Protocol):
    """The side of the store that readers use."""

    def take(self, collection: Collection, follower: Follower, max_rows: int) -> tuple[list[Commit], Frontier]: ...

    def queued(self, collection: Collection, follower: Follower) -> tuple[bool, Frontier]: ...

    def set_steady(self, follower: Follower) -> None: ...

    def detach(self, collection: Collection, follower: Follower) -> None: ...


class Reader:
    """Share ``index`` of ``count`` of a collection: ``protocol.sources.SourceReader``.

    Morsels of the shared history and slices of each commit are dealt out by position, so the shares are disjoint
    whatever the rows are.  The history comes with the frontier unmoved.
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
    ) -> None:
        self._queues = queues
        self._collection = collection
        self._follower = follower
        self._upper = upper
        self._index = index
        self._count = count
        self._rows: Iterator[Batch] | None = snapshots[0].scan(below=upper)
        self._errors: Iterator[Batch] | None = snapshots[1].scan(below=upper)
        self._dealt = 0
        self._frontier = Frontier(MIN_TIME)

    def poll(self, max_rows: int) -> Polled:
        if self._rows is not None:
            morsel = self._morsel(self._rows)
            if morsel is not None:
                return Polled(self._frontier, rows=[morsel])
            self._rows = None
        if self._errors is not None:
            morsel = self._morsel(self._errors)
            if morsel is not None:
                return Polled(self._frontier, errors=[morsel])
            self._errors = None
            self._frontier = self._upper
        commits, self._frontier = self._queues.take(self._collection, self._follower, max_rows)
        return Polled(
            self._frontier,
            rows=[self._share(c.rows) for c in commits if c.rows is not None],
            errors=[self._share(c.errors) for c in commits if c.errors is not None],
        )

    def _morsel(self, batches: Iterator[Batch]) -> Batch | None:
        for batch in batches:
            self._dealt += 1
            if self._dealt % self._count == self._index:
                return batch
        return None

    def _share(self, batch: Batch) -> Batch:
        if self._count == 1:
            return batch
        rows = len(batch)
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
