"""The operators of a read's one time give what the incremental ones give at that time, retractions or not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import CollectedArrangement, CollectedTrace
from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.collect import CollectOperator
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.operators.snapshot_join import SnapshotJoinOperator, Unarranged
from eddyline.compute.operators.snapshot_reduce import SnapshotReduceOperator
from eddyline.compute.operators.snapshot_top_k import SnapshotTopKOperator
from eddyline.compute.operators.top_k import TopKOperator
from eddyline.compute.stream import ArrangedOutput, Operator, Output, Stream
from eddyline.compute.walk import Pace
from eddyline.expr.ir import AggregateCall, Column, Mfp, SortKey
from eddyline.plan.dataflow import Join, Reduce, ReduceFunctions, TopK
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import BIGINT, INTEGER, TEXT, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.testing.counting import counting
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout
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


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("retracting", [False, True])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_extremes_of_every_type_are_the_top_rows(
    kind: SqlType, retracting: bool, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``many``: as where there are so many groups that rows are put in the order of their keys."""
    for name, least in (("_NEAR_GROUPS", 2), ("_LEAST_ORDERED", 20), ("_ROWS_A_GROUP", 1), ("_ORDERED_PIECE", 8)):
        if many:
            monkeypatch.setattr(f"eddyline.compute.operators.reduce.{name}", least)
    rng = random.Random(f"{kind}{retracting}")
    types = (INTEGER, kind)
    for func in ("min", "max"):
        batches = some_rows(types, rng, retracting=retracting)
        calls = (AggregateCall("count", (), BIGINT), AggregateCall(func, (Column(1, kind),), kind))
        doubled = (*calls, AggregateCall("min" if func == "max" else "max", (Column(0, INTEGER),), INTEGER))
        reduce = Reduce(0, (0,), doubled, ReduceFunctions.ACCUMULABLE, (INTEGER, BIGINT, kind, INTEGER))
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
        assert found == Counter({(key, count, values[key], key): 1 for key, count in numbers.items()})


@pytest.mark.parametrize("func", ["min", "max"])
def test_an_extreme_of_nothing_is_null(func: str) -> None:
    call = AggregateCall(func, (Column(0, INTEGER),), INTEGER)
    node = Reduce(0, (), (call,), ReduceFunctions.ACCUMULABLE, (INTEGER,), global_row=True)

    def build(i: Stream, o: Output, c: OperatorContext) -> Operator:
        return SnapshotReduceOperator("r", i, node, o, c)

    assert at_one_time(build, []) == Counter({(None,): 1})
    batch = Batch((INTEGER,), (random_column(INTEGER, 5, random.Random(1)),), np.full(5, AS_OF), np.ones(5, np.int64))
    assert at_one_time(build, [batch, batch.negated()]) == Counter({(None,): 1})


LEFT, RIGHT = (INTEGER, TEXT), (TEXT, INTEGER)


def joined(
    batches: tuple[Sequence[Batch], Sequence[Batch]],
    node: Join,
    arranged: tuple[bool, bool],
    *,
    bits: int | None = None,
    budget_rows: int = 65_536,
) -> tuple[Rows, int]:
    """(what the join gives of rows that come in turns, rows that were put into arrangements for it)."""
    hasher = Hasher(7) if bits is None else Hasher(7, bits=bits)
    context = OperatorContext(hasher, AS_OF, Frontier(AS_OF + 1), budget_rows=budget_rows)
    key = (0,) if node.null_safe else ()
    layouts = (Layout(LEFT, key), Layout(RIGHT, tuple(1 for _ in key)))
    sources, output = (Output(), Output()), Output()
    operators: list[Operator] = []
    sides: list[ArrangedOutput | Unarranged] = []
    for source, layout, there in zip(sources, layouts, arranged, strict=True):
        if there:
            edge = ArrangedOutput(new_arrangement(layout, context))
            operators.append(ArrangeOperator("a", source.connect(), layout, edge, context))
            sides.append(edge)
        else:
            sides.append(Unarranged("u", source.connect(), layout, context))
    found = output.connect()
    join = SnapshotJoinOperator("j", sides[0], sides[1], node, output, context)
    operators.append(join)
    for number in range(max(map(len, batches))):
        for source, its in zip(sources, batches, strict=True):
            if number < len(its):
                source.send(its[number])
        for operator in operators:
            operator.step()
    assert not found.updates, "nothing is joined before all is there"
    for source in sources:
        source.advance(Frontier(AS_OF + 1))
    while any(operator.pending() for operator in operators):
        for operator in operators:
            before = sum(map(len, found.updates))
            operator.step()
            assert sum(map(len, found.updates)) - before <= 2 * budget_rows
    kept = join.state_size().records
    join.close()
    assert found.frontier == AS_OF + 1 and not found.errors
    total: Rows = Counter()
    for batch in found.updates:
        assert (batch.times == AS_OF).all()
        for row, diff in zip(texts(batch), batch.diffs.tolist(), strict=True):
            total[row] += diff
    return Counter({row: n for row, n in total.items() if n}), kept


