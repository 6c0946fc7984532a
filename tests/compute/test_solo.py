"""Thin dataflows through the whole runtime: sources, indexes, peeks, drops."""

from __future__ import annotations

import functools
import itertools

import msgspec
import numpy as np
import pytest

from eddyline.controller.events import Hydrated
from eddyline.errors import DatabaseError
from eddyline.expr.ir import Call, Column, FilterStep, Literal, MapStep, Mfp, SortKey
from eddyline.plan.dataflow import (
    Arrange,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Negate,
    Union,
)
from eddyline.protocol.messages import Peek
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, BOOLEAN
from tests.compute.runtime_harness import PAIR, Harness, collect, dataflow, identity, indexed, one_shot, pairs, rows_of

pytestmark = pytest.mark.parametrize("workers", [1, 3])

INVERSE = Mfp((MapStep(Call("int_div", (Literal(10, BIGINT), Column(1, BIGINT)), BIGINT)),), (0, 2), PAIR)


def test_index_follows_its_table(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 10), (2, 20), (2, 21)])})
    db.controller.create_dataflow(indexed("i", "t"))
    assert db.read("i") == {(1, 10): 1, (2, 20): 1, (2, 21): 1}
    assert Hydrated("i") in db.events
    db.commit({"t": pairs([(3, 30), (2, 20)], [1, -1])})
    assert db.read("i") == {(1, 10): 1, (2, 21): 1, (3, 30): 1}
    assert db.read("i", keys=((2,), (3,), (9,), (2,))) == {(2, 21): 1, (3, 30): 1}
    assert db.read("i", keys=((None,),)) == {}
    assert db.read("i", keys=()) == {}


def test_peek_waits_until_its_time_is_sealed(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    uuid = db.peek("i", db.time + 1)
    db.settle()
    assert db.answers(uuid) == []
    db.commit({"t": pairs([(1, 1)])})
    db.commit({"t": pairs([(2, 2)])})
    db.settle()
    (answer,) = db.answers(uuid)
    assert rows_of(answer) == {(1, 1): 1}


def test_peek_of_a_quiet_table_is_answered_when_another_table_commits(workers: int) -> None:
    db = Harness(workers)
    db.table("quiet")
    db.table("busy")
    db.commit({"quiet": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "quiet"))
    db.settle()
    for n in range(5):
        db.commit({"busy": pairs([(n, n)])})
    assert db.read("i", db.time) == {(1, 1): 1}


def test_multiplicities(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)] * 3 + [(1, 2)])})
    db.controller.create_dataflow(indexed("i", "t"))
    assert db.read("i") == {(1, 1): 3, (1, 2): 1}


