"""A one-row change costs the change: kernel calls, operator steps and bytes at two sizes of the data."""

from __future__ import annotations

import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.operators.arrange import ArrangeOperator
from eddyline.expr.ir import AggregateCall, Mfp, SortKey
from eddyline.kernels.kernel import Kernel
from eddyline.plan.dataflow import (
    Arrange,
    Distinct,
    ExportIndex,
    ImportIndex,
    ImportSource,
    Join,
    Operator,
    Reduce,
    ReduceFunctions,
    TopK,
)
from eddyline.repr.batch import Batch
from eddyline.repr.types import BIGINT
from tests.compute.runtime_harness import PAIR, Harness, dataflow, pairs

_SMALL, _LARGE = 3_000, 48_000
_GROUP_ROWS = 30
_CHANGES = 48


def _indexed(*operators: Operator) -> tuple[Operator, ...]:
    last, types = len(operators) - 1, operators[-1].types
    return (*operators, Arrange(last, (0,), types), ExportIndex("v", "v", last + 1, (0,), types))


_COUNT = (AggregateCall("count", (), BIGINT),)
SHAPES = {
    "grouped": _indexed(ImportSource("t", PAIR), Reduce(0, (0,), _COUNT, ReduceFunctions.ACCUMULABLE, PAIR)),
    "join": _indexed(
        ImportSource("t", PAIR),
        Arrange(0, (0,), PAIR),
        ImportSource("u", PAIR),
        Arrange(2, (0,), PAIR),
        Join(1, 3, (False,), Mfp((), (0, 1, 3), (*PAIR, BIGINT))),
    ),
    "max": _indexed(ImportSource("t", PAIR), TopK(0, (0,), (SortKey(1, True, True),), 1, 0, PAIR)),
    "top 10": _indexed(ImportSource("t", PAIR), TopK(0, (), (SortKey(1, True, True),), 10, 0, PAIR)),
    "distinct": _indexed(ImportSource("t", PAIR), Distinct(0, PAIR)),
}


class _Cost(NamedTuple):
    """``kernels`` and ``steps`` over all changes; ``bytes``: the median of what a change had allocated at its peak."""

    kernels: int
    steps: int
    bytes: float


def _rows(count: int) -> Batch:
    keys, values = np.arange(count) // _GROUP_ROWS, np.random.default_rng(1).permutation(count)
    columns = (pa.array(keys), pa.array(values))
    return Batch(PAIR, columns, np.zeros(count, np.int64), np.ones(count, np.int64))


def _cost(shape: str, rows: int, patch: pytest.MonkeyPatch) -> _Cost:
    harness = Harness(interactive=False)
    harness.table("t")
    harness.table("u")
    harness.commit({"t": _rows(rows), "u": pairs([(key, key) for key in range(rows // _GROUP_ROWS)])})
    harness.controller.create_dataflow(dataflow("v", *SHAPES[shape]))
    harness.settle()
    kernels = steps = 0
    call, timed = Kernel.__call__, ArrangeOperator.step

    def counted(self: Kernel, *args: Any) -> Any:
        nonlocal kernels
        kernels += 1
        return call(self, *args)

    def counted_step(self: ArrangeOperator) -> bool:
        nonlocal steps
        steps += 1
        return timed(self)

    peaks = []
    with patch.context() as patched:
        patched.setattr(Kernel, "__call__", counted)
        patched.setattr(ArrangeOperator, "step", counted_step)
        tracemalloc.start()
        try:
            for number in range(_CHANGES):
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                # A new greatest value of a group and of all; every third one goes again.
                change = [(number % 7, 1_000_000 + number)]
                harness.commit({"t": pairs(change)})
                harness.settle()
                if number % 3 == 0:
                    harness.commit({"t": pairs(change, [-1])})
                    harness.settle()
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    assert harness.controller.upper("v") == harness.time + 1
    return _Cost(kernels, steps, float(np.median(peaks)))


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_change_costs_the_same_over_sixteen_times_the_rows(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _cost(shape, 100, monkeypatch)  # kernels are loaded, caches warm
    small, large = (_cost(shape, rows, monkeypatch) for rows in (_SMALL, _LARGE))
    assert large.steps <= small.steps * 1.1
    assert large.kernels <= small.kernels * 1.25
    assert large.bytes <= small.bytes * 1.5 + 32_768


def test_a_chain_of_views_is_walked_once_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Activations, not of the square of the chain's length."""
    length = 10
    harness = Harness(interactive=False)
    harness.table("t")
    harness.controller.create_dataflow(dataflow("v0", *_chained("v0", None)))
    for number in range(1, length):
        harness.controller.create_dataflow(dataflow(f"v{number}", *_chained(f"v{number}", f"v{number - 1}")))
    harness.settle()
    activations = 0
    activate = Dataflow.activate

    def counted(self: Dataflow, expired: Any, *rest: Any, **more: Any) -> Any:
        nonlocal activations
        activations += 1
        return activate(self, expired, *rest, **more)

    monkeypatch.setattr(Dataflow, "activate", counted)
    for number in range(20):
        harness.commit({"t": pairs([(number, 0)])})
        harness.settle()
    assert harness.controller.upper(f"v{length - 1}") == harness.time + 1
    assert activations == 20 * length


def _chained(id: str, below: str | None) -> tuple[Operator, ...]:
    """Over the table, or over the index of the view below."""
    source: Operator = ImportSource("t", PAIR) if below is None else ImportIndex(below, PAIR, (0,))
    return (source, Distinct(0, PAIR), Arrange(1, (0,), PAIR), ExportIndex(id, id, 2, (0,), PAIR))
