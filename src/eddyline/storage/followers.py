"""Who follows the collections of a store, and what each has not read of them yet: of the tables' and the mirrors'.

A follower gets every commit to its collection, by reference, from the moment at which it began; one that selects rows
gets those.  What steady followers leave unread is the *backlog*, for which whoever brings more waits.

Invariants:
I1  what a commit queues, and what makes it visible, is one step under the store's state lock, as of whoever follows at
    that moment;
I2  a collection that was dropped is no backlog: nobody waits for its followers.
Any thread.  Lock: the store's state lock, held for O(followers) steps and never across a kernel.
"""

from __future__ import annotations

import threading
import time as wall
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from eddyline.protocol.sources import Selection, SourceReader
from eddyline.repr.time import Frontier
from eddyline.storage.collection import Collection, Commit, Follower
from eddyline.storage.reader import Reader
from eddyline.storage.routes import Delivery, Routes
from eddyline.trace.hasher import Hasher

__all__ = ["FollowerQueues"]


class FollowerQueues:
    """``storage.reader.CommitQueues``.

    ``state``: the store's lock.  ``upper``: of a collection; called with it held.  ``backlog_rows``, ``backlog_bytes``:
    what steady followers may leave unread before ``wait_capacity`` waits.
    """

    def __init__(
        self,
        state: threading.Lock,
        hasher: Hasher,
        *,
        upper: Callable[[Collection], Frontier],
        backlog_rows: int,
        backlog_bytes: int,
    ) -> None:
        self._state = state
        self._hasher = hasher
        self._upper = upper
        self._backlog_rows = backlog_rows
        self._backlog_bytes = backlog_bytes
        self._capacity = threading.Condition(self._state)
        self._unread: set[Collection] = set()  # those with a follower that has commits queued; guarded by _state
        self._closed = False  # guarded by _state

    # -- who follows ----------------------------------------------------------------------------------------------

    def follow(
        self,
        collection: Collection,
        count: int,
        selection: Selection | None,
        hashes: npt.NDArray[np.uint64] | None,
        key: tuple[int, ...] | None,
        faces: Sequence[SourceReader] | None = None,
    ) -> tuple[Reader, ...]:
        """``count`` readers that share the collection from here on.  Needs the state lock.  O(runs).

        ``hashes``: of what is selected.  ``key``: the columns whose hash deals the rows out; by position without.
        ``faces``: as whom commits name the readers; themselves without.
        """
        snapshots, upper = collection.snapshots(), self._upper(collection)
        followers = [Follower(selection, hashes) for _ in range(count)]
        readers = tuple(
            Reader(
                self, collection, follower, snapshots=snapshots, upper=upper,
                index=i, count=count, hasher=self._hasher, key=key,
            )
            for i, follower in enumerate(followers)
        )  # fmt: skip
        for follower, face in zip(followers, readers if faces is None else faces, strict=True):
            follower.reader = face
            collection.followers[follower] = None
        collection.follower_version += 1
        return readers

    def drop(self, collection: Collection) -> None:
        """Readers that are open keep what they have.  Needs the state lock."""
        collection.dropped = True
        self._unread.discard(collection)
        self._capacity.notify_all()

    # -- what they get --------------------------------------------------------------------------------------------

    @contextmanager
    def publishing(self, written: Sequence[tuple[Collection, Commit]]) -> Iterator[list[SourceReader]]:
        """Queues the commits, and keeps the state lock while the caller makes them visible.

        Gives the selective readers that got something.  Who gets what is found without the lock; whoever comes
        meanwhile makes it be found again.
        """
        while True:
            with self._state:
                routes = [self._routes(collection) for collection, _ in written]
            deliveries = [
                (collection, delivery)
                for (collection, commit), route in zip(written, routes, strict=True)
                for delivery in route.deliveries(commit, self._hasher)
            ]
            with self._state:
                current = (c.follower_version == r.version for (c, _), r in zip(written, routes, strict=True))
                if all(current):
                    yield self._enqueue(deliveries)
                    return

    def _routes(self, collection: Collection) -> Routes:
        """O(followers) after a change of theirs.  Needs the state lock."""
        routes = collection.routes
        if routes is None or routes.version != collection.follower_version:
            routes = Routes(collection.follower_version, list(collection.followers), collection.types)
            collection.routes = routes
        return routes

    def _enqueue(self, deliveries: Iterable[tuple[Collection, Delivery]]) -> list[SourceReader]:
        """The selective readers among those that get something.  Needs the state lock."""
        touched: list[SourceReader] = []
        for collection, (follower, commit) in deliveries:
            follower.commits.append(commit)
            follower.rows += commit.row_count()
            follower.bytes += commit.size_bytes
            if not collection.dropped:
                collection.behind.add(follower)
                self._unread.add(collection)
            if follower.selection is not None and follower.reader is not None:
                touched.append(follower.reader)
        return touched

    # -- for readers ----------------------------------------------------------------------------------------------

    def take(self, collection: Collection, follower: Follower, max_rows: int) -> tuple[list[Commit], Frontier]:
        """The next queued commits, about ``max_rows`` rows (at least one commit), and the frontier behind them."""
        with self._state:
            taken: list[Commit] = []
            rows = 0
            while follower.commits and (not taken or rows + follower.commits[0].row_count() <= max_rows):
                commit = follower.commits.popleft()
                taken.append(commit)
                rows += commit.row_count()
                follower.rows -= commit.row_count()
                follower.bytes -= commit.size_bytes
            if taken:
                self._read(collection, follower)
            return taken, taken[-1].upper if follower.commits else self._upper(collection)

    def queued(self, collection: Collection, follower: Follower) -> tuple[bool, Frontier]:
        """Whether commits are queued, and the collection's upper."""
        with self._state:
            return bool(follower.commits), self._upper(collection)

    def set_steady(self, follower: Follower) -> None:
        """From here on what it has not read is backlog."""
        with self._state:
            follower.steady = True

    def detach(self, collection: Collection, follower: Follower) -> None:
        """It reads no more.  Twice is harmless."""
        with self._state:
            if follower in collection.followers:
                del collection.followers[follower]
                collection.follower_version += 1
            follower.commits.clear()
            self._read(collection, follower)

    def _read(self, collection: Collection, follower: Follower) -> None:
        """The follower has less to read than before.  Needs the state lock."""
        if not follower.commits:
            collection.behind.discard(follower)
        if not collection.behind:
            self._unread.discard(collection)
        self._capacity.notify_all()

    # -- the backlog ----------------------------------------------------------------------------------------------

    def backlog(self) -> tuple[int, int]:
        """(updates, bytes) that the slowest steady reader of a collection has not read, over all collections.

        Readers that still hydrate do not count: what waits for them is in the traces anyway.
        """
        with self._state:
            return self._backlog()

    def _backlog(self) -> tuple[int, int]:
        """O(readers with something unread): every write asks, also in a database of many idle tables and views."""
        rows = size = 0
        for collection in self._unread:
            steady = [f for f in collection.behind if f.steady]
            rows += max((f.rows for f in steady), default=0)
            size += max((f.bytes for f in steady), default=0)
        return rows, size

    def wait_capacity(self, timeout: float | None, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits until the backlog is within its bounds; False after ``timeout`` seconds, when cancelled or closed.

        ``cancelled``: asked whenever something was read, and after ``look_again``.
        """
        deadline = None if timeout is None else wall.monotonic() + timeout
        with self._state:
            while not self._closed:
                rows, size = self._backlog()
                if rows <= self._backlog_rows and size <= self._backlog_bytes:
                    return True
                remaining = None if deadline is None else deadline - wall.monotonic()
                if cancelled() or (remaining is not None and remaining <= 0):
                    return False
                self._capacity.wait(remaining)
        return False

    def look_again(self) -> None:
        """Has whoever waits for capacity ask whether that is cancelled."""
        with self._state:
            self._capacity.notify_all()

    def close(self) -> None:
        """Wakes whoever waits for capacity.  Needs the state lock."""
        self._closed = True
        self._capacity.notify_all()
