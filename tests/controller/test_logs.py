"""What the controller makes of the logs of its replica."""

from __future__ import annotations

from eddyline.controller.controller import Controller
from eddyline.plan.dataflow import Arrange, DataflowClass, DataflowDescription, ExportIndex, ImportSource
from eddyline.protocol.logs import DATAFLOWS, LOGS
from eddyline.protocol.messages import AllowCompaction, Command, CreateDataflow, CreateInstance, Frontiers
from eddyline.repr.time import EMPTY, MIN_TIME, Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.controller.test_controller import Recorder

RETENTION = 1_000


def attached() -> tuple[Controller, Recorder]:
    controller, replica = Controller(TableStore(Hasher(1)), retention_us=RETENTION, logging=True), Recorder()
    controller.attach_replica(replica)
    return controller, replica


def compactions(commands: list[Command]) -> list[tuple[str, int]]:
    return [(c.id, c.frontier) for c in commands if isinstance(c, AllowCompaction)]


def read_of_log(id: str, at: int) -> DataflowDescription:
    types = DATAFLOWS.types
    operators = (ImportSource(DATAFLOWS.id, types), Arrange(0, (), types), ExportIndex(id, id, 1, (), types))
    return DataflowDescription(id, operators, at, at + 1, DataflowClass.ONE_SHOT_READ)


def test_a_replica_is_told_to_log() -> None:
    _, replica = attached()
    assert CreateInstance(logging=True) in replica.commands
    silent = Controller(TableStore(Hasher(1)))
    silent.attach_replica(replica)
    assert CreateInstance(logging=False) in replica.commands
    assert not silent.exists(DATAFLOWS.id)


def test_a_log_is_readable_at_every_time_and_compacts_behind_its_frontier() -> None:
    controller, replica = attached()
    assert all(controller.exists(log.id) and controller.hydrated(log.id) for log in LOGS)
    for upper in (5_000, 5_100, 9_000):
        controller.process_response(Frontiers(DATAFLOWS.id, upper))
    assert int(controller.since(DATAFLOWS.id)) == MIN_TIME and controller.upper(DATAFLOWS.id) == EMPTY
    assert compactions(replica.commands) == [(DATAFLOWS.id, 3_999), (DATAFLOWS.id, 7_999)], "not at each word"


def test_a_read_of_a_log_holds_nothing_back() -> None:
    controller, replica = attached()
    controller.create_dataflow(read_of_log("t1", 3), as_of=Time(3))
    controller.process_response(Frontiers(DATAFLOWS.id, 50_000))
    assert compactions(replica.commands) == [(DATAFLOWS.id, 48_999)]
    controller.drop("t1")
    assert compactions(replica.commands)[1:] == [("t1", EMPTY)]


def test_reads_of_logs_stay_one_shot_whatever_the_flag_says() -> None:
    controller, replica = attached()
    controller.one_shot_reads = False
    controller.create_dataflow(read_of_log("t1", 3), as_of=Time(3))
    [created] = [c.dataflow for c in replica.commands if isinstance(c, CreateDataflow)]
    assert created.dataflow_class is DataflowClass.ONE_SHOT_READ


def test_the_next_replica_has_a_timeline_of_its_own() -> None:
    controller, _ = attached()
    controller.process_response(Frontiers(DATAFLOWS.id, 80_000))
    following = Recorder()
    controller.attach_replica(following)
    assert compactions(following.commands) == []
    controller.process_response(Frontiers(DATAFLOWS.id, 4_000))
    assert compactions(following.commands) == [(DATAFLOWS.id, 2_999)]
