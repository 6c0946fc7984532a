"""What the clients of a simulated database do: definitions, writes, drops, holds, and what happens to connections."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.controller.events import PeekAnswered
from eddyline.controller.instance import FIRST_CLUSTER
from eddyline.plan.dataflow import Arrange, DataflowDescription, ExportIndex, ImportIndex, ImportSource, Operator
from eddyline.plan.facts import IndexFacts
from eddyline.plan.lower import lower_index, lower_materialized_view
from eddyline.plan.relation import Get, Relation
from eddyline.plan.traverse import gets
from eddyline.protocol.messages import Status
from eddyline.repr.time import EMPTY, MIN_TIME, Time
from eddyline.testing.interpret import Row
from eddyline.testing.process_group import ProcessGroup
from eddyline.testing.simulation.companion import SECOND_CLUSTER
from eddyline.testing.simulation.definitions import PAIR, Definition, defined
from eddyline.testing.simulation.linearizability import Write
from eddyline.testing.simulation.reads import cancel, cancel_read, lookup_now, read_index, read_one_shot, take_answer
from eddyline.testing.simulation.world import Index, World, rows_batch

__all__ = [
    "ACTIONS",
    "COMPANION_ACTIONS",
    "NEIGHBOUR_ACTIONS",
    "PROCESS_ACTIONS",
    "Action",
    "close_time",
    "commit",
    "companion_comes",
    "create_table",
    "drop",
    "neighbour_comes",
    "restart",
    "tell_processes",
    "wait_idle",
]

Action = Callable[[World], None]

_MOST_TABLES = 3
_MOST_OBJECTS = 9
_MOST_ROWS = 10
_KEYS = ((0,), (0,), (1,), (0, 1), ())


# -- tables and writes


def create_table(world: World) -> None:
    if len(world.tables) >= _MOST_TABLES:
        return
    id = world.fresh()
    world.controller.create_table(id, PAIR, key=None, names=("k", "v"), table=id, constraint="", at=Time(world.now))
    world.tables[id] = Definition(Get(id, PAIR), (id,))
    world.recompute.create(id, world.now)
    world.note(f"table {id}")


def write(world: World) -> None:
    """One to three rows come, some that are there go, in one or two tables at once."""
    rng = world.rng
    chosen = rng.sample(list(world.tables), min(len(world.tables), rng.choice((1, 1, 2))))
    commit(world, {id: _changes(world, id) for id in chosen})


def _changes(world: World, id: str) -> tuple[list[Row], list[int]]:
    rng = world.rng
    there = list(world.recompute.latest(id).elements())
    gone = rng.sample(there, min(len(there), rng.choice((0, 0, 1, 2, 4 if len(there) > _MOST_ROWS else 1))))
    new: list[Row] = [
        (rng.randrange(4), None if rng.random() < 0.05 else rng.randrange(6))
        for _ in range(rng.choice((0, 1, 1, 2, 3)))
    ]
    return [*new, *gone], [1] * len(new) + [-1] * len(gone)


def commit(world: World, changes: dict[str, tuple[list[Row], list[int]]]) -> None:
    world.now += world.rng.choice((1, 1, 1, 2))
    world.store.append({id: rows_batch(*c) for id, c in changes.items()}, Time(world.now))
    for id, (rows, diffs) in changes.items():
        world.recompute.write(id, rows, diffs, world.now)
    late = world.rng.choice((0, 0, 3, 10))
    world.writes.append(Write(world.step, world.step + late))
    world.write_times.append(world.now)
    world.note(f"commit {world.now}: {changes}")


def close_time(world: World) -> None:
    commit(world, {})


# -- definitions


def _inputs(world: World) -> dict[str, Definition]:
    return world.objects()


def _facts(world: World, relation_inputs: dict[str, Definition]) -> list[IndexFacts]:
    """The indexes that a plan uses: all that an indexed view has, of others some."""
    stored = world.tables.keys() | world.views.keys()
    found = [
        IndexFacts(i.id, i.on, i.key, PAIR)
        for i in world.indexes.values()
        if i.on in relation_inputs and (i.on not in stored or world.rng.random() < 0.7)
    ]
    world.rng.shuffle(found)
    return found


def plan(world: World) -> tuple[Relation, Definition, list[IndexFacts]] | None:
    inputs = _inputs(world)
    made = defined(world.rng, inputs)
    return None if made is None else (*made, _facts(world, inputs))


def _room(world: World) -> bool:
    return len(world.indexes) + len(world.views) < _MOST_OBJECTS


def _described(name: str, operators: tuple[Operator, ...]) -> DataflowDescription:
    return DataflowDescription(name, operators, 0, EMPTY)


def create_index(world: World) -> None:
    """Of a stored object as it is, or of a view."""
    planned = plan(world)
    if planned is None or not _room(world):
        return
    relation, definition, facts = planned
    id, key = world.fresh(), world.rng.choice(_KEYS)
    on = world.fresh()
    if world.rng.random() < 0.5 and world.tables:
        on = world.rng.choice([*world.tables, *world.views])
        relation, definition = Get(on, PAIR), world.objects()[on]
        facts = [f for f in facts if world.rng.random() < 0.3]
    operators = lower_index(relation, id, on, key, facts)
    at = world.controller.create_dataflow(_described(on, operators))
    world.indexes[id] = Index(id, on, key, definition)
    world.note(f"index {id} on {on} {key} at {at} over {sorted(i.id for i in _described(on, operators).imports)}")


def create_view(world: World) -> None:
    planned = plan(world)
    if planned is None or not _room(world):
        return
    relation, definition, facts = planned
    id, cluster = world.fresh(), FIRST_CLUSTER
    reads = gets(relation)
    if world.neighbour is not None and reads <= world.tables.keys() | world.views.keys() and world.rng.random() < 0.6:
        cluster, facts = SECOND_CLUSTER, []
        world.apart.add(id)
        over = reads & (world.views.keys() - world.apart)
        world.coverage["clusters: a view of the second over one of the first"] += bool(over)
    operators = lower_materialized_view(relation, id, facts)
    at = world.controller.create_dataflow(_described(id, operators), cluster=cluster)
    world.views[id] = definition
    world.written[id] = MIN_TIME
    world.note(f"materialized view {id} at {at} in cluster {cluster}")


def create_reexport(world: World) -> None:
    """An index that is another's arrangement."""
    if not world.indexes or not _room(world):
        return
    of, id = world.rng.choice(list(world.indexes.values())), world.fresh()
    operators = (ImportIndex(of.id, PAIR, of.key), ExportIndex(id, of.on, 0, of.key, PAIR))
    at = world.controller.create_dataflow(_described(of.on, operators))
    world.indexes[id] = Index(id, of.on, of.key, of.definition)
    world.note(f"re-export {id} of {of.id} at {at}")


