"""One thread's wait for one answer of the replica."""

from __future__ import annotations

import threading

from eddyline.errors import Error
from eddyline.protocol.messages import PeekResponse

__all__ = ["Waiter"]


class Waiter:
    """One thread's wait for one answer, which a cancellation may end early.  Any thread sets; one waits."""

    __slots__ = ("_event", "answer", "failure")

    def __init__(self) -> None:
        self._event = threading.Event()
        self.answer: PeekResponse | None = None
        self.failure: Error | None = None

    def put(self, answer: PeekResponse) -> None:
        self.answer = answer
        self._event.set()

    def fail(self, failure: Error) -> None:
        self.failure = failure
        self._event.set()

    def wait(self, timeout: float | None) -> bool:
        return self._event.wait(timeout)
