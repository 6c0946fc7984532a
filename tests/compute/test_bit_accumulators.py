"""bit_and, bit_or and bit_xor against recomputation from the multiset at every time."""

from __future__ import annotations

import functools
import operator as op
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.ir import AggregateCall, Column
from eddyline.plan.dataflow import Reduce, ReduceFunctions
from eddyline.repr.types import BIGINT, INTEGER, SMALLINT, TEXT, SqlType
from tests.compute.operator_harness import Multiset, check, drive, random_history

_BITS = {SMALLINT: 16, INTEGER: 32, BIGINT: 64}
_FUNCS = {"bit_and": op.and_, "bit_or": op.or_, "bit_xor": op.xor}


@pytest.mark.parametrize("argument", list(_BITS), ids=str)
def test_bit_aggregates_follow_every_change(argument: SqlType) -> None:
    calls = tuple(AggregateCall(func, (Column(1, argument),), argument) for func in _FUNCS)
    node = Reduce(0, (0,), calls, ReduceFunctions.ACCUMULABLE, (TEXT, argument, argument, argument), global_row=False)
    highest = 2 ** (_BITS[argument] - 1)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [ReduceOperator("r", inputs[0], node, output, context)]

    def row(rng: random.Random) -> tuple[Any, ...]:
        value = rng.choice((None, 0, -1, -highest, highest - 1, rng.randrange(-highest, highest)))
        return (rng.choice("abc"), value)

    def oracle(rows: Multiset) -> Multiset:
        groups: dict[Any, list[int]] = {}
        for (key, value), count in rows.items():
            groups.setdefault(key, []).extend([value] * count if value is not None else [])
        result: Multiset = Counter()
        for key, values in groups.items():
            result[(key, *(functools.reduce(f, values) if values else None for f in _FUNCS.values()))] += 1
        return result

    rng = random.Random(str(argument))
    history = random_history(rng, row, updates=200, times=12)
    collector = drive(build, [((TEXT, argument), history)], rng)
    check(collector, [history], oracle, node.types)
    assert not collector.errors
