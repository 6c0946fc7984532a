"""Where the time of a read went, measured read by read on the thread that asks.

A read's time, from the intended start to the answer, is the sum of ``PARTS``.  What the operating system makes a thread
wait for a core is its own count (``schedstat``, Linux); the replica's phases are those of EXPLAIN ANALYZE; what is left
of the time of a thread that neither computes, nor waits for a core, nor for the replica, is a wait for a lock: that of
the interpreter, first of all.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from eddyline.adapter.metrics import DatabaseMetrics
from eddyline.protocol.read_costs import PHASES, PeekPhases

__all__ = ["PARTS", "WITHIN_PHASES", "Probe", "RunQueue", "noting_phases", "run_queues", "stage"]

#: what the parts are called, by their key
PARTS: Final[Mapping[str, str]] = {
    "busy": "its client was at an earlier read",
    "late_core": "late start: no core",
    "late_lock": "late start: the interpreter's lock",
    "cpu": "computing, on the asking thread",
    "core": "no core for the asking thread",
    "write": "the write's wait for locks and its turn",
    "queue": "queue of the runtime",
    "wait_publication": "wait for publication",
    "wait_seal": "wait for the seal",
    "dataflow": "its dataflow",
    "walk": "walk",
    "finish": "finish",
    "lock": "the interpreter's lock, and others",
}
#: of the replica's phases, how long a thread that answers waited for a core: within them, and no part of its own
WITHIN_PHASES: Final = "replica_core"
#: who answers reads that are sent
_ANSWERING = ("inter:", "solo:")

_noted = threading.local()


@contextmanager
def noting_phases() -> Iterator[None]:
    """What reads report of their phases meanwhile is kept for the ``Probe`` of the thread that asked."""
    original = DatabaseMetrics.read

    def read(self: DatabaseMetrics, phases: PeekPhases) -> None:
        original(self, phases)
        vars(_noted).setdefault("phases", []).append(phases)

    DatabaseMetrics.read = read  # type: ignore[method-assign]  # for as long as is measured
    try:
        yield
    finally:
        DatabaseMetrics.read = original  # type: ignore[method-assign]  # as it was


def stage(name: str) -> None:
    """Calls the waits of the present read up to here, of which nothing else is known, ``name`` instead of ``lock``."""
    probe = vars(_noted).get("probe")
    if isinstance(probe, Probe):
        probe.close_stage(name)


class RunQueue:
    """How long a thread of this process has waited for a core so far."""

    def __init__(self, native_id: int) -> None:
        self._file = os.open(f"/proc/self/task/{native_id}/schedstat", os.O_RDONLY)

    def waited_ns(self) -> int:
        return self._fields()[1]

    def ran_ns(self) -> int:
        return self._fields()[0]

    def _fields(self) -> list[int]:
        try:
            return [int(field) for field in os.pread(self._file, 64, 0).split()]
        except ProcessLookupError:
            return [0, 0, 0]  # the thread has ended

    def close(self) -> None:
        os.close(self._file)


def run_queues(named: Callable[[str], bool]) -> list[RunQueue]:
    """Of the threads whose name is accepted; none where the operating system does not count."""
    threads = [t.native_id for t in threading.enumerate() if named(t.name) and t.native_id is not None]
    try:
        return [RunQueue(native_id) for native_id in threads]
    except FileNotFoundError:
        return []


class Probe:
    """Of the thread that makes it, which reads: ``wait``, ``begin``, ``end`` for each read.

    ``clock`` and ``cpu_clock``: nanoseconds, of the world and of this thread.
    """

    def __init__(self, here: RunQueue | None, answering: list[RunQueue]) -> None:
        self._here, self._answering = here, answering
        self._free_ns = time.perf_counter_ns()
        self._stages: dict[str, float] = {}
        vars(_noted).update(probe=self, phases=[])

    @staticmethod
    def of_this_thread() -> Probe:
        own = threading.get_native_id()
        try:
            here = RunQueue(own)
        except FileNotFoundError:
            here = None
        return Probe(here, run_queues(lambda name: name.startswith(_ANSWERING)))

    def close(self) -> None:
        vars(_noted).pop("probe", None)
        for each in (*self._answering, *((self._here,) if self._here is not None else ())):
            each.close()

    def wait(self) -> None:
        """The client is free, and waits until the next read is due."""
        self._free_ns = time.perf_counter_ns()
        self._core_ns = self._waited_ns()

    def begin(self) -> None:
        """The read begins."""
        self._waking_ns, self._core_ns = self._waited_ns() - self._core_ns, self._waited_ns()
        self._stages = {}
        vars(_noted)["phases"] = []
        self._replica_ns = [each.waited_ns() for each in self._answering]
        self._cpu_ns, self._at_ns = time.thread_time_ns(), time.perf_counter_ns()
        self._begun_ns = self._at_ns

    def close_stage(self, name: str) -> None:
        """What is left of the time since the last stage, computing, cores and phases taken off, is ``name``."""
        now, cpu, core = time.perf_counter_ns(), time.thread_time_ns(), self._waited_ns()
        phases: list[PeekPhases] = vars(_noted)["phases"]
        vars(_noted)["phases"] = []
        spent = {"cpu": (cpu - self._cpu_ns) / 1e6, "core": (core - self._core_ns) / 1e6}
        for each in phases:
            if each.lane != "caller":  # this thread's own time otherwise
                for phase in PHASES:
                    spent[phase] = spent.get(phase, 0.0) + each.of(phase) / 1e6
        spent[name] = max(0.0, (now - self._at_ns) / 1e6 - sum(spent.values()))
        for part, ms in spent.items():
            self._stages[part] = self._stages.get(part, 0.0) + ms
        self._at_ns, self._cpu_ns, self._core_ns = now, cpu, core

    def end(self, due_ns: int) -> dict[str, float]:
        """The read that was due then has been answered: its parts in ms, none below 1 µs."""
        self.close_stage("lock")
        late = max(0, self._begun_ns - due_ns) / 1e6
        busy = min(late, max(0, self._free_ns - due_ns) / 1e6)
        core = min(late - busy, self._waking_ns / 1e6)
        replica = [each.waited_ns() - before for each, before in zip(self._answering, self._replica_ns, strict=True)]
        in_phases = sum(self._stages.get(phase, 0.0) for phase in PHASES)
        parts = {"busy": busy, "late_core": core, "late_lock": late - busy - core, **self._stages}
        parts[WITHIN_PHASES] = min(max(replica, default=0) / 1e6, in_phases)
        return {part: ms for part, ms in parts.items() if ms >= 1e-3}

    def _waited_ns(self) -> int:
        return 0 if self._here is None else self._here.waited_ns()
