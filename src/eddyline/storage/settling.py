"""The collections of a store whose traces have something to fold or merge, for idle time.

Invariants:
I1  a collection stands here from each change of its traces on, until it is merged and its since has reached its last
    write: a later since would fold nothing.  One that was dropped does not;
I2  they are looked at in turns, so that one with much to do keeps none of the others waiting.
Any thread.  Locks, in order: a collection's ``turn``, the store's state lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from eddyline.repr.time import Frontier
from eddyline.storage.collection import Collection

__all__ = ["Settling"]


class Settling:
    """``state``: the store's lock.  ``advance``: raises a collection's since as far as it may go, and gives it if it
    moved; called with the lock held.
    """

    def __init__(self, state: threading.Lock, advance: Callable[[Collection], Frontier | None]) -> None:
        self._state = state
        self._advance = advance
        self._unsettled: dict[Collection, None] = {}  # in the order of writing; guarded by _state
        self._work_from = 0  # guarded by _state

    def add(self, collection: Collection) -> None:
        """After its traces were changed."""
        with self._state:
            if not collection.dropped:
                self._unsettled[collection] = None

    def drop(self, collection: Collection) -> None:
        """Needs the state lock."""
        self._unsettled.pop(collection, None)

    def work(self, fuel_rows: int) -> bool:
        """Moves since where holds went away and merges runs, one collection per call; True if more is left.

        Skips a collection that is being written.  O(collections that are here).
        """
        with self._state:
            collections = list(self._unsettled)
            self._work_from += 1
            start = self._work_from
        for i in range(len(collections)):
            collection = collections[(start + i) % len(collections)]
            if not collection.turn.acquire(blocking=False):
                continue
            try:
                with self._state:
                    since = self._advance(collection)
                if since is not None:
                    collection.compact(since)
                if collection.work(fuel_rows):
                    return True
                with self._state:
                    if collection.since >= collection.last_write:
                        self._unsettled.pop(collection, None)
            finally:
                collection.turn.release()
        return False