def create_twins(world: World) -> None:
    """Two indexes of one dataflow: dropping one makes a reconnect build the other anew."""
    if not world.tables or not _room(world):
        return
    on = world.rng.choice([*world.tables, *world.views])
    one, other = world.fresh(), world.fresh()
    operators = (
        ImportSource(on, PAIR),
        Arrange(0, (0,), PAIR),
        ExportIndex(one, on, 1, (0,), PAIR),
        Arrange(0, (1,), PAIR),
        ExportIndex(other, on, 3, (1,), PAIR),
    )
    at = world.controller.create_dataflow(_described(on, operators))
    definition = world.objects()[on]
    world.indexes[one] = Index(one, on, (0,), definition)
    world.indexes[other] = Index(other, on, (1,), definition)
    world.note(f"twins {one} and {other} on {on} at {at}")


# -- drops and holds


def drop_index(world: World) -> None:
    """Often the newest: the replica may not have come to it."""
    if world.indexes:
        ids = list(world.indexes)
        drop(world, ids[-1] if world.rng.random() < 0.4 else world.rng.choice(ids))


def drop_stored(world: World) -> None:
    """A table or a materialized view, seldom; its dependants keep what they hold."""
    stored = [*world.views, *(world.tables if world.rng.random() < 0.2 else ())]
    if stored:
        drop(world, world.rng.choice(stored))


def drop(world: World, id: str) -> None:
    if any(id in r.over for r in world.reads.values()):
        world.coverage["drop: under a read"] += 1
    for dependent in [i for i in world.indexes.values() if i.on == id and i.id != id]:
        drop(world, dependent.id)
    world.tables.pop(id, None)
    world.views.pop(id, None)
    world.apart.discard(id)
    world.indexes.pop(id, None)
    world.controller.drop(id)
    world.note(f"drop {id}")


def change_of_mind(world: World) -> None:
    """Something is made and dropped before the replica can have come to it, and then the tables go on."""
    if world.rng.random() < 0.5:
        before = len(world.indexes)
        create_index(world)
        if len(world.indexes) > before:
            drop(world, list(world.indexes)[-1])
    else:
        read_one_shot(world)
        for read in list(world.reads.values())[-1:]:
            if read.transient is not None and not read.canceled:
                cancel(world, read, with_drop=True)
    write(world)


def hold(world: World) -> None:
    """Keeps some collections from compacting, or lets one go on."""
    rng = world.rng
    if world.held and rng.random() < 0.6:
        holds = world.held.pop(rng.randrange(len(world.held)))
        if rng.random() < 0.3:
            holds.downgrade(holds.since())
        holds.close()
        world.note("hold closed")
        return
    ids = [*world.tables, *world.views, *world.indexes]
    if ids:
        chosen = rng.sample(ids, min(len(ids), 2))
        world.held.append(world.controller.acquire_holds(chosen))
        world.note(f"hold on {chosen}")


