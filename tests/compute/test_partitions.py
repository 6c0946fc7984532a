"""Rows that are with their key's owner already are not dealt out again."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.compute.exchange import Mailboxes, Message
from eddyline.compute.partitions import dealt_sources, has_place, partitions
from eddyline.compute.runtime import Runtime
from eddyline.compute.worker import Worker
from eddyline.expr.ir import AggregateCall, Call, Column, FilterStep, Literal, MapStep, Mfp, SortKey
from eddyline.plan.dataflow import (
    Arrange,
    Distinct,
    ExportIndex,
    FlatMap,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Negate,
    Operator,
    Reduce,
    ReduceFunctions,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType
from tests.compute.runtime_harness import PAIR, Harness, dataflow, pairs

TRIPLE: tuple[SqlType, ...] = (BIGINT, BIGINT, BIGINT)
COUNT = AggregateCall("count", (), BIGINT)
SOURCE = ImportSource("t", PAIR)
COUNTED = Reduce(0, (0,), (COUNT,), ReduceFunctions.ACCUMULABLE, PAIR)
NEXT = MapStep(Call("int_add", (Column(0, BIGINT), Literal(1, BIGINT)), BIGINT))
POSITIVE = FilterStep(Call("gt", (Column(1, BIGINT), Literal(0, BIGINT)), BOOLEAN))


def last_has_place(key: tuple[int, ...], *operators: Operator) -> bool:
    return has_place(partitions(operators)[-1], key)


def test_a_source_is_anywhere() -> None:
    assert not last_has_place((0,), SOURCE)
    assert not last_has_place((), SOURCE)


def test_groups_are_with_the_owner_of_their_key_and_of_no_other() -> None:
    assert last_has_place((0,), SOURCE, COUNTED)
    assert not last_has_place((1,), SOURCE, COUNTED)
    assert not last_has_place((0, 1), SOURCE, COUNTED)
    assert not last_has_place((), SOURCE, COUNTED)
    total = Reduce(0, (), (COUNT,), ReduceFunctions.ACCUMULABLE, (BIGINT,), global_row=True)
    assert last_has_place((), SOURCE, total)
    assert last_has_place((1,), SOURCE, TopK(0, (1,), (SortKey(0),), 3, 0, PAIR))


def test_whole_rows_are_placed_by_all_columns_in_their_order() -> None:
    for whole in (Distinct(0, PAIR), Threshold(0, PAIR)):
        assert last_has_place((0, 1), SOURCE, whole)
        assert not last_has_place((1, 0), SOURCE, whole)


def test_a_projection_keeps_the_place_as_long_as_it_keeps_the_key() -> None:
    swapped = MapFilterProject(1, Mfp((POSITIVE, NEXT), (1, 0, 2, 0), (*PAIR, *PAIR)))
    assert last_has_place((1,), SOURCE, COUNTED, swapped)
    assert last_has_place((3,), SOURCE, COUNTED, swapped)
    assert not last_has_place((0,), SOURCE, COUNTED, swapped)
    assert not last_has_place((2,), SOURCE, COUNTED, swapped)
    dropped = MapFilterProject(1, Mfp((NEXT,), (1, 2), PAIR))
    assert not last_has_place((0,), SOURCE, COUNTED, dropped)
    assert last_has_place((0,), SOURCE, COUNTED, FlatMap(1, "generate_series", (Column(1, BIGINT),) * 2, TRIPLE))


def test_a_join_leaves_rows_where_they_met_by_the_columns_of_either_side() -> None:
    sides = (ImportIndex("i", PAIR, (1,)), ImportIndex("j", PAIR, (0,)))
    joined = Join(0, 1, (False,), Mfp((), (0, 1, 3, 2), (*PAIR, *PAIR)))
    assert last_has_place((1,), *sides, joined)
    assert last_has_place((3,), *sides, joined)
    assert not last_has_place((0,), *sides, joined)
    assert not last_has_place((2,), *sides, joined)


def test_a_union_has_a_place_that_all_its_inputs_have() -> None:
    counted = (SOURCE, COUNTED, Negate(1, PAIR))
    assert last_has_place((0,), *counted, Union((1, 2), PAIR))
    assert not last_has_place((0,), *counted, Union((0, 1), PAIR))
    assert not last_has_place((0,), *counted, Distinct(0, PAIR), Union((1, 3), PAIR))
    assert not last_has_place((0,), SOURCE, Union((), PAIR))


def _workers(db: Harness) -> list[Worker]:
    assert isinstance(db.solo, Runtime)
    return [worker for _, worker in db.solo._driven if isinstance(worker, Worker)]


_SHAPES: dict[str, tuple[tuple[int, ...], tuple[Operator, ...]]] = {
    "groups": ((0,), (SOURCE, COUNTED)),
    "groups of an index": ((0,), (ImportIndex("i", PAIR, (0,)), COUNTED)),
    "first rows": ((1,), (SOURCE, TopK(0, (1,), (SortKey(0),), 2, 0, PAIR))),
    "a join of groups": (
        (2,),
        (SOURCE, COUNTED, Arrange(1, (0,), PAIR), ImportIndex("i", PAIR, (0,)),
         Join(2, 3, (False,), Mfp((), (1, 3, 0), TRIPLE))),
    ),
    "a union of groups": (
        (0,), (SOURCE, COUNTED, MapFilterProject(1, Mfp((NEXT,), (0, 2), PAIR)), Union((1, 2), PAIR)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", list(_SHAPES))
@pytest.mark.parametrize("workers", [2, 3])
def test_every_row_of_an_index_is_with_the_owner_of_its_key(shape: str, workers: int) -> None:
    key, operators = _SHAPES[shape]
    types, last = operators[-1].types, len(operators) - 1
    alone, several = Harness(1, interactive=False), Harness(workers, interactive=False)
    for db in (alone, several):
        db.table("t")
        db.controller.create_dataflow(
            dataflow("i", SOURCE, Arrange(0, (0,), PAIR), ExportIndex("i", "t", 1, (0,), PAIR))
        )
        db.controller.create_dataflow(
            dataflow("v", *operators, Arrange(last, key, types), ExportIndex("v", "v", last + 1, key, types))
        )
        for step in range(1, 6):
            rows: list[tuple[int | None, int | None]] = [(n % 23, n * step % 7) for n in range(40 * step)]
            db.commit({"t": pairs(rows)})
            db.commit({"t": pairs(rows[::3], [-1] * len(rows[::3]))})
            db.settle()
    assert several.read("v", types=types) == alone.read("v", types=types)
    found = 0
    for worker in _workers(several):
        for run in worker._indexes["v"].arrangement.oks.snapshot().runs:
            found += len(run)
            columns, kinds = [run.columns[k] for k in key], [types[k] for k in key]
            owners = several.hasher.hash_rows(columns, kinds, len(run)) % np.uint64(workers)
            assert set(owners.tolist()) <= {worker.index}
    assert found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What workers have told each other."""
    found: list[Message] = []
    send = Mailboxes.send

    def counted(self: Mailboxes, worker: int, message: Message) -> None:
        found.append(message)
        send(self, worker, message)

    monkeypatch.setattr(Mailboxes, "send", counted)
    return found


