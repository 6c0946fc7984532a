"""Where the system runs a replica's threads: their names in its tools, their cores, their priority.  Linux only.

Cores and priority are opt-in, and for processes that are the replica's own.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eddyline.compute.layout import RuntimeConfig
from eddyline.compute.placement import Role

__all__ = ["ThreadPlacement", "core_plan", "usable_cores"]

_log = logging.getLogger("eddyline.process")
_PR_SET_NAME: Final = 15
_LINUX: Final = sys.platform == "linux"


def usable_cores() -> list[int]:
    """Those that this process may use, in order."""
    return sorted(os.sched_getaffinity(0)) if _LINUX else list(range(os.cpu_count() or 1))


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


@dataclass(slots=True)
class _Thread:
    """``id``: the system's; the rest as it was found."""

    id: int
    cores: set[int]
    priority: int


class ThreadPlacement:
    """``plan``: the cores of each thread, by its name, where cores are dealt out.

    A call of it, with the thread's name, takes the calling thread in.  What the system refuses is logged, and the
    thread runs where it is.  Lock: ``_lock``, held for a few calls of the system for each thread.
    """

    def __init__(self, plan: Mapping[str, frozenset[int]]) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._threads: dict[str, _Thread] = {}  # guarded by _lock, like the rest
        self._affinity = False
        self._nice = 0

    def __call__(self, name: str) -> None:
        if not _LINUX:
            return
        # The system keeps 15 bytes of it.
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
        id = threading.get_native_id()
        thread = _Thread(id, os.sched_getaffinity(id), os.getpriority(os.PRIO_PROCESS, id))
        with self._lock:
            self._threads[name] = thread
            if self._affinity:
                self._deal(name, thread)
            if self._nice:
                self._weigh(name, thread)

    def set_affinity(self, *, on: bool) -> None:
        """Gives each thread the cores that the plan has for it, or those that it had."""
        with self._lock:
            if on != self._affinity:
                self._affinity = on
                for name, thread in self._threads.items():
                    self._deal(name, thread)

    def set_nice(self, nice: int) -> None:
        """Lowers the priority of maintenance's threads by ``nice``, from what it was.

        To raise it again, where it was lowered by more, takes a privilege on most systems.
        """
        with self._lock:
            if nice != self._nice:
                self._nice = nice
                for name, thread in self._threads.items():
                    self._weigh(name, thread)

    def _deal(self, name: str, thread: _Thread) -> None:
        """Needs ``_lock``, as the next one."""
        if name in self._plan:
            self._try(name, lambda: os.sched_setaffinity(thread.id, self._cores(name, thread)))

    def _cores(self, name: str, thread: _Thread) -> Collection[int]:
        return self._plan[name] if self._affinity else thread.cores

    def _weigh(self, name: str, thread: _Thread) -> None:
        if name.startswith(Role.MAINTENANCE.thread_prefix):
            self._try(name, lambda: os.setpriority(os.PRIO_PROCESS, thread.id, thread.priority + self._nice))

    @staticmethod
    def _try(name: str, place: Callable[[], None]) -> None:
        try:
            place()
        except OSError as error:
            _log.warning("thread %s stays where it is: %s", name, error)
