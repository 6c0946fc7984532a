"""Every operator through the renderer: one worker, several workers, any interleaving, the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.stream import Output
from eddyline.expr.ir import AggregateCall, Call, Column, FilterStep, Literal, MapStep, Mfp, SortKey
from eddyline.plan.dataflow import (
    Arrange,
    ConstantSource,
    Distinct,
    ExportIndex,
    ExportMaterializedView,
    FlatMap,
    ImportIndex,
    ImportSource,
    Join,
    MapFilterProject,
    Negate,
    Reduce,
    ReduceFunctions,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType, numeric
from tests.compute.runtime_harness import PAIR, Harness, Rows, collect, dataflow, indexed, pairs

TRIPLE: tuple[SqlType, ...] = (BIGINT, BIGINT, BIGINT)
SUMMED: tuple[SqlType, ...] = (BIGINT, numeric(0), BIGINT)
TOTAL: tuple[SqlType, ...] = (BIGINT,)
COUNT = AggregateCall("count", (), BIGINT)
SUM = AggregateCall("sum", (Column(1, BIGINT),), numeric(0))
LARGE = Mfp(
    (
        FilterStep(Call("gt", (Column(1, BIGINT), Literal(2, BIGINT)), BOOLEAN)),
        MapStep(Call("int_sub", (Column(1, BIGINT), Literal(100, BIGINT)), BIGINT)),
    ),
    (0, 2),
    PAIR,
)

Model = Counter[tuple[int, int]]


def create_all(db: Harness) -> None:
    """One view per operator over tables t and u."""
    create = db.controller.create_dataflow
    create(indexed("ti", "t"))
    create(
        dataflow(
            "summed", ImportSource("t", PAIR), Reduce(0, (0,), (SUM, COUNT), ReduceFunctions.ACCUMULABLE, SUMMED),
            Arrange(1, (0,), SUMMED), ExportIndex("summed", "summed", 2, (0,), SUMMED),
        )
    )  # fmt: skip
    create(
        dataflow(
            "total", ImportIndex("ti", PAIR, (0,)),
            Reduce(0, (), (COUNT,), ReduceFunctions.ACCUMULABLE, TOTAL, global_row=True),
            Arrange(1, (), TOTAL), ExportIndex("total", "total", 2, (), TOTAL),
        )
    )  # fmt: skip
    create(
        dataflow(
            "distinct", ImportSource("t", PAIR), ImportSource("u", PAIR), Union((0, 1), PAIR), Distinct(2, PAIR),
            ExportMaterializedView("distinct", 3, PAIR),
        )
    )  # fmt: skip
    create(
        dataflow(
            "except", ImportSource("distinct", PAIR), ImportSource("u", PAIR), Negate(1, PAIR), Union((0, 2), PAIR),
            Threshold(3, PAIR), Arrange(4, (1,), PAIR), ExportIndex("except", "except", 5, (1,), PAIR),
        )
    )  # fmt: skip
    create(
        dataflow(
            "top", ImportSource("t", PAIR), TopK(0, (0,), (SortKey(1, desc=True),), 2, 0, PAIR),
            Arrange(1, (0,), PAIR), ExportIndex("top", "top", 2, (0,), PAIR),
        )
    )  # fmt: skip
    create(
        dataflow(
            "series", ImportSource("u", PAIR), ConstantSource(((1, 2), (7, 7)), PAIR), Union((0, 1), PAIR),
            FlatMap(2, "generate_series", (Literal(1, BIGINT), Column(1, BIGINT)), TRIPLE),
            Arrange(3, (0,), TRIPLE), ExportIndex("series", "series", 4, (0,), TRIPLE),
        )
    )  # fmt: skip
    create(
        dataflow(
            "joined", ImportIndex("ti", PAIR, (0,)), ImportSource("u", PAIR), MapFilterProject(1, LARGE),
            Arrange(2, (0,), PAIR), Join(0, 3, (False,), Mfp((), (0, 1, 3), TRIPLE)),
            Arrange(4, (0,), TRIPLE), ExportIndex("joined", "joined", 5, (0,), TRIPLE),
        )
    )  # fmt: skip


def expected(t: Model, u: Model) -> dict[str, Rows]:
    summed: Rows = {}
    top: Rows = {}
    for key in {k for k, _ in t}:
        values = sorted((v for v in t.elements() if v[0] == key), key=lambda r: -r[1])
        summed[key, sum(v for _, v in values), len(values)] = 1
        top |= Counter(values[:2])
    distinct = set(t) | set(u)
    series: Rows = dict.fromkeys([(1, 2, 1), (1, 2, 2), *((7, 7, i) for i in range(1, 8))], 1)
    for (k, v), n in u.items():
        for i in range(1, v + 1):
            series[k, v, i] = series.get((k, v, i), 0) + n
    joined: Rows = {}
    for (k, v), m in t.items():
        for (key, w), n in u.items():
            if k == key and w > 2:
                joined[k, v, w - 100] = joined.get((k, v, w - 100), 0) + m * n
    return {
        "summed": summed,
        "total": {(sum(t.values()),): 1},
        "distinct": dict.fromkeys(distinct, 1),
        "except": {r: 1 - u[r] for r in distinct if u[r] < 1},
        "top": top,
        "series": series,
        "joined": joined,
    }


def change(rng: np.random.Generator, model: Model) -> Batch:
    rows: list[tuple[int | None, int | None]] = []
    diffs: list[int] = []
    for _ in range(int(rng.integers(1, 9))):
        if model and rng.random() < 0.45:
            row = sorted(model)[int(rng.integers(len(model)))]
            diffs.append(-1)
        else:
            row = (int(rng.integers(5)), int(rng.integers(6)))
            diffs.append(1)
        model[row] += diffs[-1]
        if not model[row]:
            del model[row]
        rows.append(row)
    return pairs(rows, diffs)


def read_all(db: Harness) -> dict[str, Rows]:
    types = {"summed": SUMMED, "total": TOTAL, "except": PAIR, "top": PAIR, "series": TRIPLE, "joined": TRIPLE}
    found = {id: db.read(id, types=of) for id, of in types.items()}
    db.settle()
    found["distinct"] = collect(db.store.snapshot("distinct", Time(db.time)))
    return found


@pytest.mark.parametrize("bits", [64, 4])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_views_equal_recomputation_under_any_interleaving(workers: int, bits: int) -> None:
    rng = np.random.default_rng(100 * workers + bits)
    db = Harness(workers, hash_bits=bits, budget_rows=8)
    db.table("t")
    db.table("u")
    t: Model = Counter()
    u: Model = Counter()
    created = False
    for step in range(60):
        writes = {}
        if rng.random() < 0.7:
            writes["t"] = change(rng, t)
        if rng.random() < 0.4:
            writes["u"] = change(rng, u)
        db.commit(writes)
        if step == 10:
            create_all(db)
            created = True
        for _ in range(int(rng.integers(0, 40))):
            db.solo.step(int(rng.integers(workers)))
        if created and step % 10 == 9:
            assert read_all(db) == expected(t, u), f"step {step}"


def test_an_empty_database_has_its_global_row() -> None:
    db = Harness(3)
    db.table("t")
    db.table("u")
    create_all(db)
    assert read_all(db) == expected(Counter(), Counter())


def test_an_arranged_edge_is_flattened_once_for_all_its_readers() -> None:
    db = Harness(1)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.controller.create_dataflow(
        dataflow(
            "twice", ImportIndex("i", PAIR, (0,)), Negate(0, PAIR), Union((0, 0, 1, 0), PAIR),
            Arrange(2, (0,), PAIR), ExportIndex("twice", "twice", 3, (0,), PAIR),
        )
    )  # fmt: skip
    assert db.read("twice") == {(1, 1): 2}


def test_an_index_may_be_exported_again_under_another_id() -> None:
    db = Harness(1)
    db.table("t")
    db.commit({"t": pairs([(1, 1)])})
    db.controller.create_dataflow(indexed("i", "t"))
    db.controller.create_dataflow(
        dataflow("again", ImportIndex("i", PAIR, (0,)), ExportIndex("again", "t", 0, (0,), PAIR))
    )
    db.commit({"t": pairs([(2, 2)])})
    assert db.read("again") == db.read("i") == {(1, 1): 1, (2, 2): 1}
    db.controller.drop("i")
    db.commit({"t": pairs([(3, 3)])})
    assert db.read("again") == {(1, 1): 1, (2, 2): 1, (3, 3): 1}


def test_unknown_imports_are_refused_before_anything_is_built() -> None:
    db = Harness(1)
    with pytest.raises(Exception, match="does not exist"):
        db.controller.create_dataflow(indexed("i", "nowhere"))
    assert not db.controller.exists("i")


def test_nulls_survive_the_exchange() -> None:
    db = Harness(2)
    db.table("t")
    db.commit({"t": pairs([(None, n) for n in range(50)] + [(n, None) for n in range(50)])})
    db.controller.create_dataflow(indexed("i", "t", (1,)))
    found = db.read("i")
    assert len(found) == 100
    assert found[(None, 7)] == 1


@pytest.mark.parametrize("seed", range(6))
def test_views_are_exact_after_crashes_at_any_point(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    db = Harness(1 + seed % 3, budget_rows=8)
    db.table("t")
    db.table("u")
    t: Model = Counter()
    u: Model = Counter()
    db.commit({"t": change(rng, t), "u": change(rng, u)})
    create_all(db)
    fuse = int(rng.integers(5, 60))
    step_operator = Dataflow.activate

    def activate(dataflow: Dataflow, expired: Callable[[], bool]) -> bool:
        nonlocal fuse
        fuse -= 1
        moved = step_operator(dataflow, expired)
        if fuse == 0:
            raise RuntimeError("boom")
        return moved

    monkeypatch.setattr(Dataflow, "activate", activate)
    crashes = 0
    for step in range(40):
        db.commit({"t": change(rng, t)} if rng.random() < 0.6 else {"u": change(rng, u)})
        for _ in range(int(rng.integers(0, 30))):
            db.solo.step(int(rng.integers(db.workers)))
            if rng.random() < 0.3:
                db.receive()
        if db.solo.failed:
            crashes += 1
            db.receive()
            db.solo.close()
            db.start()
            fuse = int(rng.integers(5, 150))
        if step % 13 == 12 and not db.solo.failed:
            fuse = -1
            assert read_all(db) == expected(t, u), f"step {step}"
            fuse = int(rng.integers(5, 150))
    fuse = -1
    if db.solo.failed:
        db.receive()
        db.solo.close()
        db.start()
    assert crashes
    assert read_all(db) == expected(t, u)


def test_a_large_commit_enters_in_slices() -> None:
    db = Harness(1, budget_rows=16)
    db.table("t")
    create = db.controller.create_dataflow
    create(indexed("i", "t"))
    db.settle()
    db.commit({"t": pairs([(n, n) for n in range(1000)])})
    sizes: list[int] = []
    send = Output.send

    def recording(output: Output, batch: Batch) -> None:
        sizes.append(len(batch))
        send(output, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "send", recording)
        db.settle()
    assert sum(sizes) == 1000
    assert max(sizes) == 16
    assert len(db.read("i")) == 1000
