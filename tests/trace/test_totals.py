"""Runs that are read again: the same content as reading every update, at the cost of what has come since."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.walk import Pace, walk_at
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import BIGINT, NUMERIC, TEXT
from eddyline.testing.columns import random_column
from eddyline.trace.hasher import Hasher
from eddyline.trace.merge import Merge
from eddyline.trace.run import Layout, Run, build_run
from eddyline.trace.totals import read_runs, settled
from eddyline.trace.trace import Trace
from tests.trace.multiset import build, multiset

HASHER = Hasher(3)


def content(runs: list[Run], time: Time) -> dict[tuple[bytes, int], int]:
    return {row: n for batch in read_runs(runs[0].layout if runs else Layout((), ()), runs, time)
            for row, n in multiset(batch).items()}  # fmt: skip


@pytest.mark.parametrize(
    "layout", [Layout((TEXT, BIGINT), (0,)), Layout((NUMERIC, BIGINT), (0, 1))], ids=["part", "all"]
)
@pytest.mark.parametrize("kept", [0, 20])
def test_a_settled_run_has_the_content_of_the_run_at_every_time(layout: Layout, kept: int) -> None:
    """``kept``: rows that are never retracted.  All others come at one time and go at a later one."""
    rng, rows, types = Random(kept), 300, layout.types
    columns = [random_column(types[0], rows + kept, rng), pa.array(range(rows + kept))]
    come = [rng.randrange(8) for _ in range(rows + kept)]
    gone = [time + rng.randrange(1, 3) for time in come[:rows]]
    whole = tuple(pa.concat_arrays([column, column.slice(0, rows)]) for column in columns)
    diffs = np.concatenate((np.ones(rows + kept, np.int64), np.full(rows, -1, np.int64)))
    run = build(Batch(types, whole, np.array(come + gone, np.int64), diffs), layout, HASHER, lower=0, upper=11, since=0)
    shorter = 0
    for time in map(Time, range(12)):
        found = settled(run, time)
        assert settled(run, time) is found, "it is remembered"
        assert content([] if found is None else [found], time) == content([run], time)
        assert found is run or time >= int(run.times.max())
        shorter += found is not run
    assert shorter >= 2, "the content from the last update on is much shorter"


def test_a_run_whose_rows_stay_is_read_as_it_is() -> None:
    column = pa.array(range(1000))
    diffs = np.ones(1000, np.int64)
    run = build(
        Batch((BIGINT,), (column,), np.zeros(1000, np.int64), diffs), Layout((BIGINT,), (0,)), HASHER,
        lower=0, upper=1, since=0,
    )  # fmt: skip
    assert settled(run, Time(5)) is run and run.total is None


def test_a_view_of_few_rows_that_change_is_read_at_the_cost_of_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    consumed, work = [0], Merge.work

    def counted(merge: Merge, fuel_rows: int) -> int:
        before = merge.left_rows
        left = work(merge, fuel_rows)
        consumed[0] += before - merge.left_rows
        return left

    layout, keys = Layout((BIGINT, BIGINT), (0,)), 50
    trace = Trace(layout)
    hold = trace.handle(since=Frontier(0), through=Frontier(0))
    read_rows = []
    for time in range(400):
        numbers = np.arange(keys)
        new = Batch(
            layout.types, (pa.array(numbers), pa.array(numbers * 0 + time)), np.full(keys, time), numbers * 0 + 1
        )
        old = Batch(layout.types, (pa.array(numbers), pa.array(numbers * 0 + time - 1)), new.times, numbers * 0 - 1)
        changes = Batch.concat(layout.types, [old, new]) if time else new
        trace.insert(
            build_run(changes, layout, HASHER, lower=Frontier(time), upper=Frontier(time + 1), since=trace.since)
        )
        hold.downgrade(Frontier(0))
        trace.work(1 << 20)
        with monkeypatch.context() as patch:
            patch.setattr(Merge, "work", counted)
            consumed[0] = 0
            [batch] = walk_at(trace.snapshot(), Time(time), Pace(1 << 16), HASHER)
        read_rows.append(consumed[0])
        assert batch.columns[0].to_pylist() and set(batch.columns[1].to_pylist()) == {time} and len(batch) == keys
    assert trace.snapshot().stacked.rows > 20_000, "all history is there"
    assert sum(read_rows[200:]) / 200 < 4_000, "a twentieth of the history at most, first looks included"
    assert np.median(read_rows[200:]) < 2_000
