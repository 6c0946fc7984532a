"""The operators of a read's one time give what the incremental ones give at that time, retractions or not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.operators.snapshot_reduce import SnapshotReduceOperator
from eddyline.compute.operators.snapshot_top_k import SnapshotTopKOperator
from eddyline.compute.operators.top_k import TopKOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.ir import AggregateCall, Column, SortKey
from eddyline.plan.dataflow import Reduce, ReduceFunctions, TopK
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import BIGINT, INTEGER, TEXT, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.hasher import Hasher
from tests.compute.operator_harness import texts

AS_OF = Time(10)
Rows = Counter[tuple[str | None, ...]]
Build = Callable[[Stream, Output, OperatorContext], Operator]


def at_one_time(build: Build, batches: Sequence[Batch], *, bits: int | None = None, budget_rows: int = 65_536) -> Rows:
    hasher = Hasher(7) if bits is None else Hasher(7, bits=bits)
    context = OperatorContext(hasher, AS_OF, Frontier(AS_OF + 1), budget_rows=budget_rows)
    assert context.single_time
    source, output = Output(), Output()
    operator = build(source.connect(), output, context)
    found = output.connect()
    for batch in batches:
        source.send(batch)
        operator.step()
    source.advance(Frontier(AS_OF + 1))
    while operator.pending():
        operator.step()
    operator.close()
    assert not found.errors
    assert found.frontier == AS_OF + 1
    total: Rows = Counter()
    for batch in found.updates:
        assert (batch.times == AS_OF).all()
        for row, diff in zip(texts(batch), batch.diffs.tolist(), strict=True):
            total[row] += diff
    return Counter({row: n for row, n in total.items() if n})


def some_rows(types: tuple[SqlType, ...], rng: random.Random, *, retracting: bool) -> list[Batch]:
    """Batches at as_of, or before; what some retract, others hold, before or after."""
    batches = []
    for _ in range(rng.randrange(1, 6)):
        rows = rng.randrange(1, 60)
        columns = tuple(random_column(t, rows, rng) for t in types)
        diffs = np.array([rng.choice((1, 1, 1, 2, 5)) for _ in range(rows)])
        batches.append(Batch(types, columns, np.full(rows, AS_OF, np.int64), diffs))
    if retracting:
        for batch in list(batches):
            gone = np.array(sorted(rng.sample(range(len(batch)), rng.randrange(len(batch) + 1))), np.int64)
            if len(gone):
                batches.append(batch.take(gone).negated())
    rng.shuffle(batches)
    return batches


@pytest.mark.parametrize("retracting", [False, True])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_top_k_of_every_type(kind: SqlType, retracting: bool) -> None:
    rng = random.Random(f"{kind}{retracting}")
    types = (INTEGER, kind, TEXT)
    for group, bits in (((), None), ((), 4), ((0,), None), ((0,), 4)):
        order = rng.choice(((SortKey(1, rng.random() < 0.5, rng.random() < 0.5),), (SortKey(1), SortKey(2, True)), ()))
        node = TopK(0, group, order, rng.choice((0, 1, 3, 50)), rng.choice((0, 0, 2)), types)
        batches = some_rows(types, rng, retracting=retracting)
        budget_rows = rng.choice((7, 65_536))

        def incremental(i: Stream, o: Output, c: OperatorContext, node: TopK = node) -> Operator:
            return TopKOperator("t", i, node, o, c)

        def once(i: Stream, o: Output, c: OperatorContext, node: TopK = node) -> Operator:
            return SnapshotTopKOperator("t", i, node, o, c)

        expected = at_one_time(incremental, batches, bits=bits)
        assert at_one_time(once, batches, bits=bits, budget_rows=budget_rows) == expected


@pytest.mark.parametrize("retracting", [False, True])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_extremes_of_every_type_are_the_top_rows(kind: SqlType, retracting: bool) -> None:
    rng = random.Random(f"{kind}{retracting}")
    types = (INTEGER, kind)
    for func in ("min", "max"):
        batches = some_rows(types, rng, retracting=retracting)
        calls = (AggregateCall("count", (), BIGINT), AggregateCall(func, (Column(1, kind),), kind))
        reduce = Reduce(0, (0,), calls, ReduceFunctions.ACCUMULABLE, (INTEGER, BIGINT, kind))
        top = TopK(0, (0,), (SortKey(1, desc=func == "max"),), 1, 0, types)
        counts = Reduce(0, (0,), calls[:1], ReduceFunctions.ACCUMULABLE, (INTEGER, BIGINT))

        def once(i: Stream, o: Output, c: OperatorContext, node: Reduce = reduce) -> Operator:
            return SnapshotReduceOperator("r", i, node, o, c)

        def extremes(i: Stream, o: Output, c: OperatorContext, node: TopK = top) -> Operator:
            return TopKOperator("t", i, node, o, c)

        def counting(i: Stream, o: Output, c: OperatorContext, node: Reduce = counts) -> Operator:
            return ReduceOperator("r", i, node, o, c)

        found = at_one_time(once, batches, bits=rng.choice((None, 4)), budget_rows=rng.choice((7, 65_536)))
        values = {row[0]: row[1] for row in at_one_time(extremes, batches)}
        numbers = {row[0]: row[1] for row in at_one_time(counting, batches)}
        assert found == Counter({(key, count, values[key]): 1 for key, count in numbers.items()})


@pytest.mark.parametrize("func", ["min", "max"])
def test_an_extreme_of_nothing_is_null(func: str) -> None:
    call = AggregateCall(func, (Column(0, INTEGER),), INTEGER)
    node = Reduce(0, (), (call,), ReduceFunctions.ACCUMULABLE, (INTEGER,), global_row=True)

    def build(i: Stream, o: Output, c: OperatorContext) -> Operator:
        return SnapshotReduceOperator("r", i, node, o, c)

    assert at_one_time(build, []) == Counter({(None,): 1})
    batch = Batch((INTEGER,), (random_column(INTEGER, 5, random.Random(1)),), np.full(5, AS_OF), np.ones(5, np.int64))
    assert at_one_time(build, [batch, batch.negated()]) == Counter({(None,): 1})
