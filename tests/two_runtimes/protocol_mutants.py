"""Mechanisms behind the protocol's rules, broken without raising by themselves."""

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
from eddyline.compute.allowed import Allowed
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.ledger import Ledger
from eddyline.compute.merge_responses import ResponseMerger
from eddyline.compute.sharing import Slot
from eddyline.compute.worker import Worker
from eddyline.controller import controller as controller_module
from eddyline.controller import shape as shape_module
from eddyline.controller.shape import checked_shape
from eddyline.plan.dataflow import DataflowClass, DataflowDescription
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.history import _State as State
from eddyline.protocol.logs import LOGS
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    Frontiers,
    Peek,
    Response,
    Schedule,
)
from eddyline.protocol.multiplexer import Multiplexer
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, Frontier, Time

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def one_side_goes_on(patch: Patch) -> None:
    patch.setattr(Multiplexer, "stop", lambda self: None)


def the_end_is_not_told(patch: Patch) -> None:
    def end(self: Multiplexer) -> None:
        with self._ending:
            self._ended = True
        self.stop()

    patch.setattr(Multiplexer, "_end", end)


def responses_cross_over(patch: Patch) -> None:
    original = ResponseMerger.put
    patch.setattr(ResponseMerger, "put", lambda self, worker, _, r: original(self, worker, self._connection, r))


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


def one_that_waits_makes_room_for_the_next(patch: Patch) -> None:
    original = ResponseQueue.put

    def put(self: ResponseQueue, response: Response) -> None:
        self._responses.clear()
        original(self, response)

    patch.setattr(ResponseQueue, "put", put)


def a_waiter_that_gives_up_takes_the_response_along(patch: Patch) -> None:
    def receive(self: ResponseQueue, timeout: float | None) -> Response | None:
        with self._changed:
            in_time = bool(self._responses)
            if not in_time and timeout != 0:
                try:
                    in_time = self._changed.wait(timeout)
                finally:
                    first = self._responses.popleft() if self._responses else None
                return first if in_time else None
            return self._responses.popleft() if self._responses else None

    patch.setattr(ResponseQueue, "receive", receive)


def without_clause(fault: str) -> Mutant:
    """The shape check leaves out one of its clauses."""

    def leave_out(patch: Patch) -> None:
        assert fault in shape_module._CLAUSES
        patch.setattr(shape_module, "_CLAUSES", {f: c for f, c in shape_module._CLAUSES.items() if f != fault})

    leave_out.__name__ = f"without: {fault}"
    return leave_out


def misfits_stay_reads(patch: Patch) -> None:
    def checked(description: DataflowDescription, *, one_shot_reads: bool) -> DataflowDescription:
        checked_shape(description, one_shot_reads=one_shot_reads)
        return description

    patch.setattr(controller_module, "checked_shape", checked)


def misfits_are_rewritten_in_silence(patch: Patch) -> None:
    patch.setattr(shape_module, "soft_assert", lambda condition, message, **context: condition)


def the_flag_is_overlooked(patch: Patch) -> None:
    patch.setattr(
        controller_module,
        "checked_shape",
        lambda description, one_shot_reads: checked_shape(description, one_shot_reads=True),
    )


def the_flag_comes_before_the_check(patch: Patch) -> None:
    def checked(description: DataflowDescription, *, one_shot_reads: bool) -> DataflowDescription:
        if not one_shot_reads:
            return msgspec.structs.replace(description, dataflow_class=DataflowClass.MAINTAINED)
        return checked_shape(description, one_shot_reads=True)

    patch.setattr(controller_module, "checked_shape", checked)


def it_counts(field: str) -> Mutant:
    """For compatibility."""

    def count(patch: Patch) -> None:
        patch.delitem(ledger_module._NEUTRAL, field)

    count.__name__ = f"it counts: {field}"
    return count


def it_does_not_count(field: str, value: Any) -> Mutant:
    """For compatibility."""

    def leave_out(patch: Patch) -> None:
        patch.setitem(ledger_module._NEUTRAL, field, value)

    leave_out.__name__ = f"it does not count: {field}"
    return leave_out


