"""What must hold after every step of a simulated database, looked at from outside the code that keeps it so.

The numbers are those of the design's invariants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.log_rows import LogRow, dataflow_rows
from eddyline.compute.pair import Pair
from eddyline.compute.sharing import LOG_INCARNATION, Slot
from eddyline.compute.worker import Worker
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.protocol.logs import ACTIVE_PEEKS, LOGS, PEEK_DURATIONS
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Time
from eddyline.testing.simulation.reads import readers
from eddyline.testing.simulation.recompute import bag_of
from eddyline.testing.simulation.starts import Starts, require
from eddyline.testing.simulation.world import SimulationError, World
from eddyline.trace.trace import Trace

__all__ = ["Invariants"]

_REEXPORT_OPERATORS = 2


@dataclass(slots=True)
class _Seen:
    """The bounds of a slot when it was looked at last."""

    upper: int
    since: int


@dataclass(slots=True)
class _Replica:
    """What is remembered of one replica."""

    pair: Pair
    slots: dict[Slot, _Seen] = field(default_factory=dict)
    #: compactions that one runtime had taken and the other had not
    gaps: set[tuple[str, str, int]] = field(default_factory=set)
    #: reconnections whose first runtime is known
    first: set[int] = field(default_factory=set)
    #: per incarnation of an index, the as_of that the commands gave it, as far as it has been compacted
    as_ofs: dict[tuple[str, int], int] = field(default_factory=dict)
    recreated: set[tuple[str, int]] = field(default_factory=set)


class Invariants:
    def __init__(self, world: World) -> None:
        self._world = world
        #: of each process of the present replica
        self._replicas: dict[Pair, _Replica] = {}
        self._starts = Starts(world)

    def after_step(self, driven: int) -> None:
        """After a step of the worker or lane ``driven``: of its ordinal in its process.  Nothing after a delivery."""
        if driven >= len(self._world.units):
            return
        unit = self._world.units[driven]
        pair, ordinal = unit.host, unit.ordinal
        self._starts.after_step(unit.driven)
        if not isinstance(pair, Pair) or pair.failed:
            return
        replica = self._replicas.get(pair)
        if replica is None:
            self._replicas = {p: r for p, r in self._replicas.items() if p in self._world.hosts}
            replica = self._replicas[pair] = _Replica(pair)
        maintainer = cast(Worker, pair.maintenance._commanded[ordinal])
        reader = readers(pair)[ordinal]
        self._peers(maintainer, reader)
        self._slots(ordinal, replica)
        self._placeholders(reader)
        self._positions(maintainer, reader, replica)
        self._reconciliations(ordinal, maintainer, reader, replica)
        self._wake_ups(maintainer, reader)

    # -- one ordinal

    @staticmethod
    def _peers(maintainer: Worker, reader: InteractiveWorker) -> None:
        for side, peers, own in (
            ("maintenance", maintainer._peers, maintainer._exporters.keys()),
            ("interactive", reader._peers | reader.traces.keys(), reader.lane._exporters.keys()),
        ):
            require(not peers & own, "i11", f"{side} renders its peers {sorted(peers & own)}")
        require(not reader.lane._peers, "i11", "peers in the lane")
        require(not reader.lane._slots, "i11", "the interactive runtime publishes")

    def _slots(self, ordinal: int, replica: _Replica) -> None:
        for (id, _), slot in replica.pair.registries[ordinal]._slots.items():
            upper, since = slot.frontier(), slot.since
            seen = replica.slots.get(slot)
            if seen is None:
                replica.slots[slot] = _Seen(upper, since)
                continue
            require(upper >= seen.upper, "i17", f"the frontier of {id} goes from {seen.upper} to {upper}")
            require(since >= seen.since, "i05", f"the since of {id} goes from {seen.since} to {since}")
            seen.upper, seen.since = upper, since
            snapshot = slot.oks.snapshot()
            newest = max((run.upper for run in snapshot.runs if run.upper != EMPTY), default=0)
            # A run of an open time, whose rows readers pass over, may be past the frontier by that one time.
            require(newest <= max(upper, snapshot.upper), "i09", f"runs of {id} reach past its frontier")
            if not slot.oks.attached:
                require(upper == since == 0, "i08", f"the placeholder of {id} says [{since}, {upper})")

    @staticmethod
    def _placeholders(reader: InteractiveWorker) -> None:
        """Reads that wait over a slot; their time stays readable until they are bound."""
        for waiting in reader._imports:
            require(waiting.slot.since <= waiting.time, "i01", f"{waiting.export} at {waiting.time} lost its input")
            require(waiting.hold.since <= waiting.time, "i05", f"the hold of {waiting.export} has risen")

    def _wake_ups(self, maintainer: Worker, reader: InteractiveWorker) -> None:
        """Whoever sleeps has nothing to do, or is about to be woken: a re-export moves before it is announced, and what
        it re-exports may have yet to say so.
        """
        if reader.inbox._awake or not any(self._world.units[n].driven is reader for n in self._world.parked):
            return
        awaited = [(w.slot, w.time) for w in reader._imports]
        for peek in [w.peek for w in reader.peeks.waiting.values()]:
            if peek.target in reader.traces:
                awaited.append((reader.traces[peek.target].arrangement, Time(peek.time)))
        for slot, time in awaited:
            owner = maintainer._exporters.get(slot.id)
            announced = owner is None or not any(d.scheduled for d in (owner, *owner.upstream))
            require(not announced or slot.frontier() <= time, "i13", f"the reader sleeps on {slot.id} at {time}")

    def _positions(self, maintainer: Worker, reader: InteractiveWorker, replica: _Replica) -> None:
        """A trace compacts only as far as the slower runtime has come."""
        world = self._world
        for id, peer in reader.traces.items():
            slot = peer.arrangement
            require(slot.since <= peer.since, "i02", f"{id} compacted to {slot.since}, its reader is at {peer.since}")
            own = maintainer._indexes.get(id)
            if own is None or not slot.oks.attached:
                continue
            if own.since != peer.since:
                who = "owner" if own.since > peer.since else "reader"
                gap = (who, id, max(own.since, peer.since))
                world.coverage[f"compaction: {who} ahead"] += gap not in replica.gaps
                replica.gaps.add(gap)
        waiting = {w.export for w in reader._imports if not w.slot.oks.attached}
        for read in world.reads.values():
            if read.transient in waiting:
                read.over_placeholder = True
        for peek in [w.peek for w in reader.peeks.waiting.values()]:
            target = reader.traces.get(peek.target)
            if target is not None and not target.arrangement.oks.attached and peek.uuid in world.reads:
                world.reads[peek.uuid].over_placeholder = True

    def _reconciliations(self, ordinal: int, maintainer: Worker, reader: InteractiveWorker, replica: _Replica) -> None:
        one, other = maintainer.connection.ledger, reader.connection.ledger
        if one.reconciliations == other.reconciliations:
            if maintainer.connection.settled and reader.connection.settled:
                self._incarnations(reader, replica)
            return
        number = max(one.reconciliations, other.reconciliations)
        if number not in replica.first and ordinal == 0:
            replica.first.add(number)
            who = "maintenance" if one.reconciliations > other.reconciliations else "interactive"
            self._world.coverage[f"reconnect: {who} first"] += 1

    def _incarnations(self, reader: InteractiveWorker, replica: _Replica) -> None:
        """A peer is bound to the incarnation that the commands say, whichever runtime came first."""
        for id, peer in reader.traces.items():
            if is_log(id):
                require(peer.arrangement.incarnation == LOG_INCARNATION, "i15", f"{id} is a log, and began anew")
                continue
            entry, number = reader.connection.ledger._entries[id], reader.connection.ledger.incarnation(id)
            incarnation = peer.arrangement.incarnation
            require(incarnation == number, "i15", f"{id} reads incarnation {incarnation} and should {number}")
            replica.as_ofs[id, number] = entry.since[id]
            if number > 1 and (id, number) not in replica.recreated:
                replica.recreated.add((id, number))
                self._world.coverage["recreation"] += 1
                equal = replica.as_ofs.get((id, number - 1)) == entry.description.as_of
                self._world.coverage["recreation: equal as_of"] += equal

    # -- the whole

    def of_controller(self) -> None:
        """An input stays readable where each dataflow may be built anew (i01), and nothing reported is missing."""
        controller, store = self._world.controller, self._world.store
        for dataflow in controller._dataflows:
            at = min(controller._collections[id].since for id in dataflow.exports)
            for imported in dataflow.description.imports:
                since = controller.since(imported.id)
                require(since <= at, "i01", f"{dataflow.description.name} at {at} imports {imported.id} from {since}")
                if imported.id in store:
                    require(store.since(imported.id) <= at, "i01", f"storage of {imported.id} is past {at}")

    def of_holds(self) -> None:
        """With no read open, nobody holds a collection but the dataflows that import it: nothing pins it for ever."""
        controller = self._world.controller
        imported = Counter(id for d in controller._dataflows for id in {i.id for i in d.description.imports})
        for id, collection in controller._collections.items():
            holds = len(collection.holds)
            require(holds == imported[id], "i18", f"{id} has {holds} holds for {imported[id]} dataflows")
            if collection.role.stored:
                stored = len(self._world.store._collections[id].holds)
                require(stored == holds, "i18", f"{id} has {stored} holds in storage for {holds}")

    def of_logs(self) -> None:
        """Sealed, the logs say of dataflows what a look at each worker and lane says."""
        for unit in [u.driven for u in self._world.units]:
            log = unit.log.log if isinstance(unit, Worker) else None
            if not isinstance(unit, Worker) or log is None:
                continue
            log.seal(everything=True)
            expected: Counter[LogRow] = Counter()
            for dataflow in unit._agenda:
                rows = dataflow_rows(dataflow, log.hydrated_ns(dataflow), unit.index, unit.role)
                expected.update((log_id, *row) for log_id, its in rows.items() for row in its)
            found: Counter[LogRow] = Counter()
            for each in LOGS:
                if each not in (ACTIVE_PEEKS, PEEK_DURATIONS):
                    batch = log.part(each.id).rows(Time(0))
                    columns = zip(*(c.to_pylist() for c in batch.columns), strict=True)
                    for row, count in zip(columns, batch.diffs.tolist(), strict=True):
                        found[each.id, *row] += count
            require(found == expected, "log", f"{found - expected} is told, and {expected - found} is the case")

    def of_compaction(self) -> None:
        """At rest, both runtimes have come as far as the controller, and so has every trace that nothing else reads."""
        controller = self._world.controller
        computing = [d.description for d in controller._dataflows if len(d.description.operators) > _REEXPORT_OPERATORS]
        busy = {i.id for d in computing for i in d.imports}
        for reader in [r for pair in self._world.pairs for r in readers(pair)]:
            positions: dict[Trace, list[tuple[str, int]]] = {}
            for id, peer in reader.traces.items():
                trace = peer.arrangement.oks._trace
                if is_log(id):  # of which a new connection's controller knows nothing at first
                    told = controller._instances[FIRST_CLUSTER].replicas[FIRST_REPLICA].logs.get(id, MIN_TIME)
                    require(peer.since >= told, "i03", f"the reader of {id} is at {peer.since}, and was told {told}")
                    continue
                told = controller._collections[id].since
                require(peer.since == told, "i03", f"the reader of {id} is at {peer.since}, and was told {told}")
                if trace is None:
                    raise SimulationError(f"{id} is not published at rest")
                positions.setdefault(trace, []).append((id, told))
            for trace, aliases in positions.items():
                least = min(told for _, told in aliases)
                free = not busy & {id for id, _ in aliases}
                require(not free or trace.since == least, "i18", f"{aliases} compact to {trace.since} only")

    def of_publication(self) -> None:
        """What an index publishes is what a recompute gives, at a time that all workers have sealed."""
        world = self._world
        if not world.pairs or world.replica.failed or not world.indexes:
            return
        index = world.rng.choice(list(world.indexes.values()))
        maintainers = [cast(Worker, w) for pair in world.pairs for w in pair.maintenance._commanded]
        slots = [s for s in (w._slots.get(index.id) for w in maintainers) if s is not None]
        if len(slots) < len(maintainers):
            return
        sealed = min(s.frontier() for s in slots)
        since = max(s.since for s in slots)
        reported = world.controller._collections[index.id].uppers.get(FIRST_REPLICA, MIN_TIME)
        # One that may not run yet reports its as_of, below which there is nothing.
        honest = max(sealed, world.controller.as_of(index.id))
        require(reported <= honest, "i09", f"{index.id} was reported sealed below {reported}, and is below {sealed}")
        at = world.now if sealed == EMPTY else sealed - 1
        expected = world.recompute.answer(index.definition, at)
        if at < since or isinstance(expected, str):
            return
        found = bag_of([s.oks.snapshot().read_at(Time(at)) for s in slots])
        require(found == expected, "i09", f"{index.id} at {at} publishes {found}, expected {expected}")
