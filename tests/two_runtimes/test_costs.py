"""What two runtimes cost, counted: kernel calls and copied bytes, never clocks."""

from __future__ import annotations

from collections import Counter

import pytest

from eddyline.plan.dataflow import (
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
)
from eddyline.testing.counting import Counted, counting
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on, reexport_of

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


def maintained(*, interactive: bool) -> Counted:
    """An index and a re-export of it, through two hundred commits."""
    d = ReplicaDriver(interactive=interactive)
    at = d.table("t", [(n, n) for n in range(ROWS)])
    with counting() as counted:
        d.create(index_on("i", "t", at), reexport_of("j", "i", at))
        d.rest()
        for n in range(200):
            now = d.write("t", [(n, n), (n, -n)], [-1, 1])
            d.rest()
            if n % 10 == 9:
                d.compact("i", now)
                d.compact("j", now)
    return counted


def test_maintenance_does_the_same_work_beside_an_idle_interactive_runtime() -> None:
    alone, beside = maintained(interactive=False), maintained(interactive=True)
    assert beside.calls == alone.calls
    assert beside.bytes == alone.bytes
