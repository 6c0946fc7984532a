"""Traces under random inserts, holds, fuel and compaction: every readable time against a plain multiset."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DataError
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, INTERVAL, NUMERIC, SMALLINT, TEXT, UUID
from eddyline.testing.columns import random_column
from eddyline.testing.row_keys import row_keys
from eddyline.trace.hasher import Hasher
from eddyline.trace.merge import Merge, RunSet
from eddyline.trace.order import sort_prefix
from eddyline.trace.run import Layout, Retracted, Run, count_retracted
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.trace import FAN, HISTORY_FAN, TINY_RUNS, Trace
from tests.trace.multiset import Item, Oracle, build, multiset, random_batch

LAYOUTS = {
    "int key": Layout((INTEGER, BIGINT), (0,)),
    "text, numeric key": Layout((DOUBLE, TEXT, NUMERIC), (1, 2)),
    "no key": Layout((SMALLINT, BOOLEAN), ()),
    "whole row": Layout((INTERVAL, BOOLEAN), (0, 1)),
    "ordered": Layout((BOOLEAN, DOUBLE, TEXT), (0,), (Item(1, desc=True), Item(2, nulls_first=True))),
    "ordered by text": Layout((BOOLEAN, TEXT), (0,), (Item(1, desc=True),)),
    "ordered globally": Layout((NUMERIC, UUID), (), (Item(0, nulls_first=True),)),
}


def check_reads(snapshot: Snapshot, oracle: Oracle, hasher: Hasher, rng: Random) -> None:
    layout = snapshot.layout
    for time in range(snapshot.since, snapshot.upper):
        expected = oracle.at(time)
        assert {key: d for (key, _), d in multiset(snapshot.read_at(Time(time))).items()} == expected
        scanned: Counter[bytes] = Counter()
        for piece in snapshot.scan(below=Frontier(time + 1)):
            assert (piece.times <= time).all()
            for (key, _), diff in multiset(piece).items():
                scanned[key] += diff
        assert {key: d for key, d in scanned.items() if d} == expected
        check_probes(snapshot, oracle, hasher, rng, time)
        if layout.order:
            check_order(snapshot, oracle, hasher, rng, time)


def check_probes(snapshot: Snapshot, oracle: Oracle, hasher: Hasher, rng: Random, time: int) -> None:
    layout = snapshot.layout
    types = tuple(layout.types[c] for c in layout.key)
    rows = 6 if types else 1
    keys = tuple(random_column(t, rows, rng) for t in types)
    hashes = hasher.hash_rows(keys, types, rows)
    for null_safe in (False, True):
        flags = (null_safe,) * len(types)
        found = snapshot.probe(keys, types, hashes, below=Frontier(time + 1), null_safe=flags)
        assert (np.diff(found.probe_rows) >= 0).all() and (found.times <= time).all()
        sums: Counter[tuple[int, bytes]] = Counter()
        encoded = row_keys(found.columns, layout.types, len(found))
        for row, key, diff in zip(found.probe_rows.tolist(), encoded, found.diffs.tolist(), strict=True):
            sums[row, key] += diff
        assert {entry: d for entry, d in sums.items() if d} == oracle.matches(keys, time, null_safe)
        pieces = list(snapshot.probe_pieces(keys, types, hashes, below=Frontier(time + 1), null_safe=flags, max_rows=3))
        assert all(0 < len(piece) <= 3 for piece in pieces)
        assert [r for p in pieces for r in p.probe_rows.tolist()] == found.probe_rows.tolist()
        assert [d for p in pieces for d in p.diffs.tolist()] == found.diffs.tolist()
        picked = sorted(rng.sample(range(len(layout.types)), rng.randrange(len(layout.types) + 1)))
        some = list(
            snapshot.probe_pieces(
                keys, types, hashes, below=Frontier(time + 1), null_safe=flags, max_rows=1000, picked=picked
            )
        )
        assert [r for p in some for r in p.probe_rows.tolist()] == found.probe_rows.tolist()
        for at, column in enumerate(picked):
            whole = pa.concat_arrays([found.columns[column][:0], *(p.columns[at] for p in some)])
            of_type = (layout.types[column],)
            assert row_keys((whole,), of_type, len(whole)) == row_keys((found.columns[column],), of_type, len(found))


def check_order(snapshot: Snapshot, oracle: Oracle, hasher: Hasher, rng: Random, time: int) -> None:
    layout = snapshot.layout
    types = tuple(layout.types[c] for c in layout.key)
    rows = 3 if types else 1
    keys = tuple(random_column(t, rows, rng) for t in types)
    hashes = hasher.hash_rows(keys, types, rows)
    for limit in (0, 1, 3, None):
        limits = None if limit is None else np.full(rows, limit, np.int64)
        found = snapshot.ordered_group(keys, types, hashes, below=Frontier(time + 1), limits=limits)
        encoded = row_keys(found.columns, layout.types, len(found.groups))
        got = list(zip(found.groups.tolist(), encoded, found.multiplicities.tolist(), strict=True))
        assert got == oracle.ordered(keys, time, 10**9 if limit is None else limit)
        # what lies before a group's first live row may be skipped
        item = layout.order[0]
        prefixes = sort_prefix(
            found.columns[item.column], layout.types[item.column], desc=item.desc, nulls_first=item.nulls_first
        )
        starts = np.zeros(rows, np.uint64)
        starts[found.groups[::-1]] = prefixes[::-1]
        again = snapshot.ordered_group(keys, types, hashes, below=Frontier(time + 1), limits=limits, starts=starts)
        assert again.groups.tolist() == found.groups.tolist()
        assert row_keys(again.columns, layout.types, len(again.groups)) == encoded
        assert again.dead_rows <= found.dead_rows


@pytest.mark.parametrize("bits", [64, 4, 0])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("seed", range(2))
def test_every_readable_time_is_exact(name: str, bits: int, seed: int) -> None:
    rng = Random(f"{name}{bits}{seed}")
    layout, hasher = LAYOUTS[name], Hasher(5, bits=bits)
    trace, oracle = Trace(layout), Oracle(layout)
    handles = [trace.handle(since=Frontier(0), through=Frontier(0))]
    old: list[Snapshot] = []
    for _ in range(30):
        step = rng.random()
        if step < 0.6:
            upper = trace.upper + rng.randrange(1, 3)
            rows = rng.choice([0, 1, 1, 2, 20])
            batch = random_batch(layout.types, rows, range(trace.upper, upper), rng)
            oracle.add(batch)
            trace.insert(build(batch, layout, hasher, lower=trace.upper, upper=upper, since=trace.since))
        elif step < 0.7:
            trace.advance_upper(Frontier(trace.upper + rng.randrange(2)))
        elif step < 0.75:
            since = rng.randrange(trace.since, trace.upper + 1)
            handles.append(trace.handle(since=Frontier(since), through=Frontier(rng.randrange(trace.upper + 1))))
        elif step < 0.85:
            handle = rng.choice(handles)
            handle.downgrade(Frontier(min(handle.since + rng.randrange(4), trace.upper)))
            handle.set_through(Frontier(rng.randrange(trace.upper + 1)))
        elif step < 0.9 and len(handles) > 1:
            handles.pop(rng.randrange(len(handles))).close()
        elif step < 0.95:
            old.append(trace.snapshot())
        trace.work(rng.choice([0, 1, 5, 1000]))
        assert trace.since <= min(h.since for h in handles)
    for snapshot in [*old, trace.snapshot()]:
        check_reads(snapshot, oracle, hasher, rng)
    while trace.work(1000):
        pass
    check_reads(trace.snapshot(), oracle, hasher, rng)


def bounds_of_all_runs(trace: Trace) -> tuple[int, int | None]:
    """As ``Trace._bounds``, without what that remembers."""
    large = [run for run in trace.snapshot().runs if len(run) > 64]
    if not large:
        return 0, None
    through = trace._lowest_through
    passed = max(max(run.upper, run.since + 1) for run in large)
    return min(trace.since, passed), through if through is not None and through <= large[-1].lower else None


@pytest.mark.parametrize("seed", range(6))
def test_what_a_trace_remembers_of_its_large_runs_is_what_they_are(seed: int) -> None:
    rng, layout, hasher = Random(seed), Layout((BIGINT,), (0,)), Hasher(5)
    trace = Trace(layout)
    hold = trace.handle(since=Frontier(0), through=Frontier(0))
    seen = set()
    for _ in range(60):
        lower, rows = trace.upper, rng.choice([1, 1, 1, 40, 65, 300])
        batch = Batch.at(layout.types, (pa.array(np.arange(rows)),), rows, Time(lower), rng.choice([1, -1]))
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=trace.since))
        assert trace._bounds() == bounds_of_all_runs(trace)
        hold.move(Frontier(rng.randrange(hold.since, trace.upper + 1)), Frontier(rng.randrange(trace.upper + 1)))
        trace.work(rng.choice([0, 100, 1000]))
        assert trace._bounds() == bounds_of_all_runs(trace)
        assert trace._tiny_runs == sum(len(run) <= 64 for run in trace.snapshot().runs)
        seen.add(trace._bounds())
    assert len(seen) > 10


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_stacked_for_one_more_run_is_what_stacking_all_gives(name: str) -> None:
    """Whatever had been asked for before."""
    rng, layout, hasher = Random(name), LAYOUTS[name], Hasher(5)
    names = ("heads", "descs", "key_descs", "rows")
    for asked in (names, ("heads",), ("descs",), ("descs", "key_descs"), ()):
        grown, runs = RunSet(layout, ()), []
        for lower in range(5):
            batch = random_batch(layout.types, 4, range(lower, lower + 1), rng)
            runs.append(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=lower))
            grown = grown.appended(runs[-1])
            for each in asked:
                getattr(grown, each)
        whole = RunSet(layout, tuple(runs))
        assert grown.runs == whole.runs
        for each in names:
            assert np.array_equal(getattr(grown, each), getattr(whole, each))
            if each != "rows":
                assert getattr(grown, each).flags.c_contiguous


def one_row(layout: Layout, trace: Trace, hasher: Hasher, rng: Random) -> None:
    lower = trace.upper
    batch = random_batch(layout.types, 1, range(lower, lower + 1), rng)
    trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=lower))


def test_many_small_inserts_leave_few_runs() -> None:
    layout, hasher, rng = Layout((BIGINT, BIGINT), (0,)), Hasher(1), Random(1)
    trace = Trace(layout)
    numbers = np.random.default_rng(1)
    most = 0
    for lower in range(3000):
        rows = int(numbers.integers(1, 4)) if rng.random() < 0.95 else 200
        columns = tuple(random_numbers(numbers, rows) for _ in layout.types)
        batch = Batch.at(layout.types, columns, rows, Time(lower))
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
        most = max(most, trace.runs)
    assert most <= TINY_RUNS + 2 * int(np.log2(trace.rows)) + 2
    assert trace.rows == sum(len(r) for r in trace.snapshot().runs)


def test_a_reader_that_keeps_up_does_not_let_small_runs_pile_up() -> None:
    layout, hasher, rng = LAYOUTS["int key"], Hasher(8), Random(8)
    trace = Trace(layout)
    reader = trace.handle(since=Frontier(0), through=Frontier(0))
    most = 0
    for _ in range(300):
        one_row(layout, trace, hasher, rng)
        most = max(most, trace.runs)
        reader.set_through(trace.upper)
    assert most <= 2 * TINY_RUNS + 2 * int(np.log2(trace.rows)) + 2


def random_numbers(numbers: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(numbers.integers(0, 2**60, rows))


def test_an_empty_trace_answers() -> None:
    layout, hasher = LAYOUTS["ordered"], Hasher(1)
    trace = Trace(layout, lower=Frontier(3))
    trace.advance_upper(Frontier(9))
    keys = (pa.array([True, None]),)
    hashes = hasher.hash_rows(keys, (BOOLEAN,), 2)
    snapshot = trace.snapshot()
    assert len(snapshot.read_at(Time(5))) == 0
    found = snapshot.probe(keys, (BOOLEAN,), hashes, below=Frontier(9), null_safe=(True,))
    assert [len(c) for c in found.columns] == [0, 0, 0]
    assert len(snapshot.ordered_group(keys, (BOOLEAN,), hashes, below=Frontier(9), limits=None).groups) == 0
    for time in (2, 9):
        with pytest.raises(ValueError, match="outside"):
            snapshot.read_at(Time(time))


def test_empty_intervals_make_no_runs() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    for lower in range(1000):
        empty = Batch.empty(layout.types)
        trace.insert(build(empty, layout, hasher, lower=lower, upper=lower + 1, since=0))
    trace.advance_upper(Frontier(5000))
    assert (trace.runs, trace.rows, trace.upper) == (0, 0, 5000)


def test_an_interval_must_follow_the_last() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    with pytest.raises(ValueError, match="cannot follow"):
        trace.insert(build(Batch.empty(layout.types), layout, hasher, lower=1, upper=2, since=0))
    trace.advance_upper(Frontier(3))
    with pytest.raises(ValueError, match="regresses"):
        trace.advance_upper(Frontier(2))


def test_a_hold_below_since_is_refused_and_since_follows_the_lowest() -> None:
    trace = Trace(Layout((BIGINT,), (0,)))
    trace.advance_upper(Frontier(10))
    low, high = (
        trace.handle(since=Frontier(2), through=Frontier(0)),
        trace.handle(since=Frontier(5), through=Frontier(0)),
    )
    high.downgrade(Frontier(7))
    assert trace.since == 2
    low.close()
    low.close()
    high.downgrade(Frontier(8))
    assert trace.since == 8
    with pytest.raises(ValueError, match="below"):
        trace.handle(since=Frontier(7), through=Frontier(0))
    with pytest.raises(ValueError, match="regresses"):
        high.downgrade(Frontier(7))
    high.close()
    assert trace.since == 8


def test_runs_are_not_merged_across_a_physical_hold() -> None:
    layout, hasher, rng = Layout((BIGINT,), (0,)), Hasher(1), Random(3)
    trace = Trace(layout)
    trace.handle(since=Frontier(0), through=Frontier(40))
    for _ in range(200):
        one_row(layout, trace, hasher, rng)
    while trace.work(1000):
        pass
    assert all(run.upper <= 40 or run.lower >= 40 for run in trace.snapshot().runs)


def test_compaction_frees_what_cancelled() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=Frontier(10))
    columns = (random_numbers(np.random.default_rng(2), 1000),)
    for lower, diff in ((0, 1), (1, -1)):
        batch = Batch.at(layout.types, columns, 1000, Time(lower), diff)
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
        handle.downgrade(Frontier(lower))
    while trace.work(1000):
        pass
    batch = Batch.at(layout.types, (columns[0].slice(0, 1),), 1, Time(2))
    trace.insert(build(batch, layout, hasher, lower=2, upper=3, since=0))
    handle.downgrade(Frontier(2))
    trace.add_debt(100_000)
    while trace.work(1000):
        pass
    assert trace.rows == 1


def test_rows_that_came_and_went_in_one_run_vanish_once_since_has_passed_them() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=EMPTY)
    columns = (random_numbers(np.random.default_rng(2), 1000),)
    for lower, diff in ((0, 1), (1, -1)):
        batch = Batch.at(layout.types, columns, 1000, Time(lower), diff)
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
    while trace.work(1000):
        pass
    assert trace.rows == 2000, "time 0 is readable still"
    handle.downgrade(Frontier(1))
    while trace.work(1000):
        pass
    assert trace.rows == 0
    assert trace.upper == 2


@pytest.mark.parametrize("fuel", [1, 7, 10_000])
def test_a_merge_counts_what_its_run_takes_back(fuel: int) -> None:
    layout, hasher, rng = Layout((SMALLINT, BOOLEAN), (0,)), Hasher(1, bits=6), Random(fuel)
    runs = [
        build(
            random_batch(layout.types, 80, range(lower, lower + 3), rng),
            layout,
            hasher,
            lower=lower,
            upper=lower + 3,
            since=0,
        )
        for lower in (0, 3, 6)
    ]
    for since in (0, 4, 9):
        merge = Merge(layout, runs, Frontier(since))
        while not merge.done:
            merge.work(fuel)
        run = merge.result()
        assert run is not None and (since > 0 or run.retracted.all > 0)
        assert run.retracted == count_retracted(run.times, run.diffs, run.since)
        assert run.rebounded(Frontier(9), Frontier(9)).retracted == run.retracted


def test_no_step_looks_at_all_rows_of_a_large_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a merge has made is known by its parts: neither the next insert nor idle work goes through it again."""
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=EMPTY)
    counted: list[int] = []

    def spied(times: Int64s, diffs: Int64s, since: Frontier) -> Retracted:
        counted.append(len(diffs))
        return count_retracted(times, diffs, since)

    for module in ("run", "merge"):
        monkeypatch.setattr(f"eddyline.trace.{module}.count_retracted", spied)
    for lower in range(24):
        columns = (random_numbers(np.random.default_rng(lower), 1000),)
        trace.insert(
            build(
                Batch.at(layout.types, columns, 1000, Time(lower)),
                layout,
                hasher,
                lower=lower,
                upper=lower + 1,
                since=0,
            )
        )
        handle.downgrade(Frontier(lower))
        while trace.work(500):
            pass
    assert max(len(run) for run in trace.snapshot().runs) > 10_000
    assert max(counted) <= 1000, "no more than a slice, or what was inserted"


