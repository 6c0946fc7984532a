"""Who hears of the commits of a storage."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from eddyline.protocol.sources import Committed

__all__ = ["Watchers"]


class Watchers:
    """Any thread.  ``lock`` is the storage's own; it is not held while a watcher runs."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._tokens = itertools.count()
        self._watchers: dict[int, Callable[[Committed], None]] = {}  # guarded by _lock

    def add(self, callback: Callable[[Committed], None]) -> Callable[[], None]:
        """What ends it."""
        with self._lock:
            token = next(self._tokens)
            self._watchers[token] = callback

        def end() -> None:
            with self._lock:
                self._watchers.pop(token, None)

        return end

    def notify(self, committed: Committed) -> None:
        with self._lock:
            watchers = list(self._watchers.values())
        for watcher in watchers:
            watcher(committed)
