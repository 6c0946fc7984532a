"""The database's timeline: write times, and the newest visible commit.

Invariants:
I1  write times strictly increase, whatever the clock does;
I2  a write time is later than every time that was ever reported as sealed or read;
I3  ``newest`` rises only after the commit is visible to storage readers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from eddyline.errors import make_error
from eddyline.repr.time import MAX_TIME, Time

__all__ = ["Timeline", "wall_clock"]

_NEVER: Final = Time(0)


def wall_clock() -> int:
    """µs since the epoch."""
    return time.time_ns() // 1000


class Timeline:
    """``newest``, ``reserved``: the newest commit of an earlier life, and the latest time it may have handed out."""

    def __init__(
        self, clock: Callable[[], int] = wall_clock, *, newest: Time = _NEVER, reserved: Time = _NEVER
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_write = int(reserved)  # newest time handed out; guarded by _lock
        self._newest = newest  # newest visible commit; rises under _lock, is read as one reference without it

    def now(self) -> Time:
        """The clock, never behind the newest commit."""
        with self._lock:
            return Time(max(self._clock(), self._newest))

    def allocate(self) -> Time:
        """A fresh write time.  The caller commits at it before anyone else allocates (the commit lock)."""
        with self._lock:
            self._last_write = max(self._clock(), self._last_write + 1)
            if self._last_write >= MAX_TIME:
                raise make_error("22008", "the clock is past the last representable time")
            return Time(self._last_write)

    def committed(self, at: Time) -> None:
        """The commit at ``at`` is visible."""
        with self._lock:
            self._newest = Time(max(self._newest, at))

    @property
    def newest(self) -> Time:
        """The newest visible commit; 0 before the first."""
        return self._newest
