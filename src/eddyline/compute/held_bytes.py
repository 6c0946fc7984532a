"""What each dataflow of a runtime holds, reported by its workers while somebody wants to know."""

from __future__ import annotations

import threading

__all__ = ["HeldBytes"]


class HeldBytes:
    """Any thread.  Dataflows go by the id of what they export; those that have done nothing since are not there."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._parts: dict[str, dict[int, int]] = {}  # id -> by worker; guarded by _lock

    @property
    def wanted(self) -> bool:
        """Whether workers are to report.  O(1), without a lock."""
        return self._wanted.is_set()

    def want(self, *, on: bool) -> None:
        if on:
            self._wanted.set()
            return
        self._wanted.clear()
        with self._lock:
            self._parts.clear()

    def report(self, worker: int, id: str, held: int) -> None:
        """``worker`` holds ``held`` bytes for it now."""
        with self._lock:
            self._parts.setdefault(id, {})[worker] = held

    def forget(self, id: str) -> None:
        """It was dropped."""
        with self._lock:
            self._parts.pop(id, None)

    def totals(self) -> dict[str, int]:
        with self._lock:
            return {id: sum(parts.values()) for id, parts in self._parts.items()}
