"""The controller: which collections exist, which times they can be read at, and what replicas are told.

Sans-I/O: methods change state and send commands to a client that never blocks; ``process_response`` takes what a
replica answers and returns events.  It has no threads and no locks: its owner serialises all calls, those of holds
included; only what ``Collections`` has may be called by any thread at any time.

There is one for all clusters of a database: what one of them writes and another one reads is held, and dropped, in one
place.  Where no cluster is said it is the first one.

Invariants:
I1  for a dataflow at X importing I, since(I) <= X from create to drop: the dataflow holds its imports at the least
    since of its exports, which is where it would be built anew;
I2  a collection that is dropped stays on the replicas, and in storage, until its last hold is closed; what is stored,
    also until every hold of everything stored that is older than the drop is;
I3  a peek holds its target at its time until all who were asked have answered or are gone, and every peek is answered
    exactly once: by the first answer;
I4  reported uppers never regress, even when a new replica builds everything again: an upper is the greatest that any
    replica has reported;
I5  storage changes at once, a replica in the order of its commands: what a dropped dataflow imports from storage is
    held until each replica that was told of it says that the dataflow is gone, for it may have yet to build it;
I6  a log is readable at every time: what its replica sealed last.  How far it may compact is of the replica's own
    timeline, and begins anew with each connection;
I7  no replica that is there is told to forget what it has yet to build: compaction stays behind the least upper;
I8  a dataflow imports indexes of its own cluster alone; from another one comes only what is stored.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from eddyline.compute.process_settings import check_process_settings
from eddyline.compute.selection import passed_by
from eddyline.controller.collection import CollectionState, DataflowState, Role
from eddyline.controller.events import Event, FrontierMoved, Hydrated, PeekAnswered, ReplicaFailed, SubscriptionChanged
from eddyline.controller.holds import ReadHold, ReadHolds, StoredHold
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA, Instance, Leaving
from eddyline.controller.lag import Lag
from eddyline.controller.open_peeks import OpenPeeks
from eddyline.controller.shape import checked_shape
from eddyline.controller.subscriptions import not_passed
from eddyline.errors import Error, NoLongerReadableError, make_error
from eddyline.expr.ir import LiteralValue, Mfp, SortKey
from eddyline.plan.dataflow import (
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
)
from eddyline.protocol.client import Client
from eddyline.protocol.logs import LOGS
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CreateDataflow,
    Frontiers,
    KeepSealed,
    Peek,
    PeekResponse,
    Response,
    Schedule,
    Status,
    SubscribeResponse,
    UpdateConfiguration,
)
from eddyline.protocol.read_costs import UNBOUNDED, ReadBounds
from eddyline.repr.ids import is_log, is_transient
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.storage.store import TableStore

__all__ = ["Collections", "Controller"]

_log = logging.getLogger("eddyline.controller")
_ROLES = {ExportIndex: Role.INDEX, ExportMaterializedView: Role.VIEW, ExportSubscribe: Role.SUBSCRIPTION}
_LOST: Final = make_error("58000", "the replica was lost", hint="It is being rebuilt: try the statement again.")
_DROPPED: Final = make_error(
    "58000", "the replica was dropped", hint="Try the statement again: another replica answers, where there is one."
)


class Collections(Protocol):
    """What there is to read.  Any thread may ask for indexes; for stored collections, the controller's owner."""

    def readable(self, id: str) -> tuple[Frontier, Frontier] | None:
        """Since and upper of a collection, which only rise; None if it is not there, or no longer."""


