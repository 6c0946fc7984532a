"""One worker of a runtime: commands in order, then bounded activations of dataflows, peeks, and merge debt.

``step`` does one bounded piece of work and says whether there was any; a thread or a test drives it.  Whatever could
give the worker something to do wakes it, so nothing is polled.

Invariants:
I1  commands take effect in the order in which they were sent, dataflows are numbered and built in it;
I2  steady dataflows are activated before hydrating ones, in turns; hydration gets a quarter of the activations at
    least while it has work (see the agenda); merging, beyond what insertions pay, is for idle time;
I3  a dataflow that may have something to do is scheduled: by a commit that concerns it (see ``commit_interest``), by a
    moved frontier of an import, by a peer's message, or by a peek that waits for it;
I4  whoever is scheduled has everything upstream scheduled too: quiet inputs then catch up with the newest commit.
I5  a dataflow of a class that the worker does not render is recorded: its exports are *peers*, which have no channel,
    no frontier to report, and commands about them are no-ops here;
I6  an index is published when it is rendered, its points are announced after they moved, and one that a reader of the
    other runtime waits for is treated like one with a peek here;
I7  a dataflow that is rendered holds what it reads, and does nothing else before all its exports are scheduled.
All state belongs to the worker's thread, but for the inbox; ``answer_now`` reads published snapshots only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

from eddyline.compute.agenda import Agenda
from eddyline.compute.allowed import Allowed
from eddyline.compute.bounded_reads import BoundedReads
from eddyline.compute.commit_interest import CommitInterest
from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exchange import Mailboxes, Message
from eddyline.compute.exports import IndexExport
from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.give_back import GiveBack
from eddyline.compute.held_bytes import HeldBytes
from eddyline.compute.inbox import Inbox, Taken
from eddyline.compute.lane import BindImport, ContinuePeek, Item, PeekOfLog, ReconcileReads, RenderRead
from eddyline.compute.log_reads import LogPart
from eddyline.compute.measures import WorkerMeasures
from eddyline.compute.peek import PeekTask, PeekTiming, canceled, peek_error
from eddyline.compute.peek_queue import PeekQueue, answer_on_caller
from eddyline.compute.placement import Role
from eddyline.compute.point_lookup import rows_of_point
from eddyline.compute.read_state import MemoryAccounts
from eddyline.compute.render import RenderContext, SharedSources, render
from eddyline.compute.sharing import SharingRegistry, Slot
from eddyline.compute.stream import Arrangement
from eddyline.compute.wanted_views import WantedViews
from eddyline.compute.worker_connection import WorkerConnection
from eddyline.compute.worker_log import WorkerLog
from eddyline.errors import make_error
from eddyline.plan.dataflow import DataflowClass
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
    KeepSealed,
    Peek,
    PeekResponse,
    Response,
    Schedule,
    UpdateConfiguration,
)
from eddyline.protocol.soft_assertion import soft_assert
from eddyline.protocol.sources import Storage
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["Worker"]

#: one slice of merging in idle time, which a commit or a read that comes meanwhile waits for
_MERGE_FUEL_ROWS = 4_096


class Worker:
    """``clock``: nanoseconds; ``activation_ns``: after that long an activation ends at the next operator.

    ``respond``: gets the worker's index, the number of the connection that it answers, and the response.
    ``configure``: applies the settings of the process, for the one worker that does.
    ``registry``: where a maintenance worker publishes.  An interactive worker of this class is a heavy lane: it takes
    its commands from an ``InteractiveWorker``, with the indexes that they read.
    """

    def __init__(
        self,
        index: int,
        workers: int,
        *,
        hasher: Hasher,
        storage: Storage,
        sources: SharedSources,
        mailboxes: Mailboxes,
        accounts: MemoryAccounts,
        held: HeldBytes,
        respond: Callable[[int, int, Response], None],
        role: Role = Role.SOLO,
        registry: SharingRegistry | None = None,
        configure: Callable[[Mapping[str, str]], None] | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        activation_ns: int = 5_000_000,
        budget_rows: int = 65_536,
    ) -> None:
        self.index = index
        self.role = role
        #: for metrics
        self.measures = WorkerMeasures()
        self.inbox = Inbox(follows_commits=role is not Role.INTERACTIVE, clock=clock)
        self._registry = registry
        self._configure = configure
        self._storage = storage
        self._hasher = hasher
        self._mailboxes = mailboxes
        self._clock = clock
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
        #: the live dataflows, and which of them have something to do
        self._agenda = Agenda()
        self._next_number = 0
        self._interest = CommitInterest(self._agenda)
        self._reads = BoundedReads(
            index,
            hasher=hasher,
            storage=storage,
            indexes=self._indexes,
            accounts=accounts,
            held=held,
            clock=clock,
            activation_ns=activation_ns,
        )
        #: the live dataflow that exports each id
        self._exporters: dict[str, Dataflow] = {}
        #: messages for dataflows not built yet
        self._parked: dict[int, list[Message]] = {}
        self._reported: dict[str, Frontier] = {}
        #: as_of of exports that were not scheduled when they were rendered or went on, until that is reported
        self._unscheduled: dict[str, Frontier] = {}
        #: peeks whose index has not sealed their time
        self.peeks = PeekQueue(role.value, hasher, clock, respond=self._respond, start=self._start_peek)
        self._walks: deque[PeekTask] = deque()
        self.connection = WorkerConnection()
        #: exports that the other runtime renders
        self._peers: set[str] = set()
        #: the slots of published indexes
        self._slots: dict[str, Slot] = {}
        self._free_memory = GiveBack(clock)
        #: published indexes that a reader waits for
        self._wanted: set[str] = set()
        self._wanted_views = WantedViews(storage, self._exporters, self._agenda)
        self.log = WorkerLog(index, role, hasher=hasher, registry=registry, respond=self._respond, clock=clock)
        mailboxes.set_waker(index, self.inbox.wake)
        if registry is not None:
            registry.connect_publisher(self.inbox.want, self.inbox.want_view)

    # -- one step -------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One bounded piece of work; True if it did anything."""
        taken = self.inbox.take()
        self.peeks.expect(taken.sent_ns)
        for item in taken.commands:
            self._take(item)
        moved = bool(taken.commands)
        moved |= self._deliver(self._mailboxes.take(self.index))
        for id in taken.wanted:
            moved |= self._want(id)
        for id, until in taken.wanted_views.items():
            self._wanted_views.want(id, until)
        if taken.wanted_views:
            self._wanted_views.schedule()
            moved = True
        if taken.commits or taken.closed_times:
            self._commits(taken)
            moved = True
        if not self.connection.settled:
            return moved
        moved |= bool(self._unscheduled) and self._report_unscheduled()
        moved |= bool(self._reads) and self._stop_reads()
        moved |= self.log.seal_if_due(self._agenda.steady_waits)
        moved |= self._activate()
        moved |= self._walk()
        if moved or self._merge():
            return True
        self._free_memory.run()
        return False

    def _deliver(self, messages: list[Message]) -> bool:
        for message in messages:
            number = message.channel.dataflow
            dataflow = self._agenda.get(number)
            if dataflow is not None and dataflow.stopped:
                continue
            if dataflow is not None:
                self._hand_over(dataflow, message)
                self._agenda.schedule_alone(dataflow)
            elif number >= self._next_number:
                self._parked.setdefault(number, []).append(message)
        return bool(messages)

    def _hand_over(self, dataflow: Dataflow, message: Message) -> None:
        exchange = dataflow.exchanges[message.channel.operator]
        exchange.deliver(message)
        self._interest.heard(dataflow, exchange)

    def _commits(self, taken: Taken) -> None:
        if self.index == self._mailboxes.first:
            self._free_memory.worked(taken.commit_rows)
        if taken.closed_times:
            for dataflow in self._agenda:
                self._agenda.schedule_alone(dataflow)
            return
        self._interest.committed(taken)
        for waiting in self.peeks.waiting.values():
            self._agenda.schedule(self._exporters[waiting.peek.target])
        for id in list(self._wanted):
            self._want(id)
        self._wanted_views.schedule()

    def _want(self, id: str) -> bool:
        """A reader of the other runtime waits for index ``id``; True if it was scheduled for that."""
        slot = self._slots.get(id)
        if slot is None or not slot.awaited:
            self._wanted.discard(id)
            return False
        self._wanted.add(id)
        self._agenda.schedule(self._exporters[id])
        return True

    # -- dataflows ------------------------------------------------------------------------------------------------

    def _activate(self) -> bool:
        dataflow = self._agenda.choose()
        if dataflow is None:
            return False
        start = self._clock()
        if dataflow.read is not None:
            dataflow.read.look(start)
        dataflow.activate(self._reads.expiry(dataflow, start))
        self.measures.activations.record(self._clock() - start)
        self._after_activation(dataflow)
        if self._reads.weigh(dataflow):
            self._stop_reads()
        # Even if this one had nothing to do: others may be scheduled still, and nobody wakes the worker for them.
        return True

    def _stop_reads(self) -> bool:
        stopped = self._reads.stop()
        for dataflow in stopped:
            self._after_activation(dataflow)
        return bool(stopped)

    def _after_activation(self, dataflow: Dataflow) -> None:
        dataflow.check_hydrated()
        self.log.touched(dataflow)
        self._agenda.activated(dataflow)
        self._interest.activated(dataflow)
        for id in dataflow.exports:
            slot = self._slots.get(id)
            if slot is not None:
                slot.announce()
        for id, frontier in dataflow.frontiers():
            if frontier > self._reported.get(id, MIN_TIME) and id not in dataflow.dropped_exports:
                self._reported[id] = frontier
                self._respond(Frontiers(id, frontier))
                self._interest.moved(dataflow, id)
                self._answer_ready(id)

    def _merge(self) -> bool:
        """One slice of merging; storage's own debt is the first maintaining worker's."""
        if self._agenda.merge(_MERGE_FUEL_ROWS, self.log.touched):
            return True
        return (
            self.index == self._mailboxes.first
            and self.role is not Role.INTERACTIVE
            and self._storage.work(_MERGE_FUEL_ROWS)
        )

    # -- commands -------------------------------------------------------------------------------------------------

    def _take(self, item: Item) -> None:
        match item:
            case Hello():
                self._hello(item)
            case RenderRead():
                self._render(item.command, item.imports, item.logs)
            case BindImport():
                self._bind(item)
            case ContinuePeek():
                self._walks.append(item.task)
            case PeekOfLog():
                self._peek_log(item)
            case ReconcileReads():
                self.connection.settle()
                self._go_on(item.dropped, item.retained)
            case _:
                if self.connection.settled:
                    self._handle(item)
                elif self.connection.history(item):
                    self._reconcile()

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
                self._allow(command)
            case KeepSealed():
                self._wanted_views.keep(command.id)
            case CreateInstance():
                self.log.create_instance(command)
            case UpdateConfiguration():
                if self._configure is not None:
                    self._configure(command.parameters)
            case Hello() | InitializationComplete():
                return
            case _:
                assert_never(command)

    # -- connections ----------------------------------------------------------------------------------------------

    def _hello(self, hello: Hello) -> None:
        """A new nonce is a new connection.  What the old one asked for is forgotten; what runs, goes on if it can."""
        if not self.connection.hello(hello):
            return
        self.peeks.clear()
        if self.role is not Role.INTERACTIVE:  # an interactive worker has done so already, and gone on since
            self.log.peeks.forget()
        self._walks.clear()

    def _reconcile(self) -> None:
        done = self.connection.reconcile()
        self._go_on(done.dropped, done.retained)
        for command in done.commands:
            self._handle(command)
        if self._registry is not None:
            self._registry.agree(self.connection.ledger.reconciliations, self.connection.ledger.digest())

    def _go_on(self, dropped: Iterable[str], retained: Mapping[str, Frontier]) -> None:
        for id in dropped:
            self._forget(id)
        self.measures.count(retained=len({self._exporters[id].number for id in retained if id in self._exporters}))
        for id, as_of in retained.items():
            self._reported.pop(id, None)
            if id in self._exporters:
                self._exporters[id].exports[id].allow_compaction(as_of)
                self._agenda.schedule_alone(self._exporters[id])
                self._unscheduled[id] = as_of

    # -- life of a dataflow ---------------------------------------------------------------------------------------

    def _create(self, command: CreateDataflow) -> None:
        self.connection.ledger.create(command.dataflow)
        if self.role.renders(command.dataflow.dataflow_class):
            self._render(command, {}, {})
            return
        self._peers.update(e.id for e in command.dataflow.exports)

    def _render(
        self, command: CreateDataflow, frozen: Mapping[str, FrozenIndex], elsewhere: Mapping[str, LogPart]
    ) -> None:
        """Builds the dataflow.  Its number, and with it its channels, come from the order of the commands.

        ``elsewhere``: the other runtime's part of the logs that it reads.
        """
        self.inbox.follow_commits(follow=True)  # before any source is opened: no commit is missed
        number = self._next_number
        self._next_number += 1
        logs = self.log.imports(command.dataflow)
        dataflow = render(command.dataflow, number, self._render_context, frozen, logs)
        direct = {self._exporters[i.id] for i in command.dataflow.imports if i.id in self._exporters}
        dataflow.upstream = frozenset(direct).union(*(d.upstream for d in direct))
        for upstream in dataflow.upstream:
            upstream.downstream.add(dataflow)
        self._agenda.add(dataflow)
        self._reads.watch(dataflow, frozen)
        self.measures.rendered(number, dataflow.arrangements)
        if command.dataflow.dataflow_class is DataflowClass.MAINTAINED:
            self.measures.count(built=1)
        self._interest.add(dataflow)
        for id, export in dataflow.exports.items():
            self._exporters[id] = dataflow
            self._reported.pop(id, None)
            self._unscheduled[id] = Frontier(command.dataflow.as_of)
            if isinstance(export, IndexExport):
                self._indexes[id] = export
                self._publish(id, export, dataflow)
        self._lead(dataflow)
        self._agenda.schedule(dataflow)
        self.log.created(dataflow)
        self.log.bind(logs, elsewhere)
        for message in self._parked.pop(number, ()):
            self._hand_over(dataflow, message)

    def _lead(self, dataflow: Dataflow) -> None:
        """A view that a connection makes anew is upstream of what goes on reading it (I4)."""
        leading = dataflow.upstream | {dataflow}
        for importer in self._interest.importers(dataflow.exports):
            for other in (importer, *importer.downstream):
                other.upstream |= leading
                for leader in leading:
                    leader.downstream.add(other)

    def _publish(self, id: str, export: IndexExport, dataflow: Dataflow) -> None:
        if self._registry is None:
            return
        arrangement = export.arrangement
        assert isinstance(arrangement, Arrangement), "maintenance renders over its own arrangements only"
        as_of, until = Time(dataflow.description.as_of), Frontier(dataflow.description.until)
        slot = self._registry.publish(id, self.connection.ledger.incarnation(id), arrangement, as_of, until)
        slot.published_ns = self._clock()
        slot.publisher_since = Frontier(as_of)
        self._slots[id] = slot
        if slot.awaited:
            self._wanted.add(id)

    def _allow(self, command: Schedule | AllowWrites) -> None:
        """Lets a dataflow run, or a view of it be written.  Nothing here, where the other runtime renders it."""
        id = command.id
        dataflow = self._exporters.get(id)
        known = dataflow is not None or id in self._peers
        soft_assert(known, "a command names an unknown collection", command=command)
        if dataflow is not None:
            allow = Allowed.schedule if isinstance(command, Schedule) else Allowed.allow_writes
            self._change_allowed(dataflow, allow, id)

    def _change_allowed(self, dataflow: Dataflow, change: Callable[[Allowed, str], None], id: str) -> None:
        allowed = dataflow.allowed
        ran, followed = allowed.runs, allowed.follows
        change(allowed, id)
        if allowed.runs and not ran:
            self._agenda.start(dataflow)
            for each in dataflow.exports:
                if each in self._slots:
                    self._slots[each].start()
        if allowed.follows and not followed:
            self._agenda.schedule(dataflow)

    def _report_unscheduled(self) -> bool:
        """Of a dataflow that may not run nothing is known but that nothing below its as_of will come."""
        exports, self._unscheduled = self._unscheduled, {}
        moved = False
        for id, as_of in exports.items():
            dataflow = self._exporters.get(id)
            if dataflow is None or dataflow.allowed.runs or as_of <= self._reported.get(id, MIN_TIME):
                continue
            self._reported[id] = as_of
            self._respond(Frontiers(id, as_of))
            moved = True
        return moved

    def _bind(self, item: BindImport) -> None:
        """An imported index has sealed the read's time."""
        dataflow = self._exporters.get(item.dataflow)
        item.index.bind(item.oks, item.errs, item.published_ns)
        if dataflow is not None:
            self._agenda.schedule_alone(dataflow)

    def _allow_compaction(self, id: str, frontier: Frontier) -> None:
        self.connection.ledger.allow_compaction(id, frontier)
        if is_log(id):
            known = self.log.allow_compaction(id, frontier)
            soft_assert(known, "a command names an unknown collection", id=id)
            return
        if id in self._peers:
            if frontier == EMPTY:
                self._peers.discard(id)
            return
        dataflow = self._exporters.get(id)
        if not soft_assert(dataflow is not None, "a command names an unknown collection", id=id) or dataflow is None:
            return
        if frontier < EMPTY:
            dataflow.exports[id].allow_compaction(frontier)
            if id in self._slots:
                self._slots[id].publisher_since = frontier
            return
        if self._reported.get(id) != EMPTY:
            self._respond(Frontiers(id, EMPTY))
        self.peeks.dropped(id)
        self._forget(id)

    def _forget(self, id: str) -> None:
        """Ends an export, or a peer, without a word; the last export ends its dataflow."""
        self._peers.discard(id)
        dataflow = self._exporters.pop(id, None)
        if dataflow is None:
            return
        dataflow.dropped_exports.add(id)
        self._indexes.pop(id, None)
        self._reported.pop(id, None)
        if dataflow.dropped_exports >= set(dataflow.exports):
            self._drop(dataflow)
        else:
            self._change_allowed(dataflow, Allowed.forget, id)
            self.log.touched(dataflow)  # it has one export less to tell of, and may never be activated again
        slot = self._slots.pop(id, None)
        self._wanted.discard(id)
        if slot is not None and self._registry is not None:
            self._registry.withdraw(slot, reader=False)

    def _drop(self, dataflow: Dataflow) -> None:
        self._agenda.remove(dataflow)
        self.measures.dropped(dataflow.number)
        self._interest.remove(dataflow)
        for other in dataflow.downstream:
            other.upstream -= {dataflow}
        for other in dataflow.upstream:
            other.downstream.discard(dataflow)
        if dataflow.description.dataflow_class is DataflowClass.MAINTAINED:
            self._free_memory.dropped(dataflow.held_bytes())
        dataflow.close()
        self._reads.dropped(dataflow)
        self.log.dropped(dataflow)
        if self.role is Role.INTERACTIVE and not len(self._agenda):
            self.inbox.follow_commits(follow=False)

    # -- peeks ----------------------------------------------------------------------------------------------------

    def _peek_log(self, item: PeekOfLog) -> None:
        """A log is read like by a walk."""
        task = self.log.peek(item)
        if task is not None:
            self._walks.append(task)
            return
        gone = make_error("XX000", f"index {item.peek.target} is not on this replica")
        self._respond(peek_error(item.peek.uuid, gone))

    def _peek(self, peek: Peek) -> None:
        if self.role is not Role.INTERACTIVE:  # whose interactive worker has written it down
            self.log.peeks.begin(peek)
        if is_log(peek.target):
            timing = PeekTiming(self.role.value, self._clock, self.peeks.sent_ns(peek.uuid))
            self._peek_log(PeekOfLog(peek, timing, None))
        elif self.peeks.take(peek, self._indexes.get(peek.target)):
            self._agenda.schedule(self._exporters[peek.target])

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        """As ``answer_on_caller``.  Any thread."""
        began = time.perf_counter_ns()
        answer = answer_on_caller(
            peek,
            self._indexes.get(peek.target),
            self._hasher,
            runtime=self.role.value,
            clock=self._clock,
            cancelled=cancelled,
        )
        if answer is not None:
            self.log.peeks.took(time.perf_counter_ns() - began)
        return answer

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``rows_of_point``.  Any thread."""
        began = time.perf_counter_ns()
        found = rows_of_point(self._indexes.get(id), at, probe)
        if found is not None:
            self.log.peeks.took(time.perf_counter_ns() - began)
        return found

    def _answer_ready(self, id: str) -> None:
        index = self._indexes.get(id)
        if index is None:
            return
        sealed = index.frontier()
        waiting = self.peeks.waiting.values()
        self.peeks.start(
            [w for w in waiting if w.peek.target == id and w.peek.time < sealed], self._indexes.__getitem__
        )

    def _start_peek(self, task: PeekTask) -> None:
        """A lookup is answered at once, unless it is large; a walk gets in line."""
        response = None if task.walks else task.step()
        if response is None:
            task.go_on_in_slices()
            self._walks.append(task)
        else:
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
        if walking:
            self._respond(canceled(uuid))
        else:
            self.peeks.cancel(uuid)

    def at_rest(self) -> bool:
        """Nothing is rendered, queued or parked."""
        return not (
            len(self._agenda) or self._exporters or self._interest or self._indexes or self._reported
            or self.peeks.waiting or self._walks or self._parked or self._peers or self._slots or self._wanted
        )  # fmt: skip

    # -- end ------------------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Until there may be something to do."""
        self.inbox.wait(self._idle_s(), self._heeded())

    def _heeded(self) -> frozenset[str] | None:
        """The collections whose commits give it something to do; None: any commit may (see ``_commits``)."""
        if self.peeks.waiting or self._wanted or self._wanted_views:
            return None
        return self._interest.heeded()

    def _idle_s(self) -> float | None:
        """How long it may rest if nothing comes; None: for ever."""
        waits = (self.log.idle_s(), self._free_memory.left_s())
        return min((w for w in waits if w is not None), default=None)

    def close(self) -> None:
        """Drops every dataflow; the worker is not used any more."""
        for dataflow in self._agenda:
            dataflow.close()
        self._agenda.clear()

    def _respond(self, response: Response) -> None:
        if isinstance(response, PeekResponse):
            self.log.peeks.end(response.uuid)
        self._respond_as(self.index, self.connection.number, response)
