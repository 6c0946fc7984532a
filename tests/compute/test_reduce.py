"""Accumulable aggregates against recomputation from the multiset at every time."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators import reduce
from eddyline.compute.operators.group_table import GroupTable
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.ir import AggregateCall, Column
from eddyline.plan.dataflow import Reduce, ReduceFunctions
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, INTERVAL, NUMERIC, REAL, TEXT, SqlType, numeric
from tests.compute.operator_harness import AS_OF, Collector, Multiset, at, check, context, drive, random_history

CENTS = numeric(2)


def operator(node: Reduce):  # type: ignore[no-untyped-def]  # a function of functions
    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [ReduceOperator("r", inputs[0], node, output, context)]

    return build


def reduce_node(key: tuple[int, ...], key_types: tuple[SqlType, ...], *calls: AggregateCall) -> Reduce:
    types = (*key_types, *(c.type for c in calls))
    return Reduce(0, key, calls, ReduceFunctions.ACCUMULABLE, types, global_row=not key)


def groups_of(rows: Multiset, key: int) -> dict[Any, list[tuple[Any, ...]]]:
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for row, count in rows.items():
        assert count > 0
        groups.setdefault(row[key], []).extend([row] * count)
    return groups


EXACT_TYPES = (TEXT, INTEGER, CENTS, BOOLEAN)
EXACT_NODE = reduce_node(
    (0,),
    (TEXT,),
    AggregateCall("count", (), BIGINT),
    AggregateCall("count", (Column(1, INTEGER),), BIGINT),
    AggregateCall("sum", (Column(1, INTEGER),), BIGINT),
    AggregateCall("sum", (Column(2, CENTS),), CENTS),
    AggregateCall("sum", (Column(1, INTEGER),), BIGINT, filter=Column(3, BOOLEAN)),
    AggregateCall("bool_and", (Column(3, BOOLEAN),), BOOLEAN),
    AggregateCall("bool_or", (Column(3, BOOLEAN),), BOOLEAN),
    AggregateCall("sum", (Column(2, CENTS),), CENTS),
)


def exact_row(rng: random.Random) -> tuple[Any, ...]:
    cents = rng.choice((None, Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2)))
    return (rng.choice((None, *"abcdefgh")), rng.choice((None, rng.randrange(-9, 9), 2**31 - 1)), cents,
            rng.choice((None, True, False)))  # fmt: skip


def exact_oracle(rows: Multiset) -> Multiset:
    result: Multiset = Counter()
    for key, members in groups_of(rows, 0).items():
        ints = [m[1] for m in members if m[1] is not None]
        cents = [m[2] for m in members if m[2] is not None]
        kept = [m[1] for m in members if m[1] is not None and m[3]]
        flags = [m[3] for m in members if m[3] is not None]
        result[
            (
                key, len(members), len(ints), sum(ints) if ints else None, sum(cents) if cents else None,
                sum(kept) if kept else None, all(flags) if flags else None, any(flags) if flags else None,
                sum(cents) if cents else None,
            )
        ] += 1  # fmt: skip
    return result


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(6))
def test_exact_aggregates_follow_every_change(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    history = random_history(rng, exact_row, updates=250, times=15)
    budget = rng.choice((16, 65_536))
    collector = drive(operator(EXACT_NODE), [(EXACT_TYPES, history)], rng, bits=bits, budget_rows=budget)
    check(collector, [history], exact_oracle, EXACT_NODE.types)
    assert not collector.errors


@pytest.mark.parametrize("seed", range(4))
def test_a_snapshot_of_many_groups_is_taken_in_the_order_of_their_hashes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, least in (("_NEAR_GROUPS", 3), ("_LEAST_ORDERED", 20), ("_ROWS_A_GROUP", 1), ("_ORDERED_PIECE", 8)):
        monkeypatch.setattr(reduce, name, least)
    ordered: list[int] = []
    located = GroupTable.locate

    def seen(table: GroupTable, columns: Any, rows: int, hashes: Any = None) -> Any:
        if hashes is not None:
            ordered.append(rows)
        return located(table, columns, rows, hashes)

    monkeypatch.setattr(GroupTable, "locate", seen)
    rng = random.Random(seed)
    history = random_history(rng, exact_row, updates=400, times=15)
    collector = drive(operator(EXACT_NODE), [(EXACT_TYPES, history)], rng, budget_rows=rng.choice((16, 65_536)))
    check(collector, [history], exact_oracle, EXACT_NODE.types)
    at_as_of = sum(time == AS_OF for _, time, _ in history)
    assert len(ordered) > 5 and sum(ordered) > at_as_of // 2, "all but the first rows of the snapshot"


def test_one_update_at_a_time_gives_what_batches_give() -> None:
    rng = random.Random(3)
    history = random_history(rng, exact_row, updates=120, times=10)
    collector = drive(operator(EXACT_NODE), [(EXACT_TYPES, history)], rng, single=True)
    check(collector, [history], exact_oracle, EXACT_NODE.types)


@pytest.mark.parametrize("argument", [INTEGER, CENTS, NUMERIC])
def test_sum_and_average_of_one_argument_keep_one_state(argument: SqlType) -> None:
    def size(*calls: AggregateCall) -> int:
        node = reduce_node((0,), (TEXT,), *calls)
        return ReduceOperator("r", Output().connect(), node, Output(), context()).state_size().capacity

    column = Column(1, argument)
    total = AggregateCall("sum", (column,), argument)
    average = AggregateCall("avg", (column,), NUMERIC)
    some = AggregateCall("avg", (column,), NUMERIC, filter=Column(2, BOOLEAN))
    assert size(total, average) == size(total) > size()
    assert size(total, average, some) > size(total)


GLOBAL_NODE = reduce_node(
    (), (), AggregateCall("count", (), BIGINT), AggregateCall("sum", (Column(0, INTEGER),), BIGINT)
)


@pytest.mark.parametrize("seed", range(4))
def test_a_global_group_is_there_without_rows(seed: int) -> None:
    rng = random.Random(seed)
    history = random_history(rng, lambda r: (r.randrange(5),), updates=seed * 20, times=30)

    def oracle(rows: Multiset) -> Multiset:
        return Counter({(rows.total(), sum(r[0] * n for r, n in rows.items()) if rows else None): 1})

    collector = drive(operator(GLOBAL_NODE), [((INTEGER,), history)], rng)
    check(collector, [history], oracle, GLOBAL_NODE.types)


def test_bigint_overflow_is_an_error_of_its_group_and_heals() -> None:
    node = reduce_node((0,), (TEXT,), AggregateCall("sum", (Column(1, INTEGER),), BIGINT))
    history = [(("a", 2**31 - 1), 10, 2**33), (("b", 1), 10, 1), (("a", 2**31 - 1), 12, -(2**33) + 1)]
    collector = drive(operator(node), [((TEXT, INTEGER), history)], random.Random(1))
    assert at(collector.updates, 11) == Counter({("b", "1"): 1})
    [(error, count)] = at(collector.errors, 11).items()
    assert (error[0], error[1], count) == ("22003", "bigint out of range", 1)
    assert error[2] == "sum(#1)"
    assert at(collector.updates, 12) == Counter({("b", "1"): 1, ("a", str(2**31 - 1)): 1})
    assert not at(collector.errors, 12)


def test_a_group_with_a_negative_number_of_rows_is_an_error_until_it_recovers() -> None:
    node = reduce_node((0,), (TEXT,), AggregateCall("count", (), BIGINT))
    history = [(("a",), 10, -1), (("a",), 12, 3)]
    collector = drive(operator(node), [((TEXT,), history)], random.Random(1))
    assert [e[0] for e in at(collector.errors, 10)] == ["XX000"]
    assert at(collector.updates, 12) == Counter({("a", "2"): 1})
    assert not at(collector.errors, 12)


FLOAT_NODE = reduce_node(
    (0,),
    (INTEGER,),
    AggregateCall("sum", (Column(1, DOUBLE),), DOUBLE),
    AggregateCall("avg", (Column(1, DOUBLE),), DOUBLE),
)


def float_row(rng: random.Random) -> tuple[Any, ...]:
    value = rng.choice(
        (0.1, -0.1, 1e16, -1e16, 1e300, -1e300, 5e-324, 2.5e-310, 1.0, math.nan, math.inf, -math.inf, None,
         rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 290))
    )  # fmt: skip
    return (rng.randrange(6), value)


def float_sum(values: list[float]) -> float:
    if any(math.isnan(v) for v in values) or {math.inf, -math.inf} <= set(values):
        return math.nan
    return math.fsum(values)


def float_oracle(rows: Multiset) -> Multiset:
    result: Multiset = Counter()
    for key, members in groups_of(rows, 0).items():
        values = [m[1] for m in members if m[1] is not None]
        total = float_sum(values) if values else None
        result[(key, total, None if total is None else total / len(values))] += 1
    return result


@pytest.mark.parametrize("seed", range(8))
def test_float_sums_are_exact_and_invertible(seed: int) -> None:
    rng = random.Random(seed)
    history = random_history(rng, float_row, updates=200, times=12)
    # A NaN is a new key of a Counter each time it is made; one object stands for all of them here.
    collector = drive(operator(FLOAT_NODE), [((INTEGER, DOUBLE), history)], rng, budget_rows=rng.choice((20, 65_536)))
    check(collector, [history], float_oracle, FLOAT_NODE.types)


def test_a_float_sum_past_the_range_is_an_error_that_heals() -> None:
    history = [((1, 1.7e308), 10, 2), ((1, 1.7e308), 12, -1)]
    collector = drive(operator(FLOAT_NODE), [((INTEGER, DOUBLE), history)], random.Random(1))
    assert [e[:2] for e in at(collector.errors, 11)] == [("22003", "value out of range: overflow")]
    assert at(collector.updates, 12) == Counter({("1", "1.7e+308", "1.7e+308"): 1})


def test_sums_of_reals_are_rounded_once() -> None:
    node = reduce_node((), (), AggregateCall("sum", (Column(0, REAL),), REAL))
    history = [((1.0,), 10, 1), ((2.0**-24,), 10, 1), ((2.0**-50,), 10, 1), ((2.0**-50,), 11, -1)]
    collector = drive(operator(node), [((REAL,), history)], random.Random(1))
    assert at(collector.updates, 10) == Counter({("1.0000001",): 1})
    assert at(collector.updates, 11) == Counter({("1",): 1})


def statistics(func: str, values: Sequence[Any], scale: int) -> Fraction | None:
    count = len(values)
    sample = func.endswith("_samp")
    if count <= (1 if sample else 0):
        return None
    exact = [Fraction(v) for v in values]
    total = sum(exact, Fraction(0))
    return (sum((v * v for v in exact), Fraction(0)) - total * total / count) / (count - 1 if sample else count)


@pytest.mark.parametrize("argument", [INTEGER, CENTS, NUMERIC, DOUBLE])
@pytest.mark.parametrize("func", ["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
def test_variances_are_exact_to_the_last_digit_shown(func: str, argument: SqlType) -> None:
    rng = random.Random(len(func))
    result = DOUBLE if argument is DOUBLE else NUMERIC
    node = reduce_node((0,), (INTEGER,), AggregateCall(func, (Column(1, argument),), result))

    def value(r: random.Random) -> Any:
        if argument is INTEGER:
            return r.randrange(-1000, 1000)
        if argument is DOUBLE:
            return r.uniform(-1, 1) * 10.0 ** r.randrange(-5, 5)
        return Decimal(r.randrange(-(10**6), 10**6)).scaleb(-2 if argument is CENTS else -r.randrange(5))

    history = random_history(rng, lambda r: (r.randrange(4), r.choice((None, value(r)))), updates=120, times=10)
    collector = drive(operator(node), [((INTEGER, argument), history)], rng)
    for time in range(AS_OF, 21):
        shown = {row[0]: row[1] for row in at(collector.updates, time)}
        groups = groups_of(at(history, time), 0)
        assert set(shown) == {str(key) for key in groups}
        for key, members in groups.items():
            text = shown[str(key)]
            expected = statistics(func, [m[1] for m in members if m[1] is not None], 2)
            assert (text is None) == (expected is None)
            if text is not None and expected is not None:
                found = float(text)
                exact = math.sqrt(expected) if func.startswith("stddev") else float(expected)
                assert math.isclose(found, exact, rel_tol=1e-13 if argument is DOUBLE else 1e-9, abs_tol=1e-15)


@pytest.mark.parametrize("bits", [None, 4])
def test_sums_of_numerics_show_the_largest_scale_among_them(bits: int | None) -> None:
    rng = random.Random(11)
    node = reduce_node((0,), (INTEGER,), AggregateCall("sum", (Column(1, NUMERIC),), NUMERIC))

    def row(r: random.Random) -> tuple[Any, ...]:
        return (r.randrange(5), r.choice((None, Decimal(r.randrange(-(10**9), 10**9)).scaleb(-r.randrange(0, 12)))))

    def oracle(rows: Multiset) -> Multiset:
        result: Multiset = Counter()
        for key, members in groups_of(rows, 0).items():
            values = [m[1] for m in members if m[1] is not None]
            result[(key, sum(values) if values else None)] += 1
        return result

    history = random_history(rng, row, updates=200, times=12)
    collector = drive(operator(node), [((INTEGER, NUMERIC), history)], rng, bits=bits)
    check(collector, [history], oracle, node.types)


def shown(node: Reduce, types: Sequence[SqlType], rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The only output row for the input rows."""
    collector: Collector = drive(operator(node), [(types, [(row, 10, 1) for row in rows])], random.Random(0))
    [row] = at(collector.updates, 10)
    return row


