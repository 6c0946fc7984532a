"""Mechanisms behind the invariants, broken without raising by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.exports import IndexExport
from eddyline.compute.imports import ImportIndexOperator
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.lane import BindImport
from eddyline.compute.layout import WorkerLayout
from eddyline.compute.ledger import Ledger
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.peek import canceled
from eddyline.compute.runtime import Runtime
from eddyline.compute.sharing import Slot
from eddyline.compute.worker import Worker
from eddyline.controller.controller import Controller
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.messages import Command, CreateDataflow, Frontiers, Status, UpdateConfiguration
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.trace import publication as publication_module
from eddyline.trace.merge import RunSet
from eddyline.trace.publication import PublicationPoint, SharedHold
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


def peer_holds_are_physical(patch: Patch) -> None:
    attach, hold = PublicationPoint.attach, PublicationPoint.hold

    def pinned(self: PublicationPoint, since: Frontier) -> SharedHold:
        made = hold(self, since)
        if made.handle is not None:
            made.handle.set_through(Frontier(since + 1))
        return made

    def attached(self: PublicationPoint, trace: Trace) -> None:
        waiting = list(self._waiting)
        attach(self, trace)
        for each in waiting:
            if each.handle is not None:
                each.handle.set_through(Frontier(each.handle.since + 1))

    patch.setattr(PublicationPoint, "hold", pinned)
    patch.setattr(PublicationPoint, "attach", attached)


def a_reader_that_comes_first_holds_nothing(patch: Patch) -> None:
    original = Slot.record

    def record(self: Slot, as_of: Frontier) -> Any:
        hold = original(self, as_of)
        if not self.oks.attached:
            hold.downgrade(Frontier(1 << 40))
        return hold

    patch.setattr(Slot, "record", record)


def imports_pin_the_boundary_at_their_time(patch: Patch) -> None:
    original = InteractiveWorker._create_read

    def create(self: InteractiveWorker, command: CreateDataflow) -> None:
        original(self, command)
        for waiting in self._imports:
            trace = waiting.slot.oks._trace
            if trace is not None:
                trace.handle(since=Frontier(waiting.time), through=Frontier(waiting.time + 1))

    patch.setattr(InteractiveWorker, "_create_read", create)


def joins_hold_the_boundary_of_the_trace(patch: Patch) -> None:
    """Which runs ahead of what the join has consumed."""
    original = JoinOperator._settle

    def settle(self: JoinOperator) -> None:
        original(self)
        for side in (self._left, self._right):
            if side.handle is not None:
                side.handle.set_through(side.stream.arrangement.oks.upper)

    patch.setattr(JoinOperator, "_settle", settle)


def joins_begin_at_the_boundary_of_the_trace(patch: Patch) -> None:
    original = JoinOperator.__init__

    def begin(self: JoinOperator, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for side in (self._left, self._right):
            if side.handle is not None:
                side.handle.set_through(Frontier(self._context.as_of + 1))

    patch.setattr(JoinOperator, "__init__", begin)


def early_holds_fall(patch: Patch) -> None:
    original = PublicationPoint.move

    def move(self: PublicationPoint, hold: SharedHold, since: Frontier) -> None:
        if hold in self._waiting:
            self._waiting[hold] = since
        else:
            original(self, hold, since)

    patch.setattr(PublicationPoint, "move", move)


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


def maintained_imports_take_what_is_there(patch: Patch) -> None:
    original = ImportIndexOperator.__init__

    def begin(self: ImportIndexOperator, name: str, source: Any, output: Any, context: OperatorContext) -> None:
        since = max(context.as_of, source.arrangement.oks.since, source.arrangement.errs.since)
        original(self, name, source, output, replace(context, as_of=Time(since)))

    patch.setattr(ImportIndexOperator, "__init__", begin)


def placeholders_are_sealed_for_ever(patch: Patch) -> None:
    original = Slot.frontier
    patch.setattr(Slot, "frontier", lambda self: original(self) if self.oks.attached else EMPTY)


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


def nobody_is_woken(patch: Patch) -> None:
    patch.setattr(Slot, "announce", lambda self: None)


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

    def reconcile(self: Worker) -> None:
        ledger = self.connection.ledger
        for id, flow in self._exporters.items():
            if not flow.hydrated:
                entry = ledger._entries[id]
                entry.since[id] = EMPTY
        original(self)

    patch.setattr(Worker, "_reconcile", reconcile)


def reads_are_retained_by_progress(patch: Patch) -> None:
    original = InteractiveWorker._reconcile

    def reconcile(self: InteractiveWorker) -> None:
        for waiting in self._imports:
            self.connection.ledger._entries[waiting.export].since[waiting.export] = EMPTY
        original(self)

    patch.setattr(InteractiveWorker, "_reconcile", reconcile)


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


def maintained_imports_hold_on(patch: Patch) -> None:
    original = ImportIndexOperator.__init__

    def begin(self: ImportIndexOperator, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for handle in self._handles:
            if isinstance(handle, TraceHandle):
                handle.trace.handle(since=handle.since, through=EMPTY)

    patch.setattr(ImportIndexOperator, "__init__", begin)


def maintenance_waits_for_readers(patch: Patch) -> None:
    original = Worker._activate

    def activate(self: Worker) -> bool:
        return not any(slot.awaited for slot in self._slots.values()) and original(self)

    patch.setattr(Worker, "_activate", activate)


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


def the_other_runtime_is_not_told(patch: Patch) -> None:
    original = ResponseQueue.put

    def put(self: ResponseQueue, response: Any) -> None:
        if not (isinstance(response, Status) and response.fatal):
            original(self, response)

    patch.setattr(ResponseQueue, "put", put)