def test_the_first_rows_of_a_walk_are_enough(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    rows = [(n, n % 7) for n in range(3000)]
    db.commit({"t": pairs(rows)})
    db.commit({"t": pairs([(n, n % 7) for n in range(0, 3000, 3)], [-1] * 1000)})
    db.controller.create_dataflow(indexed("i", "t"))
    live = [r for r in rows if r[0] % 3]
    for order, key in (((SortKey(1), SortKey(0, desc=True)), lambda r: (r[1], -r[0])), ((SortKey(0),), lambda r: r)):
        uuid = db.peek("i", db.time, limit=5, order=order)
        db.settle()
        (answer,) = db.answers(uuid)
        found = rows_of(answer)
        assert set(sorted(live, key=key)[:5]) <= set(found)
        assert len(found) <= 5 * workers, "nothing beyond what is asked for comes from a worker"
    uuid = db.peek("i", db.time, limit=5)
    db.settle()
    (answer,) = db.answers(uuid)
    assert sum(rows_of(answer).values()) >= 5
    assert set(rows_of(answer)) <= set(live)


def test_index_is_joined_with_a_table_by_reference_at_every_time(workers: int) -> None:
    db = Harness(workers)
    rng = np.random.default_rng(3)
    for id in "tu":
        db.table(id)
    left: dict[tuple[int, int], int] = {}
    right: dict[tuple[int, int], int] = {}

    def change(model: dict[tuple[int, int], int]) -> tuple[list[tuple[int, int]], list[int]]:
        rows, diffs = [], []
        for _ in range(int(rng.integers(1, 8))):
            if model and rng.random() < 0.4:
                row = list(model)[int(rng.integers(len(model)))]
                diff = -1
            else:
                row = (int(rng.integers(6)), int(rng.integers(4)))
                diff = 1
            model[row] = model.get(row, 0) + diff
            if not model[row]:
                del model[row]
            rows.append(row)
            diffs.append(diff)
        return rows, diffs

    def expected() -> dict[tuple[object, ...], int]:
        out: dict[tuple[object, ...], int] = {}
        for ((k, v), m), ((key, w), n) in itertools.product(left.items(), right.items()):
            if k == key:
                out[k, v, w] = out.get((k, v, w), 0) + m * n
        return out

    types = (BIGINT, BIGINT, BIGINT)
    for step in range(40):
        which = rng.integers(3)
        writes = {}
        if which != 1:
            writes["t"] = pairs(*change(left))
        if which != 0:
            writes["u"] = pairs(*change(right))
        db.commit(writes)
        if step == 5:
            db.controller.create_dataflow(indexed("ti", "t"))
        if step == 12:
            db.controller.create_dataflow(
                dataflow(
                    "j",
                    ImportIndex("ti", PAIR, (0,)),
                    ImportSource("u", PAIR),
                    Arrange(1, (0,), PAIR),
                    Join(0, 2, (False,), Mfp((), (0, 1, 3), types)),
                    Arrange(3, (0,), types),
                    ExportIndex("j", "j", 4, (0,), types),
                )
            )
        if step > 12 and step % 3 == 0:
            assert db.read("j", types=types) == expected()
    reads = db.controller.create_dataflow(
        one_shot(
            "t1",
            db.time,
            ImportIndex("j", types, (0,)),
            Arrange(0, (1,), types),
            ExportIndex("t1", "j", 1, (1,), types),
        ),
        as_of=Time(db.time),
    )
    assert db.read("t1", reads, types=types) == expected()
    db.controller.drop("t1")
    db.settle()
    assert not db.controller.exists("t1")


def test_one_shot_read_over_a_table_without_index(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 10), (2, 20)])})
    hold = db.controller.acquire_hold("t", Time(db.time))
    at = db.time
    db.commit({"t": pairs([(3, 30)])})
    big = Mfp((FilterStep(Call("gt", (Column(1, BIGINT), Literal(15, BIGINT)), BOOLEAN)),), (0, 1), PAIR)
    db.controller.create_dataflow(
        one_shot(
            "t1", at, ImportSource("t", PAIR), MapFilterProject(0, big), Arrange(1, (), PAIR),
            ExportIndex("t1", "t", 2, (), PAIR),
        ),
        as_of=Time(at),
    )  # fmt: skip
    hold.close()
    assert db.read("t1", at) == {(2, 20): 1}
    assert db.controller.upper("t1") == EMPTY
    db.controller.drop("t1")
    db.settle()
    with pytest.raises(DatabaseError):
        db.peek("t1", at)


def test_row_error_fails_reads_until_the_row_is_gone(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 2), (2, 0)])})
    named = msgspec.structs.replace(INVERSE, names=("id", "qty"), view="ratio")
    db.controller.create_dataflow(
        dataflow(
            "ratio",
            ImportSource("t", PAIR), MapFilterProject(0, named), Arrange(1, (0,), PAIR),
            ExportIndex("ratio", "ratio", 2, (0,), PAIR),
        )
    )  # fmt: skip
    uuid = db.peek("ratio", db.time, ((1,),))
    db.settle()
    (answer,) = db.answers(uuid)
    assert answer.error is not None
    assert answer.error[:2] == ("22012", "division by zero")
    assert answer.error[2] == 'in view "ratio", expression 10 / qty, row qty = 0, id = 2'
    db.commit({"t": pairs([(2, 0)], [-1])})
    assert db.read("ratio") == {(1, 5): 1}


def test_error_in_the_peeks_own_expression_is_answered(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 2), (2, 0)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    lookup = db.peek("i", db.time, ((1,),), mfp=INVERSE)
    walk = db.peek("i", db.time, mfp=INVERSE)
    db.settle()
    assert rows_of(db.answers(lookup)[0]) == {(1, 5): 1}
    error = db.answers(walk)[0].error
    assert error is not None
    assert error[0] == "22012"


