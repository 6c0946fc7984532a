"""What a commit or a read that comes while a worker merges may have to wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eddyline.compute.agenda import Agenda
from eddyline.compute.dataflow import Dataflow
from eddyline.storage.store import TableStore
from eddyline.trace.merge import Merge
from tests.compute.runtime_harness import Harness, indexed, pairs

_MOST_ROWS = 4096


def test_idle_merging_takes_short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the traces of dataflows, and of storage's, whose writers wait for a slice too."""
    taken: list[int] = []
    in_slice: list[int] = []
    of_dataflows, of_storage, work = Agenda.merge, TableStore.work, Merge.work

    def merge(self: Agenda, fuel_rows: int, touched: Callable[[Dataflow], None]) -> bool:
        in_slice.clear()
        moved = of_dataflows(self, fuel_rows, touched)
        taken.append(sum(in_slice))
        return moved

    def store(self: TableStore, fuel_rows: int) -> bool:
        in_slice.clear()
        moved = of_storage(self, fuel_rows)
        taken.append(sum(in_slice))
        return moved

    def rows(self: Merge, fuel_rows: int) -> int:
        before = self.left_rows
        left = work(self, fuel_rows)
        in_slice.append(before - self.left_rows)
        return left

    monkeypatch.setattr(Agenda, "merge", merge)
    monkeypatch.setattr(TableStore, "work", store)
    monkeypatch.setattr(Merge, "work", rows)
    db = Harness(1)
    db.table("t")
    db.controller.create_dataflow(indexed("i", "t"))
    db.settle()
    for start in range(0, 16_000, 2000):
        db.commit({"t": pairs([(n, n) for n in range(start, start + 2000)])})
        db.settle()
    assert sum(taken) > 2 * _MOST_ROWS, "there was something to merge"
    assert max(taken) <= _MOST_ROWS