def pairs(left: Sequence[Batch], right: Sequence[Batch], null_safe: tuple[bool, ...]) -> Rows:
    """From scratch: each row with each."""
    sums: list[Rows] = [Counter(), Counter()]
    for total, its in zip(sums, (left, right), strict=True):
        for batch in its:
            for row, diff in zip(texts(batch), batch.diffs.tolist(), strict=True):
                total[row] += diff
    result: Rows = Counter()
    for a, n in sums[0].items():
        for b, m in sums[1].items():
            if all(a[0] == b[1] and (safe or a[0] is not None) for safe in null_safe):
                result[(*a, *b)] += n * m
    return Counter({row: n for row, n in result.items() if n})


@pytest.mark.parametrize("arranged", [(False, False), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("null_safe", [(False,), (True,), ()], ids=str)
@pytest.mark.parametrize("retracting", [False, True])
def test_a_join_of_rows_that_are_not_arranged_pairs_each_with_each(
    arranged: tuple[bool, bool], null_safe: tuple[bool, ...], retracting: bool
) -> None:
    rng = random.Random(f"{arranged}{null_safe}{retracting}")
    node = Join(0, 1, null_safe, Mfp((), tuple(range(4)), (*LEFT, *RIGHT)))
    for bits, budget_rows in ((None, 65_536), (4, 7)):
        left = some_rows(LEFT, rng, retracting=retracting)
        right = some_rows(RIGHT, rng, retracting=retracting)
        found, _ = joined((left, right), node, arranged, bits=bits, budget_rows=budget_rows)
        assert found == pairs(left, right, null_safe)
        assert joined((left, []), node, arranged, bits=bits)[0] == Counter()
        assert joined(([], right), node, arranged, bits=bits)[0] == Counter()


def test_a_join_arranges_the_smaller_input_or_none() -> None:
    rng = random.Random(3)
    node = Join(0, 1, (False,), Mfp((), tuple(range(4)), (*LEFT, *RIGHT)))

    def rows(types: tuple[SqlType, ...], count: int) -> list[Batch]:
        columns = tuple(random_column(t, count, rng) for t in types)
        return [Batch(types, columns, np.full(count, AS_OF), np.full(count, 1))]

    few, many = rows(LEFT, 10), rows(RIGHT, 500)
    assert 0 < joined((few, many), node, (False, False))[1] <= 10
    assert 0 < joined((rows(LEFT, 500), rows(RIGHT, 10)), node, (False, False))[1] <= 10
    assert joined((few, many), node, (True, False))[1] == 0
    assert joined((few, many), node, (False, True))[1] == 0


def collected(batches: Sequence[Batch], types: tuple[SqlType, ...], *, budget_rows: int = 65_536) -> CollectedTrace:
    context = OperatorContext(Hasher(7, bits=6), AS_OF, Frontier(AS_OF + 1), budget_rows=budget_rows)
    arrangement, source = CollectedArrangement(Layout(types, ())), Output()
    output = ArrangedOutput(arrangement)
    operator = CollectOperator("c", source.connect(), types, arrangement, output, context)
    for batch in batches:
        source.send(batch)
        operator.step()
    assert output.frontier <= AS_OF
    source.advance(Frontier(AS_OF + 1))
    while operator.pending():
        operator.step()
    assert output.frontier == AS_OF + 1
    kept = arrangement.collected.rows
    operator.close()
    assert arrangement.collected.rows == kept, "the rows are its readers'"
    return arrangement.collected


def counted(batches: Iterable[Batch]) -> Rows:
    total: Rows = Counter()
    for batch in batches:
        for row, diff in zip(texts(batch), batch.diffs.tolist(), strict=True):
            total[row] += diff
    return Counter({row: n for row, n in total.items() if n})


@pytest.mark.parametrize("retracting", [False, True])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_a_result_is_what_came_less_what_was_taken_back(kind: SqlType, retracting: bool) -> None:
    rng = random.Random(f"{kind}{retracting}")
    types = (INTEGER, kind)
    batches = some_rows(types, rng, retracting=retracting)
    trace = collected(batches, types, budget_rows=rng.choice((7, 65_536)))
    slices = trace.slices(Pace(10))
    assert slices is not None
    pieces = list(slices)
    assert all(0 < len(piece) <= 10 and (piece.diffs > 0).all() for piece in pieces)
    assert counted(pieces) == counted(batches)
    assert counted([trace.snapshot().read_at(AS_OF)]) == counted(batches), "and in order for who looks up in it"
    assert trace.slices(Pace(10)) is None


def test_rows_that_nobody_takes_back_are_a_result_by_reference() -> None:
    columns = (random_column(INTEGER, 5000, random.Random(1)),)
    batch = Batch.at((INTEGER,), columns, 5000, AS_OF)
    with counting() as counted_calls:
        trace = collected([batch], (INTEGER,))
        slices = trace.slices(Pace(5000))
        assert slices is not None
        (piece, *_) = slices
    assert piece.columns[0].buffers()[1].address == columns[0].buffers()[1].address
    assert not counted_calls.calls, "nothing is hashed or sorted"
