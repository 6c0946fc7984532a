"""What the controller does when it connects again to a replica that went on meanwhile."""

from __future__ import annotations

import pytest

from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.plan.dataflow import Arrange, DataflowClass, ExportIndex, ImportSource
from eddyline.protocol.messages import AllowCompaction, CreateDataflow
from eddyline.repr.time import EMPTY, Time
from tests.compute.runtime_harness import Harness, indexed, one_shot, pairs
from tests.controller.test_controller import TYPES, Recorder, World, describe, index

CLASSES = (DataflowClass.MAINTAINED, DataflowClass.ONE_SHOT_READ)


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("read", [True, False])
def test_what_a_dropped_dataflow_held_is_given_back_though_its_end_was_lost(interactive: bool, read: bool) -> None:
    db = Harness(1, interactive=interactive)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    description = indexed("i", "t")
    if read:
        description = one_shot("t9", db.time, *indexed("t9", "t").operators)
    db.controller.create_dataflow(description, as_of=Time(db.time))
    since = db.store.since("t")
    db.controller.drop(description.exports[0].id)
    db.commit({"t": pairs([(2, 2)])})
    assert db.store.since("t") == since, "the replica has not come to the create"
    db.solo.settle()
    while db.solo.receive(0) is not None:
        pass  # lost with the connection
    db.controller.attach_replica(db.solo)
    db.settle()
    db.commit({"t": pairs([(3, 3)])})
    assert db.store.since("t") == db.time
    db.settle()
    assert not db.solo.failed
    assert not db.controller._instances[FIRST_CLUSTER].replicas[FIRST_REPLICA].leaving


def dropped_of_both_classes() -> World:
    """An index and a read of table t at 7 that were dropped, of whose end the replica has not said anything."""
    world = World(retention_us=0)
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    operators = (ImportSource("t", TYPES), Arrange(0, (), TYPES), ExportIndex("t9", "t", 1, (), TYPES))
    read = describe("t9", *operators, until=8, dataflow_class=DataflowClass.ONE_SHOT_READ)
    world.controller.create_dataflow(read, as_of=Time(7))
    for id in ("i", "t9"):
        world.controller.drop(id)
    return world


def holds_table(world: World) -> bool:
    """Whether the next commit leaves the table readable where it was read."""
    time = int(world.store.tables_upper) + 1
    world.commit(time)
    since = int(world.store.since("t"))
    assert since in (7, time)
    return since == 7


def reconnected(world: World) -> dict[DataflowClass, str]:
    """The probes that a new connection begins with, by class."""
    replica = Recorder()
    world.controller.attach_replica(replica)
    probes = replica.commands[-4:]
    found: dict[DataflowClass, str] = {}
    for create, drop in zip(probes[::2], probes[1::2], strict=True):
        assert isinstance(create, CreateDataflow)
        (export,) = create.dataflow.exports
        assert not create.dataflow.imports, "it may read nothing: nothing is held for it"
        assert drop == AllowCompaction(export.id, EMPTY), "it is dropped at once"
        assert not world.controller.exists(export.id), "nobody can read it"
        found[create.dataflow.dataflow_class] = export.id
    assert set(found) == set(CLASSES)
    assert len(replica.dataflows()) == 2
    return found


@pytest.mark.parametrize("first", CLASSES)
def test_the_end_of_a_probe_stands_for_all_earlier_ones_of_its_class_alone(first: DataflowClass) -> None:
    world = dropped_of_both_classes()
    assert holds_table(world)
    probes = reconnected(world)
    assert holds_table(world), "nothing has been said yet"
    world.frontier(probes.pop(first), EMPTY)
    assert holds_table(world), "the other runtime may be behind"
    (other,) = probes.values()
    world.frontier(other, EMPTY)
    assert not holds_table(world)
    replica = Recorder()
    world.controller.attach_replica(replica)
    assert replica.dataflows() == [], "there is nothing left to ask"


def test_a_probe_whose_end_was_lost_too_is_asked_for_by_the_next_one() -> None:
    world = dropped_of_both_classes()
    lost, probes = reconnected(world), reconnected(world)
    assert not set(lost.values()) & set(probes.values())
    for id in probes.values():
        world.frontier(id, EMPTY)
    assert not holds_table(world)
    assert not world.controller._instances[FIRST_CLUSTER].replicas[FIRST_REPLICA].leaving


def test_a_probe_gives_nothing_of_a_live_dataflow_back() -> None:
    world = dropped_of_both_classes()
    world.controller.create_dataflow(index("j"), as_of=Time(7))
    replica = Recorder()
    world.controller.attach_replica(replica)
    for description in replica.dataflows():
        if description.name == "probe":
            world.frontier(description.exports[0].id, EMPTY)
    assert holds_table(world)


def test_a_first_connection_probes_nothing() -> None:
    assert World().client.dataflows() == []
