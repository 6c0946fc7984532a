"""Threads that are wanted elsewhere while they wait for the disk.

Whoever runs other people's statements on few threads says so on each of them, and hears when one begins to wait, and
when it goes on.  Of threads that nobody has spoken for nobody hears.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

__all__ = ["hear_of_waits", "waiting"]

_thread: Final = threading.local()


def hear_of_waits(enter: Callable[[], AbstractContextManager[object]]) -> None:
    """From here on ``enter()`` is entered around each wait of the calling thread."""
    _thread.enter = enter


def waiting() -> AbstractContextManager[object]:
    """To be entered around a wait of the calling thread.  O(1), and it must stay so: commits go through it."""
    enter: Callable[[], AbstractContextManager[object]] = getattr(_thread, "enter", nullcontext)
    return enter()