def test_a_run_of_live_rows_is_not_rewritten_when_since_passes_it() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=EMPTY)
    columns = (random_numbers(np.random.default_rng(2), 1000),)
    trace.insert(build(Batch.at(layout.types, columns, 1000, Time(5)), layout, hasher, lower=0, upper=6, since=0))
    handle.downgrade(Frontier(5))
    before = trace.snapshot().runs
    assert not trace.work(1000)
    assert trace.snapshot().runs == before


def test_a_multiplicity_beyond_int64_is_an_error_of_the_data() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    column = random_column(BIGINT, 1, Random(1), nulls=0).take([0, 0])
    batch = Batch(layout.types, (column,), np.zeros(2, np.int64), np.array([2**63 - 1, 1]))
    with pytest.raises(DataError) as caught:
        build(batch, layout, hasher, lower=0, upper=1, since=0)
    assert caught.value.sqlstate == "22003"


def test_rows_put_in_ahead_of_their_time_are_read_once_it_is_sealed() -> None:
    layout, hasher, rng = Layout((INTEGER, BIGINT), (0,)), Hasher(1, bits=4), Random(6)
    trace, oracle = Trace(layout), Oracle(layout)
    trace.handle(since=Frontier(0), through=Frontier(0))
    for lower in range(6):
        for _ in range(4):
            batch = random_batch(layout.types, 30, range(lower, lower + 1), rng)
            oracle.add(batch)
            built = build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0)
            trace.insert(
                Run(
                    layout,
                    built.columns,
                    key_hashes=built.key_hashes,
                    value_hashes=built.value_hashes,
                    times=built.times,
                    diffs=built.diffs,
                    lower=Frontier(lower),
                    upper=Frontier(lower),
                    since=Frontier(0),
                )
            )
            assert trace.upper == lower
            trace.work(rng.randrange(100))
        trace.advance_upper(Frontier(lower + 1))
        check_reads(trace.snapshot(), oracle, hasher, rng)


