"""The incremental join, and the arrangements it reads, against nested loops at every time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.join_changes import JoinChanges
from eddyline.compute.operators.stateless import FlattenOperator
from eddyline.compute.stream import ArrangedOutput, Operator, Output, Sealed, Stream
from eddyline.expr.ir import Call, Column, FilterStep, Literal, Mfp
from eddyline.plan.dataflow import Join
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import BOOLEAN, INTEGER, TEXT
from eddyline.testing.counting import counting
from eddyline.trace.run import Layout, build_run
from eddyline.trace.snapshot import Snapshot
from tests.compute.operator_harness import (
    AS_OF,
    Collector,
    Multiset,
    at,
    batch_of,
    check,
    context,
    drive,
    random_history,
    settle,
)

LEFT = (INTEGER, TEXT)
RIGHT = (TEXT, INTEGER)
OUT = (*LEFT, *RIGHT)


def left_row(rng: random.Random) -> tuple[Any, ...]:
    return (rng.choice((None, *range(8))), rng.choice("abc"))


def right_row(rng: random.Random) -> tuple[Any, ...]:
    return (rng.choice(("x", None, "yy")), rng.choice((None, *range(8))))


def joining(null_safe: bool, *, key: bool = True):  # type: ignore[no-untyped-def]  # a function of functions
    node = Join(0, 1, (null_safe,) if key else (), Mfp((), tuple(range(4)), OUT))

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        layouts = (Layout(LEFT, (0,) if key else ()), Layout(RIGHT, (1,) if key else ()))
        edges = [ArrangedOutput(new_arrangement(layout, ctx)) for layout in layouts]
        arranges = [
            ArrangeOperator("a", stream, layout, edge, ctx)
            for stream, layout, edge in zip(inputs, layouts, edges, strict=True)
        ]
        return [*arranges, JoinOperator("j", edges[0].connect(), edges[1].connect(), node, output, ctx)]

    return build


def oracle(null_safe: bool, *, key: bool = True):  # type: ignore[no-untyped-def]  # a function of functions
    def join(left: Multiset, right: Multiset) -> Multiset:
        result: Multiset = Counter()
        for a, n in left.items():
            for b, m in right.items():
                if not key or (a[0] == b[1] and (null_safe or a[0] is not None)):
                    result[(*a, *b)] += n * m
        return result

    return join


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(8))
def test_join_pairs_every_update_once_at_the_later_time(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    left = random_history(rng, left_row, updates=100, times=12, negative=True)
    right = random_history(rng, right_row, updates=100, times=12, negative=True)
    null_safe = seed % 2 == 0
    budget = rng.choice((8, 65_536))
    collector = drive(joining(null_safe), [(LEFT, left), (RIGHT, right)], rng, bits=bits, budget_rows=budget)
    check(collector, [left, right], oracle(null_safe), OUT)


def test_an_empty_key_gives_the_cross_product() -> None:
    rng = random.Random(1)
    left = random_history(rng, left_row, updates=30, times=6)
    right = random_history(rng, right_row, updates=30, times=6)
    collector = drive(joining(False, key=False), [(LEFT, left), (RIGHT, right)], rng, budget_rows=16)
    check(collector, [left, right], oracle(False, key=False), OUT)


def test_one_update_at_a_time_gives_what_batches_give() -> None:
    rng = random.Random(2)
    left = random_history(rng, left_row, updates=60, times=8)
    right = random_history(rng, right_row, updates=60, times=8)
    collector = drive(joining(True), [(LEFT, left), (RIGHT, right)], rng, single=True)
    check(collector, [left, right], oracle(True), OUT)


@pytest.mark.parametrize("seed", range(3))
def test_an_arrangement_joins_itself(seed: int) -> None:
    rng = random.Random(seed)
    history = random_history(rng, left_row, updates=80, times=10)
    node = Join(0, 0, (False,), Mfp((), tuple(range(4)), (*LEFT, *LEFT)))

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        edge = ArrangedOutput(new_arrangement(Layout(LEFT, (0,)), ctx))
        return [
            JoinOperator("j", edge.connect(), edge.connect(), node, output, ctx),
            ArrangeOperator("a", inputs[0], Layout(LEFT, (0,)), edge, ctx),
        ]

    def pairs(rows: Multiset) -> Multiset:
        result: Multiset = Counter()
        for a, n in rows.items():
            for b, m in rows.items():
                if a[0] is not None and a[0] == b[0]:
                    result[(*a, *b)] += n * m
        return result

    collector = drive(build, [(LEFT, history)], rng, budget_rows=rng.choice((8, 65_536)))
    check(collector, [history], pairs, (*LEFT, *LEFT))


def test_a_key_with_many_matches_comes_in_bounded_pieces() -> None:
    ctx = context(budget_rows=1000)
    ends, output = [Output(), Output()], Output()
    consumer = output.connect()
    operators = joining(False)([end.connect() for end in ends], output, ctx)
    join = operators[-1]
    for end, types, row in ((ends[0], LEFT, (1, "a")), (ends[1], RIGHT, ("x", 1))):
        rows = [((row[0], f"a{n}") if types is LEFT else (f"x{n}", row[1]), 10, 1) for n in range(100)]
        end.send(batch_of(types, rows))
        end.advance(Frontier(11))
    for arrange in operators[:2]:
        while arrange.pending():
            arrange.step()
    activations = 0
    while join.pending():
        before = sum(map(len, consumer.updates))
        join.step()
        assert sum(map(len, consumer.updates)) - before <= 2000
        activations += 1
        assert consumer.frontier == (0 if join.pending() else 11)
    assert sum(map(len, consumer.updates)) == 10_000
    assert activations >= 5


def test_a_complete_input_releases_the_other_trace() -> None:
    ctx = context()
    ends = [Output(), Output()]
    output = Output()
    collector = Collector(output)
    operators = joining(False)([end.connect() for end in ends], output, ctx)
    join = operators[-1]
    assert isinstance(join, JoinOperator)
    ends[0].send(batch_of(LEFT, [((1, "a"), 10, 1)]))
    ends[0].advance(EMPTY)
    ends[1].advance(Frontier(12))
    settle(operators, collector)
    assert [side.handle is None for side in (join._left, join._right)] == [False, True]
    ends[1].send(batch_of(RIGHT, [(("x", 1), 15, 1)]))
    ends[1].advance(EMPTY)
    settle(operators, collector)
    assert collector.updates == [(("1", "a", "x", "1"), 15, 1)]


def test_a_product_of_multiplicities_that_overflows_is_an_error_that_stays() -> None:
    left = [((1, "a"), 10, 2**40), ((1, "a"), 12, 1 - 2**40), ((2, "a"), 10, 2**31)]
    right = [(("x", 1), 10, 2**40), (("x", 2), 10, 2**30)]
    collector = drive(joining(False), [(LEFT, left), (RIGHT, right)], random.Random(0))
    assert [e[:2] for e in at(collector.errors, 10)] == [("22003", "multiplicity out of range")]
    assert at(collector.errors, 12)
    assert at(collector.updates, 12) == Counter({("2", "a", "x", "2"): 2**61})


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(6))
def test_an_arrangement_holds_the_collection_at_every_time_and_seals_contiguously(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    history = random_history(rng, left_row, updates=200, times=10, negative=True)
    layout = Layout(LEFT, (0,))
    edges: list[ArrangedOutput] = []
    spies = []

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        edge = ArrangedOutput(new_arrangement(layout, ctx))
        edges.append(edge)
        spies.append(edge.connect())
        flatten = FlattenOperator("f", edge.connect(), output, ctx)
        return [ArrangeOperator("a", inputs[0], layout, edge, ctx), flatten]

    collector = drive(build, [(LEFT, history)], rng, bits=bits, budget_rows=rng.choice((8, 65_536)))
    check(collector, [history], lambda rows: rows, LEFT)
    snapshot = edges[0].arrangement.oks.snapshot()
    for time in range(AS_OF, 22):
        batch = snapshot.read_at(Time(time))
        found = Counter(
            dict(zip(zip(*(c.to_pylist() for c in batch.columns), strict=True), batch.diffs.tolist(), strict=True))
        )
        assert found == at(history, time)
        scanned: Multiset = Counter()
        for piece in snapshot.scan(below=Frontier(time + 1)):
            for row, diff in zip(
                zip(*(c.to_pylist() for c in piece.columns), strict=True), piece.diffs.tolist(), strict=True
            ):
                scanned[row] += diff
        assert Counter({r: n for r, n in scanned.items() if n}) == at(history, time)
    lower = Frontier(0)
    for sealed in spies[0].sealed:
        assert sealed.lower == lower < sealed.upper
        lower = sealed.upper
    assert lower == EMPTY


@pytest.mark.parametrize("sizes", [(500, 20), (20, 500)])
def test_the_smaller_snapshot_probes_the_larger_one(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever side it is, and whichever is sealed first."""
    probed: list[int] = []
    probe = Snapshot.probe_pieces

    def counted(self: Snapshot, columns: Any, types: Any, hashes: Any, **rest: Any) -> Any:
        probed.append(len(hashes))
        return probe(self, columns, types, hashes, **rest)

    monkeypatch.setattr(Snapshot, "probe_pieces", counted)
    left = [((i, "a"), AS_OF, 1) for i in range(sizes[0])]
    right = [(("x", i), AS_OF, 1) for i in range(sizes[1])]
    for seed in range(4):
        probed.clear()
        collector = drive(joining(False), [(LEFT, left), (RIGHT, right)], random.Random(seed))
        assert sum(probed) == 20
        check(collector, [left, right], oracle(False), OUT)


