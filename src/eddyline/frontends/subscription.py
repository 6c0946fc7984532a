"""Subscriptions as users see them: an iterator of changes, each an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from eddyline.adapter.export import export_table
from eddyline.adapter.outcome import ResultSet, SubscriptionFeed
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import InterfaceError
from eddyline.repr.types import SqlType

__all__ = ["Subscription", "SubscriptionChange", "feed_of"]


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """One consolidated batch.

    ``time``: when it happened (µs).  ``updates``: mz_timestamp, mz_progressed, mz_diff, then the query's columns.  A
    progress message has no changes, one row with ``mz_progressed`` true and NULLs: everything below its time is known.
    """

    time: int
    updates: pa.Table


class Subscription:
    """Iterate for changes, or ask for the ``next`` one.  Leaving the ``for`` loop, a ``with`` block or ``close()`` ends
    it; InterfaceError afterwards.  If something that it reads is dropped, an error (42P01) follows what came before,
    and whoever asks on gets it again.  ``timeout``: of the loop; it begins once what is there from the start is known.

    ``names`` and ``types``: the columns, mz_timestamp, mz_progressed and mz_diff first.
    ``keeps`` lives for as long as the subscription does.
    """

    def __init__(self, feed: SubscriptionFeed, timeout: float | None, *, keeps: object = None) -> None:
        self._keeps = keeps
        self._feed = feed
        self._rows = SubscriptionRows(feed)
        self._timeout = timeout
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "ended" if self.ended else "open"
        return f"<eddyline.Subscription: {', '.join(self.names[3:])}; {state}>"

    @property
    def names(self) -> tuple[str, ...]:
        return self._rows.names

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self._rows.types

    @property
    def ended(self) -> bool:
        """Whether the subscription has reached its ``up_to`` or was closed."""
        return self._rows.ended

    def __iter__(self) -> Iterator[SubscriptionChange]:
        try:
            while (rows := self.next_rows(self._timeout, from_first=True)) is not None:
                yield _change(rows)
        finally:
            self.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next(self, timeout: float | None = None) -> SubscriptionChange | None:
        """The next change; None at the end (``ended``), or when ``timeout`` seconds pass without one."""
        rows = self.next_rows(timeout)
        return None if rows is None else _change(rows)

    def next_rows(self, timeout: float | None = None, *, from_first: bool = False) -> ResultSet | None:
        """As ``next``, in engine layouts; ``from_first`` as in ``SubscriptionRows.next_rows``."""
        if self._closed and not self._rows.complete:
            raise InterfaceError("the subscription is closed", hint="Subscribe again.")
        return self._rows.next_rows(timeout, from_first=from_first)

    def close(self) -> None:
        self._closed = True
        self._rows.close()


def feed_of(subscription: Subscription) -> SubscriptionFeed:
    """Where its changes come from, for those who wait for news without a thread."""
    return subscription._feed


def _change(rows: ResultSet) -> SubscriptionChange:
    assert rows.time is not None
    return SubscriptionChange(int(rows.time), export_table(rows.names, rows.types, rows.columns))
