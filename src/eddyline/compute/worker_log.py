"""What a worker does about its log: nothing, until an instance that logs is created.

Invariants:
I1  a log is read without waiting: this worker's part is sealed for the read, the other runtime's is as it was sealed;
I2  maintenance publishes its logs like its indexes, as soon as it has them.
State of the worker's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.lane import PeekOfLog
from eddyline.compute.log import ComputeLog
from eddyline.compute.log_reads import FrozenLog, LogImport, LogPart
from eddyline.compute.peek import PeekTask
from eddyline.compute.peek_log import PeekLog
from eddyline.compute.placement import Role
from eddyline.compute.sharing import LOG_INCARNATION, SharingRegistry
from eddyline.plan.dataflow import DataflowDescription
from eddyline.protocol.logs import LOGS
from eddyline.protocol.messages import CreateInstance, Frontiers, Response
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.trace.hasher import Hasher

__all__ = ["WorkerLog"]


#: for so long steady views come first
_PATIENCE_S: Final = 0.5


class WorkerLog:
    """``peeks``: shared with whoever else of the runtime answers peeks of this worker."""

    def __init__(
        self,
        worker: int,
        role: Role,
        *,
        hasher: Hasher,
        registry: SharingRegistry | None,
        respond: Callable[[Response], None],
        clock: Callable[[], int],
    ) -> None:
        self._worker = worker
        self._role = role
        self._hasher = hasher
        self._registry = registry
        self._respond = respond
        self._clock = clock
        self.peeks = PeekLog()
        self._log: ComputeLog | None = None

    @property
    def log(self) -> ComputeLog | None:
        """None unless the instance logs."""
        return self._log

    def create_instance(self, command: CreateInstance) -> None:
        """A later connection's changes nothing."""
        if not command.logging or self._log is not None:
            return
        # Waiting for a core is no work.  Where a caller drives the worker by a clock of its own, that is the only one.
        threaded = self._clock is time.perf_counter_ns
        self._log = ComputeLog(
            self._worker,
            self._role,
            hasher=self._hasher,
            peeks=self.peeks,
            clock=self._clock,
            cost_clock=time.thread_time_ns if threaded else None,
        )
        if self._registry is not None:
            for id, arrangement in self._log.arrangements.items():
                self._registry.publish(id, LOG_INCARNATION, arrangement, MIN_TIME, EMPTY).start()

    # -- what happens

    def created(self, dataflow: Dataflow) -> None:
        if self._log is not None:
            self._log.created(dataflow)

    def touched(self, dataflow: Dataflow) -> None:
        if self._log is not None:
            self._log.touched(dataflow)

    def dropped(self, dataflow: Dataflow) -> None:
        if self._log is not None:
            self._log.dropped(dataflow)

    # -- seals

    def idle_s(self) -> float | None:
        """How long the worker may rest.  Maintenance seals for readers that do not ask it; the others when asked."""
        due = None if self._log is None or self._role is not Role.MAINTENANCE else self._log.due_in_s()
        return None if due is None else max(0.0, due)

    def seal_if_due(self, busy: Callable[[], bool]) -> bool:
        """Seals if that is due, and the worker is not ``busy`` or it can't wait; True if it did."""
        log = self._log
        due = None if log is None else log.due_in_s()
        if log is None or due is None or due > 0:
            return False
        if not log.urgent and due > -_PATIENCE_S and busy():
            return False
        self._seal(log, everything=False)
        return True

    def _seal(self, log: ComputeLog, *, everything: bool) -> None:
        """With what lets the log forget what it said before: nobody else reads the interactive runtime's."""
        log.seal(everything=everything)
        if self._role is Role.INTERACTIVE:
            log.compact()
        elif (upper := log.to_report()) is not None:
            for each in LOGS:
                self._respond(Frontiers(each.id, upper))

    def allow_compaction(self, id: str, frontier: Frontier) -> bool:
        """False if there is no such log."""
        if self._log is None or id not in self._log.arrangements:
            return False
        self._log.allow_compaction(id, frontier)
        return True

    # -- readers

    def imports(self, description: DataflowDescription) -> dict[str, LogImport]:
        """For the logs that a dataflow reads, what ``bind`` fills when it is built."""
        if self._log is None:
            return {}
        return {i.id: LogImport(i.types) for i in description.imports if is_log(i.id)}

    def bind(self, imports: Mapping[str, LogImport], elsewhere: Mapping[str, LogPart]) -> None:
        """The log as it is now, the reader's own dataflow included.  ``elsewhere``: the other runtime's part."""
        if not imports or self._log is None:
            return
        self._seal(self._log, everything=True)
        for id, each in imports.items():
            each.bind((self._log.part(id), *([elsewhere[id]] if id in elsewhere else [])))

    def peek(self, item: PeekOfLog) -> PeekTask | None:
        """Reads a log whose rows are put together for it; None if there is no such log."""
        peek = item.peek
        log = next((each for each in LOGS if each.id == peek.target), None)
        if self._log is None or log is None:
            return None
        self._seal(self._log, everything=True)
        parts = [self._log.part(log.id), *([item.part] if item.part is not None else [])]
        index = FrozenLog(log, parts, Time(peek.time), self._hasher)
        return PeekTask(peek, index, self._hasher, item.timing, lane="heavy")