WIDE_LEFT, WIDE_RIGHT = (INTEGER, TEXT, TEXT), (INTEGER, TEXT)


def bytes_of_a_change(text: str, projection: tuple[int, ...]) -> int:
    """Copied by a join for one interval of 50 rows that meet a row each."""
    ctx, output = context(), Output()
    types = tuple((*WIDE_LEFT, *WIDE_RIGHT)[c] for c in projection)
    sources, edges, operators = [Output(), Output()], [], []
    for source, row_types in zip(sources, (WIDE_LEFT, WIDE_RIGHT), strict=True):
        layout = Layout(row_types, (0,))
        edge = ArrangedOutput(new_arrangement(layout, ctx))
        operators.append(ArrangeOperator("a", source.connect(), layout, edge, ctx))
        edges.append(edge)
    node = Join(0, 1, (False,), Mfp((), projection, types))
    join = JoinOperator("j", edges[0].connect(), edges[1].connect(), node, output, ctx)
    got = output.connect()

    def seal(upper: int) -> None:
        for source in sources:
            source.advance(Frontier(upper))
        for operator in operators:
            while operator.pending():
                operator.step()

    sources[1].send(batch_of(WIDE_RIGHT, [((i, text), AS_OF, 1) for i in range(50)]))
    seal(AS_OF + 1)
    while join.pending():
        join.step()
    sources[0].send(batch_of(WIDE_LEFT, [((i, text, "x"), AS_OF + 1, 1) for i in range(50)]))
    seal(AS_OF + 2)
    with counting() as counted:
        while join.pending():
            join.step()
    assert sum(map(len, got.updates)) == 50
    return counted.bytes