def test_readers_of_other_threads_see_whole_intervals() -> None:
    layout, hasher = Layout((BIGINT, BIGINT), (0,)), Hasher(1)
    trace = Trace(layout)
    holder = trace.handle(since=Frontier(0), through=Frontier(0))
    key = (pa.array([1]),)
    hashes = hasher.hash_rows(key, (BIGINT,), 1)
    failures: list[str] = []
    finished = threading.Event()

    def read() -> None:
        while not finished.is_set():
            snapshot = trace.snapshot()
            found = snapshot.probe(key, (BIGINT,), hashes, below=snapshot.upper, null_safe=(False,))
            # each time moves the row's multiplicity by one, and 10 rows of another key come along
            if int(found.diffs.sum()) != snapshot.upper:
                failures.append(f"{found.diffs.sum()} at {snapshot.upper}")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for lower in range(1500):
        columns = (pa.array([1] + [2] * 10), pa.array(range(lower, lower + 11)))
        batch = Batch.at(layout.types, columns, 11, Time(lower))
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
        holder.downgrade(Frontier(max(lower - 3, 0)))
    finished.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_keys_of_another_layout_are_refused() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    column = (random_column(INTEGER, 2, Random(1)),)
    hashes = hasher.hash_rows(column, (INTEGER,), 2)
    with pytest.raises(ValueError, match="cannot match"):
        Trace(layout).snapshot().probe(column, (INTEGER,), hashes, below=Frontier(0), null_safe=(False,))


