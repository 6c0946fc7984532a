"""One worker of a runtime: commands in order, then bounded activations of dataflows, peeks, and merge debt.

``step`` does one bounded piece of work and says whether there was any; a thread or a test drives it.  Whatever could
give the worker something to do wakes it, so nothing is polled.

Invariants:
I1  commands take effect in the order in which they were sent, dataflows are numbered and built in it;
I2  steady dataflows are activated before hydrating ones, oldest first; hydration gets a quarter of the activations
    at least while it has work; merging, beyond what insertions pay, is for idle time;
I3  a dataflow that may have something to do is scheduled: by a commit to a source of it or of what it imports, by a
    moved frontier of an import, by a peer's message, or by a peek that waits for it;
I4  whoever is scheduled has everything upstream scheduled too: quiet inputs then catch up with the newest commit.
All state belongs to the worker's thread, but for the inbox; ``answer_now`` reads published snapshots only.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import assert_never

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exchange import Mailboxes, Message
from eddyline.compute.exports import IndexExport
from eddyline.compute.peek import PeekTask, canceled, peek_error
from eddyline.compute.render import RenderContext, SharedSources, render
from eddyline.errors import make_error
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    CreateInstance,
    Frontiers,
    Hello,
    InitializationComplete,
    Peek,
    PeekResponse,
    Response,
    Schedule,
    UpdateConfiguration,
)
from eddyline.protocol.sources import Storage
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier
from eddyline.trace.hasher import Hasher

__all__ = ["Inbox", "Worker"]

_MERGE_FUEL_ROWS = 16_384
_HYDRATION_SHARE = 4  # every n-th activation is for hydration, if it has work


class Inbox:
    """What other threads leave for a worker.  ``wait`` returns at once if anything came since the last ``take``."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._awake = False  # guarded by _changed, like the rest
        self._commands: deque[Command] = deque()
        self._commits: set[str] = set()
        self._closed_times = False

    def command(self, command: Command) -> None:
        with self._changed:
            self._commands.append(command)
            self._wake()

    def commit(self, ids: frozenset[str]) -> None:
        """A commit changed collections ``ids``; without ids it only closed a time."""
        with self._changed:
            self._commits |= ids
            self._closed_times |= not ids
            self._wake()

    def wake(self) -> None:
        with self._changed:
            self._wake()

    def _wake(self) -> None:
        self._awake = True
        self._changed.notify()

    def take(self) -> tuple[list[Command], set[str], bool]:
        """(commands, changed collections, whether a time was closed without a change)."""
        with self._changed:
            self._awake = False
            taken = (list(self._commands), self._commits, self._closed_times)
            self._commands.clear()
            self._commits = set()
            self._closed_times = False
        return taken

    def wait(self) -> None:
        with self._changed:
            while not self._awake:
                self._changed.wait()


