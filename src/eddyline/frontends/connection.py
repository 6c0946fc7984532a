"""Connections: a database in this process, and sessions on it.

``connect`` opens a database and is its first session; ``Connection.session`` opens further ones.  The database ends
with the connection that opened it, or with the interpreter.
"""

from __future__ import annotations

import _thread
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pyarrow as pa

from eddyline.adapter.engine import Engine
from eddyline.adapter.memory_size import bytes_of, memory_size
from eddyline.adapter.provisioning import Provisioning
from eddyline.adapter.restoring import open_engine
from eddyline.adapter.session import Session
from eddyline.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    make_error,
)
from eddyline.frontends.cursor import Cursor
from eddyline.frontends.ingest import incoming
from eddyline.frontends.progress import CompilationProgress, HydrationProgress
from eddyline.frontends.subscription import Subscription
from eddyline.kernels.warm import warm_soon

__all__ = ["Connection", "connect"]


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    workers: int = 1,
    interactive: bool = True,
    memory_limit: int | str | None = None,
    process_settings: bool | Mapping[str, str] = True,
    processes: int = 0,
) -> Connection:
    """Opens a database and returns its first session; ``close()``, or leaving a ``with`` block, ends it.

        with eddyline.connect() as db:
            db.execute("CREATE TABLE t (a int)")

    It is a new one in memory, or the one in the directory ``path``, which is made if nothing is there.  A directory is
    open once at a time; what was acknowledged in it survives crashes (``docs/durability.md``).  Materialized views and
    indexes in it are computed anew, in the background.

    ``workers``: threads that maintain views.  ``interactive``: serve reads from a runtime of their own, which
    never waits for maintenance; otherwise one runtime does both.  ``memory_limit``: where ``query_max_memory``
    starts: what one read may hold while it is computed (53200 past it), in bytes or with a unit (``"512MB"``); None: no
    bound.
    ``processes``: child processes that maintain the views and answer the reads, with ``workers`` threads each; 0: this
    process does it.  They take longer to start and keep a copy of what they read, but share no interpreter with the
    program, and one that dies is replaced.
    ``process_settings``: whether the thread switch interval may be shortened while databases are open; or where
    process settings begin, by name (``{"workload_class": "batch"}``), which ALTER SYSTEM changes: all of them with
    ``processes``, the thread switch interval without.

    The first time on a machine the kernels are compiled, with a line on standard error if that takes long.  After that
    they are loaded while the program goes on, which takes a thread a third of a second; a statement waits for those
    that it needs.

    Raises 0A000 for a process setting that is the program's, and for a directory of a newer format, 22023 for a bad
    argument, 42704 for an unknown process setting.  For a directory: 55006 while it is open elsewhere, 42809 if it is
    something else's, XX001 if it is damaged, 42501, 53100 … where the system refuses.
    """
    _check_count("workers", workers, least=1, most=1024)
    _check_count("processes", processes, least=0, most=256)
    memory_limit_bytes = _memory_limit(memory_limit)
    _check_path(path)
    warm_soon(CompilationProgress().update)
    engine = open_engine(
        path,
        workers=workers,
        interactive=interactive,
        memory_limit_bytes=memory_limit_bytes,
        process_settings=process_settings,
        provisioning=Provisioning(workers, processes, interactive) if processes else None,
    )
    return Connection(engine, owner=True, in_use=_InUse(engine))


def _check_path(path: str | os.PathLike[str] | None) -> None:
    """22023 for what other databases call a path, and which would make a directory of that name."""
    if path == ":memory:":
        hint = "connect() without a path opens a database in memory."
    elif isinstance(path, str) and "://" in path:
        hint = "A path names a directory; a server is reached by PostgreSQL's clients."
    else:
        return
    raise ProgrammingError(f"{path!r} is not the path of a directory", sqlstate="22023", hint=hint)


def _check_count(name: str, value: object, *, least: int, most: int) -> None:
    if not _is_whole(value) or not least <= int(value) <= most:  # type: ignore[call-overload]  # it has __index__
        raise ProgrammingError(f"{name} must be a whole number from {least} to {most}, not {value!r}", sqlstate="22023")


