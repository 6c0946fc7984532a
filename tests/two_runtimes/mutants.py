"""Mechanisms, broken without raising by themselves: under each, the test of the same name must fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from eddyline.clusterd.command_stream import CommandStream
from eddyline.clusterd.mesh import Mesh
from eddyline.compute import interactive as interactive_module
from eddyline.compute import ledger as ledger_module
from eddyline.compute.exports import IndexExport
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.lane import BindImport
from eddyline.compute.layout import WorkerLayout
from eddyline.compute.ledger import Ledger
from eddyline.compute.peek import canceled
from eddyline.compute.runtime import Runtime
from eddyline.compute.sharing import Slot
from eddyline.compute.worker import Worker
from eddyline.controller.controller import Controller
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.logs import LOGS
from eddyline.protocol.messages import AllowCompaction, CancelPeek, Command, Frontiers, Peek, UpdateConfiguration
from eddyline.protocol.multiplexer import Multiplexer
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.trace import publication as publication_module
from eddyline.trace.merge import RunSet
from eddyline.trace.publication import PublicationPoint
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.trace import Trace, TraceHandle

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def imports_not_held(patch: Patch) -> None:
    original = Controller.create_dataflow

    def create(self: Controller, *args: Any, **kwargs: Any) -> Time:
        at = original(self, *args, **kwargs)
        for hold in self._dataflows[-1].imports:
            hold.close()
        return at

    patch.setattr(Controller, "create_dataflow", create)


def compaction_is_broadcast(patch: Patch) -> None:
    original = Worker._allow_compaction

    def compact(self: Worker, id: str, frontier: Frontier) -> None:
        slot = self._slots.get(id)
        if slot is not None and slot._peer_hold is not None and frontier < EMPTY:
            slot._peer_hold.downgrade(frontier)
        original(self, id, frontier)

    patch.setattr(Worker, "_allow_compaction", compact)


def no_hold_at_publication(patch: Patch) -> None:
    def publish(self: Slot, arrangement: Any, as_of: Frontier) -> None:
        self.errs.attach(arrangement.errs)
        self.oks.attach(arrangement.oks)
        self._publisher = type(self._publisher).HERE

    patch.setattr(Slot, "publish", publish)


def holds_are_physical(patch: Patch) -> None:
    original = Trace.handle

    def handle(self: Trace, *, since: Frontier, through: Frontier) -> TraceHandle:
        return original(self, since=since, through=Frontier(since + 1) if through == EMPTY else through)

    patch.setattr(Trace, "handle", handle)


def since_of_the_readers(patch: Patch) -> None:
    def since(self: PublicationPoint) -> Frontier:
        trace = self._trace
        return Frontier(0) if trace is None else max(s for s, _ in trace._holds.values())

    patch.setattr(PublicationPoint, "since", property(since))


def check_then_hold(patch: Patch) -> None:
    def handle(self: Trace, *, since: Frontier, through: Frontier) -> TraceHandle:
        made = TraceHandle(self)
        with self._lock:
            if since < self._since:
                raise ValueError("gone")
        with self._lock:
            self._holds[made] = (since, through)
        return made

    patch.setattr(Trace, "handle", handle)


def imports_take_what_is_there(patch: Patch) -> None:
    original = PublicationPoint.hold
    patch.setattr(PublicationPoint, "hold", lambda self, since: original(self, max(since, self.since)))


def placeholders_are_complete(patch: Patch) -> None:
    patch.setattr(
        publication_module, "empty_snapshot", lambda layout: Snapshot(layout, RunSet(layout, ()), EMPTY, Frontier(0))
    )


def frontiers_run_ahead(patch: Patch) -> None:
    original = Slot.frontier

    def frontier(self: Slot) -> Frontier:
        sealed = original(self)
        return Frontier(sealed + 1) if self.oks.attached and 0 < sealed < EMPTY else sealed

    patch.setattr(Slot, "frontier", frontier)


def reads_are_put_off(patch: Patch) -> None:
    original = InteractiveWorker._create_read
    waiting: list[Any] = []

    def create(self: InteractiveWorker, command: Any) -> None:
        sources = [self.traces[i.id].arrangement for i in command.dataflow.imports if i.id in self.traces]
        if all(s.oks.attached for s in sources):
            original(self, command)
        else:
            self._local |= {e.id for e in command.dataflow.exports}
            waiting.append(command)

    patch.setattr(InteractiveWorker, "_create_read", create)


def dropped_peers_report(patch: Patch) -> None:
    original = InteractiveWorker._forget

    def forget(self: InteractiveWorker, id: str) -> None:
        if id in self.traces:
            self._respond(Frontiers(id, EMPTY))
        original(self, id)

    patch.setattr(InteractiveWorker, "_forget", forget)


def cancel_always_answers(patch: Patch) -> None:
    patch.setattr(Worker, "_cancel", lambda self, uuid: self._respond(canceled(uuid)))


def look_then_register(patch: Patch) -> None:
    def sealed_past(self: Slot, time: Time) -> bool:
        with self._lock:
            if self.frontier() > time:
                return True
        with self._lock:
            self._awaited = time
        return False

    patch.setattr(Slot, "sealed_past", sealed_past)


def layouts_compare_by_size(patch: Patch) -> None:
    def equal(self: WorkerLayout, other: object) -> bool:
        assert isinstance(other, WorkerLayout)
        return self.workers * self.processes == other.workers * other.processes

    patch.setattr(WorkerLayout, "__eq__", equal)
    patch.setattr(WorkerLayout, "__ne__", lambda self, other: not equal(self, other))


def one_incarnation(patch: Patch) -> None:
    patch.setattr(Ledger, "incarnation", lambda self, id: 1)


def retention_follows_progress(patch: Patch) -> None:
    original = Worker._reconcile

    def reconcile(self: Worker, history: list[Command]) -> None:
        ledger = self._ledger
        for id, flow in self._exporters.items():
            if not flow.hydrated:
                entry = ledger._entries[id]
                entry.since[id] = EMPTY
        original(self, history)

    patch.setattr(Worker, "_reconcile", reconcile)


def closing_completes(patch: Patch) -> None:
    original = IndexExport.close

    def close(self: IndexExport) -> None:
        for trace in (self.arrangement.oks, self.arrangement.errs):
            if isinstance(trace, Trace):
                trace.advance_upper(EMPTY)
        original(self)

    patch.setattr(IndexExport, "close", close)


def bound_imports_hold_on(patch: Patch) -> None:
    def bind(self: InteractiveWorker) -> bool:
        ready = [w for w in self._imports if w.slot.sealed_past(w.time)]
        for waiting in ready:
            oks, errs = waiting.slot.snapshots()
            self._imports.remove(waiting)
            self.lane.inbox.command(BindImport(waiting.export, waiting.index, oks, errs))
        return bool(ready)

    patch.setattr(InteractiveWorker, "_bind_imports", bind)


def maintenance_waits_for_readers(patch: Patch) -> None:
    original = Worker._activate

    def activate(self: Worker) -> bool:
        return not any(slot.awaited for slot in self._slots.values()) and original(self)

    patch.setattr(Worker, "_activate", activate)


def one_side_goes_on(patch: Patch) -> None:
    patch.setattr(Multiplexer, "stop", lambda self: None)


def interactive_first(patch: Patch) -> None:
    def send(self: Multiplexer, command: Command) -> None:
        self._interactive.send(command)
        if not isinstance(command, (Peek, CancelPeek)):
            self._maintenance.send(command)

    patch.setattr(Multiplexer, "send", send)


def peeks_go_everywhere(patch: Patch) -> None:
    def send(self: Multiplexer, command: Command) -> None:
        self._maintenance.send(command)
        self._interactive.send(command)

    patch.setattr(Multiplexer, "send", send)


def frontiers_are_changed(patch: Patch) -> None:
    original = Multiplexer._pass
    patch.setattr(
        Multiplexer, "_pass", lambda self, r: original(self, Frontiers(r.id, 0) if isinstance(r, Frontiers) else r)
    )


def waiting_responses_are_left(patch: Patch) -> None:
    def listen(self: ResponseQueue, listener: Any, ended: Any) -> None:
        self._responses.clear()
        self._listener, self._ended = listener, ended

    patch.setattr(ResponseQueue, "listen", listen)


def shape_is_not_checked(patch: Patch) -> None:
    patch.setattr("tests.two_runtimes.test_protocol.checked_shape", lambda description, one_shot_reads: description)


def class_counts(patch: Patch) -> None:
    def compatible(old: Any, new: Any) -> bool:
        neutral = {"name": "", "as_of": 0}
        return bool(msgspec.structs.replace(old, **neutral) == msgspec.structs.replace(new, **neutral))

    patch.setattr(ledger_module, "compatible_with", compatible)
    patch.setattr("tests.two_runtimes.test_protocol.compatible_with", compatible)


def history_forgets_compaction(patch: Patch) -> None:
    original = CommandHistory.push
    patch.setattr(
        CommandHistory,
        "push",
        lambda self, c: None if isinstance(c, AllowCompaction) and c.frontier < EMPTY else original(self, c),
    )


def peers_are_forgotten_when_scheduled(patch: Patch) -> None:
    original = Worker._handle

    def handle(self: Worker, command: Command) -> None:
        original(self, command)
        self._peers.discard(getattr(command, "id", ""))

    patch.setattr(Worker, "_handle", handle)


def unknown_indexes_are_waited_for(patch: Patch) -> None:
    original = InteractiveWorker._peek

    def peek(self: InteractiveWorker, command: Peek) -> None:
        if command.target in self.traces or command.target in self._local:
            original(self, command)

    patch.setattr(InteractiveWorker, "_peek", peek)


def nothing_is_asserted(patch: Patch) -> None:
    for module in (interactive_module, "eddyline.compute.worker"):
        name = module if isinstance(module, str) else module.__name__
        patch.setattr(f"{name}.soft_assert", lambda condition, message, **context: condition)


def drops_are_silent(patch: Patch) -> None:
    original = InteractiveWorker._forget

    def compact(self: InteractiveWorker, command: AllowCompaction, frontier: Frontier) -> None:
        if command.id in self.traces and frontier == EMPTY:
            for uuid in [u for u, w in self.peeks.waiting.items() if w.peek.target == command.id]:
                del self.peeks.waiting[uuid]
            original(self, command.id)

    patch.setattr(InteractiveWorker, "_allow_compaction", compact)


def connections_are_one(patch: Patch) -> None:
    from_hello = InteractiveWorker._hello

    def hello(self: InteractiveWorker, command: Any) -> None:
        waiting = dict(self.peeks.waiting)
        from_hello(self, command)
        self.peeks.waiting.update(waiting)

    patch.setattr(InteractiveWorker, "_hello", hello)


def canceled_reads_keep_their_imports(patch: Patch) -> None:
    def forget(self: InteractiveWorker, id: str) -> None:
        self._local.discard(id)
        peer = self.traces.pop(id, None)
        if peer is not None:
            self._registry.withdraw(peer.arrangement, reader=True)

    patch.setattr(InteractiveWorker, "_forget", forget)


def every_runtime_applies_settings(patch: Patch) -> None:
    original, handle = Runtime.__init__, InteractiveWorker._handle
    appliers: dict[object, Any] = {}

    def begin(self: Runtime, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        appliers[self._commanded[0]] = kwargs.get("configure")

    def apply(self: InteractiveWorker, command: Command) -> None:
        if isinstance(command, UpdateConfiguration) and appliers.get(self) is not None:
            appliers[self](command.parameters)
        handle(self, command)

    patch.setattr(Runtime, "__init__", begin)
    patch.setattr(InteractiveWorker, "_handle", apply)


def logs_are_recorded_late(patch: Patch) -> None:
    original = Slot.record

    def record(self: Slot, as_of: Frontier) -> Any:
        hold = original(self, as_of)
        if is_log(self.id):
            hold.downgrade(Frontier(1 << 40))
        return hold

    patch.setattr(Slot, "record", record)


def logs_are_never_compacted(patch: Patch) -> None:
    original = InteractiveWorker._allow_compaction

    def compact(self: InteractiveWorker, command: AllowCompaction, frontier: Frontier) -> None:
        if not is_log(command.id):
            original(self, command, frontier)

    patch.setattr(InteractiveWorker, "_allow_compaction", compact)


def logs_are_waited_for(patch: Patch) -> None:
    original = InteractiveWorker._handle

    def handle(self: InteractiveWorker, command: Command) -> None:
        if (
            isinstance(command, Peek)
            and is_log(command.target)
            and not self.traces[command.target].arrangement.sealed_past(Time(0))
        ):
            self.inbox.command(command)
        else:
            original(self, command)

    patch.setattr(InteractiveWorker, "_handle", handle)


def each_log_at_its_own_time(patch: Patch) -> None:
    original = InteractiveWorker._log_parts

    def parts(self: InteractiveWorker, ids: Iterable[str]) -> Any:
        return {id: part for each in list(ids) for id, part in original(self, [each]).items()}

    patch.setattr(InteractiveWorker, "_log_parts", parts)


def connections_record_anew(patch: Patch) -> None:
    original = InteractiveWorker._record_logs

    def record(self: InteractiveWorker, command: Any) -> None:
        for log in LOGS:
            self.traces.pop(log.id, None)
        original(self, command)

    patch.setattr(InteractiveWorker, "_record_logs", record)


def rows_and_commands_arrive_in_turn(patch: Patch) -> None:
    """As on one connection."""
    turn = threading.Lock()
    take_rows, take_command = Mesh._take, CommandStream.take_passed_on

    def rows(self: Mesh, message: Any) -> None:
        with turn:
            take_rows(self, message)

    def command(self: CommandStream[Any], passed_on: Command) -> None:
        with turn:
            take_command(self, passed_on)

    patch.setattr(Mesh, "_take", rows)
    patch.setattr(CommandStream, "take_passed_on", command)


MUTANTS: dict[str, Mutant] = {
    "i01": imports_not_held,
    "i02": compaction_is_broadcast,
    "i03": no_hold_at_publication,
    "i04": holds_are_physical,
    "i05": since_of_the_readers,
    "i06": check_then_hold,
    "i07": imports_take_what_is_there,
    "i08": placeholders_are_complete,
    "i09": frontiers_run_ahead,
    "i10": reads_are_put_off,
    "i11": dropped_peers_report,
    "i12": cancel_always_answers,
    "i13": look_then_register,
    "i14": layouts_compare_by_size,
    "i15": one_incarnation,
    "i16": retention_follows_progress,
    "i17": closing_completes,
    "i18": bound_imports_hold_on,
    "i19": every_runtime_applies_settings,
    "i20": maintenance_waits_for_readers,
    "i21": one_side_goes_on,
    "i22": holds_are_physical,
    "p01": interactive_first,
    "p02": peeks_go_everywhere,
    "p03": frontiers_are_changed,
    "p04": waiting_responses_are_left,
    "p05": one_side_goes_on,
    "p06": shape_is_not_checked,
    "p07": shape_is_not_checked,
    "p08": class_counts,
    "p09": class_counts,
    "p10": history_forgets_compaction,
    "p11": peers_are_forgotten_when_scheduled,
    "p12": unknown_indexes_are_waited_for,
    "p13": nothing_is_asserted,
    "p14": drops_are_silent,
    "p15": connections_are_one,
    "p16": canceled_reads_keep_their_imports,
    "p17": logs_are_recorded_late,
    "p18": logs_are_never_compacted,
    "p19": logs_are_waited_for,
    "p20": each_log_at_its_own_time,
    "p21": connections_record_anew,
    "p22": rows_and_commands_arrive_in_turn,
}