def switch_reads(world: World) -> None:
    """Reads are rendered as such, or maintained until they are dropped."""
    world.controller.one_shot_reads = not world.controller.one_shot_reads
    world.note(f"one-shot reads: {world.controller.one_shot_reads}")


# -- connections and failures


def let_go(world: World) -> None:
    """The replica hears some of what was kept back from it."""
    if world.attached and world.told.let_go(world.rng.choice((1, 1, 3))):
        world.note("let go")


def reconnect(world: World) -> None:
    if not world.attached or world.replica.failed:
        return
    _count(world, "reconnect")
    world.connect()
    world.note("reconnect")


def _count(world: World, what: str) -> None:
    """Something that interrupts reads, if there are any."""
    world.coverage[what] += 1
    if world.reads:
        world.coverage[f"{what}: with reads open"] += 1


def _group_at_work(world: World) -> ProcessGroup | None:
    """The replica, where it is of several processes, whose connections and processes are all there."""
    group = world.group
    return None if group is None or not world.attached or group.failed else group


def disconnect(world: World) -> None:
    """The connections to processes are lost: what waits fails, and ``restart`` makes new ones to the same processes."""
    group = _group_at_work(world)
    if group is None:
        return
    _count(world, "connection lost")
    group.disconnect()
    world.note("the connection is lost")


def lose_process(world: World) -> None:
    """A process goes without a word."""
    group = _group_at_work(world)
    if group is None:
        return
    _count(world, "process lost")
    process = world.rng.choice(group.processes)
    world.failed_on_purpose = group
    group.lose(process)
    world.note(f"process {process.process} is lost")


def wait_idle(world: World) -> None:
    """Mirrors that nobody reads come of age."""
    if world.group is not None:
        world.idle_s += world.rng.choice((5.0, 30.0, 70.0))
        for process in world.group.processes:
            if process.alive:
                process.mirrors.expire()


def crash(world: World) -> None:
    if not world.attached or world.replica.failed:
        return
    driven = world.rng.randrange(len(world.units))
    world.coverage[f"crash: {world.units[driven].kind}"] += 1
    _count(world, "crash")
    world.fail(driven)
    world.note(f"crash of {driven}")


def restart(world: World) -> None:
    """A replica in place of one that failed; new connections, where only those were lost."""
    if world.attached:
        return
    if world.group is not None and not world.group.failed:
        world.connect()
        world.note("connected again")
        return
    tell_processes(world)
    world.replica.close()
    world.start_replica()
    world.note("restart")


def tell_processes(world: World) -> None:
    """What has happened in a replica of several processes, for the coverage."""
    if world.group is not None:
        world.coverage.update(world.group.seen)
        world.group.seen.clear()


def companion_comes(world: World) -> None:
    """A second replica, which is built anew."""
    if world.companion is not None and not world.companion.there:
        world.companion.come()
        world.note("the second replica comes")


def companion_goes(world: World) -> None:
    """The second replica is lost."""
    companion = world.companion
    if companion is None or not companion.there:
        return
    companion.go()
    _count(world, "replicas: the second lost")
    world.note("the second replica is lost")
    for event in companion.process(Status("lost", fatal=True)):
        if isinstance(event, PeekAnswered):
            take_answer(world, event.response)


def neighbour_comes(world: World) -> None:
    """The replica of the second cluster, which is built anew."""
    if world.neighbour is not None and not world.neighbour.there:
        world.neighbour.come()
        world.note("the second cluster's replica comes")


def neighbour_goes(world: World) -> None:
    """The second cluster loses its replica; what reads its views waits."""
    neighbour = world.neighbour
    if neighbour is None or not neighbour.there:
        return
    neighbour.go()
    world.coverage["clusters: the second lost"] += 1
    world.note("the second cluster's replica is lost")
    neighbour.process(Status("lost", fatal=True))


#: with the relative frequency of each; a seed changes them
ACTIONS: dict[Action, float] = {
    write: 10,
    close_time: 3,
    create_table: 2,
    create_index: 5,
    create_view: 2.5,
    create_reexport: 1,
    create_twins: 1.5,
    drop_index: 2.5,
    drop_stored: 0.7,
    change_of_mind: 1,
    hold: 2,
    read_index: 8,
    read_one_shot: 6,
    lookup_now: 2,
    cancel_read: 3,
    let_go: 2,
    switch_reads: 0.3,
    reconnect: 1,
    crash: 0.4,
    restart: 4,
}
#: what happens to replicas of several processes beside it
PROCESS_ACTIONS: dict[Action, float] = {disconnect: 3, lose_process: 0.8, wait_idle: 1}
#: where there may be a second replica
COMPANION_ACTIONS: dict[Action, float] = {companion_comes: 6, companion_goes: 3}
#: where there is a second cluster
NEIGHBOUR_ACTIONS: dict[Action, float] = {neighbour_comes: 6, neighbour_goes: 3, create_view: 4}
