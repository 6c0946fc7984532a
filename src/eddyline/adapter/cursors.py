"""Cursors of a session: results, and subscriptions, that FETCH gives a portion of at a time.

A result stands in memory, so that a cursor may go in both directions and holds nothing but its rows.  Positions are
PostgreSQL's: 0 before the first row, *n* on the *n*-th, one past the last behind it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from eddyline.adapter.outcome import Outcome, ResultSet, SubscriptionFeed
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import make_error, unsupported
from eddyline.repr.batch import concat_arrays
from eddyline.repr.types import SqlType, arrow_type
from eddyline.sql.statements import CloseCursor, DeclareCursor, Fetch, FetchDirection

__all__ = ["Cursors", "fetched_rows"]

_Columns: TypeAlias = tuple[tuple[str, SqlType], ...]


def fetched_rows(direction: FetchDirection, count: int | None, position: int, rows: int) -> tuple[range, int]:
    """Which rows (from 0) of ``rows`` a FETCH at ``position`` gives, in order, and the position after it.

    ``count`` None: all.
    """
    forward = direction is FetchDirection.FORWARD
    if direction in (FetchDirection.FORWARD, FetchDirection.BACKWARD):
        if count is not None and count < 0:
            forward, count = not forward, -count
        if count == 0:
            return _single(position, rows), position
        if forward:
            stop = rows if count is None else min(rows, position + count)
            past = count is None or position + count > rows
            return range(position, max(stop, position)), rows + 1 if past else stop
        start = 0 if count is None else max(0, position - 1 - count)
        past = count is None or position - count < 1
        return range(position - 2, start - 1, -1), 0 if past else start + 1
    assert count is not None, "ABSOLUTE and RELATIVE have one"
    origin = position if direction is FetchDirection.RELATIVE else 0 if count >= 0 else rows + 1
    target = origin + count
    target = min(max(target, 0), rows + 1)
    return _single(target, rows), target


def _single(position: int, rows: int) -> range:
    return range(position - 1, position) if 1 <= position <= rows else range(0)


@dataclass(slots=True)
class _Cursor:
    """``rows``: all of a result; of a subscription what has come and was not given."""

    declared: DeclareCursor
    columns: _Columns
    rows: ResultSet
    position: int = 0
    feed: SubscriptionRows | None = None
    held: bool = field(default=False)  # its transaction has been committed


class Cursors:
    """Owner: the session's running statement."""

    def __init__(self) -> None:
        self._cursors: dict[str, _Cursor] = {}

    def declare(self, statement: DeclareCursor, outcome: Outcome) -> None:
        """``outcome``: of its query.  42P03 for a name that is taken."""
        if statement.name in self._cursors:
            raise make_error("42P03", f'cursor "{statement.name}" already exists')
        if outcome.feed is not None:
            cursor = _of_subscription(statement, outcome.feed)
        else:
            result = outcome.result
            assert result is not None, "a query gives rows"
            cursor = _Cursor(statement, tuple(zip(result.names, result.types, strict=True)), result)
        self._cursors[statement.name] = cursor

    def __contains__(self, name: str) -> bool:
        return name in self._cursors

    def check_free(self, name: str) -> None:
        """42P03 for a name that is taken."""
        if name in self._cursors:
            raise make_error("42P03", f'cursor "{name}" already exists')

    def columns(self, name: str) -> _Columns:
        """34000 for a name that there is not."""
        return self._get(name).columns

    def _get(self, name: str) -> _Cursor:
        cursor = self._cursors.get(name)
        if cursor is None:
            raise make_error("34000", f'cursor "{name}" does not exist')
        return cursor

    def fetch(self, statement: Fetch) -> Outcome:
        """55000 backwards where that was ruled out, 34000 for a name that there is not.

        Of a subscription: what has come, up to the count; where nothing has, it waits for a change.
        """
        cursor = self._get(statement.name)
        if cursor.feed is not None:
            return _outcome(statement, _fetch_changes(cursor, cursor.feed, statement))
        rows, position = fetched_rows(statement.direction, statement.count, cursor.position, cursor.rows.rows)
        backwards = position < cursor.position or statement.direction is FetchDirection.BACKWARD
        if backwards and cursor.declared.scroll is False:
            raise make_error(
                "55000", "cursor can only scan forward", hint="Declare it with SCROLL option to enable backward scan."
            )
        cursor.position = position
        return _outcome(statement, _picked(cursor.rows, rows))

    def close(self, statement: CloseCursor) -> Outcome:
        """34000 for a name that there is not."""
        if statement.name is None:
            self.clear()
            return Outcome("CLOSE CURSOR ALL")
        _end(self._get(statement.name))
        del self._cursors[statement.name]
        return Outcome("CLOSE CURSOR")

    def end_transaction(self, *, committed: bool) -> None:
        """Ends those of the transaction, but for those that are to outlive its commit."""
        for name, cursor in list(self._cursors.items()):
            cursor.held = cursor.held or (committed and cursor.declared.hold)
            if not cursor.held:
                _end(cursor)
                del self._cursors[name]

    def clear(self) -> None:
        """Ends all of them."""
        for cursor in self._cursors.values():
            _end(cursor)
        self._cursors.clear()


def _of_subscription(statement: DeclareCursor, feed: SubscriptionFeed) -> _Cursor:
    rows = SubscriptionRows(feed)
    none = ResultSet(rows.names, rows.types, tuple(pa.array([], arrow_type(t)) for t in rows.types), 0)
    return _Cursor(statement, tuple(zip(rows.names, rows.types, strict=True)), none, feed=rows)


def _end(cursor: _Cursor) -> None:
    if cursor.feed is not None:
        cursor.feed.close()


def _outcome(statement: Fetch, rows: ResultSet) -> Outcome:
    if statement.move:
        return Outcome(f"MOVE {rows.rows}", affected=rows.rows)
    return Outcome(f"FETCH {rows.rows}", rows)


def _picked(result: ResultSet, rows: range) -> ResultSet:
    if rows.step == 1:
        columns = tuple(c.slice(rows.start, len(rows)) for c in result.columns)
    else:
        picks = pa.array(np.arange(rows.start, rows.stop, rows.step, dtype=np.int64))
        columns = tuple(c.take(picks) for c in result.columns)
    return ResultSet(result.names, result.types, columns, len(rows), result.time)


def _fetch_changes(cursor: _Cursor, feed: SubscriptionRows, statement: Fetch) -> ResultSet:
    count = statement.count
    if statement.direction is not FetchDirection.FORWARD or (count is not None and count < 0):
        raise unsupported("FETCH of a subscription other than FORWARD")
    parts = [cursor.rows]
    have = cursor.rows.rows
    deadline = time.monotonic() + statement.timeout_s
    while count is None or have < count:
        more = feed.next_rows(0.0 if have else max(0.0, deadline - time.monotonic()))
        if more is None:
            break
        parts.append(more)
        have += more.rows
    whole = _together(parts)
    given = whole.rows if count is None else min(count, whole.rows)
    cursor.rows = _picked(whole, range(given, whole.rows))
    return _picked(whole, range(given))


def _together(parts: Sequence[ResultSet]) -> ResultSet:
    columns = tuple(concat_arrays([p.columns[i] for p in parts]) for i in range(len(parts[0].types)))
    last = parts[-1]
    return ResultSet(last.names, last.types, columns, sum(p.rows for p in parts), last.time)
