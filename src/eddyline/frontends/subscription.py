"""Subscriptions as users see them: an iterator of changes, each an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.adapter.export import export_table
from eddyline.adapter.outcome import Change, SubscriptionFeed
from eddyline.repr.types import arrow_type

__all__ = ["Subscription", "SubscriptionChange"]

_LEADING = ("mz_timestamp", "mz_progressed", "mz_diff")


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """One consolidated batch.

    ``time``: when it happened (µs).  ``updates``: mz_timestamp, mz_progressed, mz_diff, then the query's columns.  A
    progress message has no changes, one row with ``mz_progressed`` true and NULLs: everything below its time is known.
    """

    time: int
    updates: pa.Table


class Subscription:
    """Iterate for changes; leaving the ``for`` loop or ``close()`` ends it."""

    def __init__(self, feed: SubscriptionFeed, timeout: float | None) -> None:
        self._feed = feed
        self._timeout = timeout
        self._pending: list[SubscriptionChange] = []
        self._closed = False
        self.ended = False  # the subscription reached its ``up_to`` or was closed

    def __iter__(self) -> Iterator[SubscriptionChange]:
        try:
            while (change := self.next(self._timeout)) is not None:
                yield change
        finally:
            self.close()

    def next(self, timeout: float | None = None) -> SubscriptionChange | None:
        """The next change; None at the end, or when ``timeout`` seconds pass without one."""
        while not self._pending:
            if self.ended:
                return None
            change = self._feed.receive(timeout)
            if change is None:
                self.ended = self._feed.ended()
                return None
            self._pending.extend(self._changes(change))
        return self._pending.pop(0)

    def _changes(self, change: Change) -> Iterator[SubscriptionChange]:
        """One item per distinct time, then a progress message if asked for."""
        updates = change.updates
        for time in np.unique(updates.times):
            rows = np.flatnonzero(updates.times == time)
            part = updates if len(rows) == len(updates) else updates.take(rows)
            yield SubscriptionChange(int(time), self._table(part.times, part.diffs, part.columns))
        if self._feed.progress:
            yield SubscriptionChange(int(change.upper), self._progress(int(change.upper)))

    def _table(self, times: np.ndarray, diffs: np.ndarray, columns: tuple[pa.Array, ...]) -> pa.Table:
        rows = export_table(self._feed.names, self._feed.types, columns)
        head = [pa.array(times, pa.int64()), pa.array(np.zeros(len(times), bool)), pa.array(diffs, pa.int64())]
        return pa.Table.from_arrays([*head, *rows.columns], names=[*_LEADING, *self._feed.names])

    def _progress(self, upper: int) -> pa.Table:
        nulls = [pa.nulls(1, arrow_type(t)) for t in self._feed.types]
        rows = export_table(self._feed.names, self._feed.types, nulls)
        head = [pa.array([upper], pa.int64()), pa.array([True]), pa.nulls(1, pa.int64())]
        return pa.Table.from_arrays([*head, *rows.columns], names=[*_LEADING, *self._feed.names])

    def close(self) -> None:
        self.ended = True
        if not self._closed:
            self._closed = True
            self._feed.close()
