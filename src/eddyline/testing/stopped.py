"""A child process that is stopped for a while, as by a debugger or a machine that is suspended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stopped"]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The child ``pid`` runs none of its threads in the block, and goes on after it.

    ``kill`` returns once the signal is pending: on a busy machine threads of the child go on until the one that takes
    it has a core.  The system tells a parent of a stop when the last thread has stopped, and so it is waited for.
    """
    os.kill(pid, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
