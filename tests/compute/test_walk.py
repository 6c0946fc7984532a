"""Walking a trace in slices equals reading it whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.walk import Pace, walk_at, walk_keys
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from eddyline.trace.trace import Trace
from tests.compute.runtime_harness import PAIR, collect, pairs


def random_trace(seed: int, hasher: Hasher, key: tuple[int, ...]) -> tuple[Trace, list[Counter[tuple[object, ...]]]]:
    """A trace of 30 intervals, the last times of which are distinguishable, and its content at each time."""
    rng = np.random.default_rng(seed)
    layout = Layout(PAIR, key)
    trace = Trace(layout)
    hold = trace.handle(since=Frontier(0), through=EMPTY)
    content: Counter[tuple[object, ...]] = Counter()
    history = []
    for t in range(30):
        rows: list[tuple[int | None, int | None]] = []
        diffs: list[int] = []
        for _ in range(int(rng.integers(0, 40))):
            live = sorted(content)
            if live and rng.random() < 0.4:
                row = live[int(rng.integers(len(live)))]
                diffs.append(-1)
            else:
                row = (int(rng.integers(12)), int(rng.integers(12)))
                diffs.append(1)
            content[row] += diffs[-1]
            if not content[row]:
                del content[row]
            rows.append(row)  # type: ignore[arg-type]  # lists are invariant
        batch = pairs(rows, diffs).advanced(Time(t))
        trace.insert(build_run(batch, layout, hasher, lower=Frontier(t), upper=Frontier(t + 1), since=trace.since))
        history.append(Counter(content))
    hold.downgrade(Frontier(20))
    return trace, history


def walked(slices: Iterator[Batch]) -> list[Batch]:
    """Those with rows."""
    return [batch for batch in slices if len(batch)]


@pytest.mark.parametrize("bits", [64, 4, 0])
@pytest.mark.parametrize("key", [(0,), (0, 1), ()])
@pytest.mark.parametrize("slice_rows", [1, 7, 100_000])
def test_slices_are_disjoint_and_complete_at_every_readable_time(
    bits: int, key: tuple[int, ...], slice_rows: int
) -> None:
    hasher = Hasher(4, bits=bits)
    trace, history = random_trace(bits + len(key), hasher, key)
    for time in (20, 23, 29):
        slices = walked(walk_at(trace.snapshot(), Time(time), Pace(slice_rows), hasher))
        assert collect(slices) == history[time]
        assert all(b.diffs.min() > 0 for b in slices), "what is gone does not come"
        rows = [set(collect([b])) for b in slices]
        assert sum(map(len, rows)) == len(history[time]), "a row comes in one slice only"
        if bits == 64 and slice_rows == 7 and key == (0, 1):
            assert max(map(len, slices)) < 40
        assert all((b.times == time).all() for b in slices)


def test_an_empty_trace_has_no_slices() -> None:
    trace = Trace(Layout(PAIR, (0,)))
    assert walked(walk_at(trace.snapshot(), Time(0), Pace(10), Hasher(1))) == []


@pytest.mark.parametrize("bits", [64, 4, 0])
@pytest.mark.parametrize("slice_rows", [1, 7, 60, 100_000])
def test_the_slices_of_some_keys_are_disjoint_and_complete(bits: int, slice_rows: int) -> None:
    """Keys whose hashes are alike included, and keys that nothing has."""
    hasher = Hasher(5, bits=bits)
    trace, history = random_trace(bits, hasher, (0,))
    sought = [3, 40, 0, 11, 7]
    columns = (pa.array(sought, pa.int64()),)
    hashes = hasher.hash_rows(columns, PAIR[:1], len(sought))
    for time in (20, 29):
        slices = walked(
            walk_keys(
                trace.snapshot(), Time(time), Pace(slice_rows), hasher, columns=columns, types=PAIR[:1], hashes=hashes
            )
        )
        assert collect(slices) == Counter({row: n for row, n in history[time].items() if row[0] in sought})
        assert all(b.diffs.min() > 0 for b in slices)
        rows = [set(collect([b])) for b in slices]
        assert sum(map(len, rows)) == len(set().union(*rows)), "a row comes in one slice only"
        assert all((b.times == time).all() for b in slices)
        if bits == 64 and slice_rows == 7:
            assert max(map(len, slices)) < 20


def test_slices_begin_small_and_grow_while_they_are_quick() -> None:
    now = [0]
    pace = Pace(65_536, lambda: now[0])
    seen = []
    for took_ns in (1_000_000, 1_000_000, 10_000_000, 10_000_000, 5_000_000, 0):
        pace.begin()
        seen.append(pace.rows)
        now[0] += took_ns
        pace.end()
    assert seen == [4096, 16_384, 65_536, 32_768, 16_384, 16_384]
    assert pace.rows == 65_536