def _of_two(*operators: Operator) -> Harness:
    db = Harness(2, interactive=False)
    db.table("t")
    types, last = operators[-1].types, len(operators) - 1
    db.controller.create_dataflow(
        dataflow("v", *operators, Arrange(last, (0,), types), ExportIndex("v", "v", last + 1, (0,), types))
    )
    db.settle()
    return db


def test_groups_of_a_table_are_found_without_a_word_between_workers(sent: list[Message]) -> None:
    db = _of_two(SOURCE, COUNTED)
    for step in range(8):
        db.commit({"t": pairs([(n, step) for n in range(30)])})
        db.settle()
    assert not sent
    assert db.read("v") == {(n, 8): 1 for n in range(30)}


def test_a_step_in_time_is_one_message_to_each_peer_with_its_rows(sent: list[Message]) -> None:
    times = Reduce(1, (1,), (COUNT,), ReduceFunctions.ACCUMULABLE, PAIR)
    db = _of_two(SOURCE, COUNTED, times)
    del sent[:]
    for step in range(1, 9):
        db.commit({"t": pairs([(n, step) for n in range(30 * step)])})
        db.settle()
        assert len(sent) == 2 * step
        assert {m.frontier for m in sent[-2:]} == {db.time + 1}
    assert any(m.rows is not None for m in sent)
    assert db.read("v") == {(9 - step, 30): 1 for step in range(1, 9)}


def test_a_source_is_dealt_by_the_first_key_that_is_asked_for() -> None:
    second = MapFilterProject(0, Mfp((POSITIVE, NEXT), (1, 2), PAIR))
    assert dealt_sources((SOURCE, COUNTED)) == {0: (0,)}
    assert dealt_sources((SOURCE, second, Distinct(1, PAIR))) == {}
    assert dealt_sources((SOURCE, second, Reduce(1, (0,), (COUNT,), ReduceFunctions.ACCUMULABLE, PAIR))) == {0: (1,)}
    assert dealt_sources((SOURCE, Negate(0, PAIR), TopK(1, (1, 0), (), 1, 0, PAIR), COUNTED)) == {0: (1, 0)}
    assert dealt_sources((SOURCE, Union((0,), PAIR), Threshold(1, PAIR))) == {}
    total = Reduce(0, (), (COUNT,), ReduceFunctions.ACCUMULABLE, (BIGINT,), global_row=True)
    assert dealt_sources((SOURCE, total)) == {}


@pytest.mark.parametrize("workers", [2, 3])
def test_a_second_key_of_one_source_is_exchanged(workers: int) -> None:
    by_value = Reduce(0, (1,), (COUNT,), ReduceFunctions.ACCUMULABLE, PAIR)
    db = Harness(workers, interactive=False)
    db.table("t")
    db.commit({"t": pairs([(n % 5, n % 3) for n in range(60)])})
    db.controller.create_dataflow(
        dataflow(
            "v", SOURCE, COUNTED, by_value, Union((1, 2), PAIR),
            Arrange(3, (0,), PAIR), ExportIndex("v", "v", 4, (0,), PAIR),
        )
    )  # fmt: skip
    db.commit({"t": pairs([(7, 8), (0, 0)], [1, -1])})
    assert db.read("v") == {(0, 11): 1, (0, 19): 1, (1, 12): 1, (2, 12): 1, (3, 12): 1, (4, 12): 1,
                            (1, 20): 1, (2, 20): 1, (7, 1): 1, (8, 1): 1}  # fmt: skip
