"""mfp, generate_series, constants."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.constant import ConstantOperator
from eddyline.compute.operators.flat_map import FlatMapOperator
from eddyline.compute.operators.mfp import MfpOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.ir import Call, Column, FilterStep, Literal, MapStep, Mfp
from eddyline.plan.dataflow import ConstantSource, FlatMap
from eddyline.repr.time import EMPTY
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, INTERVAL, NUMERIC, TEXT, TIMESTAMP, SqlType
from tests.compute.operator_harness import (
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


def series(types: Sequence[SqlType], *, mfp: Mfp | None = None):  # type: ignore[no-untyped-def]  # a function of functions
    args = tuple(Column(i, t) for i, t in enumerate(types))
    node = FlatMap(0, "generate_series", args, (*types, types[0]), mfp)

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        return [FlatMapOperator("g", inputs[0], node, output, ctx)]

    return build


@pytest.mark.parametrize("kind", [INTEGER, BIGINT])
@pytest.mark.parametrize("budget", [7, 65_536])
def test_integer_series_follow_their_rows(kind: SqlType, budget: int) -> None:
    rng = random.Random(budget)
    types = (kind, kind, kind)

    def row(r: random.Random) -> tuple[Any, ...]:
        return (r.choice((None, *range(-20, 20))), r.randrange(-20, 20), r.choice((1, 2, -1, -3, 5)))

    def oracle(rows: Multiset) -> Multiset:
        result: Multiset = Counter()
        for (start, stop, step), n in rows.items():
            if start is not None:
                for value in range(start, stop + (1 if step > 0 else -1), step):
                    result[(start, stop, step, value)] += n
        return result

    history = random_history(rng, row, updates=80, times=6)
    collector = drive(series(types), [(types, history)], rng, budget_rows=budget)
    check(collector, [history], oracle, (*types, kind))


def rows_of(types: Sequence[SqlType], *rows: tuple[Any, ...]) -> Collector:
    return drive(series(types), [(types, [(row, 10, 1) for row in rows])], random.Random(0))


def values(collector: Collector) -> list[str | None]:
    return [row[-1] for row, _, _ in collector.updates]


def test_series_reach_the_ends_of_their_type() -> None:
    low, high = -(2**63), 2**63 - 1
    assert values(rows_of((BIGINT,) * 3, (high - 3, high, 2))) == [str(high - 3), str(high - 1)]
    assert values(rows_of((BIGINT,) * 3, (low, high, high))) == [str(low), "-1", str(high - 1)]
    assert values(rows_of((BIGINT,) * 3, (high, low, low))) == [str(high), "-1"]


def test_a_step_of_zero_is_a_row_error() -> None:
    collector = rows_of((INTEGER,) * 3, (1, 5, 0), (1, 2, 1))
    assert [e[:2] for e in at(collector.errors, 10)] == [("22023", "step size cannot equal zero")]
    assert values(collector) == ["1", "2"]


def test_numeric_series_show_the_scales_that_adding_gives() -> None:
    assert values(rows_of((NUMERIC,) * 3, (Decimal(1), Decimal(2), Decimal("0.5")))) == ["1", "1.5", "2.0"]
    assert values(rows_of((NUMERIC,) * 2, (Decimal("1.25"), Decimal(3)))) == ["1.25", "2.25"]


def test_timestamp_series_step_through_the_calendar() -> None:
    types = (TIMESTAMP, TIMESTAMP, INTERVAL)
    monthly = rows_of(types, ("2024-01-31", "2024-05-05", "1 mon"))
    assert values(monthly) == [f"2024-{d} 00:00:00" for d in ("01-31", "02-29", "03-29", "04-29")]
    back = rows_of(types, ("2024-01-31", "2024-01-01", "-13 days -02:00:00"))
    assert values(back) == ["2024-01-31 00:00:00", "2024-01-17 22:00:00", "2024-01-04 20:00:00"]
    assert [e[0] for e in at(rows_of(types, ("2024-01-31", "infinity", "1 day")).errors, 10)] == ["22023"]


def test_a_huge_series_comes_in_bounded_pieces() -> None:
    source, output = Output(), Output()
    consumer = output.connect()
    [operator] = series((BIGINT, BIGINT))([source.connect()], output, context(budget_rows=1000))
    source.send(batch_of((BIGINT, BIGINT), [((1, 10**15), 10, 1)]))
    for number in range(5):
        assert operator.step()
        pieces = [consumer.updates.popleft() for _ in range(len(consumer.updates))]
        assert sum(map(len, pieces)) == 1000
        assert pieces[0].columns[2][0].as_py() == 1000 * number + 1
    assert operator.pending()


def test_mfp_turns_failing_rows_into_errors_that_leave_with_the_row() -> None:
    divide = Call("int_div", (Literal(12, INTEGER), Column(0, INTEGER)), INTEGER)
    keep = Call("ne", (Column(0, INTEGER), Literal(3, INTEGER)), BOOLEAN)
    mfp = Mfp((FilterStep(keep), MapStep(divide)), (1, 0), (INTEGER, INTEGER))

    def build(inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        return [MfpOperator("m", inputs[0], mfp, output, ctx)]

    history = [((2,), 10, 1), ((3,), 10, 1), ((0,), 11, 2), ((0,), 13, -2), ((4,), 12, 1)]
    collector = drive(build, [((INTEGER,), history)], random.Random(0), budget_rows=1)
    assert [(e[0], n) for e, n in at(collector.errors, 12).items()] == [("22012", 2)]
    assert not at(collector.errors, 13)
    assert at(collector.updates, 13) == Counter({("6", "2"): 1, ("3", "4"): 1})


def test_constants_come_at_as_of_and_are_complete_at_once() -> None:
    output = Output()
    collector = Collector(output)
    node = ConstantSource(((1, "a"), (None, "b")), (INTEGER, TEXT))
    operator = ConstantOperator("c", node, output, context())
    settle([operator], collector)
    assert collector.updates == [(("1", "a"), 10, 1), ((None, "b"), 10, 1)]
    assert collector.frontier == EMPTY
