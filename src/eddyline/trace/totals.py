"""What a run comes to, remembered.

A small collection that changes all the time is mostly history: updates that cancel.  Runs do not change, and the large
ones stay for a while, so that whoever reads the whole collection again adds up only what has come since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.trace.merge import Merge
from eddyline.trace.run import Layout, Run, Total

__all__ = ["MOST_ROWS", "read_runs", "settled"]

#: adding up a run of more rows would be no short step
MOST_ROWS: Final = 1 << 16
#: fewer are added up each time
_LEAST_ROWS: Final = 256
#: one retraction in so many updates makes it worth while to try, and a total of one row in so many to keep it
_SHARE: Final = 4


def settled(run: Run, time: Time) -> Run | None:
    """A run with the same content at ``time``, and much shorter where possible; None: there is nothing left of it.

    ``run`` has at most ``MOST_ROWS``.  O(rows) the first time, then O(1); a race adds up twice, alike.
    """
    if len(run) < _LEAST_ROWS or _SHARE * run.retracted.all < len(run):
        return run
    if run.total is None:
        run.total = _total(run)
    return run.total.run if run.total.time <= time else run


def _total(run: Run) -> Total:
    """Bounds do not say when the last update is: rows may stand in a trace ahead of its upper."""
    last = Time(int(run.times.max()))
    merge = Merge(run.layout, (run,), Frontier(last))
    merge.work(len(run) + 1)
    total = merge.result()
    return Total(last, total) if total is None or _SHARE * len(total) <= len(run) else Total(EMPTY, None)


def read_runs(layout: Layout, runs: list[Run], time: Time) -> Iterator[Batch]:
    """The content of ``runs`` at ``time``, consolidated, in at most one batch.  DataError 22003.  O(their rows)."""
    if not runs:
        return
    merge = Merge(layout, runs, Frontier(time), below=Frontier(time + 1))
    merge.work(merge.left_rows + 1)
    times, diffs = merge.updates()
    yield Batch(layout.types, merge.columns(), times, diffs)