def counted_merges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets the input rows of every merge that begins."""
    begun: list[int] = []

    class Counted(Merge):
        def __init__(self, layout: Layout, runs: Sequence[Run], since: Frontier) -> None:
            super().__init__(layout, runs, since)
            begun.append(self.left_rows)

    monkeypatch.setattr("eddyline.trace.trace.Merge", Counted)
    return begun


def insert_and_merge(trace: Trace, hasher: Hasher, numbers: np.random.Generator, rows: int) -> Batch:
    """Inserts random rows at the trace's next time, and does all merges; the rows."""
    layout, lower = trace.layout, trace.upper
    columns = tuple(random_numbers(numbers, rows) for _ in layout.types)
    batch = Batch.at(layout.types, columns, rows, Time(lower))
    trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
    while trace.work(1000):
        continue
    return batch


def test_rows_that_stay_are_copied_once_per_level(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, hasher, numbers = Layout((BIGINT, BIGINT), (0,)), Hasher(1), np.random.default_rng(1)
    trace = Trace(layout)
    begun = counted_merges(monkeypatch)
    inserts, rows = 256, 100
    for _ in range(inserts):
        insert_and_merge(trace, hasher, numbers, rows)
    assert trace.rows == inserts * rows
    levels = int(np.log2(inserts)) // 2
    assert sum(begun) <= (levels + 1) * trace.rows
    assert trace.runs <= (FAN - 1) * (levels + 1)


def test_history_is_copied_once_in_longer_levels_until_since_has_passed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, hasher, numbers = Layout((BIGINT, BIGINT), (0,)), Hasher(1), np.random.default_rng(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=EMPTY)
    begun = counted_merges(monkeypatch)
    monkeypatch.setattr("eddyline.trace.trace._HISTORY_ROWS", 100)
    inserts, rows = HISTORY_FAN**2, 100
    for _ in range(inserts):
        batch = insert_and_merge(trace, hasher, numbers, rows)
        assert trace.runs <= 2 * (HISTORY_FAN - 1)
    assert sum(begun) == 2 * trace.rows
    trace.insert(build(batch.advanced(Time(inserts)), layout, hasher, lower=inserts, upper=inserts + 1, since=0))
    for _ in range(FAN - 1):
        lower = trace.upper
        trace.insert(build(batch.advanced(Time(lower)), layout, hasher, lower=lower, upper=lower + 1, since=0))
    while trace.work(1000):
        continue
    assert trace.runs == 1 + FAN, "they are history"
    handle.downgrade(trace.upper)
    while trace.work(1000):
        continue
    assert trace.runs == 2, "they are no more"


def test_merges_are_left_to_idle_time_and_paid_by_inserts_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, hasher, numbers = Layout((BIGINT,), (0,)), Hasher(1), np.random.default_rng(1)
    merged: list[int] = []
    work = Merge.work

    def counted(self: Merge, fuel_rows: int) -> int:
        before = self.left_rows
        left = work(self, fuel_rows)
        merged.append(before - self.left_rows)
        return left

    monkeypatch.setattr(Merge, "work", counted)
    trace, rows = Trace(layout), 1000

    def insert(rows: int) -> int:
        """Rows merged by one more insert."""
        merged.clear()
        lower = trace.upper
        batch = Batch.at(layout.types, (random_numbers(numbers, rows),), rows, Time(lower))
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=0))
        return sum(merged)

    assert [insert(rows) for _ in range(FAN)] == [0] * FAN
    eighth = FAN * rows // 8
    assert [insert(eighth // 10) for _ in range(10)] == [0] * 10, "until that many rows have come it is left alone"
    assert insert(eighth) == FAN * rows, "a busy writer ends it by itself"
    for _ in range(FAN - 1):
        insert(rows)
    while trace.work(1000):
        continue
    assert insert(eighth // 10) == 0, "idle time has done it"


def test_updates_that_since_has_passed_keep_a_trace_near_its_live_rows() -> None:
    layout, hasher = Layout((BIGINT, BIGINT), (0,)), Hasher(1)
    trace = Trace(layout)
    handle = trace.handle(since=Frontier(0), through=EMPTY)
    live, changed = 4000, 100
    keys = np.arange(live)
    values = np.zeros(live, np.int64)
    first = Batch.at(layout.types, (pa.array(keys), pa.array(values)), live, Time(0))
    trace.insert(build(first, layout, hasher, lower=0, upper=1, since=0))
    numbers = np.random.default_rng(1)
    most = 0
    for lower in range(1, 600):
        picked = np.sort(numbers.choice(live, changed, replace=False))
        old = values[picked].copy()
        values[picked] += 1
        columns = (pa.array(np.tile(keys[picked], 2)), pa.array(np.concatenate((old, values[picked]))))
        diffs = np.repeat(np.array([-1, 1]), changed)
        batch = Batch(layout.types, columns, np.full(2 * changed, lower), diffs)
        trace.insert(build(batch, layout, hasher, lower=lower, upper=lower + 1, since=trace.since))
        handle.downgrade(Frontier(lower))
        most = max(most, trace.rows)
    assert most <= 2.5 * live
    found = trace.snapshot().read_at(Time(599))
    assert sorted(zip(*(c.to_pylist() for c in found.columns), strict=True)) == list(enumerate(values.tolist()))


def test_one_row_inserts_look_for_merges_when_they_are_folded_and_not_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a reader that keeps up, whose holds move at every insert, and idle time after each."""
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(1)
    trace = Trace(layout)
    reader = trace.handle(since=Frontier(0), through=Frontier(0))
    large = Batch.at(layout.types, (pa.array(np.arange(5000)),), 5000, Time(0))
    trace.insert(build(large, layout, hasher, lower=0, upper=1, since=0))
    looks = 0
    look = Trace._begin_merges

    def counting(self: Trace) -> None:
        nonlocal looks
        looks += 1
        look(self)

    monkeypatch.setattr(Trace, "_begin_merges", counting)
    inserts = 320
    for lower in range(1, inserts + 1):
        row = Batch.at(layout.types, (pa.array([lower]),), 1, Time(lower))
        trace.insert(build(row, layout, hasher, lower=lower, upper=lower + 1, since=trace.since))
        reader.downgrade(Frontier(lower))
        reader.set_through(Frontier(lower + 1))
        while trace.work(1000):
            continue
    assert looks <= inserts // 4
    assert trace.rows == 5000 + inserts
    assert trace.runs <= 3 * TINY_RUNS
