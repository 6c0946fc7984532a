"""Memory that is free, back to the system.

What a large view was made of are arrays of a few hundred kilobytes, between which others live: the C library keeps
their pages for whoever asks next.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

import pyarrow as pa

__all__ = ["GIVE_BACK_AFTER_NS", "WORTHWHILE_BYTES", "give_back"]

#: it takes 0.1 ms for each megabyte, and pages that are taken anew cost as much: not for less than this
WORTHWHILE_BYTES: Final = 1 << 24
#: after the drop: who replaces a view by another takes the same pages at once
GIVE_BACK_AFTER_NS: Final = 1_000_000_000


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
