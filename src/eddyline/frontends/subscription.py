"""Subscriptions as users see them: an iterator of changes, each an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.adapter.export import export_table
from eddyline.adapter.outcome import Change, ResultSet, SubscriptionFeed
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType, arrow_type

__all__ = ["Subscription", "SubscriptionChange"]


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """One consolidated batch.

    ``time``: when it happened (µs).  ``updates``: mz_timestamp, mz_progressed, mz_diff, then the query's columns.  A
    progress message has no changes, one row with ``mz_progressed`` true and NULLs: everything below its time is known.
    """

    time: int
    updates: pa.Table


class Subscription:
    """Iterate for changes; leaving the ``for`` loop or ``close()`` ends it.

    ``names`` and ``types``: the columns, mz_timestamp, mz_progressed and mz_diff first.
    """

    def __init__(self, feed: SubscriptionFeed, timeout: float | None) -> None:
        self._feed = feed
        self._timeout = timeout
        self._pending: list[ResultSet] = []
        self._closed = False
        self.ended = False  # the subscription reached its ``up_to`` or was closed
        self.names: tuple[str, ...] = ("mz_timestamp", "mz_progressed", "mz_diff", *feed.names)
        self.types: tuple[SqlType, ...] = (BIGINT, BOOLEAN, BIGINT, *feed.types)

    def __iter__(self) -> Iterator[SubscriptionChange]:
        try:
            while (change := self.next(self._timeout)) is not None:
                yield change
        finally:
            self.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next(self, timeout: float | None = None) -> SubscriptionChange | None:
        """The next change; None at the end, or when ``timeout`` seconds pass without one."""
        rows = self.next_rows(timeout)
        if rows is None:
            return None
        assert rows.time is not None
        return SubscriptionChange(int(rows.time), export_table(rows.names, rows.types, rows.columns))

    def next_rows(self, timeout: float | None = None) -> ResultSet | None:
        """As ``next``, in engine layouts."""
        while not self._pending:
            if self.ended:
                return None
            change = self._feed.receive(timeout)
            if change is None:
                self.ended = self._feed.ended()
                return None
            self._pending.extend(self._changes(change))
        return self._pending.pop(0)

    def _changes(self, change: Change) -> Iterator[ResultSet]:
        """One item per distinct time, then a progress message if asked for."""
        updates = change.updates
        for time in np.unique(updates.times):
            rows = np.flatnonzero(updates.times == time)
            part = updates if len(rows) == len(updates) else updates.take(rows)
            progressed = pa.array(np.zeros(len(part), np.bool_))
            yield self._rows(int(time), pa.array(part.times), progressed, pa.array(part.diffs), part.columns)
        if self._feed.progress:
            nulls = tuple(pa.nulls(1, arrow_type(t)) for t in self._feed.types)
            upper = int(change.upper)
            yield self._rows(upper, pa.array([upper], pa.int64()), pa.array([True]), pa.nulls(1, pa.int64()), nulls)

    def _rows(
        self, time: int, times: pa.Array, progressed: pa.Array, diffs: pa.Array, columns: tuple[pa.Array, ...]
    ) -> ResultSet:
        return ResultSet(self.names, self.types, (times, progressed, diffs, *columns), len(times), Time(time))

    def close(self) -> None:
        self.ended = True
        self._pending.clear()
        if not self._closed:
            self._closed = True
            self._feed.close()