class Worker:
    """``clock``: nanoseconds; ``activation_ns``: after that long an activation ends at the next operator."""

    def __init__(
        self,
        index: int,
        workers: int,
        *,
        hasher: Hasher,
        storage: Storage,
        sources: SharedSources,
        mailboxes: Mailboxes,
        respond: Callable[[int, Response], None],
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        self.index = index
        self.inbox = Inbox()
        self._storage = storage
        self._hasher = hasher
        self._mailboxes = mailboxes
        self._clock = clock
        self._activation_ns = activation_ns
        self._respond_as = respond
        self._indexes: dict[str, IndexExport] = {}
        self._render_context = RenderContext(
            worker=index,
            workers=workers,
            hasher=hasher,
            storage=storage,
            sources=sources,
            mailboxes=mailboxes,
            indexes=self._indexes,
            respond=self._respond,
            budget_rows=budget_rows,
        )
        #: live dataflows by number, which is their age
        self._dataflows: dict[int, Dataflow] = {}
        self._next_number = 0
        #: the live dataflow that exports each id
        self._exporters: dict[str, Dataflow] = {}
        #: dataflows that import each collection or index
        self._importers: dict[str, list[Dataflow]] = {}
        #: messages for dataflows not built yet
        self._parked: dict[int, list[Message]] = {}
        self._reported: dict[str, Frontier] = {}
        #: peeks whose index has not sealed their time
        self._queued: dict[str, Peek] = {}
        self._walks: deque[PeekTask] = deque()
        self._steady_streak = 0
        self._merge_from = 0
        mailboxes.set_waker(index, self.inbox.wake)

    # -- one step -------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One bounded piece of work; True if it did anything."""
        commands, commits, closed_times = self.inbox.take()
        for command in commands:
            self._handle(command)
        moved = bool(commands)
        moved |= self._deliver(self._mailboxes.take(self.index))
        if commits or closed_times:
            self._commits(commits, everything=closed_times)
            moved = True
        moved |= self._activate()
        moved |= self._walk()
        return moved or self._merge()

    def _deliver(self, messages: list[Message]) -> bool:
        for message in messages:
            number = message.channel.dataflow
            dataflow = self._dataflows.get(number)
            if dataflow is not None:
                dataflow.exchanges[message.channel.operator].deliver(message)
                dataflow.scheduled = True
            elif number >= self._next_number:
                self._parked.setdefault(number, []).append(message)
        return bool(messages)

    def _commits(self, ids: Iterable[str], *, everything: bool) -> None:
        if everything:
            for dataflow in self._dataflows.values():
                dataflow.scheduled = True
            return
        for id in ids:
            for dataflow in self._importers.get(id, ()):
                self._schedule(dataflow)
        for dataflow in self._dataflows.values():
            if not dataflow.hydrated:
                self._schedule(dataflow)
        for peek in self._queued.values():
            self._schedule(self._exporters[peek.target])

    def _schedule(self, dataflow: Dataflow) -> None:
        dataflow.scheduled = True
        for upstream in dataflow.upstream:
            upstream.scheduled = True

    # -- dataflows ------------------------------------------------------------------------------------------------

    def _activate(self) -> bool:
        dataflow = self._choose()
        if dataflow is None:
            return False
        start = self._clock()
        dataflow.activate(lambda: self._clock() - start >= self._activation_ns)
        self._after_activation(dataflow)
        # Even if this one had nothing to do: others may be scheduled still, and nobody wakes the worker for them.
        return True

    def _choose(self) -> Dataflow | None:
        """The oldest scheduled steady dataflow, or when it is their turn (or none) the oldest that hydrates."""
        steady: Dataflow | None = None
        hydrating: Dataflow | None = None
        for dataflow in self._dataflows.values():
            if not dataflow.scheduled:
                continue
            if dataflow.hydrated and steady is None:
                steady = dataflow
            elif not dataflow.hydrated and hydrating is None:
                hydrating = dataflow
        if steady is not None and (hydrating is None or self._steady_streak < _HYDRATION_SHARE - 1):
            self._steady_streak += 1
            return steady
        self._steady_streak = 0
        return hydrating

    def _after_activation(self, dataflow: Dataflow) -> None:
        dataflow.check_hydrated()
        for id, frontier in dataflow.frontiers():
            if frontier > self._reported.get(id, MIN_TIME) and id not in dataflow.dropped_exports:
                self._reported[id] = frontier
                self._respond(Frontiers(id, frontier))
                for importer in self._importers.get(id, ()):
                    self._schedule(importer)
                self._answer_ready(id)

    def _merge(self) -> bool:
        """One slice of merging, dataflow by dataflow; storage's own debt is worker 0's."""
        dataflows = list(self._dataflows.values())
        for i in range(len(dataflows)):
            at = (self._merge_from + i) % len(dataflows)
            if dataflows[at].merge(_MERGE_FUEL_ROWS):
                self._merge_from = at
                return True
        return self.index == 0 and self._storage.work(_MERGE_FUEL_ROWS)

    # -- commands -------------------------------------------------------------------------------------------------

    def _handle(self, command: Command) -> None:
        match command:
            case CreateDataflow():
                self._create(command)
            case AllowCompaction():
                self._allow_compaction(command.id, Frontier(command.frontier))
            case Peek():
                self._peek(command)
            case CancelPeek():
                self._cancel(command.uuid)
            case Schedule() | AllowWrites():
                # Dataflows run and write from their creation here.
                return
            case Hello() | CreateInstance() | UpdateConfiguration() | InitializationComplete():
                return
            case _:
                assert_never(command)

    def _create(self, command: CreateDataflow) -> None:
        number = self._next_number
        self._next_number += 1
        dataflow = render(command.dataflow, number, self._render_context)
        imported = [i.id for i in command.dataflow.imports]
        direct = {self._exporters[id] for id in imported if id in self._exporters}
        dataflow.upstream = frozenset(direct).union(*(d.upstream for d in direct))
        self._dataflows[number] = dataflow
        for id in imported:
            self._importers.setdefault(id, []).append(dataflow)
        for id, export in dataflow.exports.items():
            self._exporters[id] = dataflow
            self._reported.pop(id, None)
            if isinstance(export, IndexExport):
                self._indexes[id] = export
        self._schedule(dataflow)
        for message in self._parked.pop(number, ()):
            dataflow.exchanges[message.channel.operator].deliver(message)

    def _allow_compaction(self, id: str, frontier: Frontier) -> None:
        dataflow = self._exporters.get(id)
        if dataflow is None:
            return
        if frontier < EMPTY:
            dataflow.exports[id].allow_compaction(frontier)
            return
        dataflow.dropped_exports.add(id)
        del self._exporters[id]
        self._indexes.pop(id, None)
        if self._reported.pop(id, None) != EMPTY:
            self._respond(Frontiers(id, EMPTY))
        for peek in [p for p in self._queued.values() if p.target == id]:
            del self._queued[peek.uuid]
            self._respond(peek_error(peek.uuid, make_error("XX000", f"index {id} was dropped")))
        if dataflow.dropped_exports >= set(dataflow.exports):
            self._drop(dataflow)

    def _drop(self, dataflow: Dataflow) -> None:
        del self._dataflows[dataflow.number]
        for imported in dataflow.description.imports:
            importers = self._importers[imported.id]
            importers.remove(dataflow)
            if not importers:
                del self._importers[imported.id]
        for other in self._dataflows.values():
            if dataflow in other.upstream:
                other.upstream -= {dataflow}
        dataflow.close()

    # -- peeks ----------------------------------------------------------------------------------------------------

    def _peek(self, peek: Peek) -> None:
        index = self._indexes.get(peek.target)
        if index is None:
            self._respond(peek_error(peek.uuid, make_error("XX000", f"index {peek.target} is not on this replica")))
        elif peek.time < index.since:
            error = make_error(
                "22023", f"time {peek.time} is no longer readable", detail=f"The oldest readable time is {index.since}."
            )
            self._respond(peek_error(peek.uuid, error))
        elif index.frontier() > peek.time:
            self._start_peek(peek, index)
        else:
            self._queued[peek.uuid] = peek
            self._schedule(self._exporters[peek.target])

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        """The answer, found on the caller's thread in immutable snapshots; None if the index is not there or has not
        sealed the time, or no longer has it.  Any thread.
        """
        index = self._indexes.get(peek.target)
        dataflow = self._exporters.get(peek.target)
        if index is None or dataflow is None or index.since > peek.time or index.frontier() <= peek.time:
            return None
        task = PeekTask(peek, index, self._hasher, dataflow.view_name)
        while (response := task.step()) is None:
            if cancelled():
                return canceled(peek.uuid)
        # The worker raises the index's since before the trace may compact to it.  If it has not passed the time by
        # now, the snapshots that were read had not either.
        return response if index.since <= peek.time else None

    def _answer_ready(self, id: str) -> None:
        index = self._indexes.get(id)
        if index is None:
            return
        for peek in [p for p in self._queued.values() if p.target == id and p.time < index.frontier()]:
            del self._queued[peek.uuid]
            self._start_peek(peek, index)

    def _start_peek(self, peek: Peek, index: IndexExport) -> None:
        """A lookup is answered at once, a walk gets in line."""
        task = PeekTask(peek, index, self._hasher, self._exporters[peek.target].view_name)
        if task.walks:
            self._walks.append(task)
            return
        while (response := task.step()) is None:
            continue
        self._respond(response)

    def _walk(self) -> bool:
        """One slice of the walk whose turn it is."""
        if not self._walks:
            return False
        task = self._walks.popleft()
        response = task.step()
        if response is None:
            self._walks.append(task)
        else:
            self._respond(response)
        return True

    def _cancel(self, uuid: str) -> None:
        walking = [t for t in self._walks if t.peek.uuid == uuid]
        for task in walking:
            self._walks.remove(task)
        if walking or self._queued.pop(uuid, None) is not None:
            self._respond(canceled(uuid))

    def at_rest(self) -> bool:
        """Nothing is rendered, queued or parked."""
        return not (
            self._dataflows or self._exporters or self._importers or self._indexes or self._reported
            or self._queued or self._walks or self._parked
        )  # fmt: skip

    # -- end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drops every dataflow; the worker is not used any more."""
        for dataflow in self._dataflows.values():
            dataflow.close()
        self._dataflows.clear()

    def _respond(self, response: Response) -> None:
        self._respond_as(self.index, response)
