"""Cursors: PEP 249 with Arrow, pandas and Polars beside it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.adapter.export import check_shown_by_frames, export_table
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.session import Session
from eddyline.errors import InterfaceError, make_error
from eddyline.expr.text_io import to_python
from eddyline.frontends.subscription import Subscription
from eddyline.repr.types import Kind

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Cursor", "TypeObject"]

_SLICE_ROWS = 2000  # rows turned into Python objects at a time, so that the GIL is never held for long
_SHOWN_ROWS = 20

Row = tuple[Any, ...]


class TypeObject:
    """A PEP 249 type object: equals the type codes (PostgreSQL type names) of its family."""

    def __init__(self, *kinds: Kind) -> None:
        self._names = frozenset(k.value for k in kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._names == other._names
        return other in self._names

    def __hash__(self) -> int:
        return hash(self._names)


STRING = TypeObject(Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.UUID)
BINARY = TypeObject(Kind.BYTEA)
NUMBER = TypeObject(Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE, Kind.BOOLEAN)
DATETIME = TypeObject(Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
ROWID = TypeObject()


class Cursor:
    """The statements of one session, and the rows of the last one.

    The rows of SUBSCRIBE come as they happen: fetching waits for them, and closing the cursor, or executing something
    else on it, ends the subscription.
    ``arraysize``: rows per ``fetchmany``.  ``time``: where the last answer or write stands on the timeline (µs).
    ``keeps`` lives for as long as the cursor does.
    """

    def __init__(self, session: Session, *, keeps: object = None) -> None:
        self._session = session
        self._keeps = keeps
        self._outcome: Outcome | None = None
        self._subscription: Subscription | None = None
        self._rows: ResultSet | None = None  # the result, or the subscription's change at hand
        self._row = 0  # next row to fetch
        self._slice: list[Row] = []  # rows [_slice_start, _slice_start + len) as Python objects
        self._slice_start = 0
        self._closed = False
        self.arraysize = 1

    def __repr__(self) -> str:
        shown = "closed" if self._closed else self.statusmessage or "no statement yet"
        return f"<eddyline.Cursor: {shown}>"

    # -- executing

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs one statement; returns this cursor.  ``parameters`` are for ``$1`` … or, where there is none, ``?``."""
        self._check_open()
        return self._begin(lambda: self._session.execute(statement, parameters))

    def executemany(self, statement: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Runs one statement once per parameter row, all of them in one transaction."""
        self._check_open()
        return self._begin(lambda: self._session.executemany(statement, seq_of_parameters))

    def executescript(self, script: str) -> Cursor:
        """Runs several statements separated by semicolons, stopping at the first error; the rows are the last one's."""
        self._check_open()
        return self._begin(lambda: self._session.execute_script(script))

    def copy(self, statement: str, file: Any = None, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs a COPY statement; ``rowcount`` says how many rows went.

        ``file``: what FROM STDIN reads (an open file, bytes, or an iterable of str or bytes) and TO STDOUT writes to
        (an open file, text or binary).  COPY FROM adds all rows in one commit, or none.
        """
        self._check_open()
        return self._begin(lambda: self._session.execute(statement, parameters, file=file))

    def _begin(self, run: Callable[[], Outcome]) -> Cursor:
        """Forgets the last statement, then takes what ``run`` gives: a failing statement leaves no rows."""
        self._forget()
        outcome = run()
        self._outcome = outcome
        if outcome.feed is not None:
            self._subscription = Subscription(outcome.feed, None, keeps=self._keeps)
        self._show(outcome.result)
        return self

    def _forget(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()
        self._outcome = None
        self._show(None)

    def _show(self, rows: ResultSet | None) -> None:
        self._rows = rows
        self._row = 0
        self._slice = []
        self._slice_start = 0

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", sqlstate="24000")

    def close(self) -> None:
        """Frees the rows and ends a subscription.  Twice is harmless."""
        self._closed = True
        self._forget()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what PEP 249 asks for

    @property
    def description(self) -> list[tuple[str, str, None, int | None, int | None, int | None, None]] | None:
        """One 7-tuple per result column: name, type name, …; None where the statement gives no rows."""
        shown = self._subscription if self._subscription is not None else self._rows
        if shown is None:
            return None
        return [
            (name, t.kind.value, None, t.length, t.precision, t.scale, None)
            for name, t in zip(shown.names, shown.types, strict=True)
        ]

    @property
    def rowcount(self) -> int:
        """Rows of the result, or rows affected; -1 where neither is known."""
        if self._outcome is None or self._subscription is not None:
            return -1
        return self._rows.rows if self._rows is not None else self._outcome.affected

    @property
    def time(self) -> int | None:
        """The time at which the answer is exact, or at which the write was committed; µs since the epoch."""
        if self._rows is not None and self._rows.time is not None:
            return self._rows.time
        return self._outcome.time if self._outcome is not None else None

    @property
    def statusmessage(self) -> str | None:
        """PostgreSQL's command tag of the last statement."""
        return self._outcome.tag if self._outcome is not None else None

    @property
    def notices(self) -> tuple[str, ...]:
        return self._outcome.notices if self._outcome is not None else ()

    def setinputsizes(self, sizes: object) -> None:
        """Accepted and not needed (PEP 249)."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Accepted and not needed (PEP 249)."""

    def _check_rows(self) -> None:
        self._check_open()
        if self._rows is None and self._subscription is None:
            raise InterfaceError("the last statement gave no rows to fetch", sqlstate="24000")

    def _result(self) -> ResultSet:
        """The whole result."""
        self._check_rows()
        if self._rows is None or self._subscription is not None:
            raise InterfaceError(
                "a subscription has no whole result", sqlstate="24000", hint="Iterate over it, or use subscribe()."
            )
        return self._rows

    def _next_row(self, *, wait: bool = True) -> Row | None:
        while self._rows is None or self._row >= self._rows.rows:
            if self._subscription is None:
                return None
            change = self._subscription.next_rows(None if wait else 0)
            if change is None:
                return None
            self._show(change)
        if self._row >= self._slice_start + len(self._slice):
            self._slice_start = self._row
            self._slice = _python_rows(self._rows, self._row, min(self._row + _SLICE_ROWS, self._rows.rows))
        row = self._slice[self._row - self._slice_start]
        self._row += 1
        return row

    def fetchone(self) -> Row | None:
        """The next row; None when there is none.  Of a subscription: waits for it, None at its end."""
        self._check_rows()
        return self._next_row()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Up to ``size`` rows, fewer at the end.  Of a subscription: waits for one, then takes what is there."""
        self._check_rows()
        rows: list[Row] = []
        for _ in range(self.arraysize if size is None else size):
            row = self._next_row(wait=not rows)
            if row is None:
                break
            rows.append(row)
        return rows

    def fetchall(self) -> list[Row]:
        """The rows that are left.  Of a subscription: waits for its end."""
        self._check_rows()
        rows: list[Row] = []
        while (row := self._next_row()) is not None:
            rows.append(row)
            if self._rows is not None and self._subscription is None:
                self._add_rest(rows)
        return rows

    def _add_rest(self, rows: list[Row]) -> None:
        """Adds what is left of the result, slice by slice: a list of all of it is never copied at once."""
        left = self._slice[self._row - self._slice_start :]
        rows.extend(left)
        self._row += len(left)
        result = self._result()
        while self._row < result.rows:
            stop = min(self._row + _SLICE_ROWS, result.rows)
            rows.extend(_python_rows(result, self._row, stop))
            self._row = stop

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    # -- whole results

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table (types: the table in ``docs/model.md``)."""
        result = self._result()
        return export_table(result.names, result.types, result.columns)

    def df(self) -> pd.DataFrame:
        """All rows as a pandas frame; columns that hold NULLs use pandas' nullable types where they are numbers."""
        pandas = _import("pandas")
        self._check_frame()
        table = self.arrow()
        nullable = {
            pa.int16(): pandas.Int16Dtype(),
            pa.int32(): pandas.Int32Dtype(),
            pa.int64(): pandas.Int64Dtype(),
            pa.bool_(): pandas.BooleanDtype(),
        }
        holding_nulls = {f.type for f, c in zip(table.schema, table.columns, strict=True) if c.null_count}
        return table.to_pandas(types_mapper=lambda t: nullable.get(t) if t in holding_nulls else None)

    def pl(self) -> pl.DataFrame:
        """All rows as a Polars frame; intervals as text, since Polars has no calendar interval.

        42701 for two columns of one name, which Polars' frames cannot have.
        """
        polars = _import("polars")
        self._check_frame()
        result = self._result()
        for i, name in enumerate(result.names):
            if name in result.names[:i]:
                raise make_error(
                    "42701",
                    f'column "{name}" appears more than once, which a Polars frame cannot show',
                    hint="Give the columns names of their own with AS, or use arrow() or df().",
                )
        table = self.arrow()
        for i, t in enumerate(result.types):
            if t.kind is Kind.INTERVAL:
                texts = [None if v is None else str(v) for v in to_python(result.columns[i], t)]
                table = table.set_column(i, table.schema.field(i).name, pa.array(texts, pa.large_string()))
        frame: pl.DataFrame = polars.from_arrow(table)
        return frame

    def _check_frame(self) -> None:
        result = self._result()
        check_shown_by_frames(result.names, result.types, result.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str | None:
        """The first rows as an HTML table, for notebooks."""
        result = self._rows
        if result is None or self._subscription is not None:
            return None
        head = "".join(f"<th>{html.escape(n)}</th>" for n in result.names)
        rows = _python_rows(result, 0, min(_SHOWN_ROWS, result.rows))
        body = "".join(
            "<tr>" + "".join(f"<td>{'NULL' if v is None else html.escape(str(v))}</td>" for v in row) + "</tr>"
            for row in rows
        )
        more = f"<p>{result.rows} rows, {_SHOWN_ROWS} shown</p>" if result.rows > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _python_rows(result: ResultSet, start: int, stop: int) -> list[Row]:
    if not result.types:
        return [()] * (stop - start)
    if result.ready is not None:
        return result.ready[start:stop]
    whole = stop - start == result.rows
    parts = result.columns if whole else tuple(c.slice(start, stop - start) for c in result.columns)
    return list(zip(*(to_python(c, t) for c, t in zip(parts, result.types, strict=True)), strict=True))


def _import(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as problem:
        raise ImportError(f"{name} is not installed; pip install 'eddyline[{name}]'") from problem
