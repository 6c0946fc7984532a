"""One database: catalog, storage, clusters, timeline, shared by all its sessions.

Locks, in order: ``commit_lock`` (one commit or definition at a time; commits of rows wait for the disk without it),
then those of the directory, if there is one, then those of ``adapter.control``.

A thread that is preempted in the middle of an O(1) step keeps others waiting for as long as the machine pleases.
Therefore a lookup that its index has sealed takes neither ``commit_lock`` nor the control lock.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from eddyline.adapter.apart import Apart
from eddyline.adapter.catalog import Catalog, CatalogSnapshot
from eddyline.adapter.clusters import FIRST_CLUSTER, FIRST_REPLICA, Cluster, ClusterSpec, ReplicaSettings
from eddyline.adapter.control import Control
from eddyline.adapter.durability import Durability
from eddyline.adapter.locks import LockTable
from eddyline.adapter.logins import Logins
from eddyline.adapter.memory_guard import MemoryGuard
from eddyline.adapter.memory_relief import MemoryRelief
from eddyline.adapter.memory_size import bytes_of
from eddyline.adapter.memory_use import ServerMemory
from eddyline.adapter.metrics import DatabaseMetrics, exposition
from eddyline.adapter.provisioning import Provisioning, first_replica, with_first_replica
from eddyline.adapter.replica import Replica, Site
from eddyline.adapter.sequences import Sequences
from eddyline.adapter.session_list import SessionList
from eddyline.adapter.setting_values import duration_s
from eddyline.adapter.system_alterations import SystemAlterations, host_defaults
from eddyline.adapter.system_settings import (
    FSYNC,
    GIL_SAMPLING,
    INTERACTIVE_DATAFLOWS,
    MAX_VIEW_LAG,
    QUERY_MAX_MEMORY,
    SERVER_MEMORY_LIMIT,
    SystemSettings,
)
from eddyline.adapter.timeline import Timeline, wall_clock
from eddyline.compute.gil_sampler import GilSampler
from eddyline.compute.process_settings import GuestSettings
from eddyline.controller.controller import Collections, Controller
from eddyline.controller.home import Home
from eddyline.controller.lag import Lag
from eddyline.controller.spawning import spawn_process
from eddyline.errors import Error, InterfaceError, make_error
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.sql.catalog_view import CatalogItem
from eddyline.storage.group_commit import QueuedCommit
from eddyline.storage.log import Changes
from eddyline.storage.store import NONE_CHECKED, TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["CommitUnderWay", "Engine"]

_log = logging.getLogger("eddyline.engine")
_PLAN_CACHE_SIZE = 1024
_MEASURES_SECONDS = 1.0
_NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True)
class CommitUnderWay:
    """``queued``: what it waits for until it is visible; None if it is."""

    time: Time
    queued: QueuedCommit | None


class Engine:
    """``durability``: the directory that it is kept in, which it closes; None: in memory.  See ``adapter.restoring``.

    ``provisioning``: the first replica in processes of its own; without, one of ``workers`` threads in this process.
    ``clusters``: those that the directory has; the first replica is as the other arguments say, its overrides aside.
    Without any there is one cluster, ``default``, with one replica.

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
        clusters: Sequence[ClusterSpec] = (),
        clock: Callable[[], int] = wall_clock,
        durability: Durability | None = None,
    ) -> None:
        self.durability = durability
        first = first_replica(workers, provisioning, interactive=interactive)
        specs = with_first_replica(clusters, first)
        self._hosted = any(replica.processes for spec in specs for replica in spec.replicas)
        may_set = bool(process_settings) or process_settings == {}
        host = {} if first.processes else host_defaults(may_set=may_set)
        usual = {} if server_memory is None else {SERVER_MEMORY_LIMIT: str(server_memory.usual or 0)}
        self.system = SystemSettings({**host, **usual})
        self._alterations = SystemAlterations(self.system, durability, may_set=may_set, hosted=lambda: self._hosted)
        self._alterations.restore()
        if isinstance(process_settings, Mapping):
            self._alterations.begin_with(process_settings)
        if memory_limit_bytes is not None:
            self.system.set(QUERY_MAX_MEMORY, (str(memory_limit_bytes),))
        if server_memory is not None and server_memory.wanted is not None:
            self.system.set(SERVER_MEMORY_LIMIT, (str(server_memory.wanted),))
        self.metrics = DatabaseMetrics()
        self._gil_sampler = GilSampler(self.metrics.gil)
        self.hasher = Hasher(None if durability is None else durability.noted_seed())
        newest, reserved = (Time(0), Time(0)) if durability is None else (durability.newest, durability.reserved)
        self.timeline = Timeline(clock, newest=newest, reserved=reserved)
        self.locks = LockTable()
        self.logins = Logins()
        self.sequences = Sequences(durability)
        self.sessions = SessionList()
        self.catalog = Catalog(CatalogSnapshot.initial().opened_with(first.workers, first.processes, first.overrides))
        self.store = TableStore(self.hasher)
        self.commit_lock = threading.RLock()
        #: how far views are behind
        self.lag = Lag(duration_s(self.system.show(MAX_VIEW_LAG)))
        self._control = Control(self.store, self.lag)
        self.relief = MemoryRelief(
            self.catalog, self._control, self.commit_lock, controller=self.control, clusters=lambda: self.clusters
        )
        self.memory = MemoryGuard(self.relief)
        self.apart = Apart()
        self._plans: OrderedDict[object, object] = OrderedDict()  # guarded by _plans_lock
        self._plans_lock = threading.Lock()
        self._pid = os.getpid()
        self._guest = GuestSettings()
        self._site = Site(
            self._control,
            self.store,
            self.hasher,
            self.system,
            home=self._home,
            may_set=may_set,
            guest=self._guest,
            spawn=spawn_process if provisioning is None else provisioning.spawn,
        )
        #: by id; changed as a whole, with the control lock held, and any thread may look
        self.clusters: dict[str, Cluster] = {}
        self._started = False
        #: the threads that close what was dropped; guarded by the control lock
        self._closing: list[threading.Thread] = []
        try:
            for spec in specs:
                self._add_cluster(spec)
            if durability is None:
                self.start_replicas()
        except BaseException:
            self._close_replicas()
            self._guest.close()
            raise
        _OPEN.add(self)

    def _home(self, replica_id: str) -> Home | None:
        return None if self.durability is None else self.durability.home(replica_id)

    # -- life -----------------------------------------------------------------------------------------------------

    def look(self) -> dict[str, Time]:
        """By cluster, see ``Cluster.look``: those where replicas go on that an earlier program has left."""
        found = {id: cluster.look() for id, cluster in self.clusters.items()}
        return {id: upto for id, upto in found.items() if upto is not None}

    def start_replicas(self) -> None:
        """Once, after what a directory has was restored: a replica that went on meanwhile is told all at once.

        58000 if the processes of the first one do not come up; others are tried again until they do.
        """
        if self._started:
            return
        self._started = True
        for replica in self._replicas():
            if replica.first:
                replica.start()
            else:
                replica.start_soon()

    def check_usable(self) -> None:
        """08003 once closed; 0A000 in a forked child, whose copy has no threads.

        Begins to rebuild replicas that nobody could rebuild before.
        """
        if self._control.closed:
            raise InterfaceError("the database is closed")
        if self.forked():
            raise InterfaceError(
                "this database belongs to the parent process", sqlstate="0A000", hint="Open another one after fork."
            )
        if self._control.absentees:
            for cluster in self.clusters.values():
                cluster.attend()

    @property
    def closed(self) -> bool:
        return self._control.closed

    def forked(self) -> bool:
        """Whether this is a child's copy, which has no threads, and whose locks may be held for ever."""
        return os.getpid() != self._pid

    @property
    def usable_at_once(self) -> bool:
        """Whether ``check_usable`` would have nothing to say or do."""
        return not self._control.closed and not self._control.absentees and not self.forked()

    def check_open(self) -> None:
        """57P01 once closed: for statements that wait."""
        if self._control.closed:
            raise make_error("57P01", "the database was closed")

    def close(self) -> None:
        """Stops the replicas; statements under way fail with 57P01.  Twice is harmless."""
        if self.forked():
            self._control.closed = True
            return
        self.apart.run(self._close)
        self.apart.close()

    def _close(self) -> None:
        if not self._control.close():
            return
        _OPEN.discard(self)
        for replica in self._replicas():
            replica.end_recovery()
        self.memory.close()
        self._gil_sampler.run(on=False)
        self.store.close()
        self.lag.close()
        self.locks.close()
        self._close_replicas()
        self._guest.close()
        items = self.catalog.snapshot().by_id.values()
        self.sequences.close(item.sequence for item in items if item.sequence is not None)
        if self.durability is not None:
            self.durability.close()

    def _close_replicas(self) -> None:
        _close_all_of(self._replicas())
        with self._control.lock:
            closing = list(self._closing)
        for thread in closing:
            thread.join()

    def _replicas(self) -> list[Replica]:
        return [replica for cluster in self.clusters.values() for replica in cluster.replicas.values()]

    # -- clusters -------------------------------------------------------------------------------------------------

    @property
    def default(self) -> Cluster:
        """The cluster that every database begins with."""
        return self.clusters[FIRST_CLUSTER]

    @property
    def first_replica(self) -> Replica:
        """The one that every database begins with.  XX000 if it was dropped."""
        return self.default.replica(FIRST_REPLICA)

    def cluster(self, id: str) -> Cluster:
        """58000 if it was dropped meanwhile."""
        cluster = self.clusters.get(id)
        if cluster is None:
            raise make_error("58000", "the cluster was dropped", hint="SET cluster chooses another one.")
        return cluster

    def create_cluster(self, spec: ClusterSpec) -> Cluster:
        """Replicas in this process are there at once, those with processes soon, or when the database has opened."""
        cluster = self._add_cluster(spec)
        if self._started:
            for replica in cluster.replicas.values():
                replica.start_soon()
        return cluster

    def _add_cluster(self, spec: ClusterSpec) -> Cluster:
        with self._control.lock:
            self._hosted |= any(replica.processes for replica in spec.replicas)
            cluster = Cluster(self._site, spec)
            self.clusters = {**self.clusters, spec.id: cluster}
        return cluster

    def drop_cluster(self, id: str) -> None:
        """With all that is kept in it; whoever waits for it gets 58000.  Returns before its processes have ended."""
        with self._control.lock:
            cluster = self.cluster(id)
            self.clusters = {other: c for other, c in self.clusters.items() if other != id}
            gone = cluster.leave()
        self._retire(gone)

    def create_replica(self, cluster_id: str, settings: ReplicaSettings) -> None:
        """As ``create_cluster``."""
        with self._control.lock:
            replica = self.cluster(cluster_id).add(settings)
            self._hosted |= bool(settings.processes)
        if self._started:
            replica.start_soon()

    def drop_replica(self, cluster_id: str, replica_id: str) -> None:
        """Others answer what it was asked; without any, whoever waits gets 58000.  Returns before it has ended."""
        self._retire([self.cluster(cluster_id).remove(replica_id)])

    def _retire(self, replicas: Sequence[Replica]) -> None:
        """Ends them, which may take a while, for nobody to wait for but ``close``."""
        thread = threading.Thread(target=_close_all_of, args=(replicas,), name="eddyline-retire", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left
            _close_all_of(replicas)
            return
        with self._control.lock:
            self._closing = [each for each in self._closing if each.is_alive()] + [thread]

    # -- settings -------------------------------------------------------------------------------------------------

    def alter_system(self, name: str | None, values: tuple[str, ...] | None) -> tuple[str, ...]:
        """Sets or resets (``values`` None) settings of the database, which take effect at once; gives notices.

        42704 for an unknown name, 22023 for a value that is none of its, 0A000 for what is the program's to set.
        """
        with self.commit_lock:
            self._alterations.keep(name, values)
            return self._take_settings(name, values)

    def _take_settings(self, name: str | None, values: tuple[str, ...] | None) -> tuple[str, ...]:
        overridden = []
        with self._control.lock:
            if values is None:
                self.system.reset(name)
            else:
                assert name is not None
                self.system.set(name, values)
            self._control.controller.one_shot_reads = self.system.enabled(INTERACTIVE_DATAFLOWS)
            for replica in self._replicas():
                replica.configure()
                if replica.settings.processes and name in replica.settings.overrides:
                    overridden.append(replica.title)
        self._gil_sampler.run(on=self.system.enabled(GIL_SAMPLING) and not self.closed)
        self.lag.set_bound(duration_s(self.system.show(MAX_VIEW_LAG)))
        self.guard_memory()
        return tuple(f'the replica {each} has a value of its own for "{name}"' for each in overridden)

    # -- memory ---------------------------------------------------------------------------------------------------

    def guard_memory(self) -> None:
        """From now on the process is kept within the setting ``server_memory_limit``."""
        self.memory.watch(bytes_of(self.system.show(SERVER_MEMORY_LIMIT)))

    def metrics_text(self) -> str:
        """What the database counts of itself, in Prometheus' text format.

        Processes of each replica are asked; if they do not answer within a second what they count is left out.
        """
        self.check_usable()
        measured, interactive = [], False
        for cluster in self.clusters.values():
            interactive |= bool(cluster.reader)
            for replica in cluster.replicas.values():
                labels = {} if replica.first else {"cluster": cluster.name, "replica": replica.settings.name}
                measured.append(replica.measured(_MEASURES_SECONDS, labels))
        return exposition(
            self.metrics,
            measured,
            interactive=interactive,
            stored_bytes=self.store.nbytes(),
            lag=self.lag,
            memory_limit_bytes=bytes_of(self.system.show(SERVER_MEMORY_LIMIT)),
        )

    # -- controller -----------------------------------------------------------------------------------------------

    @contextmanager
    def control(self) -> Iterator[Controller]:
        """The controller, for a few O(1) calls."""
        with self._control.lock:
            self.check_usable()
            yield self._control.controller

    @contextmanager
    def control_unchecked(self) -> Iterator[Controller]:
        """As ``control``, also while the database closes: for giving things back."""
        with self._control.lock:
            yield self._control.controller

    @property
    def collections(self) -> Collections:
        """The controller's collections, to look at from any thread without a lock: what they say may just be out of
        date, so that whoever reads by it has the replica check it once more."""
        self.check_usable()
        return self._control.controller

    def dropped(self, items: Iterable[CatalogItem]) -> None:
        """Objects are in the catalog no more: subscriptions that read one end, and are told.  O(subscriptions)."""
        self._control.dropped(items)

    def end_subscription(self, id: str) -> None:
        """Drops it with its holds; twice is harmless."""
        self._control.end_subscription(id)

    def rows_held(self, ids: Sequence[str]) -> int:
        """Updates that stored collections among ``ids`` hold, for progress reports."""
        return sum(self.store.size(i)[0] for i in ids if i in self.store)

    # -- commits --------------------------------------------------------------------------------------------------

    def commit(self, writes: Mapping[str, Batch]) -> Time:
        """Commits at a fresh time and returns it; see ``TableStore.append`` for what it refuses."""
        with self.commit_lock:
            begun = self.begin_commit(writes, self.timeline.allocate())
        return self.finish_commit(begun)

    def begin_commit(
        self,
        writes: Mapping[str, Batch],
        at: Time,
        changes: Changes = _NO_CHANGES,
        *,
        wait: bool = True,
        checked: Mapping[str, Time] = NONE_CHECKED,
    ) -> CommitUnderWay:
        """Checks the commit and gives it its place; ``finish_commit`` must follow.  Needs the commit lock.

        Without ``wait`` it is made visible before it is safe.  ``changes``: what else a directory is told.
        ``checked``: see ``TableStore.prepare``.  Raises as ``TableStore.append``, and what the directory's disk refuses
        (53100 …); then nothing is left of it.
        """
        durability = self.durability
        if durability is None:
            self.store.append(writes, at, checked)
            self._committed(writes, at)
            return CommitUnderWay(at, None)
        if not wait or not (writes or changes):
            durability.group.reserve(at)
        ticket = durability.group.ticket()
        prepared = self.store.prepare(writes, at, checked)

        def publish() -> None:
            self.store.publish(prepared)
            self._committed(writes, at)

        def take_back() -> None:
            self.store.take_back(prepared)

        queued = QueuedCommit(at, prepared.rows, changes, publish, take_back)
        durability.group.add(queued, ticket, wait=wait)
        return CommitUnderWay(at, None if queued.early else queued)

    def _committed(self, tables: Mapping[str, object], at: Time) -> None:
        """A commit is visible."""
        self.lag.wrote(tables.keys(), at)
        self.timeline.committed(at)

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


def _close_all_of(replicas: Sequence[Replica]) -> None:
    """Each of them, whatever becomes of the others."""
    for replica in replicas:
        replica.end_recovery()
    for replica in replicas:
        try:
            replica.close()
        except Exception:  # noqa: BLE001 - the others' threads and processes are to end whatever it was, and it is told
            _log.exception("replica %s does not end as it should", replica.title)


#: open databases, closed at interpreter exit so that their threads end before the interpreter does
_OPEN: weakref.WeakSet[Engine] = weakref.WeakSet()


def _close_all() -> None:
    for engine in list(_OPEN):
        try:
            engine.close()
        except Error as problem:
            _log.error("a database is closed without all that was acknowledged: %s", problem.message)


atexit.register(_close_all)