@pytest.mark.parametrize(
    ("argument", "values", "expected"),
    [
        (INTEGER, (1, 2), "1.5000000000000000 0.50000000000000000000 0.70710678118654752440 0.25000000000000000000"),
        (INTEGER, (0, 0), "0.00000000000000000000 0 0 0"),
        (INTEGER, (1, 2, 4, 7), "3.5000000000000000 7.0000000000000000 2.6457513110645906 5.2500000000000000"),
        (CENTS, ("1.50", "2.25"),
         "1.8750000000000000 0.28125000000000000000 0.53033008588991064330 0.14062500000000000000"),
        (NUMERIC, ("100000", "0.001"), "50000.000500000000 4999999900.00000050 70710.67741155 2499999950.00000025"),
    ],
)  # fmt: skip
def test_averages_and_variances_print_as_postgresql_prints_them(
    argument: SqlType, values: tuple[Any, ...], expected: str
) -> None:
    calls = [AggregateCall(f, (Column(0, argument),), NUMERIC) for f in ("avg", "var_samp", "stddev_samp", "var_pop")]
    rows = [(Decimal(v) if isinstance(v, str) else v,) for v in values]
    assert shown(reduce_node((), (), *calls), (argument,), rows) == tuple(expected.split())


def test_sums_and_averages_of_intervals_cascade_as_in_postgresql() -> None:
    calls = [AggregateCall(f, (Column(0, INTERVAL),), INTERVAL) for f in ("avg", "sum")]
    rows = [("1 mon 3 days",), ("2 mons -4 days 01:02:03.5",), ("17 days",)]
    assert shown(reduce_node((), (), *calls), (INTERVAL,), rows) == (
        "1 mon 5 days 08:20:41.166667",
        "3 mons 16 days 01:02:03.5",
    )
