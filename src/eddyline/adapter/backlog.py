"""The changes of a subscription that its reader has not taken: bounded, so that who does not read costs no memory.

Invariants:
I1  changes are given in the order in which they came, until there is an error, which is the last thing given;
I2  neighbours without rows become one: time passes without piling up;
I3  a change may be of any size if nothing waits before it: the bound is on what piles up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import msgspec

from eddyline.errors import DatabaseError, Error, make_error
from eddyline.protocol.messages import SubscribeResponse
from eddyline.repr.batch import Batch

__all__ = ["Backlog"]

#: of a change without rows
_LEAST_BYTES = 256


def _size(response: SubscribeResponse) -> int:
    rows = None if response.rows is None else response.rows.payload
    return _LEAST_BYTES + (rows.nbytes if isinstance(rows, Batch) else 0)


def _is_empty(response: SubscribeResponse) -> bool:
    rows = None if response.rows is None else response.rows.payload
    return response.error is None and isinstance(rows, Batch) and not len(rows)


def _too_far_behind(bound: int) -> DatabaseError:
    return make_error(
        "53400",
        f"the subscription was ended: more than the {bound} bytes of max_subscription_backlog waited for its reader",
        detail="What it had not read is gone.",
        hint="Subscribe again and read faster, or raise max_subscription_backlog (SET before SUBSCRIBE).",
    )


class Backlog:
    """``bound``: bytes; None: none.  One thread puts, another gets."""

    def __init__(self, bound: int | None) -> None:
        self._bound = bound
        self._changed = threading.Condition()
        self._waiting: deque[SubscribeResponse] = deque()  # guarded by _changed, like the rest
        self._bytes = 0
        self._error: Error | None = None
        self._look = False  # whoever waits is to look elsewhere
        self._wake: Callable[[], None] | None = None

    def on_news(self, wake: Callable[[], None]) -> None:
        """``wake`` is called, on the thread that puts, whenever there may be something to get; it must be O(1)."""
        with self._changed:
            self._wake = wake

    def put(self, response: SubscribeResponse) -> bool:
        """False if that was too much, now or before: what waits is dropped, and the reader gets an error."""
        size = _size(response)
        with self._changed:
            if self._error is not None:
                return False
            if self._bound is not None and self._waiting and self._bytes + size > self._bound:
                self._waiting.clear()
                self._bytes = 0
                self._error = _too_far_behind(self._bound)
            elif self._waiting and _is_empty(self._waiting[-1]) and _is_empty(response):
                self._waiting[-1] = msgspec.structs.replace(response, lower=self._waiting[-1].lower)
            else:
                self._waiting.append(response)
                self._bytes += size
            self._changed.notify()
            kept, wake = self._error is None, self._wake
        if wake is not None:
            wake()
        return kept

    def fail(self, error: Error) -> None:
        """Nothing more comes: after what waits, the reader gets ``error``."""
        with self._changed:
            if self._error is None:
                self._error = error
            self._changed.notify()
            wake = self._wake
        if wake is not None:
            wake()

    def look_again(self) -> None:
        """Ends a wait for changes, or the next one: something else has happened."""
        with self._changed:
            self._look = True
            self._changed.notify()
            wake = self._wake
        if wake is not None:
            wake()

    def get(self, timeout: float | None) -> SubscribeResponse | Error | None:
        """The next change, or the error that ended it; None after ``timeout`` seconds without, or ``look_again``."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._error is not None or self._look, timeout)
            self._look = False
            if self._waiting:
                response = self._waiting.popleft()
                self._bytes -= _size(response)
                return response
            return self._error