def a_changed_class_is_built_anew(patch: Patch) -> None:
    original = Ledger._retainable

    def retainable(self: Ledger, new: DataflowDescription, retained: dict[str, Frontier]) -> Any:
        entry = original(self, new, retained)
        same = entry is not None and entry.description.dataflow_class is new.dataflow_class
        return entry if same else None

    patch.setattr(Ledger, "_retainable", retainable)


def history_forgets(what: str, forgotten: Callable[[Command], bool]) -> Mutant:
    def forget(patch: Patch) -> None:
        original = CommandHistory.push
        patch.setattr(CommandHistory, "push", lambda self, c: None if forgotten(c) else original(self, c))

    forget.__name__ = f"history forgets {what}"
    return forget


def history_keeps_the_first_as_of(patch: Patch) -> None:
    original = State._live_dataflow

    def live(self: State, create: CreateDataflow, tail: list[Command]) -> CreateDataflow | None:
        kept = original(self, create, [])
        if kept is None:
            return None
        original(self, create, tail)
        return create

    patch.setattr(State, "_live_dataflow", live)


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
    original, step = InteractiveWorker._handle, InteractiveWorker.step
    late: list[Command] = []

    def handle(self: InteractiveWorker, command: Command) -> None:
        if (
            isinstance(command, Peek)
            and is_log(command.target)
            and not self.traces[command.target].arrangement.sealed_past(Time(0))
        ):
            late.append(command)
        else:
            original(self, command)

    def look_again(self: InteractiveWorker) -> bool:
        waiting = list(late)
        late.clear()
        for command in waiting:
            self._handle(command)
        return step(self)

    patch.setattr(InteractiveWorker, "_handle", handle)
    patch.setattr(InteractiveWorker, "step", look_again)


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


def dataflows_run_from_their_creation_on(patch: Patch) -> None:
    original = Allowed._settle

    def settle(self: Allowed) -> None:
        original(self)
        self.runs = True

    patch.setattr(Allowed, "_settle", settle)


def one_export_runs_them_all(patch: Patch) -> None:
    original = Allowed.schedule

    def schedule(self: Allowed, export: str) -> None:
        self._unscheduled.clear()
        original(self, export)

    patch.setattr(Allowed, "schedule", schedule)


def nothing_is_ever_scheduled(patch: Patch) -> None:
    patch.setattr(Allowed, "schedule", lambda self, export: None)


def slots_show_their_trace_at_once(patch: Patch) -> None:
    original = Slot.__init__

    def begin(self: Slot, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.started = True

    patch.setattr(Slot, "__init__", begin)


def demand_runs_what_is_not_scheduled(patch: Patch) -> None:
    original = Worker._want

    def want(self: Worker, id: str) -> bool:
        if id in self._exporters:
            for export in list(self._exporters[id].exports):
                self._change_allowed(self._exporters[id], Allowed.schedule, export)
        return original(self, id)

    patch.setattr(Worker, "_want", want)


def reads_are_never_scheduled(patch: Patch) -> None:
    original = InteractiveWorker._handle

    def handle(self: InteractiveWorker, command: Command) -> None:
        if not isinstance(command, Schedule):
            original(self, command)

    patch.setattr(InteractiveWorker, "_handle", handle)


def unscheduled_ones_report_nothing(patch: Patch) -> None:
    patch.setattr(Worker, "_report_unscheduled", lambda self: False)


def views_write_from_their_schedule_on(patch: Patch) -> None:
    patch.setattr(Allowed, "may_write", lambda self, view: True)


def writes_are_allowed_to_all_at_once(patch: Patch) -> None:
    original = Worker._allow

    def allow(self: Worker, command: Schedule | AllowWrites) -> None:
        if isinstance(command, AllowWrites):
            for id in self._exporters:
                original(self, AllowWrites(id))
        original(self, command)

    patch.setattr(Worker, "_allow", allow)


def inputs_go_on_while_writes_are_not_allowed(patch: Patch) -> None:
    original = Allowed._settle

    def settle(self: Allowed) -> None:
        original(self)
        self.follows = True

    patch.setattr(Allowed, "_settle", settle)


def writes_are_never_allowed(patch: Patch) -> None:
    patch.setattr(Allowed, "allow_writes", lambda self, export: None)
