"""The controller alone, with a recording client: what it tells the replica, and when."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from eddyline.controller.controller import Controller
from eddyline.controller.events import FrontierMoved, Hydrated, PeekAnswered, ReplicaFailed, SubscriptionChanged
from eddyline.controller.instance import FIRST_CLUSTER, FIRST_REPLICA
from eddyline.errors import DatabaseError
from eddyline.expr.ir import Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    ImportIndex,
    ImportSource,
    Operator,
)
from eddyline.protocol.messages import (
    AllowCompaction,
    CancelPeek,
    Command,
    CreateDataflow,
    Frontiers,
    Peek,
    PeekResponse,
    Response,
    RowBatch,
    Status,
    SubscribeResponse,
)
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import BIGINT
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

TYPES = (BIGINT,)
ALL = Mfp((), (0,), TYPES)


class Recorder:
    """A client that runs nothing."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def send(self, command: Command) -> None:
        self.commands.append(command)

    def receive(self, timeout: float | None) -> Response | None:
        return None

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        """Nothing answers."""

    def stop(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing runs."""

    def compactions(self, id: str) -> list[int]:
        return [c.frontier for c in self.commands if isinstance(c, AllowCompaction) and c.id == id]

    def dataflows(self) -> list[DataflowDescription]:
        return [c.dataflow for c in self.commands if isinstance(c, CreateDataflow)]


class World:
    def __init__(self, retention_us: int = 10) -> None:
        self.store = TableStore(Hasher(1), retention_us=retention_us)
        self.controller = Controller(self.store, retention_us=retention_us)
        self.client = Recorder()
        self.controller.attach_replica(self.client)
        self.controller.create_table("t", TYPES, key=None, names=("a",), table="t", constraint="", at=Time(1))
        self.store.append({}, Time(1))

    def commit(self, time: int) -> None:
        self.store.append({"t": Batch.at(TYPES, (pa.array([time], pa.int64()),), 1, Time(time))}, Time(time))

    def frontier(self, id: str, upper: int) -> list[object]:
        return list(self.controller.process_response(Frontiers(id, upper)))


def describe(
    name: str, *operators: Operator, at: int = 0, until: int = EMPTY,
    dataflow_class: DataflowClass = DataflowClass.MAINTAINED,
) -> DataflowDescription:  # fmt: skip
    return DataflowDescription(name, operators, at, until, dataflow_class)


def index(id: str, source: Operator = ImportSource("t", TYPES)) -> DataflowDescription:  # noqa: B008 - frozen
    return describe(id, source, Arrange(0, (0,), TYPES), ExportIndex(id, "t", 1, (0,), TYPES))


def test_as_of_is_the_newest_complete_time_of_the_inputs() -> None:
    world = World()
    world.commit(7)
    assert world.controller.create_dataflow(index("i")) == 7
    over = describe("j", ImportIndex("i", TYPES, (0,)), ExportIndex("j", "t", 0, (0,), TYPES))
    assert world.controller.create_dataflow(over) == 7, "an input that hydrates is complete nowhere: its since"
    world.commit(9)
    world.frontier("i", 10)
    again = describe("k", ImportIndex("i", TYPES, (0,)), ExportIndex("k", "t", 0, (0,), TYPES))
    assert world.controller.create_dataflow(again) == 9
    assert [d.as_of for d in world.client.dataflows()] == [7, 7, 9]


def test_a_given_as_of_below_since_is_refused_and_nothing_is_sent() -> None:
    world = World(retention_us=0)
    world.commit(5)
    world.commit(9)
    with pytest.raises(DatabaseError) as caught:
        world.controller.create_dataflow(index("i"), as_of=Time(3))
    assert caught.value.sqlstate == "22023"
    assert "9" in (caught.value.detail or "")
    assert world.client.dataflows() == []
    assert not world.controller.exists("i")


def test_since_trails_the_upper_and_never_passes_a_hold() -> None:
    world = World()
    world.controller.create_dataflow(index("i"))
    hold = world.controller.acquire_hold("i", Time(20))
    world.frontier("i", 101)
    assert world.client.compactions("i") == [20]
    assert world.controller.since("i") == 20
    hold.downgrade(Frontier(60))
    hold.close()
    hold.close()
    assert world.client.compactions("i") == [20, 60, 90]
    world.frontier("i", 103)
    assert world.client.compactions("i") == [20, 60, 90], "small steps are not worth a command"


def test_a_dataflow_holds_its_inputs_where_it_would_be_built_anew() -> None:
    world = World(retention_us=10)
    for t in (5, 50):
        world.commit(t)
    world.controller.create_dataflow(index("i"), as_of=Time(45))
    for t in (100, 200):
        world.commit(t)
    assert world.store.since("t") == 45
    world.frontier("i", 201)
    assert world.controller.since("i") == 190
    world.commit(201)
    assert world.store.since("t") == 190


def test_an_index_is_dropped_when_its_last_reader_is_gone() -> None:
    world = World()
    world.controller.create_dataflow(index("i"))
    world.controller.create_dataflow(
        describe("j", ImportIndex("i", TYPES, (0,)), ExportIndex("j", "t", 0, (0,), TYPES))
    )
    world.controller.drop("i")
    world.controller.drop("t")
    assert not world.controller.exists("i")
    assert world.client.compactions("i") == []
    assert "t" in world.store
    world.controller.drop("j")
    assert world.client.compactions("j") == [EMPTY]
    assert world.client.compactions("i") == [EMPTY]
    assert "t" in world.store
    world.frontier("i", EMPTY)
    assert "t" not in world.store


def test_what_a_dropped_dataflow_imports_stays_readable_until_the_replica_has_caught_up() -> None:
    world = World()
    at = world.controller.create_dataflow(index("i"))
    world.controller.drop("i")
    world.commit(100)
    world.commit(101)
    assert world.store.since("t") == Frontier(at)
    world.frontier("i", EMPTY)
    world.commit(102)
    assert world.store.since("t") > at


def test_a_lost_replica_gives_back_what_its_dropped_dataflows_imported() -> None:
    world = World()
    at = world.controller.create_dataflow(index("i"))
    world.controller.drop("i")
    world.controller.process_response(Status("gone", fatal=True))
    world.commit(100)
    assert world.store.since("t") > at
    assert world.frontier("i", EMPTY) == []


def test_a_peek_holds_its_time_until_it_is_answered_once() -> None:
    world = World()
    world.controller.create_dataflow(index("i"))
    world.frontier("i", 100)
    uuid = world.controller.peek("i", Time(95), ALL)
    assert world.client.commands[-1] == Peek("i", uuid, 95, (), None, ALL)
    world.frontier("i", 500)
    assert world.controller.since("i") == 95
    answer = PeekResponse(uuid, rows=RowBatch(Batch.empty(TYPES)))
    assert world.controller.process_response(answer) == [PeekAnswered(answer)]
    assert world.controller.since("i") == 489
    assert world.controller.process_response(answer) == []
    with pytest.raises(DatabaseError):
        world.controller.peek("i", Time(95), ALL)


def test_cancel_is_sent_for_open_peeks_only() -> None:
    world = World()
    world.controller.create_dataflow(index("i"))
    uuid = world.controller.peek("i", Time(95), ALL)
    world.controller.cancel_peek(uuid)
    assert world.client.commands[-1] == CancelPeek(uuid)
    answer = PeekResponse(uuid, canceled=True)
    assert world.controller.process_response(answer) == [PeekAnswered(answer)]
    before = len(world.client.commands)
    world.controller.cancel_peek(uuid)
    assert len(world.client.commands) == before


def test_a_dropped_index_answers_its_open_peeks_first() -> None:
    world = World()
    world.controller.create_dataflow(index("i"))
    uuid = world.controller.peek("i", Time(95), ALL)
    world.controller.drop("i")
    assert world.client.compactions("i") == []
    world.controller.process_response(PeekResponse(uuid, rows=RowBatch(Batch.empty(TYPES))))
    assert world.client.compactions("i") == [EMPTY]


def test_hydration_is_reported_once_per_replica() -> None:
    world = World()
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    assert not world.controller.hydrated("i")
    assert world.frontier("i", 8) == [FrontierMoved("i", Frontier(8)), Hydrated("i")]
    assert world.controller.hydrated("i")
    assert world.frontier("i", 9) == [FrontierMoved("i", Frontier(9))]
    world.controller.process_response(Status("gone", fatal=True))
    assert not world.controller.hydrated("i")
    world.controller.attach_replica(Recorder())
    assert world.controller.upper("i") == 9, "uppers do not regress"
    assert world.frontier("i", 8) == [Hydrated("i")]


def test_a_lost_replica_fails_what_waits_and_the_next_gets_the_reduced_history() -> None:
    world = World()
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    world.controller.create_dataflow(describe("s", ImportSource("t", TYPES), ExportSubscribe("s", 0, TYPES)))
    world.controller.create_dataflow(
        describe(
            "t1", ImportSource("t", TYPES), Arrange(0, (), TYPES), ExportIndex("t1", "t", 1, (), TYPES),
            until=8, dataflow_class=DataflowClass.ONE_SHOT_READ,
        ),
        as_of=Time(7),
    )  # fmt: skip
    uuid = world.controller.peek("t1", Time(7), ALL)
    events = world.controller.process_response(Status("boom", fatal=True))
    answers = [e for e in events if isinstance(e, PeekAnswered)]
    assert [a.response.uuid for a in answers] == [uuid]
    assert answers[0].response.error is not None
    assert answers[0].response.error[0] == "58000"
    ends = [e.response for e in events if isinstance(e, SubscriptionChanged)]
    assert [(e.id, e.upper, e.error is not None) for e in ends] == [("s", EMPTY, True)]
    assert events[-1] == ReplicaFailed("boom", FIRST_REPLICA, FIRST_CLUSTER)
    replacement = Recorder()
    world.controller.attach_replica(replacement)
    assert [d.name for d in replacement.dataflows()] == ["i"]
    assert not any(isinstance(c, Peek) for c in replacement.commands)


def test_a_rebuilt_dataflow_starts_where_its_compaction_stands() -> None:
    world = World(retention_us=10)
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    world.commit(100)
    world.frontier("i", 101)
    world.controller.process_response(Status("boom", fatal=True))
    replacement = Recorder()
    world.controller.attach_replica(replacement)
    assert [d.as_of for d in replacement.dataflows()] == [90]


def test_commands_sent_without_a_replica_reach_the_next_one() -> None:
    world = World()
    world.controller.process_response(Status("boom", fatal=True))
    world.controller.create_dataflow(index("i"))
    uuid = world.controller.peek("i", Time(95), ALL)
    replacement = Recorder()
    world.controller.attach_replica(replacement)
    assert [d.name for d in replacement.dataflows()] == ["i"]
    assert [c.uuid for c in replacement.commands if isinstance(c, Peek)] == [uuid]


def test_a_misshapen_one_shot_read_is_maintained(tripped: list[str]) -> None:
    world = World()
    wrong = describe(
        "t1", ImportSource("t", TYPES), Arrange(0, (), TYPES), ExportIndex("t1", "t", 1, (), TYPES),
        dataflow_class=DataflowClass.ONE_SHOT_READ,
    )  # fmt: skip
    world.controller.create_dataflow(wrong)
    assert world.client.dataflows()[0].dataflow_class is DataflowClass.MAINTAINED
    assert ["one-shot" in text for text in tripped] == [True]


def test_a_materialized_view_lives_in_storage() -> None:
    world = World()
    world.commit(7)
    view = describe("v", ImportSource("t", TYPES), ExportMaterializedView("v", 0, TYPES))
    world.controller.create_dataflow(view)
    assert (world.controller.since("v"), world.controller.upper("v")) == (7, 0)
    world.store.write_view(
        "v", Batch.at(TYPES, (pa.array([7], pa.int64()),), 1, Time(7)), Batch.empty(ERR_TYPES), Frontier(0), Frontier(9)
    )
    assert world.controller.upper("v") == 9
    with pytest.raises(DatabaseError):
        world.controller.create_dataflow(view)
    hold = world.controller.acquire_hold("v", Time(8))
    world.controller.drop("v")
    assert "v" in world.store
    hold.close()
    assert "v" not in world.store


def test_holds_on_several_collections_are_all_or_none() -> None:
    world = World()
    world.controller.create_dataflow(index("i"), as_of=Time(1))
    world.frontier("i", 200)
    with pytest.raises(DatabaseError):
        world.controller.acquire_holds(("t", "i"), Time(5))
    world.commit(300)
    world.frontier("i", 301)
    assert world.controller.since("i") == 290
    holds = world.controller.acquire_holds(("t", "i"))
    assert holds.since() == 290
    holds.close()


def test_late_subscription_responses_are_ignored() -> None:
    world = World()
    world.controller.create_dataflow(describe("s", ImportSource("t", TYPES), ExportSubscribe("s", 0, TYPES)))
    response = SubscribeResponse("s", 1, 2, rows=RowBatch(Batch.empty(TYPES)))
    assert world.controller.process_response(response) == [SubscriptionChanged(response)]
    world.controller.drop("s")
    assert world.controller.process_response(response) == []


def test_a_hold_of_everything_stored_keeps_times_and_puts_drops_off() -> None:
    world = World(retention_us=0)
    world.commit(5)
    hold = world.controller.hold_stored()
    hold.downgrade(Frontier(5))
    world.commit(50)
    world.controller.drop("t")
    assert not world.controller.exists("t"), "new statements do not see it"
    assert "t" in world.store
    assert world.store.since("t") <= 5
    younger = world.controller.hold_stored()
    hold.close()
    hold.close()
    assert "t" not in world.store, "a hold that is younger than the drop does not matter"
    younger.close()


def test_of_several_holds_of_everything_the_last_one_lets_go() -> None:
    world = World(retention_us=0)
    holds = [world.controller.hold_stored() for _ in range(3)]
    world.controller.drop("t")
    for hold in (holds[1], holds[0]):
        hold.close()
        assert "t" in world.store
    holds[2].close()
    assert "t" not in world.store


def test_a_drop_that_is_put_off_still_waits_for_its_readers() -> None:
    world = World(retention_us=0)
    reader = world.controller.acquire_hold("t")
    hold = world.controller.hold_stored()
    world.controller.drop("t")
    hold.close()
    assert "t" in world.store
    reader.close()
    assert "t" not in world.store