class Controller:
    """``retention_us``: how far the since of an index trails its upper where no hold asks for more.

    ``logging``: whether replicas keep logs.  ``lag``: hears of what indexes, views and subscriptions have passed.
    """

    def __init__(
        self, store: TableStore, *, retention_us: int = 1_000_000, logging: bool = False, lag: Lag | None = None
    ) -> None:
        self._store = store
        self.lag = Lag() if lag is None else lag
        self._retention_us = retention_us
        #: whether reads are rendered as such; otherwise they are maintained, until they are dropped
        self.one_shot_reads = True
        self._logging = logging
        self._instances = {FIRST_CLUSTER: Instance(logging=logging)}
        self._collections: dict[str, CollectionState] = {}
        self._dataflows: list[DataflowState] = []
        self._peeks = OpenPeeks()
        self._tokens = itertools.count(1)
        #: tokens of open holds of everything stored, oldest first
        self._stored_holds: dict[int, None] = {}
        #: stored collections whose drop such a hold has put off
        self._put_off: dict[CollectionState, None] = {}
        for log in LOGS if logging else ():
            self._collections[log.id] = CollectionState(log.id, Role.LOG, MIN_TIME)

    # -- clusters -------------------------------------------------------------------------------------------------

    def create_cluster(self, id: str) -> None:
        """One without replicas."""
        if id in self._instances:
            raise make_error("XX000", f"cluster {id} exists already")
        self._instances[id] = Instance(logging=self._logging)

    def drop_cluster(self, id: str) -> list[Event]:
        """With its replicas, and with all that is kept in it, which goes from storage with its last hold.

        O(collections).
        """
        instance = self._instance(id)
        events: list[Event] = []
        for replica in list(instance.replicas):
            events += self.forget_replica(replica, id)
        its = [c.id for c in self._collections.values() if c.dataflow is not None and c.dataflow.instance is instance]
        for collection in its:
            self.drop(collection)
        del self._instances[id]
        return events

    def _instance(self, cluster: str) -> Instance:
        instance = self._instances.get(cluster)
        if instance is None:
            raise make_error("58000", "the cluster was dropped", hint="SET cluster chooses another one.")
        return instance

    # -- replicas -------------------------------------------------------------------------------------------------

    def attach_replica(self, client: Client, replica: str = FIRST_REPLICA, cluster: str = FIRST_CLUSTER) -> None:
        """Brings a fresh replica to the present state, by the reduced history, and uses it from here on.

        It takes the place of the one of that id in the cluster, if that is there; others go on.
        """
        instance = self._instance(cluster)
        for collection in self._collections.values():
            if collection.computed_by(instance, replica):
                collection.attached(replica)
                self.lag.moved(collection.id, collection.steady_upper())
        views = tuple(c.id for c in self._collections.values() if c.role is Role.VIEW)
        instance.attach(replica, client, self._tokens, views)
        self._peeks.attached(instance, replica)

    def update_configuration(
        self, parameters: Mapping[str, str], replica: str = FIRST_REPLICA, cluster: str = FIRST_CLUSTER
    ) -> None:
        """Sets parameters of a replica's processes, the present ones and later ones.

        42704 for an unknown name, 22023 for a value that is none of its.
        """
        check_process_settings(parameters)
        if parameters:
            self._instance(cluster).replica(replica).send(UpdateConfiguration(dict(parameters)))

    def forget_replica(self, replica: str, cluster: str = FIRST_CLUSTER) -> list[Event]:
        """There is no such replica any more: others answer what it was asked, or nobody does, which is 58000."""
        events = self.give_up_replica(_DROPPED, replica, cluster)
        self._instance(cluster).replicas.pop(replica, None)
        return events

    def replicas(self, cluster: str = FIRST_CLUSTER) -> tuple[str, ...]:
        """Those that are attached, in the order in which they came."""
        return tuple(self._instance(cluster).attached)

    # -- collections ----------------------------------------------------------------------------------------------

    def create_table(
        self,
        id: str,
        types: tuple[SqlType, ...],
        *,
        key: tuple[int, ...] | None,
        names: Sequence[str],
        table: str,
        constraint: str,
        at: Time,
    ) -> None:
        """An empty table, readable from ``at``; see ``TableStore.create_table``."""
        self._store.create_table(id, types, key=key, names=names, table=table, constraint=constraint, at=at)
        self._collections[id] = CollectionState(id, Role.TABLE, at)

    def create_dataflow(
        self,
        description: DataflowDescription,
        *,
        as_of: Time | None = None,
        cluster: str = FIRST_CLUSTER,
        replica: str | None = None,
    ) -> Time:
        """Runs the dataflow in the cluster, from ``as_of`` or from the newest time at which its inputs are complete.

        ``replica``: the only one that runs it, and that is asked for what it exports; None: all of them do.  A read of
        logs is the first one's, since what one replica tells is not what another one does.
        Returns the as_of taken; the description's own is ignored.  Its exports become collections; a materialized
        view's storage is created with it.  Raises 22023 if ``as_of`` is below the since of an input.
        """
        instance = self._instance(cluster)
        imports = list(dict.fromkeys(i.id for i in description.imports))
        self._check_reachable(imports, instance, cluster)
        if replica is None and any(map(is_log, imports)):
            replica = instance.first()
        holds = self.acquire_holds(imports, as_of)
        # Held first, then chosen: commits go on meanwhile, and since follows them.
        at = self.choose_as_of(imports, holds.since()) if as_of is None else as_of
        holds.downgrade(Frontier(at))
        # Where a read of logs is rendered does not only decide who waits: one runtime sees the logs of both.
        one_shot = self.one_shot_reads or any(map(is_log, imports))
        description = checked_shape(msgspec.structs.replace(description, as_of=at), one_shot_reads=one_shot)
        try:
            self._create_views(description, at)
        except BaseException:
            holds.close()
            raise
        state = DataflowState(
            description, {e.id for e in description.exports}, instance, replica, imports=list(holds.holds)
        )
        self._dataflows.append(state)
        told = instance.told(replica)
        moved_by = self._moved_by(description)
        for export in description.exports:
            collection = CollectionState(export.id, _ROLES[type(export)], at, state, since=Frontier(at))
            collection.uppers = dict.fromkeys(told, Frontier(MIN_TIME))
            collection.moved_by = moved_by
            self._collections[export.id] = collection
            if not is_transient(export.id):
                self.lag.follow(export.id, cluster, moved_by, imports)
        instance.send(CreateDataflow(description), replica)
        self._keep_sealed(imports, instance)
        for export in description.exports:
            instance.send(Schedule(export.id), replica)
            if isinstance(export, ExportMaterializedView):
                instance.send(AllowWrites(export.id), replica)
        return at

    def _check_reachable(self, imports: Iterable[str], instance: Instance, cluster: str) -> None:
        """Invariant I8."""
        for id in imports:
            dataflow = self._collection(id).dataflow
            if dataflow is not None and dataflow.instance is not instance and not self._collection(id).role.stored:
                raise make_error("XX000", f"index {id} is not one of cluster {cluster}")

    def _moved_by(self, description: DataflowDescription) -> frozenset[str]:
        """The tables whose every commit moves what the dataflow exports."""
        found: set[str] = set()
        for id in {i.id for i in description.imports} - passed_by(description):
            found |= {id} if self._collections[id].role is Role.TABLE else self._collections[id].moved_by
        return frozenset(found)

    def _keep_sealed(self, imports: Iterable[str], reader: Instance) -> None:
        """A view of quiet tables is sealed when somebody asks for it, which is heard in its own replica alone."""
        for id in imports:
            collection = self._collections[id]
            dataflow = collection.dataflow
            if dataflow is not None and dataflow.instance is not reader and not collection.kept_sealed:
                collection.kept_sealed = True
                dataflow.instance.send(KeepSealed(id), dataflow.replica)

    def _create_views(self, description: DataflowDescription, as_of: Time) -> None:
        for export in description.exports:
            if export.id in self._collections:
                raise make_error("XX000", f"collection {export.id} exists already")
        for export in description.exports:
            if isinstance(export, ExportMaterializedView):
                self._store.create_view(export.id, export.types, names=(), view=description.name, as_of=as_of)

    def choose_as_of(self, imports: Iterable[str], since: Frontier) -> Time:
        """The newest time at which every import is complete, or ``since``, from which all are readable."""
        upper = min((self.upper(id) for id in imports), default=Frontier(MIN_TIME))
        complete = since if upper == EMPTY else upper - 1
        return Time(max(since, complete))

    def readable_from(self, ids: Iterable[str], at: Time) -> Time:
        """``at``, or the time from which all of them are readable if that is later."""
        return Time(max([at, *(self.since(id) for id in ids)]))

    def drop(self, id: str) -> None:
        """Drops a collection of any role as soon as nobody holds it any more.  Unknown ids are ignored."""
        collection = self._collections.get(id)
        if collection is not None:
            if not collection.dropped:
                collection.dropped, collection.dropped_at = True, next(self._tokens)
                self.lag.leave(id)
            self._finish_drop(collection)

    def _finish_drop(self, collection: CollectionState) -> None:
        if not collection.dropped or collection.holds or self._collections.get(collection.id) is not collection:
            return
        oldest = next(iter(self._stored_holds), None)
        if collection.role.stored and oldest is not None and oldest < collection.dropped_at:
            self._put_off[collection] = None
            return
        self._put_off.pop(collection, None)
        del self._collections[collection.id]
        if collection.dataflow is not None:
            self._send(collection.dataflow, AllowCompaction(collection.id, EMPTY))
        if collection.role.stored:
            self._store.drop(collection.id)
        dataflow = collection.dataflow
        if dataflow is not None:
            dataflow.exports.discard(collection.id)
            if dataflow.exports:
                self._settle_imports(dataflow)
            else:
                self._dataflows.remove(dataflow)
                self._leave(collection, dataflow)

    @staticmethod
    def _send(dataflow: DataflowState, command: AllowCompaction) -> None:
        dataflow.instance.send(command, dataflow.replica)

    def _leave(self, last: CollectionState, dataflow: DataflowState) -> None:
        """Gives the imports of a dropped dataflow back, once replicas have caught up with the drop (I5)."""
        behind = [replica for replica, upper in last.uppers.items() if upper < EMPTY]
        kept = [h for h in dataflow.imports if behind and self._collections[h.id].role.stored]
        leaving = Leaving(dataflow.description.dataflow_class, kept, set(behind))
        for replica in behind:
            dataflow.instance.attached[replica].leaving[last.id] = leaving
        for hold in dataflow.imports:
            if hold not in kept:
                hold.close()

    def exists(self, id: str) -> bool:
        """Whether ``id`` is a collection that has not been dropped."""
        collection = self._collections.get(id)
        return collection is not None and not collection.dropped

    def readable(self, id: str) -> tuple[Frontier, Frontier] | None:
        """See ``Collections``."""
        collection = self._collections.get(id)
        if collection is None or collection.dropped:
            return None
        if collection.role.stored:
            return self._store.since(id), self._store.upper(id)
        return collection.since, EMPTY if collection.role is Role.LOG else collection.upper

    def since(self, id: str) -> Frontier:
        """The oldest readable time."""
        collection = self._collection(id)
        if collection.role is Role.LOG:
            return Frontier(MIN_TIME)
        return self._store.since(id) if collection.role.stored else collection.since

    def upper(self, id: str) -> Frontier:
        """Every time below it is sealed; never regresses."""
        collection = self._collection(id)
        if collection.role is Role.LOG:
            return EMPTY
        return self._store.upper(id) if collection.role.stored else collection.upper

    def hydrated(self, id: str) -> bool:
        """Whether a replica that is there holds the collection's state; always true of tables."""
        collection = self._collection(id)
        return collection.role in (Role.TABLE, Role.LOG) or collection.hydrated()

    def hydrated_on(self, id: str, replica: str) -> bool:
        """As ``hydrated``, of one replica."""
        collection = self._collection(id)
        return collection.role in (Role.TABLE, Role.LOG) or collection.hydrated_on(replica)

    def building(self, clusters: Iterable[str] = (FIRST_CLUSTER,)) -> list[str]:
        """Indexes and materialized views of statements, kept in these clusters, that no replica holds the state of yet;
        newest first.
        """
        kept, instances = (Role.INDEX, Role.VIEW), {self._instance(id) for id in clusters}
        return [
            c.id
            for c in reversed(self._collections.values())
            if c.role in kept and c.dataflow is not None and c.dataflow.instance in instances
            if not c.dropped and not is_transient(c.id) and not c.hydrated()
        ]

    def built_on(self, id: str) -> list[str]:
        """The collection and those that dataflows compute from it, through others too.  O(dataflows)."""
        found = {id: None}
        for dataflow in self._dataflows:  # each is younger than what it imports
            if any(i.id in found for i in dataflow.description.imports):
                found.update(dict.fromkeys(dataflow.exports))
        return list(found)

    def asked_of(self, ids: Iterable[str]) -> list[str]:
        """Uuids of the peeks of these collections that are not answered."""
        return self._peeks.of(frozenset(ids))

    def as_of(self, id: str) -> Time:
        """The time from which the collection was computed, or at which the table was created."""
        return self._collection(id).as_of

    def _collection(self, id: str) -> CollectionState:
        collection = self._collections.get(id)
        if collection is None:
            raise make_error("XX000", f"collection {id} does not exist")
        return collection

    # -- holds ----------------------------------------------------------------------------------------------------

    def acquire_hold(self, id: str, at: Time | None = None) -> ReadHold:
        """Keeps ``id`` readable from ``at`` (None: from its since) on.  Raises 22023 if that is gone already."""
        collection = self._collection(id)
        since = self.since(id)
        if at is not None and at < since:
            raise NoLongerReadableError.at(at, since)
        hold = ReadHold(self, id, next(self._tokens), since if at is None else Frontier(at))
        if collection.role.stored:
            # Storage compacts on threads of its own: without a time it takes the since of that very moment.
            storage_hold = self._store.hold(id, None if at is None else hold.since)
            hold.since = storage_hold.since
            collection.storage_holds[hold.token] = storage_hold
        if collection.role is not Role.LOG:  # whose snapshots need no hold
            collection.holds[hold.token] = hold.since
        return hold

    def acquire_holds(self, ids: Iterable[str], at: Time | None = None) -> ReadHolds:
        """Holds on all ``ids``, or on none if one raises."""
        holds: list[ReadHold] = []
        try:
            for id in ids:
                holds.append(self.acquire_hold(id, at))
        except BaseException:
            for hold in holds:
                hold.close()
            raise
        return ReadHolds(holds)

    def hold_stored(self) -> StoredHold:
        """Keeps everything stored readable from its since on, until it is downgraded, and from going away.  O(1)."""
        hold = StoredHold(self, next(self._tokens), self._store.hold_all())
        self._stored_holds[hold.token] = None
        return hold

    def end_stored_hold(self, hold: StoredHold) -> None:
        """For ``StoredHold`` only.  O(drops that were put off)."""
        del self._stored_holds[hold.token]
        for collection in list(self._put_off):
            self._finish_drop(collection)

    def move_hold(self, hold: ReadHold) -> None:
        """For ``ReadHold`` only."""
        collection = self._collections.get(hold.id)
        if collection is None or hold.token not in collection.holds:
            return
        collection.holds[hold.token] = hold.since
        if hold.token in collection.storage_holds:
            collection.storage_holds[hold.token].downgrade(hold.since)
        self._compact(collection)

    def end_hold(self, hold: ReadHold) -> None:
        """For ``ReadHold`` only."""
        collection = self._collections.get(hold.id)
        if collection is None:
            return
        collection.holds.pop(hold.token, None)
        storage_hold = collection.storage_holds.pop(hold.token, None)
        if storage_hold is not None:
            storage_hold.close()
        self._finish_drop(collection)
        self._compact(collection)

    def _compact(self, collection: CollectionState) -> None:
        """Moves the since of a computed collection after its upper, in steps of half the retention."""
        dataflow = collection.dataflow
        if dataflow is None or self._collections.get(collection.id) is not collection:
            return
        target = collection.compaction_target(self._retention_us)
        if target <= collection.since or target - collection.since < self._retention_us // 2:
            return
        collection.since = target
        self._send(dataflow, AllowCompaction(collection.id, target))
        self._settle_imports(dataflow)

    def _settle_imports(self, dataflow: DataflowState) -> None:
        since = min(self._collections[id].since for id in dataflow.exports)
        for hold in dataflow.imports:
            hold.downgrade(since)

    # -- reads ----------------------------------------------------------------------------------------------------

    def peek(
        self,
        target: str,
        time: Time,
        mfp: Mfp,
        *,
        key_types: tuple[SqlType, ...] = (),
        keys: tuple[tuple[LiteralValue, ...], ...] | None = None,
        limit: int | None = None,
        order: tuple[SortKey, ...] = (),
        bounds: ReadBounds = UNBOUNDED,
        cluster: str = FIRST_CLUSTER,
        replica: str | None = None,
    ) -> str:
        """Asks for index ``target`` at ``time``; the answer comes as ``PeekAnswered`` with the uuid returned here.

        Raises 22023 if ``time`` is below the index's since; a time not yet sealed is waited for.
        ``cluster``: whose log it is; any other index knows its own.
        ``replica``: the only one that is asked; None: the one that has the index for itself, or all of them, or the
        first one for a log.
        """
        hold = self.acquire_hold(target, time)
        uuid = f"p{next(self._tokens)}"
        dataflow = self._collections[target].dataflow
        instance = self._instance(cluster) if dataflow is None else dataflow.instance
        if replica is None:
            replica = instance.first() if dataflow is None else dataflow.replica
        command = Peek(target, uuid, time, key_types, keys, mfp, limit, order, bounds)
        self._peeks.begin(instance, command, hold, replica)
        return uuid

    def withdraw_peek(self, uuid: str) -> None:
        """Nobody is there who was asked, and whoever comes later is not to be: it is answered by its owner."""
        self._peeks.withdraw(uuid)

    def cancel_peek(self, uuid: str) -> None:
        """The peek is answered as canceled unless its answer is on its way."""
        self._peeks.cancel(uuid)

    # -- responses ------------------------------------------------------------------------------------------------

    def process_response(
        self, response: Response, replica: str = FIRST_REPLICA, cluster: str = FIRST_CLUSTER
    ) -> list[Event]:
        """Takes one response of a replica.  Late ones about what is dropped are ignored, and what one that was lost or
        given up says on its way out, which ends nothing that others go on with.
        """
        if not isinstance(response, Status) and replica not in self._instance(cluster).attached:
            return []
        self.lag.heard(cluster)
        match response:
            case Frontiers():
                return self._frontier(response, replica, cluster)
            case PeekResponse():
                return [PeekAnswered(response)] if self._peeks.answered(response, replica) else []
            case SubscribeResponse():
                return self._subscription_changed(response)
            case Status():
                if response.fatal:
                    failed = ReplicaFailed(response.message, replica, cluster)
                    return [*self.give_up_replica(_LOST, replica, cluster), failed]
                _log.warning("replica: %s", response.message)
                return []

    def _frontier(self, response: Frontiers, replica: str, cluster: str) -> list[Event]:
        state = self._instance(cluster).attached.get(replica)
        if response.upper == EMPTY and state is not None:
            state.left(response.id)
        collection = self._collections.get(response.id)
        if collection is None or state is None:
            return []
        upper = Frontier(response.upper)
        if collection.role is Role.LOG:
            state.log_sealed(response.id, upper, self._retention_us)
            return []
        events: list[Event] = []
        if upper > collection.upper:
            collection.upper = upper
            events.append(FrontierMoved(response.id, upper))
        if collection.reported(replica, upper):
            events.append(Hydrated(response.id))
        self.lag.moved(response.id, collection.steady_upper())
        self._compact(collection)
        return events

    def _subscription_changed(self, response: SubscribeResponse) -> list[Event]:
        collection = self._collections.get(response.id)
        rest = None if collection is None else not_passed(response, collection.passed)
        if collection is None or rest is None:
            return []
        collection.passed = Frontier(rest.upper)
        return [SubscriptionChanged(rest)]

    def give_up_replica(self, why: Error, replica: str = FIRST_REPLICA, cluster: str = FIRST_CLUSTER) -> list[Event]:
        """The replica is not there until it is attached again: what it alone was asked fails with ``why``.

        Without any other one that is everything, and what only served a statement is forgotten.
        """
        instance = self._instance(cluster)
        state = instance.replica(replica)
        instance.lose(state)
        its = [c for c in self._collections.values() if c.computed_by(instance, replica)]
        for collection in its:  # before anything is given back, which may end the last hold of another one
            collection.lost(replica)
            self.lag.moved(collection.id, collection.steady_upper())
        state.left_all()
        events: list[Event] = [PeekAnswered(answer) for answer in self._peeks.lost(instance, replica, why)]
        for collection in its:
            its_own = collection.dataflow is not None and collection.dataflow.replica is not None
            if instance.attached and not its_own:
                self._compact(collection)  # nobody waits for the one that is gone
                continue
            if collection.role is Role.SUBSCRIPTION:
                told = why.sqlstate, why.message, why.detail
                ended = SubscribeResponse(collection.id, collection.upper, EMPTY, error=told, hint=why.hint)
                events.append(SubscriptionChanged(ended))
            if is_transient(collection.id) or collection.role is Role.SUBSCRIPTION:
                self.drop(collection.id)
        return events