def test_columns_that_the_output_lacks_are_not_copied() -> None:
    wide, short = "w" * 400, "s"
    assert bytes_of_a_change(wide, (0, 2)) == bytes_of_a_change(short, (0, 2))
    assert bytes_of_a_change(wide, (0, 4)) > bytes_of_a_change(short, (0, 4)) + 50 * 300


def test_columns_of_rows_that_meet_one_row_each_are_handed_on_as_they_are() -> None:
    assert bytes_of_a_change("w" * 400, (0, 1, 2)) == bytes_of_a_change("s", (0, 1, 2))


def _narrowing(mfp: Mfp):  # type: ignore[no-untyped-def]  # a function of functions
    """LEFT by its number with rows that are wider than what ``mfp`` reads."""
    node = Join(0, 1, (False,), mfp)

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        edges = [ArrangedOutput(new_arrangement(layout, ctx)) for layout in (Layout(LEFT, (0,)), Layout(RIGHT, (1,)))]
        arranges = [
            ArrangeOperator("a", stream, edge.arrangement.oks.layout, edge, ctx)
            for stream, edge in zip(inputs, edges, strict=True)
        ]
        return [*arranges, JoinOperator("j", edges[0].connect(), edges[1].connect(), node, output, ctx)]

    return build


def test_an_interval_whose_runs_have_only_later_changes_has_none() -> None:
    ctx, layout = context(), Layout(LEFT, (0,))
    later = batch_of(LEFT, [((1, "a"), 20, 1), ((1, "b"), 21, -1)])
    run = build_run(later, layout, ctx.hasher, lower=Frontier(0), upper=Frontier(30), since=Frontier(0))
    changes = JoinChanges(layout, Mfp((), (0,), (INTEGER,)), ctx)
    assert list(changes.of(Sealed((run, run), None, Frontier(0), Frontier(20)))) == []
    assert [len(c.batch) for c in changes.of(Sealed((run, run), None, Frontier(0), Frontier(21)))] == [2]


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(8))
def test_what_the_result_drops_or_one_side_decides_changes_no_pair(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    left = random_history(rng, left_row, updates=100, times=12, negative=True)
    right = random_history(rng, right_row, updates=100, times=12, negative=True)
    is_a = FilterStep(Call("gt", (Column(1, TEXT), Literal("a", TEXT)), BOOLEAN))
    present = FilterStep(Call("is_not_null", (Column(2, TEXT),), BOOLEAN))
    steps, projection = rng.choice((((), (0,)), ((is_a,), (0, 2)), ((is_a, present), (3,)), ((present,), ())))
    types = tuple(OUT[c] for c in projection)

    def join(one: Multiset, other: Multiset) -> Multiset:
        result: Multiset = Counter()
        for row, n in oracle(False)(one, other).items():
            if (is_a not in steps or row[1] > "a") and (present not in steps or row[2] is not None):
                result[tuple(row[c] for c in projection)] += n
        return result

    budget = rng.choice((8, 65_536))
    build = _narrowing(Mfp(steps, projection, types))
    collector = drive(build, [(LEFT, left), (RIGHT, right)], rng, bits=bits, budget_rows=budget)
    check(collector, [left, right], join, types)


def test_a_change_of_what_the_result_drops_meets_no_row() -> None:
    """Also where it comes in several runs."""
    for budget in (65_536, 40):
        ctx = context(budget_rows=budget)
        ends, output = [Output(), Output()], Output()
        consumer = output.connect()
        operators = _narrowing(Mfp((), (0, 2), (INTEGER, TEXT)))([end.connect() for end in ends], output, ctx)
        ends[0].send(batch_of(LEFT, [((n % 5, f"a{n}"), 10, 1) for n in range(20)]))
        ends[1].send(batch_of(RIGHT, [((f"x{n}", n % 5), 10, 1) for n in range(1000)]))
        for end in ends:
            end.advance(Frontier(11))
        while any(o.pending() for o in operators):
            for operator in operators:
                operator.step()
        assert sum(map(len, consumer.updates)) == 4000
        consumer.updates.clear()
        ends[0].send(batch_of(LEFT, [((n % 5, f"a{n}"), 12, -1) for n in range(20)]))
        ends[0].send(batch_of(LEFT, [((n % 5, f"b{n}"), 12, 1) for n in range(20)]))
        for end in ends:
            end.advance(Frontier(13))
        while any(o.pending() for o in operators):
            for operator in operators:
                operator.step()
        assert consumer.frontier == 13
        assert not consumer.updates
