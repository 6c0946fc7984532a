"""What of a session can be cancelled: its running statement, and waits for changes of subscriptions and hydration."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eddyline.adapter.read import Interrupt, cancelled_error

__all__ = ["Call", "Running"]


class Call:
    """One call of the session, which can be cancelled before it has its turn and before a statement of it runs.

    Its fields are guarded by the lock of ``Running``.
    """

    __slots__ = ("cancelled", "statements")

    def __init__(self) -> None:
        self.cancelled = False
        self.statements: list[Interrupt] = []


class Running:
    """``cancel`` and ``cancel_call`` from any thread; the rest by whoever runs the statement or waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statement: Interrupt | None = None  # guarded by _lock
        self._waits: set[Interrupt] = set()  # guarded by _lock
        self._call: Call | None = None  # guarded by _lock

    def cancel(self) -> None:
        with self._lock:
            running = [i for i in (self._statement, *self._waits) if i is not None]
        for interrupt in running:
            interrupt.cancel()

    def cancel_call(self, call: Call) -> None:
        """What it runs and will run, and nothing that other calls do."""
        with self._lock:
            call.cancelled = True
            running = list(call.statements)
        for interrupt in running:
            interrupt.cancel()

    @contextmanager
    def call(self, call: Call) -> Iterator[None]:
        """While ``call`` has its turn; another one may be made inside of it.  57014 if it was cancelled before."""
        with self._lock:
            if call.cancelled:
                raise cancelled_error()
            outer, self._call = self._call, call
        try:
            yield
        finally:
            with self._lock:
                self._call = outer

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
            call = self._call
            if call is not None:
                call.statements.append(interrupt)
                if call.cancelled:
                    interrupt.cancel()
        try:
            yield interrupt
        finally:
            with self._lock:
                self._statement = outer
                if call is not None:
                    call.statements.remove(interrupt)

    @contextmanager
    def waiting(self, interrupt: Interrupt) -> Iterator[None]:
        """While a subscription or hydration is waited for, which is no statement, needs no turn and may last."""
        with self._lock:
            self._waits.add(interrupt)
        try:
            yield
        finally:
            with self._lock:
                self._waits.discard(interrupt)
