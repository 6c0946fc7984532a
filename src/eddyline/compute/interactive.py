"""The interactive runtime's worker: keeps the peers, answers lookups, and hands what is heavy to its lane.

It never renders, walks or merges, so that what a lookup waits for is bounded.  The heavy lane is a ``Worker`` of its
own thread, which gets its commands from here, in order.

Invariants:
I1  peers never enter the lane's collections: they have no frontier to report here;
I2  exactly one response per peek: it is in ``peeks``, or with the lane, or answered;
I3  a peer's hold, and that of every import which is not bound yet, is taken where the command stands in the stream;
I4  dataflows reach the lane in arrival order, over placeholders where an index is not published or not sealed;
I5  before it parks, the worker has looked at everything that waits, after registering for the wake-up.
All state belongs to the worker's thread; ``answer_now`` reads peers from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.inbox import Inbox
from eddyline.compute.lane import BindImport, ContinuePeek, PeekOfLog, ReconcileReads, RenderRead
from eddyline.compute.log_reads import LogPart
from eddyline.compute.peek import PeekTask, PeekTiming
from eddyline.compute.peek_queue import PeekQueue, answer_on_caller
from eddyline.compute.placement import Role
from eddyline.compute.point_lookup import rows_of_point
from eddyline.compute.sharing import LOG_INCARNATION, PairHold, SharingRegistry, Slot
from eddyline.compute.worker import Worker
from eddyline.compute.worker_connection import WorkerConnection
from eddyline.plan.dataflow import DataflowClass, DataflowDescription, ExportIndex, ImportIndex, ImportSource
from eddyline.protocol.logs import LOGS
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    KeepSealed,
    Peek,
    PeekResponse,
    Response,
    Schedule,
    UpdateConfiguration,
)
from eddyline.protocol.soft_assertion import soft_assert
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe
from eddyline.trace.run import Layout

__all__ = ["InteractiveWorker"]


class PeerBundle:
    """A peer index as a peek reads it: the publication points of its rows and errors, and the peer hold."""

    __slots__ = ("_hold", "arrangement", "id", "since", "types")

    #: a peer is never a read's result
    read: None = None

    def __init__(self, id: str, slot: Slot, hold: PairHold, types: tuple[SqlType, ...]) -> None:
        self.id = id
        self.arrangement = slot
        self.types = types
        #: the oldest readable time at this point of the command stream; rises before the hold does
        self.since = hold.since
        self._hold = hold

    @property
    def published_ns(self) -> int:
        return self.arrangement.published_ns

    def frontier(self) -> Frontier:
        return self.arrangement.frontier()

    def allow_compaction(self, since: Frontier) -> None:
        if since > self.since:
            self.since = since
            self._hold.downgrade(since)


@dataclass(slots=True, eq=False)
class _Import:
    """An index that a one-shot read imports, until it has sealed the read's time; ``exports``: of the dataflow."""

    exports: set[str]
    export: str
    slot: Slot
    hold: PairHold
    time: Time
    index: FrozenIndex


