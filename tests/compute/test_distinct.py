"""DISTINCT, threshold, union, negate against multiset recomputation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.distinct import DistinctOperator, ThresholdOperator
from eddyline.compute.operators.stateless import NegateOperator, UnionOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.plan.dataflow import Distinct, Threshold
from eddyline.repr.types import INTEGER, TEXT
from tests.compute.operator_harness import Multiset, check, drive, random_history

TYPES = (INTEGER, TEXT)


def row(rng: random.Random) -> tuple[Any, ...]:
    return (rng.choice((None, *range(12))), rng.choice((None, "", "a", "bb" * 9)))


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(6))
def test_distinct_shows_each_present_row_once_at_every_time(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    history = random_history(rng, row, updates=300, times=12)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [DistinctOperator("d", inputs[0], Distinct(0, TYPES), output, context)]

    collector = drive(build, [(TYPES, history)], rng, bits=bits, budget_rows=rng.choice((16, 65_536)))
    check(collector, [history], lambda rows: Counter(dict.fromkeys(rows, 1)), TYPES)


@pytest.mark.parametrize("seed", range(6))
def test_except_all_is_the_threshold_of_a_difference(seed: int) -> None:
    rng = random.Random(seed)
    left, right = (random_history(rng, row, updates=120, times=8) for _ in range(2))

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        negated, joined = Output(), Output()
        return [
            NegateOperator("n", inputs[1], negated, context),
            UnionOperator("u", [inputs[0], negated.connect()], joined, context),
            ThresholdOperator("t", joined.connect(), Threshold(1, TYPES), output, context),
        ]

    def oracle(a: Multiset, b: Multiset) -> Multiset:
        return a - b

    collector = drive(build, [(TYPES, left), (TYPES, right)], rng, bits=rng.choice((None, 4)), budget_rows=50)
    check(collector, [left, right], oracle, TYPES)


def test_one_update_at_a_time_gives_what_batches_give() -> None:
    rng = random.Random(5)
    history = random_history(rng, row, updates=150, times=10)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [DistinctOperator("d", inputs[0], Distinct(0, TYPES), output, context)]

    collector = drive(build, [(TYPES, history)], rng, single=True)
    check(collector, [history], lambda rows: Counter(dict.fromkeys(rows, 1)), TYPES)
