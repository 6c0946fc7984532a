"""Groups that come and go: the table forgets them, renumbers, and still knows the others."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.operators.group_table import GroupTable, group_rows
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.stream import Output
from eddyline.expr.ir import AggregateCall, Column
from eddyline.plan.dataflow import Reduce, ReduceFunctions
from eddyline.repr.time import EMPTY, Frontier
from eddyline.repr.types import BIGINT, DOUBLE, TEXT, numeric
from eddyline.trace.hasher import Hasher
from tests.compute.operator_harness import Collector, Update, at, batch_of, context, settle


@pytest.mark.parametrize("bits", [None, 4])
def test_rows_group_by_sql_equality_whatever_their_hashes(bits: int | None) -> None:
    rng = random.Random(1)
    values = [rng.choice((None, 0.0, -0.0, 1.5, 2.5, float("nan"))) for _ in range(300)]
    column = pa.array(values, pa.float64())
    hasher = Hasher(3, bits=bits) if bits else Hasher(3)
    groups, leaders = group_rows([column], [DOUBLE], hasher.hash_rows([column], [DOUBLE], 300))
    assert len(leaders) == 5
    shown = ["none" if v is None else str(abs(v)) for v in values]
    assert len({(g, s) for g, s in zip(groups.tolist(), shown, strict=True)}) == 5


@pytest.mark.parametrize("bits", [None, 12])
def test_the_table_renumbers_and_keeps_the_living(bits: int | None) -> None:
    table = GroupTable((BIGINT, TEXT), Hasher(3, bits=bits) if bits else Hasher(3))
    numbers = np.arange(12_000)
    keys = [pa.array(numbers), pa.array([f"k{n % 7}" for n in numbers.tolist()], pa.large_string())]
    groups, slots = table.locate(keys, 12_000)
    assert np.array_equal(slots[groups], numbers)
    table.release(slots[numbers % 3 != 0])
    kept = table.compact()
    assert kept is not None
    assert np.array_equal(kept, numbers[numbers % 3 == 0])
    assert table.compact() is None
    _, again = table.locate([c.take(pa.array(kept)) for c in keys], len(kept))
    assert np.array_equal(again, np.arange(len(kept)))
    assert table.keys(again[:3])[0].to_pylist() == [0, 3, 6]
    _, fresh = table.locate([c.slice(1, 1) for c in keys], 1)
    assert fresh.tolist() == [len(kept)]


def test_accumulators_follow_the_table_when_it_renumbers() -> None:
    calls = (
        AggregateCall("sum", (Column(1, DOUBLE),), DOUBLE),
        AggregateCall("count", (), BIGINT),
        AggregateCall("sum", (Column(0, BIGINT),), numeric(0)),
    )
    node = Reduce(0, (0,), calls, ReduceFunctions.ACCUMULABLE, (BIGINT, *(c.type for c in calls)))
    source, output = Output(), Output()
    collector = Collector(output)
    operator = ReduceOperator("r", source.connect(), node, output, context())
    types = (BIGINT, DOUBLE)
    first: list[Update] = [((n, n / 4), 10, 1) for n in range(6000)]
    gone: list[Update] = [((n, n / 4), 11, -1) for n in range(6000) if n % 4]
    more: list[Update] = [((n, 1.0), 12, 1) for n in range(0, 6000, 4)]
    for time, updates in ((10, first), (11, gone), (12, more)):
        source.send(batch_of(types, updates))
        source.advance(Frontier(time + 1))
        settle([operator], collector)
    source.advance(EMPTY)
    settle([operator], collector)
    expected = Counter({(str(n), repr(n / 4 + 1).removesuffix(".0"), "2", str(2 * n)): 1 for n in range(0, 6000, 4)})
    assert at(collector.updates, 12) == expected