def _is_whole(value: object) -> bool:
    """NumPy's whole numbers too."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _check_seconds(timeout: object) -> None:
    """``threading`` waits for about 292 years at most."""
    fits = isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 0 <= timeout < threading.TIMEOUT_MAX
    if timeout is not None and not fits:
        raise ProgrammingError(f"timeout must be a number of seconds, or None, not {timeout!r}", sqlstate="22023")


def _check_time(name: str, value: object) -> None:
    if value is not None and not _is_whole(value):
        raise ProgrammingError(f"{name} must be a time in whole µs since the epoch, not {value!r}", sqlstate="22023")


def _memory_limit(value: int | str | None) -> int | None:
    if value is None:
        return None
    size = bytes_of(memory_size("memory_limit", value)) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ProgrammingError(
            f"memory_limit must be a positive number of bytes, not {value!r}",
            sqlstate="22023",
            hint='Give bytes, or a size with a unit: "512MB", "2GB".',
        )
    return size


class _InUse:
    """Kept by connections, cursors and subscriptions: when the last one goes without a ``close``, the database ends."""

    def __init__(self, engine: Engine) -> None:
        weakref.finalize(self, _abandoned, engine).atexit = False  # the interpreter's exit closes what is open


def _abandoned(engine: Engine) -> None:
    """On whatever thread drops the last reference, in the middle of whatever it does: the closing is another's."""
    if engine.closed or engine.forked():
        return
    warnings.warn("a database was dropped without close()", ResourceWarning, stacklevel=1)
    _thread.start_new_thread(engine.close, ())  # ``threading`` would take locks that this thread may hold


