"""Memory that is free, back to the system.

What a large view was made of, and what a long row of changes went through, are arrays of a few hundred kilobytes and
less, between which others live: the C library keeps their pages for whoever asks next.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

__all__ = ["GIVE_BACK_AFTER_NS", "GiveBack", "give_back"]

#: it takes 0.1 ms for each megabyte, and pages that are taken anew cost as much: not for less than this
_WORTHWHILE_BYTES: Final = 1 << 24
#: or for what so many changed rows leave behind: with some 500 bytes of passing arrays for each, as much as that
_WORTHWHILE_ROWS: Final = 1 << 15
#: after that: who replaces a view by another takes the same pages at once
GIVE_BACK_AFTER_NS: Final = 1_000_000_000
#: what follows on a return is left alone for so many times as long as it took
_PAUSE: Final = 200


def _trim_of_libc() -> Any:
    """glibc's ``malloc_trim``; None elsewhere."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


_TRIM: Final = _trim_of_libc()


def give_back() -> None:
    """Gives the free pages of Arrow's pool and of the C library back.  Without the GIL; any thread.

    Cost: about 0.1 ms for each megabyte, in which whoever allocates from the same arena waits.
    """
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


class GiveBack:
    """When a worker that has nothing else to do gives memory back.  ``clock``: nanoseconds.  The worker's thread."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._dropped_bytes = 0
        self._worked_rows = 0
        self._due_ns: int | None = None
        self._not_before_ns = 0

    def dropped(self, size: int) -> None:
        """A maintained dataflow went, which held so many bytes."""
        self._dropped_bytes += size
        if self._dropped_bytes >= _WORTHWHILE_BYTES:
            self._due_ns = self._clock() + GIVE_BACK_AFTER_NS

    def worked(self, rows: int) -> None:
        """So many rows have changed.  Who goes on changing does not put it off."""
        self._worked_rows += rows
        if self._worked_rows >= _WORTHWHILE_ROWS and self._due_ns is None:
            self._due_ns = max(self._clock() + GIVE_BACK_AFTER_NS, self._not_before_ns)

    def left_s(self) -> float | None:
        """Seconds until ``run`` is to be called; None: not until more has happened."""
        return None if self._due_ns is None else max(self._due_ns - self._clock(), 0) / 1e9

    def run(self) -> None:
        """Gives memory back if that is due."""
        if self._due_ns is not None and (began := self._clock()) >= self._due_ns:
            self._dropped_bytes, self._worked_rows, self._due_ns = 0, 0, None
            give_back()
            now = self._clock()
            self._not_before_ns = now + _PAUSE * (now - began)
