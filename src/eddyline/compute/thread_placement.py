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

from eddyline.compute.layout import RuntimeConfig
from eddyline.compute.placement import Role

__all__ = ["ThreadPlacement", "core_plan"]

_log = logging.getLogger("eddyline.process")
_PR_SET_NAME: Final = 15
_LINUX: Final = sys.platform == "linux"


def core_plan(config: RuntimeConfig, roles: Sequence[Role], cores: Sequence[int]) -> dict[str, frozenset[int]]:
    """The cores of each thread of a process, by name; ``config`` says which workers it has, of runtimes ``roles``.

    Workers are counted over all processes of the replica, which share the machine's ``cores``.  Worker *i* of two
    runtimes gets two cores, while there are two.  A heavy lane gets the cores that no worker has, so that a lookup does
    not wait for a scan; if there is none, those of other workers' maintenance; then those of other workers' lookups;
    with fewer than three cores it shares its own worker's, and never its own maintenance's.
    """
    workers = range(config.layout.workers * config.layout.processes)
    each = len(roles)
    core = {(role, i): cores[(each * i + at) % len(cores)] for i in workers for at, role in enumerate(roles)}
    taken = frozenset(core.values())
    looked_up = frozenset(on for (role, _), on in core.items() if role is Role.INTERACTIVE)
    first = config.process * config.layout.workers
    plan: dict[str, frozenset[int]] = {}
    for i in workers[first : first + config.layout.workers]:
        for role in roles:
            plan[f"{role.thread_prefix}:{i}"] = frozenset((core[role, i],))
        if Role.INTERACTIVE in roles:
            others = frozenset(cores) - {core[role, i] for role in roles}
            lane = others - taken or others - looked_up or others or frozenset((core[Role.INTERACTIVE, i],))
            plan[f"{Role.INTERACTIVE.thread_prefix}:{i}:heavy"] = lane
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
