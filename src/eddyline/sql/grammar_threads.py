"""The few threads that call PostgreSQL's scanner and parser.

libpg_query takes one of the process's thread-specific keys (1,024 with glibc) for each thread that ever calls it, and
gives none back when the thread ends.  Once they are used up nobody gets another one, and TLS and passwords, which need
theirs, fail.  Statements run on threads that come and go, so that only the first few call it themselves; the others
have it called by threads that stay.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ["MOST_CALLERS", "called"]

_Given = TypeVar("_Given")
_Result = TypeVar("_Result")

#: threads that call it themselves, for as long as the process lives: a hop to another one takes some 50 µs
MOST_CALLERS: Final = 64
_KEPT: Final = 2


class _Threads:
    """``lock`` guards all but ``own``."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.callers = 0
        self.kept: ThreadPoolExecutor | None = None
        self.own = threading.local()  # ``own.calls``: whether this thread is one of the first

    def may_call(self) -> bool:
        calls: bool | None = getattr(self.own, "calls", None)
        if calls is None:
            with self.lock:
                calls = self.callers < MOST_CALLERS
                self.callers += calls
            self.own.calls = calls
        return calls

    def executor(self) -> ThreadPoolExecutor:
        with self.lock:
            if self.kept is None:
                self.kept = ThreadPoolExecutor(_KEPT, thread_name_prefix="eddyline-grammar")
            return self.kept

    def forked(self) -> None:
        """In a child: whoever held the lock, and the threads that stayed, are the parent's."""
        self.lock = threading.Lock()
        self.kept = None


_threads: Final = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forked)


def called(call: Callable[[_Given], _Result], given: _Given) -> _Result:
    """``call(given)``, on this thread or on one that stays; raises what it raises."""
    if _threads.may_call():
        return call(given)
    return _threads.executor().submit(call, given).result()