class InteractiveWorker:
    def __init__(
        self,
        index: int,
        *,
        hasher: Hasher,
        registry: SharingRegistry,
        lane: Worker,
        respond: Callable[[int, int, Response], None],
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.index = index
        self.inbox = Inbox(clock=clock)
        self.lane = lane
        self._peek_log = lane.log.peeks
        self._hasher = hasher
        self._registry = registry
        self._respond_as = respond
        #: peer indexes by id
        self.traces: dict[str, PeerBundle] = {}
        #: peers that are no index
        self._peers: set[str] = set()
        #: exports of dataflows that the lane renders
        self._local: set[str] = set()
        self._clock = clock
        #: peeks whose peer has not sealed their time
        self.peeks = PeekQueue(Role.INTERACTIVE.value, hasher, clock, respond=self._respond, start=self._start_peek)
        self._imports: list[_Import] = []
        self.connection = WorkerConnection()
        registry.connect_reader(self.inbox.wake)

    def step(self) -> bool:
        """Takes the commands that are there, then looks at what waits; True if it did anything."""
        taken = self.inbox.take()
        self.peeks.expect(taken.sent_ns)
        for item in taken.commands:
            assert not isinstance(item, (RenderRead, BindImport, ContinuePeek, PeekOfLog, ReconcileReads)), item
            self._take(item)
        moved = bool(taken.commands)
        moved |= self._bind_imports()
        return self._answer_queued() or moved

    # -- commands -------------------------------------------------------------------------------------------------

    def _take(self, command: Command) -> None:
        if isinstance(command, Hello):
            self._hello(command)
        elif self.connection.settled:
            self._handle(command)
        elif self.connection.history(command):
            self._reconcile()

    def _handle(self, command: Command) -> None:
        match command:
            case CreateDataflow():
                self.connection.ledger.create(command.dataflow)
                if command.dataflow.dataflow_class is DataflowClass.ONE_SHOT_READ:
                    self._create_read(command)
                else:
                    self._record_peers(command.dataflow)
            case AllowCompaction():
                self._allow_compaction(command, Frontier(command.frontier))
            case Peek():
                self._peek(command)
            case CancelPeek():
                if not self.peeks.cancel(command.uuid):
                    self.lane.inbox.command(command)
            case Schedule() | AllowWrites() | KeepSealed():
                known = command.id in self.traces or command.id in self._peers or command.id in self._local
                soft_assert(known, "a command names an unknown collection", command=command)
                if command.id in self._local:
                    self.lane.inbox.command(command)
            case CreateInstance():
                self._record_logs(command)
                self.lane.inbox.command(command)
            case Hello() | UpdateConfiguration() | InitializationComplete():
                # Settings of the process are maintenance's to apply.
                return
            case _:
                assert_never(command)

    def _hello(self, hello: Hello) -> None:
        if not self.connection.hello(hello):
            return
        self.peeks.clear()
        self._peek_log.forget()
        self.lane.inbox.command(hello)

    def _reconcile(self) -> None:
        done = self.connection.reconcile()
        for id in done.dropped:
            self._forget(id)
        self.lane.inbox.command(ReconcileReads(done.dropped, done.retained))
        for id, as_of in done.retained.items():
            if id in self.traces:
                self.traces[id].allow_compaction(as_of)
        for command in done.commands:
            self._handle(command)
        self._registry.agree(self.connection.ledger.reconciliations, self.connection.ledger.digest())

    def _record_peers(self, description: DataflowDescription) -> None:
        as_of, until = Frontier(description.as_of), Frontier(description.until)
        for export in description.exports:
            if not isinstance(export, ExportIndex):
                self._peers.add(export.id)
                continue
            layout = Layout(export.types, export.key)
            slot = self._registry.record(export.id, self.connection.ledger.incarnation(export.id), layout, until)
            hold = slot.record(as_of)
            self.traces[export.id] = PeerBundle(export.id, slot, hold, export.types)

    def _record_logs(self, command: CreateInstance) -> None:
        """Maintenance's logs become peers, at the minimum time: nothing is known of how far they are."""
        for log in LOGS if command.logging else ():
            if log.id not in self.traces:
                slot = self._registry.record(log.id, LOG_INCARNATION, Layout(log.types, log.key), EMPTY)
                self.traces[log.id] = PeerBundle(log.id, slot, slot.record(Frontier(MIN_TIME)), log.types)

    def _log_parts(self, ids: Iterable[str]) -> dict[str, LogPart]:
        """Maintenance's part of the logs, at the last time that all of them have sealed.

        The peer holds keep that time exact, and nothing is waited for.
        """
        slots = {id: self.traces[id].arrangement for id in ids if id in self.traces}
        sealed = min((slot.frontier() for slot in slots.values()), default=Frontier(MIN_TIME))
        time = Time(sealed - 1) if sealed > MIN_TIME else None
        return {id: LogPart(slot.oks.snapshot(), time) for id, slot in slots.items()}

    def _create_read(self, command: CreateDataflow) -> None:
        """Takes the holds here and now, and lets the lane build the dataflow over what may come later."""
        description = command.dataflow
        exports = {e.id for e in description.exports}
        self._local |= exports
        frozen: dict[str, FrozenIndex] = {}
        for imported in description.imports:
            if isinstance(imported, ImportSource) and not is_log(imported.id):
                self._registry.want_view(imported.id, Time(description.as_of))
            peer = self.traces.get(imported.id)
            if not isinstance(imported, ImportIndex) or peer is None or imported.id in frozen:
                continue
            slot, at = peer.arrangement, Time(description.as_of)
            # It is an error if the time is gone already: a wrong answer would be worse than the end of the runtime.
            hold = slot.hold(Frontier(at))
            index = FrozenIndex(Layout(imported.types, imported.key))
            frozen[imported.id] = index
            self._imports.append(_Import(exports, description.exports[0].id, slot, hold, at, index))
        logs = self._log_parts(i.id for i in description.imports if is_log(i.id))
        self.lane.inbox.command(RenderRead(command, frozen, logs))

    def _allow_compaction(self, command: AllowCompaction, frontier: Frontier) -> None:
        id = command.id
        self.connection.ledger.allow_compaction(id, frontier)
        if id in self._local:
            if frontier == EMPTY:
                self._forget(id)
            self.lane.inbox.command(command)
            return
        peer = self.traces.get(id)
        if peer is None and id not in self._peers:
            soft_assert(False, "a command names an unknown collection", command=command)
        elif frontier < EMPTY:
            if peer is not None:
                peer.allow_compaction(frontier)
        else:
            self.peeks.dropped(id)
            self._forget(id)

    def _forget(self, id: str) -> None:
        """Ends a peer, or what an export of the lane's waits for, without a word."""
        self._peers.discard(id)
        if id in self._local:
            self._local.discard(id)
            for waiting in [w for w in self._imports if id in w.exports]:
                waiting.exports.discard(id)
                if not waiting.exports:
                    waiting.hold.close()
            self._imports = [w for w in self._imports if w.exports]
        peer = self.traces.pop(id, None)
        if peer is not None:
            self._registry.withdraw(peer.arrangement, reader=True)

    # -- what waits -----------------------------------------------------------------------------------------------

    def _bind_imports(self) -> bool:
        ready = [w for w in self._imports if w.slot.sealed_past(w.time)]
        for waiting in ready:
            oks, errs = waiting.slot.snapshots()
            self._imports.remove(waiting)
            self.lane.inbox.command(BindImport(waiting.export, waiting.index, oks, errs, waiting.slot.published_ns))
            # The snapshot answers its time for ever: a hold beside it would only pin the trace.
            waiting.hold.close()
        return bool(ready)

    def _answer_queued(self) -> bool:
        ready = [
            w
            for w in self.peeks.waiting.values()
            if self.traces[w.peek.target].arrangement.sealed_past(Time(w.peek.time))
        ]
        self.peeks.start(ready, self.traces.__getitem__)
        return bool(ready)

    # -- peeks ----------------------------------------------------------------------------------------------------

    def _peek(self, peek: Peek) -> None:
        self._peek_log.begin(peek)
        if is_log(peek.target) and peek.target in self.traces:
            timing = PeekTiming(Role.INTERACTIVE.value, self._clock, self.peeks.sent_ns(peek.uuid))
            self.lane.inbox.command(PeekOfLog(peek, timing, self._log_parts([peek.target])[peek.target]))
            return
        if peek.target in self._local:
            self.lane.inbox.command(peek, self.peeks.sent_ns(peek.uuid))
        else:
            self.peeks.take(peek, self.traces.get(peek.target))

    def _start_peek(self, task: PeekTask) -> None:
        """Answers a lookup; a walk, or a lookup of many rows, goes on in the lane, on the snapshots taken here."""
        response = task.begin() if task.walks else task.step()
        if response is None:
            task.go_on_in_slices()
            self.lane.inbox.command(ContinuePeek(task))
        else:
            self._respond(response)

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        """As ``answer_on_caller``, in the peer's snapshots: its since rises before its hold does.  Any thread."""
        began = time.perf_counter_ns()
        answer = answer_on_caller(
            peek,
            None if is_log(peek.target) else self.traces.get(peek.target),
            self._hasher,
            runtime=Role.INTERACTIVE.value,
            clock=self._clock,
            cancelled=cancelled,
        )
        if answer is not None:
            self._peek_log.took(time.perf_counter_ns() - began)
        return answer

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``rows_of_point``, of a peer.  Any thread."""
        began = time.perf_counter_ns()
        found = rows_of_point(self.traces.get(id), at, probe)
        if found is not None:
            self._peek_log.took(time.perf_counter_ns() - began)
        return found

    def slot_of(self, id: str) -> Slot | None:
        """Where peer ``id`` is published.  Any thread."""
        peer = self.traces.get(id)
        return None if peer is None else peer.arrangement

    # -- end ------------------------------------------------------------------------------------------------------

    def at_rest(self) -> bool:
        """Nothing is recorded, queued or bound, but for the logs."""
        peers = [id for id in self.traces if not is_log(id)]
        return not (peers or self._peers or self._local or self.peeks.waiting or self._imports)

    def close(self) -> None:
        """Releases every hold; the worker is not used any more."""
        for waiting in self._imports:
            waiting.hold.close()
        self._imports = []
        for peer in self.traces.values():
            peer.arrangement.leave(reader=True)
        self.traces = {}

    def rest(self) -> None:
        """Everything that it waits for wakes it."""
        self.inbox.wait()

    def _respond(self, response: Response) -> None:
        if isinstance(response, PeekResponse):
            self._peek_log.end(response.uuid)
        self._respond_as(self.index, self.connection.number, response)
