"""Where the system runs a replica's threads: their names in its tools, their cores, their priority.  Linux only.

Cores and priority are opt-in, and for processes that are the replica's own.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

from eddyline.compute.placement import Role

__all__ = ["ThreadPlacement", "core_plan"]

_log = logging.getLogger("eddyline.process")
_PR_SET_NAME: Final = 15
_LINUX: Final = sys.platform == "linux"


def core_plan(first: int, workers: int, roles: Sequence[Role], cores: Sequence[int]) -> dict[str, frozenset[int]]:
    """The cores of each thread, by name, for workers ``first`` … ``first + workers - 1`` of runtimes ``roles``.

    Worker *i* of two runtimes gets two cores, while there are two.  A heavy lane gets whatever is neither of its
    worker's nor of maintenance's, so that a lookup does not wait for a scan; with too few cores it shares its worker's.
    """
    plan: dict[str, frozenset[int]] = {}
    each = len(roles)
    for i in range(workers):
        taken: set[int] = set()
        for at, role in enumerate(roles):
            core = cores[(each * i + at) % len(cores)]
            plan[f"{role.thread_prefix}:{first + i}"] = frozenset((core,))
            taken.add(core)
        if Role.INTERACTIVE in roles:
            worker = plan[f"{Role.INTERACTIVE.thread_prefix}:{first + i}"]
            plan[f"{Role.INTERACTIVE.thread_prefix}:{first + i}:heavy"] = frozenset(cores) - taken or worker
    return plan


class ThreadPlacement:
    """``cores``: by thread name; ``nice``: added to the priority value of maintenance's threads (0: as they are).

    A call of it, with the thread's name, places the calling thread.  What the system refuses is logged once per
    thread, and the thread runs where it is.
    """

    def __init__(self, cores: dict[str, frozenset[int]] | None = None, nice: int = 0) -> None:
        self._cores = cores or {}
        self._nice = nice

    def __call__(self, name: str) -> None:
        if not _LINUX:
            return
        # The system keeps 15 bytes of it.
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
        thread = threading.get_native_id()
        try:
            if name in self._cores:
                os.sched_setaffinity(thread, self._cores[name])
            if self._nice and name.startswith(Role.MAINTENANCE.thread_prefix):
                usual = os.getpriority(os.PRIO_PROCESS, thread)
                os.setpriority(os.PRIO_PROCESS, thread, usual + self._nice)
        except OSError as error:
            _log.warning("thread %s stays where it is: %s", name, error)
