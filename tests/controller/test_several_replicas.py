"""What the controller makes of several replicas, which run nothing here: the test says what each of them answers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from eddyline.controller.events import Event, FrontierMoved, Hydrated, PeekAnswered, SubscriptionChanged
from eddyline.errors import DatabaseError
from eddyline.plan.dataflow import ExportMaterializedView, ExportSubscribe, ImportSource
from eddyline.protocol.messages import (
    CancelPeek,
    Frontiers,
    Peek,
    PeekResponse,
    RowBatch,
    Status,
    SubscribeResponse,
    UpdateConfiguration,
)
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from tests.controller.test_controller import ALL, TYPES, Recorder, World, describe, index

ROWS = RowBatch(Batch.empty(TYPES))


class Several(World):
    """The first replica is ``s1``; the second, ``s2``, is attached from the start too."""

    def __init__(self, retention_us: int = 10) -> None:
        super().__init__(retention_us)
        self.other = Recorder()
        self.controller.attach_replica(self.other, "s2")

    def says(self, replica: str, *responses: Frontiers | PeekResponse | SubscribeResponse | Status) -> list[Event]:
        return [e for r in responses for e in self.controller.process_response(r, replica)]


def changes(lower: int, upper: int, rows: Sequence[tuple[int, int]]) -> SubscribeResponse:
    """Of subscription ``s``: values and times."""
    batches = [Batch.at(TYPES, (pa.array([value], pa.int64()),), 1, Time(time)) for value, time in rows]
    return SubscribeResponse("s", lower, upper, rows=RowBatch.of(TYPES, batches))


def passed_on(events: Sequence[Event]) -> list[tuple[int, int, list[tuple[int, int]]]]:
    out = []
    for event in events:
        assert isinstance(event, SubscriptionChanged)
        response = event.response
        batch = None if response.rows is None else response.rows.batch()
        rows = [] if batch is None else list(zip(batch.columns[0].to_pylist(), batch.times.tolist(), strict=True))
        out.append((response.lower, response.upper, rows))
    return out


def subscribed(world: Several) -> Several:
    world.commit(5)
    world.controller.create_dataflow(describe("s", ImportSource("t", TYPES), ExportSubscribe("s", 0, TYPES)))
    return world


# -- commands and frontiers


def test_every_replica_is_told_and_one_that_comes_later_gets_the_history() -> None:
    world = Several()
    world.controller.create_dataflow(index("i"))
    third = Recorder()
    world.controller.attach_replica(third, "s3")
    assert [[d.name for d in r.dataflows()] for r in (world.client, world.other, third)] == [["i"]] * 3
    assert world.controller.replicas() == ("s1", "s2", "s3")


def test_an_upper_is_the_best_that_any_reported_and_never_regresses() -> None:
    world = Several()
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    assert world.says("s2", Frontiers("i", 8)) == [FrontierMoved("i", 8), Hydrated("i")]  # type: ignore[arg-type]  # an int
    assert world.says("s1", Frontiers("i", 8)) == [], "it is hydrated, and there is nothing new"
    world.says("s2", Frontiers("i", 20))
    world.says("s2", Status("gone", fatal=True))
    assert world.controller.upper("i") == 20
    assert world.controller.hydrated("i"), "on the other one"
    assert world.says("s1", Frontiers("i", 9)) == []


def test_it_is_hydrated_while_it_is_on_one_of_them() -> None:
    world = Several()
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    world.says("s1", Frontiers("i", 8))
    assert world.controller.hydrated("i")
    assert (world.controller.hydrated_on("i", "s1"), world.controller.hydrated_on("i", "s2")) == (True, False)
    world.says("s1", Status("gone", fatal=True))
    assert not world.controller.hydrated("i")
    world.says("s2", Frontiers("i", 8))
    assert world.controller.hydrated("i")


def test_a_replica_that_comes_later_is_hydrated_past_the_time_that_it_begins_at() -> None:
    world = World()
    world.commit(7)
    world.controller.create_dataflow(index("i"))
    world.frontier("i", 101)
    assert world.controller.since("i") == 90
    world.controller.attach_replica(Recorder(), "s2")
    world.controller.process_response(Frontiers("i", 90), "s2")
    assert not world.controller.hydrated_on("i", "s2"), "that is where it begins: it may not have run at all"
    world.controller.process_response(Frontiers("i", 101), "s2")
    assert world.controller.hydrated_on("i", "s2")


def test_nobody_is_told_to_forget_what_the_slowest_has_yet_to_build() -> None:
    world = Several()
    world.controller.create_dataflow(index("i"))
    world.says("s1", Frontiers("i", 101))
    assert world.client.compactions("i") == world.other.compactions("i") == []
    world.says("s2", Frontiers("i", 51))
    assert world.client.compactions("i") == world.other.compactions("i") == [40]
    world.says("s2", Frontiers("i", 301))
    assert world.client.compactions("i") == [40, 90], "now the other one is behind"


def test_one_that_is_lost_holds_nothing_back_and_is_built_anew_from_since() -> None:
    world = Several()
    world.controller.create_dataflow(index("i"))
    world.says("s1", Frontiers("i", 101))
    world.says("s2", Status("gone", fatal=True))
    assert world.client.compactions("i") == [90]
    again = Recorder()
    world.controller.attach_replica(again, "s2")
    assert [d.as_of for d in again.dataflows()] == [90]
    world.says("s1", Frontiers("i", 201))
    assert world.client.compactions("i") == [90], "it has yet to be built from there"


def test_what_a_dropped_dataflow_imports_is_held_until_each_replica_has_caught_up() -> None:
    world = Several()
    at = world.controller.create_dataflow(index("i"))
    world.controller.drop("i")
    world.says("s1", Frontiers("i", EMPTY))
    world.commit(100)
    world.commit(101)
    assert int(world.store.since("t")) == int(at)
    world.says("s2", Frontiers("i", EMPTY))
    world.commit(102)
    assert world.store.since("t") > at


@pytest.mark.parametrize("how", ["lost", "dropped"])
def test_a_replica_that_is_gone_is_not_waited_for_with_a_drop(how: str) -> None:
    world = Several()
    at = world.controller.create_dataflow(index("i"))
    world.controller.drop("i")
    world.says("s1", Frontiers("i", EMPTY))
    if how == "lost":
        world.says("s2", Status("gone", fatal=True))
    else:
        world.controller.forget_replica("s2")
    world.commit(100)
    world.commit(101)
    assert world.store.since("t") > at


# -- peeks


def asked(world: Several) -> str:
    world.controller.create_dataflow(index("i"))
    world.says("s1", Frontiers("i", 100))
    uuid = world.controller.peek("i", Time(95), ALL)
    assert [r.commands[-1] for r in (world.client, world.other)] == [Peek("i", uuid, 95, (), None, ALL)] * 2
    return uuid


def test_the_first_answer_wins_and_others_need_not_look() -> None:
    world = Several()
    uuid = asked(world)
    answer = PeekResponse(uuid, rows=ROWS)
    assert world.says("s2", answer) == [PeekAnswered(answer)]
    assert world.client.commands[-1] == CancelPeek(uuid)
    assert world.other.commands[-1] != CancelPeek(uuid)
    assert world.says("s1", PeekResponse(uuid, rows=ROWS)) == []
    assert world.says("s1", PeekResponse(uuid, canceled=True)) == [], "not even twice"
    third = Recorder()
    world.controller.attach_replica(third, "s3")
    assert not any(isinstance(c, Peek) for c in third.commands)


def test_its_time_is_held_until_the_last_one_has_looked() -> None:
    world = Several()
    uuid = asked(world)
    world.says("s2", PeekResponse(uuid, rows=ROWS))
    world.says("s2", Frontiers("i", 501))
    world.says("s1", Frontiers("i", 501))
    assert world.controller.since("i") == 95
    world.says("s1", PeekResponse(uuid, canceled=True))
    assert world.controller.since("i") == 490
    assert len(world.controller._peeks) == 0


def test_one_that_is_lost_after_the_answer_is_not_waited_for() -> None:
    world = Several()
    uuid = asked(world)
    world.says("s2", PeekResponse(uuid, rows=ROWS), Frontiers("i", 501))
    assert world.says("s1", Status("gone", fatal=True))[:-1] == []
    assert world.controller.since("i") == 490


def test_a_read_goes_on_when_one_of_two_is_lost_and_fails_with_the_last() -> None:
    world = Several()
    uuid = asked(world)
    assert not [e for e in world.says("s1", Status("gone", fatal=True)) if isinstance(e, PeekAnswered)]
    [lost] = [e for e in world.says("s2", Status("gone", fatal=True)) if isinstance(e, PeekAnswered)]
    assert (lost.response.uuid, lost.response.error and lost.response.error[0]) == (uuid, "58000")


def test_an_error_of_the_rows_is_an_answer() -> None:
    world = Several()
    answer = PeekResponse(asked(world), error=("22012", "division by zero", None))
    assert world.says("s1", answer) == [PeekAnswered(answer)]


def test_a_cancellation_that_was_asked_for_is_an_answer_and_another_is_none() -> None:
    world = Several()
    uuid = asked(world)
    answer = PeekResponse(uuid, canceled=True)
    assert world.says("s1", answer) == []
    world.controller.cancel_peek(uuid)
    assert [r.commands[-1] for r in (world.client, world.other)] == [CancelPeek(uuid)] * 2
    assert world.says("s2", answer) == [PeekAnswered(answer)]
    asked_for = world.controller.peek("i", Time(96), ALL)
    world.controller.cancel_peek(asked_for)
    before = len(world.other.commands)
    assert len(world.says("s1", PeekResponse(asked_for, canceled=True))) == 1, "nobody waits for the slower one"
    assert len(world.other.commands) == before, "it has been told"


def test_a_replica_that_comes_while_a_peek_waits_may_answer_it() -> None:
    world = Several()
    uuid = asked(world)
    third = Recorder()
    world.controller.attach_replica(third, "s3")
    assert [c.uuid for c in third.commands if isinstance(c, Peek)] == [uuid]
    for replica in ("s1", "s2"):
        world.says(replica, Status("gone", fatal=True))
    answer = PeekResponse(uuid, rows=ROWS)
    assert world.says("s3", answer) == [PeekAnswered(answer)]


def test_a_new_connection_of_a_replica_is_not_waited_for_with_what_is_answered() -> None:
    world = Several()
    uuid = asked(world)
    world.says("s2", PeekResponse(uuid, rows=ROWS), Frontiers("i", 501))
    world.controller.attach_replica(Recorder(), "s1")
    world.says("s1", Frontiers("i", 501))
    assert world.controller.since("i") == 490


# -- one replica alone


def test_what_is_for_one_replica_is_told_to_it_alone_and_again_when_it_returns() -> None:
    world = Several()
    world.controller.create_dataflow(index("t1"), replica="s2")
    uuid = world.controller.peek("t1", Time(1), ALL)
    assert (world.client.dataflows(), [d.name for d in world.other.dataflows()]) == ([], ["t1"])
    third, again = Recorder(), Recorder()
    world.controller.attach_replica(third, "s3")
    world.controller.attach_replica(again, "s2")
    assert (third.dataflows(), [d.name for d in again.dataflows()]) == ([], ["t1"])
    assert [c.uuid for c in again.commands if isinstance(c, Peek)] == [uuid]
    events = world.says("s2", Status("gone", fatal=True))
    assert [e.response.error is not None for e in events if isinstance(e, PeekAnswered)] == [True]
    assert not world.controller.exists("t1"), "it served a statement"


def test_each_replica_has_a_configuration_of_its_own() -> None:
    world = Several()
    world.controller.update_configuration({"memory_limit_bytes": "7"}, "s2")
    world.controller.update_configuration({"memory_limit_bytes": "8"}, "s3")
    third = Recorder()
    world.controller.attach_replica(third, "s3")
    found = [[c.parameters for c in r.commands if isinstance(c, UpdateConfiguration)] for r in (world.client, third)]
    assert found == [[], [{"memory_limit_bytes": "8"}]]
    assert world.other.commands[-1] == UpdateConfiguration({"memory_limit_bytes": "7"})


def test_a_replica_that_is_dropped_is_asked_nothing_more() -> None:
    world = Several()
    uuid = asked(world)
    assert world.controller.forget_replica("s2") == []
    before = len(world.other.commands)
    world.controller.create_dataflow(index("j"))
    assert len(world.other.commands) == before
    assert world.controller.replicas() == ("s1",)
    events = world.controller.forget_replica("s1")
    assert [e.response.uuid for e in events if isinstance(e, PeekAnswered)] == [uuid]


# -- subscriptions and views


def test_a_subscription_has_each_change_once() -> None:
    world = subscribed(Several())
    first = world.says("s1", changes(5, 8, [(1, 5), (2, 7)]))
    assert passed_on(first) == [(5, 8, [(1, 5), (2, 7)])]
    ahead = world.says("s2", changes(5, 10, [(1, 5), (2, 7), (3, 8), (4, 9)]))
    assert passed_on(ahead) == [(8, 10, [(3, 8), (4, 9)])], "what was passed on is cut off"
    assert world.says("s1", changes(8, 10, [(3, 8), (4, 9)])) == []
    assert passed_on(world.says("s1", changes(10, 12, []))) == [(10, 12, [])]
    assert world.says("s2", changes(10, 11, [])) == []


def test_a_snapshot_of_a_replica_that_comes_later_is_not_passed_on_again() -> None:
    world = subscribed(Several())
    world.says("s1", changes(5, 21, [(1, 5), (2, 20)]), Frontiers("s", 21))
    world.says("s2", changes(5, 21, [(1, 5), (2, 20)]), Frontiers("s", 21))
    third = Recorder()
    world.controller.attach_replica(third, "s3")
    [rebuilt] = third.dataflows()
    assert rebuilt.as_of < 21, "below what was passed on: its snapshot can be told from what comes after"
    late = world.says("s3", changes(rebuilt.as_of, 30, [(1, rebuilt.as_of), (2, rebuilt.as_of), (3, 25)]))
    assert passed_on(late) == [(21, 30, [(3, 25)])]


def test_a_subscription_ends_with_the_last_replica_only() -> None:
    world = subscribed(Several())
    assert world.says("s1", Status("gone", fatal=True))[:-1] == []
    assert world.controller.exists("s")
    [ended, _] = world.says("s2", Status("gone", fatal=True))
    assert isinstance(ended, SubscriptionChanged) and ended.response.error is not None
    assert ended.response.error[0] == "58000"
    assert not world.controller.exists("s")


def test_the_end_of_a_subscription_is_passed_on_once() -> None:
    world = subscribed(Several())
    end = SubscribeResponse("s", 5, EMPTY, error=("22012", "division by zero", None))
    assert world.says("s1", end) == [SubscriptionChanged(end)]
    assert world.says("s2", end) == []


def test_a_materialized_view_keeps_its_inputs_for_the_slower_writer() -> None:
    world = Several()
    world.commit(7)
    world.controller.create_dataflow(describe("v", ImportSource("t", TYPES), ExportMaterializedView("v", 0, TYPES)))
    for time in (100, 200):
        world.commit(time)
    world.says("s1", Frontiers("v", 201))
    world.commit(201)
    assert world.store.since("t") == 7
    world.says("s2", Frontiers("v", 101))
    world.commit(202)
    assert world.store.since("t") == 90


def test_without_any_replica_peeks_wait_in_the_history_of_the_first_that_comes() -> None:
    world = Several()
    world.controller.create_dataflow(index("i"))
    for replica in ("s1", "s2"):
        world.says(replica, Status("gone", fatal=True))
    uuid = world.controller.peek("i", Time(95), ALL)
    again = Recorder()
    world.controller.attach_replica(again, "s2")
    assert [c.uuid for c in again.commands if isinstance(c, Peek)] == [uuid]
    answer = PeekResponse(uuid, rows=ROWS)
    assert world.says("s2", answer) == [PeekAnswered(answer)]
    with pytest.raises(DatabaseError):
        world.controller.peek("i", Time(0), ALL)