def test_queued_peek_is_canceled_once(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    uuid = db.peek("i", db.time + 1)
    db.settle()
    db.controller.cancel_peek(uuid)
    db.controller.cancel_peek(uuid)
    db.settle()
    db.commit({"t": pairs([(1, 1)])})
    db.settle()
    (answer,) = db.answers(uuid)
    assert answer.canceled
    db.controller.cancel_peek(uuid)
    db.settle()
    assert len(db.answers(uuid)) == 1


def test_walk_is_canceled_between_slices(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    for _ in range(6):
        db.commit({"t": pairs([(n, db.time) for n in range(100_000)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    uuid = db.peek("i", db.time)
    db.solo.step()
    assert db.answers(uuid) == []
    db.controller.cancel_peek(uuid)
    db.settle()
    (answer,) = db.answers(uuid)
    assert answer.canceled


def test_dropped_index_answers_queued_peeks_with_an_error_and_releases_its_table(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    db.controller.drop("i")
    db.controller.drop("t")
    db.settle()
    assert not db.controller.exists("i")
    assert "t" not in db.store
    with pytest.raises(DatabaseError):
        db.peek("i", db.time)


def test_a_dropped_index_lives_while_something_reads_it(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.controller.create_dataflow(
        dataflow("n", ImportIndex("i", PAIR, (0,)), Negate(0, PAIR), ImportSource("t", PAIR), Union((1, 2, 2), PAIR),
                 Arrange(3, (0,), PAIR), ExportIndex("n", "n", 4, (0,), PAIR))
    )  # fmt: skip
    db.settle()
    db.controller.drop("i")
    db.commit({"t": pairs([(2, 2)])})
    assert db.read("n") == {(1, 1): 1, (2, 2): 1}
    db.controller.drop("n")
    db.controller.drop("t")
    db.settle()
    assert "t" not in db.store


def test_materialized_view_is_written_to_storage_and_read_by_others(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.table("u")
    db.commit({"t": pairs([(1, 1), (2, 2)])})
    db.controller.create_dataflow(
        dataflow("v", ImportSource("t", PAIR), Union((0, 0), PAIR), ExportMaterializedView("v", 1, PAIR))
    )
    db.controller.create_dataflow(
        dataflow("w", ImportSource("v", PAIR), ImportSource("u", PAIR), Union((0, 1), PAIR), Arrange(2, (0,), PAIR),
                 ExportIndex("w", "w", 3, (0,), PAIR))
    )  # fmt: skip
    assert db.read("w") == {(1, 1): 2, (2, 2): 2}
    db.commit({"u": pairs([(5, 5)])})
    assert db.read("w") == {(1, 1): 2, (2, 2): 2, (5, 5): 1}
    db.commit({"t": pairs([(2, 2)], [-1])})
    db.settle()
    assert collect(db.store.snapshot("v", Time(db.time))) == {(1, 1): 2}
    assert db.read("w") == {(1, 1): 2, (5, 5): 1}


def test_subscription_sends_the_snapshot_and_then_each_interval(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(dataflow("s", ImportSource("t", PAIR), ExportSubscribe("s", 0, PAIR)))
    db.settle()
    db.commit({"t": pairs([(2, 2), (1, 1)], [1, -1])})
    db.settle()
    db.commit({"t": pairs([(3, 3)])})
    db.settle()
    changes = [c for c in db.changes("s") if c.upper != EMPTY]
    assert [rows_of(c) for c in changes] == [{(1, 1): 1}, {(1, 1): -1, (2, 2): 1}, {(3, 3): 1}]
    assert [c.upper for c in changes] == [db.time - 1, db.time, db.time + 1]
    assert all(a.upper == b.lower for a, b in itertools.pairwise(changes))
    db.controller.drop("s")
    db.settle()


def test_subscription_without_snapshot_ends_at_until(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    description = dataflow("s", ImportSource("t", PAIR), ExportSubscribe("s", 0, PAIR, with_snapshot=False))
    bounded = type(description)(description.name, description.operators, 0, db.time + 2)
    db.controller.create_dataflow(bounded)
    for n in range(4):
        db.commit({"t": pairs([(10 + n, n)])})
        db.settle()
    total: dict[tuple[object, ...], int] = {}
    for change in db.changes("s"):
        total |= rows_of(change)
    assert total == {(10, 0): 1}
    assert db.changes("s")[-1].upper == EMPTY


def test_hydration_while_writing_is_exact(workers: int) -> None:
    db = Harness(workers, budget_rows=512)
    db.table("t")
    rng = np.random.default_rng(5)
    model: dict[tuple[object, ...], int] = {}

    def write(count: int) -> None:
        rows = [(int(k), int(v)) for k, v in rng.integers(0, 50, (count, 2))]
        for row in rows:
            model[row] = model.get(row, 0) + 1
        db.commit({"t": pairs(rows)})

    write(20_000)
    db.controller.create_dataflow(indexed("i", "t"))
    for _ in range(30):
        write(100)
        db.solo.step()
        db.receive()
    assert db.read("i") == model


def test_a_steady_index_is_not_behind_while_another_hydrates(workers: int) -> None:
    db = Harness(workers, budget_rows=256)
    db.table("big")
    db.table("small")
    db.commit({"big": pairs([(n, n) for n in range(30_000)])})
    db.controller.create_dataflow(indexed("steady", "small"))
    db.settle()
    db.controller.create_dataflow(indexed("slow", "big"))
    for n in range(5):
        db.commit({"small": pairs([(n, n)])})
        uuid = db.peek("steady", db.time)
        db.step_until(functools.partial(db.answers, uuid), 60)
        assert not db.controller.hydrated("slow")
    db.settle()
    assert len(db.read("slow")) == 30_000


def test_a_failing_worker_ends_the_runtime_which_is_rebuilt_in_place(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.controller.create_dataflow(dataflow("v", ImportSource("t", PAIR), ExportMaterializedView("v", 0, PAIR)))
    db.controller.create_dataflow(dataflow("s", ImportSource("t", PAIR), ExportSubscribe("s", 0, PAIR)))
    assert db.read("i") == {(1, 1): 1}
    waiting = db.peek("i", db.time + 5)
    db.settle()
    with monkeypatch.context() as patch:
        patch.setattr("eddyline.compute.operators.arrange.ArrangeOperator.step", _explode)
        db.commit({"t": pairs([(2, 2)])})
        while db.solo.step():
            pass
        db.receive()
    assert db.solo.failed
    (answer,) = db.answers(waiting)
    assert answer.error is not None
    assert answer.error[0] == "58000"
    ended = db.changes("s")[-1]
    assert ended.error is not None
    assert ended.error[0] == "58000"
    db.solo.close()
    db.start()
    db.commit({"t": pairs([(3, 3)])})
    assert db.read("i") == {(1, 1): 1, (2, 2): 1, (3, 3): 1}
    assert collect(db.store.snapshot("v", Time(db.time))) == {(1, 1): 1, (2, 2): 1, (3, 3): 1}
    assert not db.controller.exists("s")


def _explode(self: object) -> bool:
    raise RuntimeError("boom")


def test_compaction_follows_the_holds(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 0)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    hold = db.controller.acquire_hold("i", Time(db.time))
    old = db.time
    for n in range(20):
        db.commit({"t": pairs([(1, n), (1, n + 1)], [-1, 1])})
        db.settle()
    assert db.controller.since("i") == old
    assert db.read("i", old) == {(1, 0): 1}
    assert db.read("i") == {(1, 20): 1}
    hold.close()
    db.settle()
    assert db.controller.since("i") == db.time
    with pytest.raises(DatabaseError) as caught:
        db.peek("i", old)
    assert caught.value.sqlstate == "22023"
    assert db.controller.since("t") <= db.time


def test_collided_hashes_change_nothing(workers: int) -> None:
    db = Harness(workers, hash_bits=4)
    db.table("t", key=(0,))
    db.commit({"t": pairs([(n, n % 7) for n in range(200)])})
    db.controller.create_dataflow(indexed("i", "t", (1,)))
    assert len(db.read("i", keys=((3,),))) == 29
    db.commit({"t": pairs([(n, n % 7) for n in range(0, 200, 2)], [-1] * 100)})
    assert len(db.read("i")) == 100


def test_subscription_up_to_a_time_that_is_past_already_ends_at_once(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    for n in range(3):
        db.commit({"t": pairs([(n, n)])})
    description = dataflow("s", ImportSource("t", PAIR), ExportSubscribe("s", 0, PAIR))
    db.controller.create_dataflow(type(description)(description.name, description.operators, 0, db.time - 1))
    db.settle()
    assert [c.upper for c in db.changes("s")] == [EMPTY]
    assert rows_of(db.changes("s")[0]) == {}


def test_an_unexpected_failure_of_a_peek_fails_only_the_peek(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    unknown = Mfp((MapStep(Call("no such function", (), BIGINT)),), (0, 2), PAIR)
    uuid = db.peek("i", db.time, mfp=unknown)
    db.settle()
    error = db.answers(uuid)[0].error
    assert error is not None
    assert error[0] == "XX000"
    assert db.read("i") == {(1, 1): 1}


def test_a_large_view_is_written_piece_by_piece_and_survives_a_failure_in_between(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Harness(workers, budget_rows=100)
    db.table("t")
    db.commit({"t": pairs([(n, n % 3) for n in range(1000)])})
    db.controller.create_dataflow(dataflow("v", ImportSource("t", PAIR), ExportMaterializedView("v", 0, PAIR)))
    staged = 0
    stage = db.store.stage_view

    def failing(id: str, rows: Batch, writer: object) -> None:
        nonlocal staged
        staged += 1
        if staged == 5:
            raise RuntimeError("boom")
        stage(id, rows, writer)

    with monkeypatch.context() as patch:
        patch.setattr(db.store, "stage_view", failing)
        while db.solo.step():
            pass
        db.receive()
    assert db.solo.failed
    assert db.store.upper("v") == 0
    db.solo.close()
    db.start()
    db.settle()
    db.commit({"t": pairs([(5000, 1), (0, 0)], [1, -1])})
    db.settle()
    expected = {(n, n % 3): 1 for n in range(1, 1000)} | {(5000, 1): 1}
    assert collect(db.store.snapshot("v", Time(db.time))) == expected


def test_an_answer_on_the_callers_thread_equals_the_workers_or_is_refused(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(n % 9, n) for n in range(100)])})
    db.controller.create_dataflow(indexed("i", "t"))
    lookup = Peek("i", "u", db.time, PAIR[:1], ((3,), (4,)), identity(PAIR))
    walk = Peek("i", "u", db.time, (), None, identity(PAIR))
    assert db.solo.answer_now(lookup) is None, "the index is not built yet"
    db.settle()
    for peek in (lookup, walk):
        answer = db.solo.answer_now(peek)
        assert answer is not None
        assert rows_of(answer) == db.read("i", keys=peek.keys)
    db.commit({"t": pairs([(3, 3)], [-1])})
    later = Peek("i", "u", db.time, PAIR[:1], ((3,),), identity(PAIR))
    assert db.solo.answer_now(later) is None, "its time is not sealed yet"
    db.settle()
    answer = db.solo.answer_now(later)
    assert answer is not None
    assert (3, 3) not in rows_of(answer)
    assert db.solo.answer_now(lookup) is None, "its time is compacted away"
    db.commit({"t": pairs([(7, n) for n in range(10_000)])})
    db.settle()
    canceled = db.solo.answer_now(Peek("i", "u", db.time, (), None, identity(PAIR)), lambda: True)
    assert canceled is not None
    assert canceled.canceled, "between slices"
    db.controller.drop("i")
    db.settle()
    assert db.solo.answer_now(later) is None


def test_reads_leave_nothing_behind(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(n, n) for n in range(20)])})
    for n in range(4):
        at = Time(db.time)
        operators = (ImportSource("t", PAIR), Arrange(0, (), PAIR), ExportIndex(f"t{n}", "t", 1, (), PAIR))
        db.controller.create_dataflow(one_shot(f"t{n}", at, *operators), as_of=at)
        assert len(db.read(f"t{n}", at)) == 20
        db.controller.drop(f"t{n}")
        db.commit({"t": pairs([(100 + n, n)], [1])})
        db.commit({"t": pairs([(100 + n, n)], [-1])})
        db.settle()
    assert db.solo.at_rest()
    assert db.store.backlog() == (0, 0)
    assert db.store.since("t") == db.time, "no hold is left"


def test_errors_pass_through_materialized_views_and_heal(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 2), (2, 0)])})
    db.controller.create_dataflow(
        dataflow("v", ImportSource("t", PAIR), MapFilterProject(0, INVERSE), ExportMaterializedView("v", 1, PAIR))
    )
    db.controller.create_dataflow(indexed("w", "v"))
    db.settle()
    with pytest.raises(DatabaseError) as caught:
        db.store.snapshot("v", Time(db.time))
    assert caught.value.sqlstate == "22012"
    uuid = db.peek("w", db.time)
    db.settle()
    error = db.answers(uuid)[0].error
    assert error is not None
    assert error[0] == "22012"
    db.commit({"t": pairs([(2, 0), (2, 5)], [-1, 1])})
    assert db.read("w") == {(1, 5): 1, (2, 2): 1}
    assert collect(db.store.snapshot("v", Time(db.time))) == {(1, 5): 1, (2, 2): 1}


def test_an_error_ends_a_subscription(workers: int) -> None:
    db = Harness(workers)
    db.table("t")
    db.commit({"t": pairs([(1, 2)])})
    db.controller.create_dataflow(
        dataflow("s", ImportSource("t", PAIR), MapFilterProject(0, INVERSE), ExportSubscribe("s", 1, PAIR))
    )
    db.settle()
    db.commit({"t": pairs([(2, 0)])})
    db.settle()
    db.commit({"t": pairs([(2, 0)], [-1])})
    db.settle()
    first, last = db.changes("s")
    assert rows_of(first) == {(1, 5): 1}
    assert last.upper == EMPTY
    assert last.error is not None
    assert last.error[0] == "22012"
