"""Which peeks a worker of a runtime has yet to answer, and how long the answered ones took.

The interactive worker, its lane, and threads that answer lookups themselves share one.  Its lock is held for O(1).
"""

from __future__ import annotations

import threading
import time
from typing import Final

from eddyline.protocol.messages import Peek

__all__ = ["PeekLog"]

#: what is read: an index, or the result of a dataflow that lives for the read
_INDEX: Final = "index"


class PeekLog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[str, tuple[Peek, int]] = {}  # with the ns when each came; guarded by _lock, like the rest
        self._counts: dict[int, int] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Changes whenever something does."""
        with self._lock:
            return self._version

    def begin(self, peek: Peek) -> None:
        """The worker has taken the peek; a second time counts as the first."""
        with self._lock:
            if peek.uuid not in self._active:
                self._active[peek.uuid] = (peek, time.perf_counter_ns())
                self._version += 1

    def end(self, uuid: str) -> None:
        """The peek is answered."""
        now = time.perf_counter_ns()
        with self._lock:
            found = self._active.pop(uuid, None)
            if found is not None:
                self._count(now - found[1])

    def took(self, ns: int) -> None:
        """A peek was answered on its reader's thread."""
        with self._lock:
            self._count(ns)

    def forget(self) -> None:
        """A new connection: what the old one asked for is not answered any more."""
        with self._lock:
            self._active.clear()
            self._version += 1

    def rows(self) -> tuple[int, list[tuple[str, str, str, int]], list[tuple[str, int, int]]]:
        """(version, active peeks, histogram): (uuid, target, type, time) of each, (type, ns, count) of each."""
        with self._lock:
            active = [(uuid, peek.target, _INDEX, peek.time) for uuid, (peek, _) in self._active.items()]
            return self._version, active, [(_INDEX, 1 << power, count) for power, count in self._counts.items()]

    def _count(self, ns: int) -> None:
        """With the lock held."""
        power = max(0, ns - 1).bit_length()
        self._counts[power] = self._counts.get(power, 0) + 1
        self._version += 1
