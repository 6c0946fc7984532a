"""One database: catalog, storage, controller, replica, timeline, shared by all its sessions.

Locks, in order: ``commit_lock`` (one commit or definition at a time; commits of rows wait for the disk without it),
then those of the directory, if there is one, then ``_control`` (every call that changes the controller; held for O(1)
steps, never while waiting for the replica), then ``_answers`` (who waits for which peek), then storage's own;
``_moved`` is the innermost.

A thread that is preempted in the middle of an O(1) step keeps others waiting for as long as the machine pleases.
Therefore a lookup that its index has sealed takes neither ``commit_lock`` nor ``_control``; an answer reaches whoever
waits for it before the controller hears of it; and the replica's threads wait for nobody who holds ``_control``: they
hand in what they have to say, and go on.  What responses lead to outside the controller is done with no lock held.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from eddyline.adapter.apart import Apart
from eddyline.adapter.catalog import Catalog
from eddyline.adapter.catalog_documents import setting_changes, settings_of
from eddyline.adapter.control_lock import ControlLock
from eddyline.adapter.durability import Durability
from eddyline.adapter.locks import LockTable
from eddyline.adapter.logins import Logins
from eddyline.adapter.memory_guard import MemoryGuard
from eddyline.adapter.memory_size import bytes_of
from eddyline.adapter.memory_use import ServerMemory
from eddyline.adapter.metrics import DatabaseMetrics, exposition
from eddyline.adapter.process_parameters import (
    PROCESS_SETTINGS,
    THREAD_SWITCH_INTERVAL,
    WORKLOAD_CLASS,
    encoded,
    host_refusal,
)
from eddyline.adapter.provisioning import OVERRIDABLE, Provisioning, in_force, replica_parameters, replica_spec
from eddyline.adapter.recovery import Recovery
from eddyline.adapter.system_settings import (
    FSYNC,
    GIL_SAMPLING,
    INTERACTIVE_DATAFLOWS,
    INTERACTIVE_RUNTIME,
    QUERY_MAX_MEMORY,
    SERVER_MEMORY_LIMIT,
    SystemSettings,
)
from eddyline.adapter.timeline import Timeline, wall_clock
from eddyline.adapter.waiter import Waiter
from eddyline.compute.gil_sampler import GilSampler
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.process_settings import GuestSettings
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Collections, Controller
from eddyline.controller.events import Event, PeekAnswered, ReplicaFailed, SubscriptionChanged
from eddyline.controller.processes import ReplicaProcesses, ReplicaSpec
from eddyline.controller.remote import RemoteReplica
from eddyline.controller.survivors import read_note
from eddyline.errors import DatabaseError, Error, InterfaceError, make_error
from eddyline.protocol.delivery import Delivery
from eddyline.protocol.measures_messages import ProcessMeasures
from eddyline.protocol.messages import Peek, PeekResponse, Response, Status, SubscribeResponse
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.sql.catalog_view import CatalogItem
from eddyline.storage.group_commit import QueuedCommit
from eddyline.storage.log import Changes
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe

__all__ = ["CommitUnderWay", "Engine", "Feed"]

_log = logging.getLogger("eddyline.engine")
_PLAN_CACHE_SIZE = 1024
_MEASURES_SECONDS = 1.0
_NO_CHANGES = Changes()


def _host_defaults(*, may_set: bool) -> dict[str, str]:
    """Process settings where the process is the program's: as it has them."""
    found = {} if may_set else {THREAD_SWITCH_INTERVAL: f"{round(sys.getswitchinterval() * 1e6)}us"}
    return {"gc_policy": "default", **found}


class Feed(NamedTuple):
    """Where a subscription's news goes; called without a lock.  ``reads``: ids of all that it reads, through views.

    ``dropped``: what it reads is gone.  ``fail``: it ends for another reason.
    """

    take: Callable[[SubscribeResponse], bool]
    dropped: Callable[[CatalogItem], None]
    fail: Callable[[Error], None]
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class CommitUnderWay:
    """``queued``: what it waits for until it is visible; None if it is."""

    time: Time
    queued: QueuedCommit | None