class Connection:
    """One session.  May be used from any thread, one statement at a time; a second one waits.

    Autocommit outside ``BEGIN`` … ``COMMIT``.
    """

    # PEP 249 asks for the exceptions as attributes of connections too.
    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, engine: Engine, *, owner: bool = False, in_use: _InUse | None = None) -> None:
        self._engine = engine
        self._owner = owner
        self._in_use = in_use
        self._session = Session(engine)

    # -- statements

    def cursor(self) -> Cursor:
        """A new cursor on this session."""
        self._session.check_usable()
        return Cursor(self._session, keeps=self._in_use)

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs one statement on a new cursor."""
        return self.cursor().execute(statement, parameters)

    def executemany(self, statement: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Runs one statement once per parameter row, in one transaction."""
        return self.cursor().executemany(statement, seq_of_parameters)

    def executescript(self, script: str) -> Cursor:
        """Runs several statements separated by semicolons, stopping at the first error; the last one's cursor."""
        return self.cursor().executescript(script)

    def copy(self, statement: str, file: Any = None, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs a COPY statement; see ``Cursor.copy``."""
        return self.cursor().copy(statement, file, parameters)

    def commit(self) -> None:
        """Commits the open transaction, if there is one."""
        self._session.commit()

    def rollback(self) -> None:
        """Rolls the open transaction back, if there is one."""
        self._session.rollback()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A block that is one transaction: commits at its end, rolls back where an exception leaves it.

        Blocks do not nest (25001).  A block whose statement failed is rolled back, and says so (25P02) even if the
        statement's own error was caught.  Threads that share this connection share the transaction too: give each
        its own ``session()``.
        """
        if self.in_transaction:
            raise make_error("25001", "there is already a transaction in progress", hint="Transactions do not nest.")
        try:
            self.execute("BEGIN")
            yield self
        except BaseException:
            if self.in_transaction:  # closing the session has rolled it back already
                self._session.rollback()
            raise
        if self.in_transaction and self.execute("COMMIT").statusmessage == "ROLLBACK":
            raise make_error("25P02", "the transaction was rolled back, since one of its statements failed")

    @property
    def in_transaction(self) -> bool:
        return self._session.in_transaction

    def cancel(self) -> None:
        """Cancels the statement that runs on this session, from another thread: it fails with 57014."""
        self._session.cancel()

    # -- data in

    def append(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """Adds rows in one commit, whole or not at all; returns its time (µs).

        ``data``: an Arrow table or batch, anything with an Arrow stream, a pandas or Polars frame, a list or iterator
        of dicts, a dict of columns, or the path of a .csv, .parquet or .jsonl file.  Columns match by name, missing
        ones take their DEFAULT, in those rows that lack them, unknown ones are an error (42703).  Values become the
        column's type as in an INSERT: a float is rounded for an integer column, a timestamp loses its time for a date;
        texts are read as literals are.  Waits up to ``timeout`` seconds (None: as long as it takes) while maintenance
        is far behind; then 53300.
        """
        _check_seconds(timeout)
        return self._session.bulk.append(table, self._table(table, data), timeout=timeout)

    def upsert(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """As ``append``, but a row whose primary key exists replaces the whole row that has it.

        Columns that are not given take their DEFAULT, or NULL, there too: to change some columns of a row and keep the
        others, use UPDATE, or INSERT … ON CONFLICT … DO UPDATE SET.
        """
        _check_seconds(timeout)
        return self._session.bulk.upsert(table, self._table(table, data), timeout=timeout)

    def delete(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """Removes rows: by primary key where the table has one (other columns are ignored), else by whole rows.

        A row that is not there is an error (22023), and nothing is removed.
        """
        _check_seconds(timeout)
        return self._session.bulk.delete(table, self._table(table, data), timeout=timeout)

    def _table(self, table: str, data: object) -> Any:
        self._session.check_usable()
        typed = isinstance(data, (pa.Table, pa.RecordBatch))  # it says by itself what its columns are
        return incoming(data, {} if typed else self._session.bulk.column_types(table))

    # -- data out

    def subscribe(
        self,
        query: str,
        *,
        snapshot: bool = True,
        progress: bool = False,
        as_of: int | None = None,
        up_to: int | None = None,
        timeout: float | None = None,
        parameters: Sequence[Any] | None = None,
    ) -> Subscription:
        """The changes of a query's result, as they happen; ``query`` is a SELECT or the name of an object.

        ``snapshot``: begin with the whole result.  ``progress``: also report times below which nothing more comes.
        ``as_of``: start at that time.  ``up_to``: end before it.  ``timeout``: iteration ends after that many seconds
        without news (None: never).
        """
        _check_seconds(timeout)
        _check_time("as_of", as_of)
        _check_time("up_to", up_to)
        if not isinstance(query, str):
            raise ProgrammingError(f"a query is a str, not a {type(query).__name__}", sqlstate="42602")
        feed = self._session.subscribe(
            query, snapshot=snapshot, progress=progress, as_of=as_of, up_to=up_to, parameters=parameters
        )
        return Subscription(feed, timeout, keeps=self._in_use)

    def wait_hydrated(self, name: str, *, timeout: float | None = None, progress: bool = False) -> None:
        """Waits until the view, materialized view or index has its first complete state.

        ``progress``: report on standard error.  Raises 57014 after ``timeout`` seconds, 42P01 for an unknown name.
        """
        _check_seconds(timeout)
        with HydrationProgress(name, enabled=progress) as report:
            self._session.wait_hydrated(name, timeout=timeout, report=report.update)

    # -- looking inside

    def metrics(self) -> str:
        """What the database counts of itself, in Prometheus' text format: to be served, or looked at.

        See ``docs/observing.md`` for the series.
        """
        self._session.check_usable()
        return self._engine.apart.run(self._engine.metrics_text)

    # -- life

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copies the database to the directory ``path``, which must be empty or not be there; statements go on.

        The copy has all that was acknowledged before, is a database like any other, and its checksums are verified.
        Raises 0A000 for a database in memory, 58P02 if the directory is not empty, XX001 where a file is damaged,
        53100 … where the system refuses.
        """
        self._session.check_usable()
        durability = self._engine.durability
        if durability is None:
            raise NotSupportedError("a database in memory has no files to copy", hint='Open one: connect("directory").')
        self._engine.apart.run(lambda: durability.backup(path))

    def session(self) -> Connection:
        """Another session on this database: own transaction, settings, prepared statements."""
        self._session.check_usable()
        return Connection(self._engine, in_use=self._in_use)

    def close(self) -> None:
        """Ends the session, rolling back; the connection that opened the database ends the database too."""
        self._session.close()
        if self._owner:
            self._engine.close()

    def __repr__(self) -> str:
        durability = self._engine.durability
        where = "memory" if durability is None else repr(durability.files.title)
        return f"<eddyline.Connection: {'a database' if self._owner else 'a session'} in {where}>"

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
