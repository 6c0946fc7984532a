"""What a batch costs is counted, not timed: the kernels that a grouped index runs for it, whatever it holds already."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.stream import ArrangedOutput, Operator, Output
from eddyline.expr.ir import AggregateCall
from eddyline.kernels.kernel import Kernel
from eddyline.plan.dataflow import Reduce, ReduceFunctions
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import BIGINT, TEXT
from eddyline.trace.hasher import HASH_BITS_VARIABLE
from eddyline.trace.run import Layout
from tests.compute.operator_harness import AS_OF, context

#: what merges run, whose work is amortised over batches
AMORTISED = {"rows.merge_rows", "gather.gather"}
COUNT = AggregateCall("count", (), BIGINT)


def words(first: int, rows: int, time: int) -> Batch:
    column = pa.array([f"w{i}" for i in range(first, first + rows)], pa.large_string())
    return Batch.at((TEXT,), (column,), rows, Time(time))


def kernels_per_batch(monkeypatch: pytest.MonkeyPatch, groups: int) -> Counter[str]:
    """Calls of each kernel for 200 rows of old groups and 50 of new ones, into a count of ``groups`` groups."""
    context_ = context()
    source, counts = Output(), Output()
    node = Reduce(0, (0,), (COUNT,), ReduceFunctions.ACCUMULABLE, (TEXT, BIGINT))
    layout = Layout((TEXT, BIGINT), (0,))
    index = ArrangedOutput(new_arrangement(layout, context_))
    operators: list[Operator] = [
        ReduceOperator("r", source.connect(), node, counts, context_),
        ArrangeOperator("a", counts.connect(), layout, index, context_),
    ]

    def seal(batch: Batch, upper: int) -> None:
        source.send(batch)
        source.advance(Frontier(upper))
        while any(o.pending() and o.step() for o in operators):
            continue
        assert index.frontier == upper

    seal(words(0, groups, AS_OF), AS_OF + 1)
    calls: Counter[str] = Counter()

    def counted(kernel: Kernel, *args: Any) -> Any:
        calls[kernel.name.removesuffix("_short")] += 1
        return kernel._call(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "__call__", counted)
        seal(words(groups - 200, 250, AS_OF + 1), AS_OF + 2)
    assert len(index.arrangement.oks.snapshot().read_at(Time(AS_OF + 1))) == groups + 50
    return Counter({name: n for name, n in calls.items() if name not in AMORTISED})


@pytest.mark.skipif(HASH_BITS_VARIABLE in os.environ, reason="rows whose hashes collide are looked at one by one")
def test_a_batch_runs_as_many_kernels_over_many_groups_as_over_few(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (kernels_per_batch(monkeypatch, groups) for groups in (1_000, 60_000))
    assert few == many
    # locating the groups, adding to them, showing what changed, and one run of the index
    assert sum(few.values()) <= 20, few