class Engine:
    """``durability``: the directory that it is kept in, which it closes; None: in memory.  See ``adapter.restoring``.

    ``provisioning``: a replica in processes of its own; without, one of ``workers`` threads in this process.

    ``server_memory``: where the setting ``server_memory_limit`` begins; ``guard_memory`` lets it count.
    ``process_settings``: where process settings begin; without processes of its own, the thread switch interval alone,
    and whether it may be set at all.
    Raises 58000 if those processes do not come up, 42704, 22023 or 0A000 for process settings that cannot be.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        interactive: bool = True,
        memory_limit_bytes: int | None = None,
        server_memory: ServerMemory | None = None,
        process_settings: bool | Mapping[str, str] = True,
        provisioning: Provisioning | None = None,
        clock: Callable[[], int] = wall_clock,
        durability: Durability | None = None,
    ) -> None:
        self.durability = durability
        self.workers = workers
        self.interactive = interactive
        self._provisioning = provisioning
        self._may_set = bool(process_settings) or process_settings == {}
        host = {} if provisioning is not None else _host_defaults(may_set=self._may_set)
        usual = {} if server_memory is None else {SERVER_MEMORY_LIMIT: str(server_memory.usual or 0)}
        self.system = SystemSettings({**host, **usual})
        self._stored_settings: dict[str, str] = {}  # what the directory has; changed with the commit lock held
        self._stored_overrides: dict[str, str] = {}  # likewise
        if durability is not None:
            self._restore_settings(settings_of(durability.documents))
            self._stored_overrides = settings_of(durability.documents, of_replica=True)
            if provisioning is not None:
                overrides = {**self._stored_overrides, **provisioning.overrides}
                self._provisioning = replace(provisioning, overrides=overrides)
        if isinstance(process_settings, Mapping):
            for name, value in process_settings.items():
                self._check_process_setting(name)
                self.system.set(name, (value,))
        if memory_limit_bytes is not None:
            self.system.set(QUERY_MAX_MEMORY, (str(memory_limit_bytes),))
        if server_memory is not None and server_memory.wanted is not None:
            self.system.set(SERVER_MEMORY_LIMIT, (str(server_memory.wanted),))
        self.memory = MemoryGuard(self)
        self.metrics = DatabaseMetrics()
        self._gil_sampler = GilSampler(self.metrics.gil)
        home = durability.home() if durability is not None and provisioning is not None else None
        left = None if home is None else read_note(home.folder)
        self.hasher = Hasher(None if left is None else left.hash_seed)
        newest, reserved = (Time(0), Time(0)) if durability is None else (durability.newest, durability.reserved)
        self.timeline = Timeline(clock, newest=newest, reserved=reserved)
        self.locks = LockTable()
        self.logins = Logins()
        self.catalog = Catalog()
        self.store = TableStore(self.hasher)
        self.commit_lock = threading.RLock()
        #: what responses lead to outside the controller, in their order
        self._effects: Delivery[Callable[[], None]] = Delivery(lambda effect: effect())
        self._control = ControlLock(self._effects.deliver)
        self._moved = threading.Condition()
        self._moves = 0  # how often an upper rose, or the replica came or went; guarded by _moved
        self._controller = Controller(self.store, logging=True)
        self.apart = Apart()
        self._answers = threading.Lock()
        self._peeks: dict[str, Waiter] = {}  # guarded by _answers
        self._feeds: dict[str, Feed] = {}  # guarded by _control
        self._plans: OrderedDict[object, object] = OrderedDict()  # guarded by _plans_lock
        self._plans_lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._recovery = Recovery(self._replace, self._replace_refused)
        #: why there is no replica to wait for; None where there is one, or soon will be; guarded by _control
        self._absent: Error | None = None
        #: stands for the replica whose responses count; guarded by _control
        self._source: object = None
        self._guest = GuestSettings()
        self._processes: ReplicaProcesses | None = None
        self._parameters: dict[str, str] = {}  # what the replica was told; guarded by _control
        if provisioning is not None:
            self._processes = ReplicaProcesses(
                self._replica_spec, self.store, self.hasher, home=home, spawn=provisioning.spawn
            )
        self._replica: Solo | Pair | RemoteReplica | None = None
        try:
            self._configure()
            if home is None:
                self.start_replica()
        except BaseException:
            if self._processes is not None:
                self._processes.close()
            raise
        _OPEN.add(self)

    def start_replica(self) -> None:
        """Once, after what a directory has was restored: a replica that went on meanwhile is told all at once.

        58000 if its processes do not come up.
        """
        if self._replica is not None:
            return
        replica = self._start_replica()
        with self._control:
            self._replica = replica
            self._controller.attach_replica(replica)

    @property
    def replica(self) -> Solo | Pair | RemoteReplica:
        """The present one, which may have failed.  Once it was started."""
        assert self._replica is not None, "statements come once the database is open"
        return self._replica

    # -- life -----------------------------------------------------------------------------------------------------

    def check_usable(self) -> None:
        """08003 once closed; 0A000 in a forked child, whose copy has no threads.

        Begins to rebuild a replica that nobody could rebuild before.
        """
        if self._closed:
            raise InterfaceError("the database is closed")
        if self.forked():
            raise InterfaceError(
                "this database belongs to the parent process", sqlstate="0A000", hint="open another one after fork"
            )
        if self._absent is not None and not self._recovery.attended():
            with self._control:
                self._absent = self._recovery.attend()

    @property
    def closed(self) -> bool:
        return self._closed

    def forked(self) -> bool:
        """Whether this is a child's copy, which has no threads, and whose locks may be held for ever."""
        return os.getpid() != self._pid

    @property
    def usable_at_once(self) -> bool:
        """Whether ``check_usable`` would have nothing to say or do."""
        return not self._closed and self._absent is None and not self.forked()

    def check_open(self) -> None:
        """57P01 once closed: for statements that wait."""
        if self._closed:
            raise make_error("57P01", "the database was closed")

    def close(self) -> None:
        """Stops the replica; statements under way fail with 57P01.  Twice is harmless."""
        if self.forked():
            self._closed = True
            return
        self.apart.run(self._close)
        self.apart.close()

    def _close(self) -> None:
        with self._control:
            if self._closed:
                return
            self._closed = True
            with self._answers:
                waiters = list(self._peeks.values())
                self._peeks.clear()
        self._has_moved()
        for waiter in waiters:
            waiter.fail(make_error("57P01", "the database was closed"))
        _OPEN.discard(self)
        self._recovery.end()
        self.memory.close()
        self._gil_sampler.run(on=False)
        self.store.close()
        self.locks.close()
        if self._replica is not None:
            self._replica.close()
        if self._processes is not None:
            self._processes.close()
        self._guest.close()
        if self.durability is not None:
            self.durability.close()

    @property
    def replica_processes(self) -> ReplicaProcesses | None:
        """What hosts the replica; None: this process."""
        return self._processes

    def _start_replica(self) -> Solo | Pair | RemoteReplica:
        source = object()
        with self._control:
            self._source = source
        respond = partial(self._respond, source)
        if self._processes is not None:
            return self._processes.connect(respond)
        kind = Pair if self.interactive else Solo
        return kind(self.store, self.hasher, workers=self.workers, configure=self._guest.apply, listener=respond)

    def alter_system(self, name: str | None, values: tuple[str, ...] | None) -> tuple[str, ...]:
        """Sets or resets (``values`` None) settings of the database, which take effect at once; gives notices.

        42704 for an unknown name, 22023 for a value that is none of its, 0A000 for what is the program's to set.
        """
        if values is not None:
            assert name is not None
            if name in PROCESS_SETTINGS:
                self._check_process_setting(name)
        with self.commit_lock:
            after = self.system.after(self._stored_settings, name, values)
            if self.durability is not None:
                put, removed = setting_changes(self._stored_settings, after)
                self.durability.put_documents(put, removed)
                self._stored_settings = after
            return self._take_settings(name, values)

    def _take_settings(self, name: str | None, values: tuple[str, ...] | None) -> tuple[str, ...]:
        with self._control:
            if values is None:
                self.system.reset(name)
            else:
                assert name is not None
                self.system.set(name, values)
            self._controller.one_shot_reads = self.system.enabled(INTERACTIVE_DATAFLOWS)
            self._configure()
            overridden = self._provisioning is not None and name in self._provisioning.overrides
        self._gil_sampler.run(on=self.system.enabled(GIL_SAMPLING) and not self._closed)
        self.guard_memory()
        return (f'the replica has a value of its own for "{name}"',) if overridden else ()

    # -- memory ---------------------------------------------------------------------------------------------------

    def guard_memory(self) -> None:
        """From now on the process is kept within the setting ``server_memory_limit``."""
        self.memory.watch(bytes_of(self.system.show(SERVER_MEMORY_LIMIT)))

    def weigh_dataflows(self, *, on: bool) -> None:
        """See ``memory_guard.Relief``; those of processes of their own are not this one's memory."""
        replica = self.replica
        for runtime in () if isinstance(replica, RemoteReplica) else replica.runtimes:
            runtime.held.want(on=on)

    def held_bytes(self) -> dict[str, int]:
        """See ``memory_guard.Relief``."""
        replica = self.replica
        runtimes = () if isinstance(replica, RemoteReplica) else replica.runtimes
        return {id: held for runtime in runtimes for id, held in runtime.held.totals().items()}

    def builds_under_way(self) -> list[str]:
        """See ``memory_guard.Relief``."""
        if self._processes is not None:
            return []
        with self.control() as controller:
            return controller.building()

    def stop_build(self, id: str, why: DatabaseError) -> None:
        """See ``memory_guard.Relief``.  The catalog keeps the objects, as ``unbuilt``."""
        with self.commit_lock:
            base = self.catalog.snapshot()
            with self.control() as controller:
                gone = controller.built_on(id)
            names = [base.by_id[i].name for i in gone if i in base.by_id]
            # Whoever plans from here on does without them.
            self.catalog.publish(base, base.without_builds(i for i in gone if i in base.by_id))
            waiters, feeds = self._take_down(gone)
        for waiter in waiters:
            waiter.fail(_again(why))
        for feed in feeds:
            feed.fail(_again(why))
        _log.error("not kept fresh any longer, until made anew: %s", ", ".join(names))

    def _take_down(self, ids: Sequence[str]) -> tuple[list[Waiter], list[Feed]]:
        """Drops collections; who waits for an answer of theirs, and whose subscriptions they were."""
        waiters, feeds = [], []
        with self._control:
            for uuid in self._controller.asked_of(ids):
                waiter = self._waiter_of(uuid)
                if waiter is not None:
                    self._controller.cancel_peek(uuid)
                    waiters.append(waiter)
            for id in ids:
                feed = self._feeds.pop(id, None)
                if feed is not None:
                    feeds.append(feed)
                self._controller.drop(id)
        return waiters, feeds

    def _restore_settings(self, stored: dict[str, str]) -> None:
        """Those of the directory that mean anything here and now; the others stay in it."""
        self._stored_settings = stored
        for name, value in stored.items():
            try:
                if name in PROCESS_SETTINGS:
                    self._check_process_setting(name)
                self.system.set(name, (value,))
            except DatabaseError as problem:
                _log.warning("setting %s of the directory is not obeyed: %s", name, problem.message)

    def alter_replica(self, changes: Mapping[str, tuple[str, ...] | None] | None) -> tuple[str, ...]:
        """Stores values of settings for the replica, which win over the database's; gives notices.

        None in place of values takes a stored one back; ``changes`` None: all of them.  Either all changes are made or
        none.  Process settings take effect at once, ``enable_compute_interactive_runtime`` when processes start next.
        42704 for what is no setting of a replica, 22023 for a value that is none of the setting's, 0A000 without
        processes of its own.
        """
        with self.commit_lock:
            own = self._provisioning
            if own is None:
                raise make_error("0A000", "the replica is in the program's own process", hint="connect(processes=1)")
            overrides = {} if changes is None else dict(own.overrides)
            for name, values in (changes or {}).items():
                if name not in OVERRIDABLE:
                    hint = f"Known: {', '.join(sorted(OVERRIDABLE))}."
                    raise make_error("42704", f'"{name}" is no setting of a replica', hint=hint)
                overrides.pop(name, None)
                if values is not None:
                    overrides[name] = self.system.checked(name, ", ".join(values))
            if self.durability is not None:
                put, removed = setting_changes(self._stored_overrides, overrides, of_replica=True)
                self.durability.put_documents(put, removed)
                self._stored_overrides = overrides
            later = self._provision(replace(own, overrides=overrides))
        return (f'"{INTERACTIVE_RUNTIME}" takes effect when the replica\'s processes start next',) if later else ()

    def _provision(self, wanted: Provisioning) -> bool:
        """Whether something of it waits for the replica's processes to start anew."""
        with self._control:
            assert self._provisioning is not None, "only processes are provisioned"
            before = replica_spec(self._provisioning, self.system)
            self._provisioning = wanted
            self._configure()
            return replica_spec(wanted, self.system) != before

    def replica_settings(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of what holds for the replica, as ``provisioning.in_force``; by name."""
        with self._control:
            own = Provisioning(interactive=self.interactive) if self._provisioning is None else self._provisioning
            return [(name, *in_force(name, own, self.system)) for name in sorted(OVERRIDABLE)]

    def _check_process_setting(self, name: str) -> None:
        """42704 for another one, 0A000 for one that is the program's."""
        if name not in PROCESS_SETTINGS:
            raise make_error(
                "42704", f'unrecognized process setting "{name}"', hint=f"Known: {', '.join(PROCESS_SETTINGS)}."
            )
        refusal = None if self._provisioning is not None else host_refusal(name, may_set=self._may_set)
        if refusal is not None:
            raise refusal

    def _configure(self) -> None:
        """Tells the replica its process settings if they have changed."""
        if self._provisioning is not None:
            parameters = replica_parameters(self._provisioning, self.system)
        elif self._may_set:
            parameters = dict([encoded(THREAD_SWITCH_INTERVAL, self.system.show(THREAD_SWITCH_INTERVAL))])
        else:
            parameters = {}
        if parameters != self._parameters:
            self._controller.update_configuration(parameters)
            self._parameters = parameters

    def _replica_spec(self) -> ReplicaSpec:
        assert self._provisioning is not None, "only processes ask"
        return replica_spec(self._provisioning, self.system)

    def metrics_text(self) -> str:
        """What the database counts of itself, in Prometheus' text format.

        Processes of the replica are asked; if they do not answer within a second what they count is left out.
        """
        self.check_usable()
        replica = self.replica
        processes: list[ProcessMeasures] = []
        if isinstance(replica, RemoteReplica):
            processes = replica.measured(_MEASURES_SECONDS)
            runtimes, gap = ProcessMeasures.of_runtimes(processes)
        else:
            runtimes, gap = tuple(runtime.measured() for runtime in replica.runtimes), replica.hold_gap_us()
        return exposition(
            self.metrics,
            runtimes,
            interactive=self.interactive,
            hold_gap_us=gap,
            stored_bytes=self.store.nbytes(),
            memory_limit_bytes=bytes_of(self.system.show(SERVER_MEMORY_LIMIT)),
            replica=self._replica_labels(),
            processes=processes,
        )

    def _replica_labels(self) -> dict[str, str]:
        """What metrics tell of the replica."""
        own = self._provisioning
        label = self.system.show(WORKLOAD_CLASS) if own is None else in_force(WORKLOAD_CLASS, own, self.system).value
        return {
            "processes": str(0 if own is None else own.processes),
            "workers": str(self.workers),
            "workload_class": label,
        }

    # -- controller -----------------------------------------------------------------------------------------------

    @contextmanager
    def control(self) -> Iterator[Controller]:
        """The controller, for a few O(1) calls."""
        with self._control:
            self.check_usable()
            yield self._controller

    @contextmanager
    def control_unchecked(self) -> Iterator[Controller]:
        """As ``control``, also while the database closes: for giving things back."""
        with self._control:
            yield self._controller

    @property
    def reader(self) -> str:
        """The runtime that answers reads, as metrics call it."""
        return Role.INTERACTIVE.value if self.interactive else ""

    @property
    def collections(self) -> Collections:
        """The controller's collections, to look at from any thread without a lock: what they say may just be out of
        date, so that whoever reads by it has the replica check it once more."""
        self.check_usable()
        return self._controller

    def answer_now(self, peek: Peek, cancelled: Callable[[], bool]) -> PeekResponse | None:
        """The answer, found on this thread, if the index has sealed the time; a thread hop costs more than a lookup."""
        return self.replica.answer_now(peek, cancelled)

    def look_up(self, index: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """As ``answer_now``, of the key that ``probe`` has: the rows and where they lie.  None: ask otherwise."""
        return self.replica.look_up(index, at, probe)

    def expect(self, uuid: str, waiter: Waiter) -> None:
        """Where the answer of peek ``uuid`` goes, or why there will be none: 58000.

        Call within ``control``, right after the peek.
        """
        with self._answers:
            self._peeks[uuid] = waiter
        if self._absent is not None:
            waiter.fail(_again(self._absent))

    def forget(self, uuid: str) -> None:
        """Cancels a peek whose answer nobody waits for any more."""
        if self._waiter_of(uuid) is not None:
            with self._control:
                self._controller.cancel_peek(uuid)

    def _waiter_of(self, uuid: str) -> Waiter | None:
        """Whoever waits for the peek, once."""
        with self._answers:
            return self._peeks.pop(uuid, None)

    def feed(self, id: str, feed: Feed) -> None:
        """Where the responses of subscription ``id`` go, in order; it is ended once ``take`` gives False.

        58000 if there is no replica to make any; the subscription is dropped then.
        """
        with self._control:
            self._feeds[id] = feed
            if self._absent is not None:
                self._drop_subscription(id)
                raise _again(self._absent)

    def dropped(self, items: Iterable[CatalogItem]) -> None:
        """Objects are in the catalog no more: subscriptions that read one end, and are told.  O(subscriptions)."""
        gone = {item.id: item for item in items}
        ended: list[tuple[Feed, CatalogItem]] = []
        with self._control:
            for id, feed in list(self._feeds.items()):
                first = next(iter(gone.keys() & feed.reads), None)
                if first is not None:
                    self._drop_subscription(id)
                    ended.append((feed, gone[first]))
        for feed, item in ended:
            feed.dropped(item)

    def end_subscription(self, id: str) -> None:
        """Drops it with its holds; twice is harmless."""
        with self._control:
            self._drop_subscription(id)

    def _drop_subscription(self, id: str) -> None:
        """With ``_control`` held."""
        self._feeds.pop(id, None)
        self._controller.drop(id)

    def _give(self, take: Callable[[SubscribeResponse], bool], response: SubscribeResponse) -> None:
        if not take(response):
            self._control.hand_in(partial(self._drop_subscription, response.id))

    def wait_for(self, ready: Callable[[Controller], bool], timeout: float | None) -> bool:
        """Waits until ``ready(controller)``, looked at after every response but answers; False when the time is up.

        58000 if there is no replica to wait for.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._moved:
                seen = self._moves
            with self._control:
                if self._closed or ready(self._controller):
                    return not self._closed
                if self._absent is not None:
                    raise _again(self._absent)
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return False
            self._wait_moved(seen, remaining)

    def _wait_moved(self, seen: int, timeout: float | None) -> None:
        with self._moved:
            self._moved.wait_for(lambda: self._moves != seen, timeout)

    def _has_moved(self) -> None:
        with self._moved:
            self._moves += 1
            self._moved.notify_all()

    def rows_held(self, ids: Sequence[str]) -> int:
        """Updates that stored collections among ``ids`` hold, for progress reports."""
        return sum(self.store.size(i)[0] for i in ids if i in self.store)

    def _respond(self, source: object, response: Response) -> None:
        """A response of the replica that ``source`` stands for, on a thread of its: never waits."""
        if isinstance(response, PeekResponse) and source is self._source:
            # First of all; should the answer be quicker than ``expect``, the controller's event delivers it.
            self._deliver(response)
        self._control.hand_in(partial(self._process, source, response))

    def _process(self, source: object, response: Response) -> None:
        """The controller hears of a response; with ``_control`` held."""
        if self._closed or source is not self._source:
            return
        try:
            events = self._controller.process_response(response)
        except Exception as error:  # noqa: BLE001 - whatever it was, the replica is not understood and is built anew
            _log.exception("a response of the replica cannot be taken")
            events = self._controller.process_response(Status(f"{type(error).__name__}: {error}", fatal=True))
        for event in events:
            self._handle(event)
        if not isinstance(response, PeekResponse):
            self._effects.add(self._has_moved)

    def _deliver(self, response: PeekResponse) -> None:
        waiter = self._waiter_of(response.uuid)
        if waiter is not None:
            waiter.put(response)

    def _handle(self, event: Event) -> None:
        match event:
            case PeekAnswered():
                self._deliver(event.response)
            case SubscriptionChanged():
                feed = self._feeds.get(event.response.id)
                if feed is not None:
                    self._effects.add(partial(self._give, feed.take, event.response))
            case ReplicaFailed():
                _log.error("the replica failed and is rebuilt: %s", event.message)
                self._effects.add(partial(self._recover, self.replica))
            case _:
                pass

    def _recover(self, failed: Solo | Pair | RemoteReplica) -> None:
        """Has a failed replica replaced; never waits."""
        unattended = self._recovery.begin(failed)
        if unattended is not None:
            self._control.hand_in(partial(self._go_without, unattended))

    def _replace(self, failed: Solo | Pair | RemoteReplica) -> None:
        """Has another replica in the place of a failed one, or raises.

        Where processes host it and live, only the connection is replaced: they keep what they have built.
        """
        failed.close()
        replica = self._start_replica()
        try:
            with self._control:
                if not self._closed:
                    self._controller.attach_replica(replica)
                    self._replica, self._absent = replica, None
        except BaseException:
            replica.close()
            raise
        self._has_moved()
        if self._closed:
            replica.close()
        elif replica.failed:
            self._recovery.begin(replica)

    def _replace_refused(self, why: Error) -> None:
        """For ``Recovery``: the last try has failed."""
        with self._control:
            self._go_without(why)

    def _go_without(self, why: Error) -> None:
        """There is no replica: whoever waits for one gets ``why``, and so do those who come.  Needs ``_control``."""
        self._source, self._absent = None, why
        for event in self._controller.give_up_replica(why):
            self._handle(event)
        self._effects.add(self._has_moved)

    # -- commits --------------------------------------------------------------------------------------------------

    def commit(self, writes: Mapping[str, Batch]) -> Time:
        """Commits at a fresh time and returns it; see ``TableStore.append`` for what it refuses."""
        with self.commit_lock:
            begun = self.begin_commit(writes, self.timeline.allocate())
        return self.finish_commit(begun)

    def begin_commit(
        self, writes: Mapping[str, Batch], at: Time, changes: Changes = _NO_CHANGES, *, wait: bool = True
    ) -> CommitUnderWay:
        """Checks the commit and gives it its place; ``finish_commit`` must follow.  Needs the commit lock.

        Without ``wait`` it is made visible before it is safe.  ``changes``: what else a directory is told.  Raises as
        ``TableStore.append``, and what the directory's disk refuses (53100 …); then nothing is left of it.
        """
        durability = self.durability
        if durability is None:
            self.store.append(writes, at)
            self.timeline.committed(at)
            return CommitUnderWay(at, None)
        if not wait or not (writes or changes):
            durability.group.reserve(at)
        ticket = durability.group.ticket()
        prepared = self.store.prepare(writes, at)

        def publish() -> None:
            self.store.publish(prepared)
            self.timeline.committed(at)

        def take_back() -> None:
            self.store.take_back(prepared)

        queued = QueuedCommit(at, prepared.rows, changes, publish, take_back)
        durability.group.add(queued, ticket, wait=wait)
        return CommitUnderWay(at, None if queued.early else queued)

    def finish_commit(self, begun: CommitUnderWay) -> Time:
        """Returns once the commit is safe and visible.  Raises what took it back (53100 …)."""
        if begun.queued is not None:
            assert self.durability is not None
            self.durability.group.wait(begun.queued)
        return begun.time

    def start_upkeep(self) -> None:
        """Once the directory's tables are in the store."""
        if self.durability is not None:
            self.durability.start(self.store, to_disk=lambda: self.system.enabled(FSYNC))

    # -- plans ----------------------------------------------------------------------------------------------------

    def cached_plan(self, key: object) -> object | None:
        with self._plans_lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
            return plan

    def cache_plan(self, key: object, plan: object) -> None:
        with self._plans_lock:
            self._plans[key] = plan
            while len(self._plans) > _PLAN_CACHE_SIZE:
                self._plans.popitem(last=False)


def _again(error: Error) -> Error:
    """The same, to be raised by another thread."""
    return make_error(error.sqlstate, error.message, hint=error.hint)


#: open databases, closed at interpreter exit so that their threads end before the interpreter does
_OPEN: weakref.WeakSet[Engine] = weakref.WeakSet()


def _close_all() -> None:
    for engine in list(_OPEN):
        try:
            engine.close()
        except Error as problem:
            _log.error("a database is closed without all that was acknowledged: %s", problem.message)


atexit.register(_close_all)
