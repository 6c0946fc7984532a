"""What two runtimes cost, counted: kernel calls and copied bytes, never clocks."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench.isolation.work import maintenance_work
from eddyline.plan.dataflow import (
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
)
from eddyline.testing.counting import Counted, counting
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on, reexport_of

ROOT = Path(__file__).parents[2]
IMPORTERS = 48
ROWS = 20_000


def import_of(id: str, index: str, at: int) -> DataflowDescription:
    """A one-shot read that is the imported index itself."""
    operators = (ImportIndex(index, PAIR, (0,)), ExportIndex(id, index, 0, (0,), PAIR))
    return DataflowDescription(id, operators, at, at + 1, DataflowClass.ONE_SHOT_READ)


def test_counting_sees_what_is_copied() -> None:
    d = ReplicaDriver()
    at = d.table("t", [(n, n) for n in range(100)])
    with counting() as counted:
        d.create(index_on("i", "t", at))
        d.rest()
    assert counted.kernel_calls > 0
    assert counted.bytes >= 100 * 16
    with counting(lambda thread: False) as nobody:
        d.create(index_on("j", "t", at))
        d.rest()
    assert (nobody.kernel_calls, nobody.bytes) == (0, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_publishing_to_many_importers_copies_nothing(workers: int) -> None:
    d = ReplicaDriver(workers)
    at = d.table("t", [(n, n % 7) for n in range(ROWS)])
    d.create(index_on("i", "t", at))
    d.rest("maintenance")
    with counting() as counted:
        d.rest("interactive")
        d.create(reexport_of("again", "i", at))
        for n in range(IMPORTERS):
            d.create(import_of(f"t{n}", "i", at))
        d.rest()
    assert (counted.kernel_calls, counted.bytes) == (0, 0)
    uuids = [d.peek(f"t{n}", at, (n,)) for n in range(IMPORTERS)]
    d.rest()
    assert [d.rows(u) for u in uuids] == [Counter({(n, n % 7): 1}) for n in range(IMPORTERS)]


@pytest.fixture(scope="module")
def alone() -> Counted:
    """What one runtime does for an index, a re-export of it, and two hundred commits."""
    return maintenance_work(interactive=False)


#: reads after each commit: none, or as many as are asked for beside it
@pytest.mark.parametrize("reads", [0, 5], ids=["idle", "with readers"])
def test_maintenance_does_the_same_work_beside_an_interactive_runtime(alone: Counted, reads: int) -> None:
    beside = maintenance_work(interactive=True, reads=reads)
    assert alone.kernel_calls > 200
    assert alone.bytes > 0
    assert beside.calls - alone.calls == Counter()
    assert beside.bytes <= alone.bytes


def test_publishing_to_many_importers_makes_nothing_resident() -> None:
    """In a process of its own, whose size nothing else moves: one row in a million bytes would show."""
    code = "from bench.isolation.sharing import measure_sharing; print(*measure_sharing(1_000_000))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    resident, added, copied, kernel_calls = map(int, done.stdout.split())
    assert resident > 32_000_000, "the index alone is so large"
    assert added <= 0.01 * resident
    assert (copied, kernel_calls) == (0, 0)
