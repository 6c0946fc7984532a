"""A lock whose holder also does what others have handed in: to hand in never waits for the holder.

Invariants:
I1  calls are made in the order in which they were handed in, with the lock held, and never inside another's turn:
    before the holder begins, or when it is done;
I2  no call is left behind: whoever lets the lock go looks once more, and whoever finds it taken leaves that to the
    holder.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

__all__ = ["ControlLock"]


class ControlLock:
    """``with`` takes it; a thread may take it again while it holds it.

    ``released`` is called without it, by each thread that has made calls or has held it.
    Lock: ``_handing``, the innermost, held for O(1).
    """

    def __init__(self, released: Callable[[], None]) -> None:
        self._released = released
        self._lock = threading.RLock()
        self._depth = 0  # guarded by _lock
        self._handing = threading.Lock()
        self._calls: deque[Callable[[], None]] = deque()  # guarded by _handing

    def hand_in(self, call: Callable[[], None]) -> None:
        """Has ``call`` made: here and now if nobody holds the lock, else by its holder, who gets what it raises."""
        with self._handing:
            self._calls.append(call)
        self._settle()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            try:
                self._make_calls()
            except BaseException:
                self._depth = 0
                self._lock.release()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outermost = self._depth == 1
        try:
            if outermost:
                self._make_calls()
        finally:
            self._depth -= 1
            self._lock.release()
        if outermost:
            self._settle()
            self._released()

    def _settle(self) -> None:
        """Makes the calls that were handed in, unless the lock is held; then its holder will."""
        while self._waiting() and self._lock.acquire(blocking=False):
            nested = self._depth > 0
            try:
                if not nested:
                    self._depth = 1
                    self._make_calls()
            finally:
                if not nested:
                    self._depth = 0
                self._lock.release()
            if nested:
                return
            self._released()

    def _waiting(self) -> bool:
        with self._handing:
            return bool(self._calls)

    def _make_calls(self) -> None:
        while True:
            with self._handing:
                if not self._calls:
                    return
                call = self._calls.popleft()
            call()
