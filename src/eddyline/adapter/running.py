"""What of a session can be cancelled: its running statement, and waits for its subscriptions' changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eddyline.adapter.read import Interrupt

__all__ = ["Running"]


class Running:
    """``cancel`` from any thread; the rest by whoever runs the statement or waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statement: Interrupt | None = None  # guarded by _lock
        self._waits: set[Interrupt] = set()  # guarded by _lock

    def cancel(self) -> None:
        with self._lock:
            for interrupt in (self._statement, *self._waits):
                if interrupt is not None:
                    interrupt.cancel()

    @property
    def interrupt(self) -> Interrupt:
        """Of the innermost statement that runs; one that nobody cancels where none does."""
        with self._lock:
            return self._statement or Interrupt(None)

    @property
    def idle(self) -> bool:
        """No statement runs, and nobody waits."""
        with self._lock:
            return self._statement is None and not self._waits

    @contextmanager
    def statement(self, timeout_s: float | None) -> Iterator[Interrupt]:
        """While a statement runs, which may be inside of another."""
        interrupt = Interrupt(timeout_s)
        with self._lock:
            outer, self._statement = self._statement, interrupt
        try:
            yield interrupt
        finally:
            with self._lock:
                self._statement = outer

    @contextmanager
    def waiting(self, interrupt: Interrupt) -> Iterator[None]:
        """While a subscription is waited for, which is no statement and may last."""
        with self._lock:
            self._waits.add(interrupt)
        try:
            yield
        finally:
            with self._lock:
                self._waits.discard(interrupt)
