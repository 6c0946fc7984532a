"""A subscription as rows: when, whether time has only passed, how often, and the query's columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eddyline.adapter.outcome import Change, ResultSet, SubscriptionFeed
from eddyline.errors import Error, make_error
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType, arrow_type

__all__ = ["SUBSCRIPTION_COLUMNS", "SubscriptionRows"]

#: before the query's own
SUBSCRIPTION_COLUMNS: tuple[tuple[str, SqlType], ...] = (
    ("mz_timestamp", BIGINT),
    ("mz_progressed", BOOLEAN),
    ("mz_diff", BIGINT),
)


class SubscriptionRows:
    """The rows of ``feed``, in pieces as they come.  One thread reads; ``close`` from any."""

    def __init__(self, feed: SubscriptionFeed) -> None:
        self._feed = feed
        self._pending: list[ResultSet] = []
        self._closed = False
        self._failure: Error | None = None  # what ended it
        self.complete = False  # it has reached its ``up_to``
        self.ended = False  # the subscription reached its ``up_to`` or was closed
        self.names: tuple[str, ...] = (*(n for n, _ in SUBSCRIPTION_COLUMNS), *feed.names)
        self.types: tuple[SqlType, ...] = (*(t for _, t in SUBSCRIPTION_COLUMNS), *feed.types)

    def next_rows(self, timeout: float | None = None, *, from_first: bool = False) -> ResultSet | None:
        """The next change's rows; None at the end, or when ``timeout`` seconds pass without one.

        ``from_first``: the seconds begin once what is there from the start is known, however long that takes.
        An error that ended the subscription is raised again whenever it is asked.
        """
        while not self._pending:
            if self._failure is not None:
                failure = self._failure
                raise make_error(failure.sqlstate, failure.message, detail=failure.detail, hint=failure.hint)
            if self.ended:
                return None
            try:
                change = self._feed.receive(timeout, from_first)
            except Error as failure:
                if self._feed.ended():  # and not a cancellation, say, after which it goes on
                    self._failure = failure
                raise
            if change is None:
                self.ended = self.complete = self._feed.ended()
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
