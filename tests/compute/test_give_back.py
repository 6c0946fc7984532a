"""The memory of a large view that is dropped goes back to the system, once; that of small ones is not worth it."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute import give_back as module
from eddyline.compute.give_back import GIVE_BACK_AFTER_NS, GiveBack, give_back
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from tests.compute.runtime_harness import PAIR, Harness, indexed


def _indexed_table(rows: int) -> Harness:
    harness = Harness()
    harness.table("t")
    column = pa.array(np.arange(rows))
    harness.commit({"t": Batch.at(PAIR, (column, column), rows, Time(harness.time + 1))})
    harness.controller.create_dataflow(indexed("i", "t"))
    harness.settle()
    return harness


def test_memory_is_given_back_a_while_after_the_drop_of_what_held_much(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    monkeypatch.setattr(module, "give_back", lambda: calls.update(["given back"]))
    monkeypatch.setattr(module, "_WORTHWHILE_BYTES", 48 * 1000)
    for rows, expected in ((900, 0), (1100, 1)):
        harness = _indexed_table(rows)
        assert not calls
        harness.controller.drop("i")
        harness.settle()
        assert not calls  # who makes another view at once takes the same pages
        for _ in range(2 * GIVE_BACK_AFTER_NS // harness.tick):
            harness.solo.step()
        assert calls["given back"] == expected


def test_memory_is_given_back_when_many_changes_were_worked_off(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    monkeypatch.setattr(module, "give_back", lambda: calls.update(["given back"]))
    monkeypatch.setattr(module, "_WORTHWHILE_ROWS", 500)
    harness = _indexed_table(100)
    for expected in (0, 0, 0, 0, 1, 1):
        for _ in range(2 * GIVE_BACK_AFTER_NS // harness.tick):
            harness.solo.step()
        assert calls["given back"] == expected
        column = pa.array(np.arange(100) + 1000 * harness.time)
        harness.commit({"t": Batch.at(PAIR, (column, column), 100, Time(harness.time + 1))})
        harness.settle()


class _Clock:
    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def test_who_goes_on_changing_rows_does_not_put_it_off_and_does_not_pay_for_it_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, given = _Clock(), list[int]()

    def takes_a_hundredth_of_a_second() -> None:
        given.append(clock.ns)
        clock.ns += 10_000_000

    monkeypatch.setattr(module, "give_back", takes_a_hundredth_of_a_second)
    free = GiveBack(clock)
    assert free.left_s() is None
    while clock.ns < 10_000_000_000:
        free.worked(10_000)
        free.run()
        clock.ns += 100_000_000
    assert len(given) == 5, "a two-hundredth of the time"
    assert min(b - a for a, b in itertools.pairwise(given)) >= 2_000_000_000
    left = free.left_s()
    assert left is not None
    clock.ns += int(left * 1e9)
    free.run()
    assert len(given) == 6, "what was worked off last goes back as well"
    assert free.left_s() is None


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the resident size is read from there")
def test_free_memory_between_what_is_in_use_goes_back() -> None:
    give_back()
    rows = 100 * 1024 // 8  # less than what the C library takes from the system apart
    arrays = [np.ones(rows) for _ in range(600)]
    kept = arrays[::30]
    del arrays
    full = _resident_bytes()
    give_back()
    assert _resident_bytes() < full - 10 * 1024 * 1024
    assert all(a[0] == 1 for a in kept)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
