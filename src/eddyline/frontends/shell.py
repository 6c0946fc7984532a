"""``eddyline sql``: a small interactive shell for a database in this process.

Statements run on a thread of their own, so that Ctrl-C reaches whoever waits for them and cancels them.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from eddyline.adapter.engine import Engine
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.restoring import open_engine
from eddyline.adapter.session import Session
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import Error
from eddyline.expr.timezone import UTC, zone_of
from eddyline.frontends.progress import CompilationProgress
from eddyline.frontends.statement_scan import complete_statements
from eddyline.frontends.text_table import table_lines, text_rows
from eddyline.kernels.warm import warm_soon

__all__ = ["Shell", "add_sql_arguments", "run_sql"]

T = TypeVar("T")
_NOT_OPENED: Final = 2
_FAILED: Final = 3
_INTERRUPTED: Final = 130
_LOOK_S: Final = 0.05
_HISTORY_LINES: Final = 2000
_PASSWORD: Final = re.compile(r"\bpassword\b", re.IGNORECASE)

_DESCRIPTION = """\
Runs SQL against a database in this process: one in memory, or the one in DIRECTORY, which is made if nothing is there.

Statements end with a semicolon and may take several lines.  Ctrl-C cancels a statement, or forgets what was typed.
"""
_EPILOG = """\
examples:
  eddyline sql                               a scratch database, gone when you leave
  eddyline sql ./live.eddy                   one that stays
  eddyline sql ./live.eddy < script.sql      a script; it ends at the first error
  eddyline sql ./live.eddy -c 'SELECT 1'     one or more statements

A directory is open in one process at a time.  One that is served is reached with PostgreSQL's shell:
  psql -h 127.0.0.1 -p 6875

commands:
  \\d            tables, views and indexes          \\timing       how long statements take
  \\d NAME       a relation's columns and indexes    \\q, Ctrl-D    leaves
  \\?            these

exit status: 0; 2 for wrong arguments or a database that cannot be opened; 3 if a statement of a script failed.
"""
_COMMANDS = """\
  \\d            tables, views and indexes
  \\d NAME       a relation's columns and indexes
  \\timing       says how long statements take, or stops saying it
  \\q            leaves
"""
_RELATIONS = """
    SELECT n.nspname AS schema, c.relname AS name,
           CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                          WHEN 'i' THEN 'index' ELSE c.relkind::text END AS type
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'mz\\_%'
    ORDER BY 1, 2
"""
_COLUMNS = """
    SELECT a.attname AS column, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
           CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS nullable
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = $1 AND ($2 = '' AND pg_catalog.pg_table_is_visible(c.oid) OR n.nspname = $2) AND a.attnum > 0
    ORDER BY a.attnum
"""
_INDEXES = """
    SELECT i.relname AS index, pg_catalog.pg_get_indexdef(x.indexrelid) AS definition
    FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
    JOIN pg_catalog.pg_class c ON c.oid = x.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = $1 AND ($2 = '' AND pg_catalog.pg_table_is_visible(c.oid) OR n.nspname = $2)
    ORDER BY 1
"""


def add_sql_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("directory", nargs="?", type=Path, metavar="DIRECTORY", help="the database; in memory without")
    parser.add_argument("-c", "--command", dest="statements", metavar="SQL", help="run this and leave")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="threads that maintain views (1)")


def run_sql(arguments: argparse.Namespace) -> int:
    """The exit status."""
    if arguments.workers < 1:
        sys.stderr.write("--workers must be at least 1\n")
        return _NOT_OPENED
    try:
        warm_soon(CompilationProgress().update)
        engine = open_engine(arguments.directory, workers=arguments.workers)
    except Error as error:
        sys.stderr.write(f"{error}\n")
        if error.sqlstate == "55006":
            sys.stderr.write("If it is served, connect to the server: psql -h 127.0.0.1 -p 6875\n")
        return _NOT_OPENED
    try:
        return _run(engine, arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    finally:
        engine.close()


def _run(engine: Engine, arguments: argparse.Namespace) -> int:
    shell = Shell(Session(engine), sys.stdout, sys.stderr)
    if arguments.statements is not None:
        return shell.script([arguments.statements])
    if not sys.stdin.isatty():
        return shell.script(sys.stdin)
    where = "memory" if arguments.directory is None else str(arguments.directory)
    sys.stdout.write(f"A database in {where}. \\? for help, \\q to leave.\n")
    with _history() as forget:
        return shell.interactive(input, forget)


@contextmanager
def _history() -> Iterator[Callable[[], None]]:
    """Line editing, and a history that stays, where there is readline.  Gives what forgets the newest line."""
    if importlib.util.find_spec("readline") is None:
        yield lambda: None
        return
    readline: Any = importlib.import_module("readline")
    path = Path(os.environ.get("EDDYLINE_HISTORY") or Path.home() / ".eddyline_history")
    try:
        readline.read_history_file(path)
    except OSError as problem:
        if path.exists():
            sys.stderr.write(f"no history: {problem}\n")
    readline.set_history_length(_HISTORY_LINES)

    def forget() -> None:
        if readline.get_current_history_length():
            readline.remove_history_item(readline.get_current_history_length() - 1)

    try:
        yield forget
    finally:
        try:
            readline.write_history_file(path)
        except OSError as problem:
            sys.stderr.write(f"the history was not written: {problem}\n")


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Set by Ctrl-C meanwhile, which interrupts nothing; only the main thread is told of it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class Shell:
    """``out``: results; ``err``: errors and notices.  Ends the session when it ends."""

    def __init__(self, session: Session, out: TextIO, err: TextIO) -> None:
        self._session = session
        self._out = out
        self._err = err
        self._timing = False

    # -- where statements come from -----------------------------------------------------------------------------------

    def script(self, lines: Iterator[str] | list[str] | TextIO) -> int:
        """Runs what ``lines`` say, up to the first error; the exit status."""
        text = ""
        for line in lines:
            if not text.strip() and line.lstrip().startswith("\\"):
                if not self._command(line.strip()):
                    return 0
                continue
            statements, text = complete_statements(text + line)
            for statement in statements:
                if not self._run(statement):
                    return _FAILED
        return 0 if not text.strip() or self._run(text.strip()) else _FAILED

    def interactive(self, ask: Callable[[str], str], forget: Callable[[], None] = lambda: None) -> int:
        """``ask``: shows a prompt and gives a line; EOFError at the end.  ``forget``: the line is not to be kept, since
        its statement may say a password.  The exit status."""
        text = ""
        while True:
            try:
                line = ask(self._prompt(begun=bool(text.strip())))
            except EOFError:
                self._out.write("\n")
                return 0
            except KeyboardInterrupt:
                self._out.write("\n")
                text = ""
                continue
            if line.strip() and _PASSWORD.search(f"{text}{line}") is not None:
                forget()
            if not text.strip() and line.lstrip().startswith("\\"):
                if not self._command(line.strip()):
                    return 0
                continue
            statements, text = complete_statements(f"{text}{line}\n")
            for statement in statements:
                if not self._run(statement):
                    break

    def _prompt(self, *, begun: bool) -> str:
        mark = {"I": "", "T": "*", "E": "!"}[self._session.status]
        return f"eddyline{mark}{'->' if begun else '=>'} "

    # -- commands -----------------------------------------------------------------------------------------------------

    def _command(self, line: str) -> bool:
        """Whether the shell goes on."""
        name, _, argument = line.rstrip(";").partition(" ")
        match name:
            case "\\q":
                return False
            case "\\timing":
                self._timing = not self._timing
                self._out.write(f"Timing is {'on' if self._timing else 'off'}.\n")
            case "\\d" if argument.strip():
                self._describe(argument.strip())
            case "\\d":
                self._run(_RELATIONS)
            case "\\?":
                self._out.write(_COMMANDS)
            case _:
                self._err.write(f"there is no {name}; \\? shows what there is\n")
        return True

    def _describe(self, name: str) -> None:
        schema, _, relation = name.rpartition(".")
        found = [part[1:-1].replace('""', '"') if part[:1] == '"' else part.lower() for part in (relation, schema)]
        columns = self._guarded(lambda: self._session.execute(_COLUMNS, found))
        if columns is None or columns.result is None:
            return
        if not columns.result.rows:
            self._err.write(f"there is no {name}\n")
            return
        self._show(columns.result)
        indexes = self._guarded(lambda: self._session.execute(_INDEXES, found))
        if indexes is not None and indexes.result is not None and indexes.result.rows:
            self._show(indexes.result)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _run(self, statement: str) -> bool:
        """Runs it and shows what it gives; whether it succeeded."""
        begun = time.perf_counter()
        outcome = self._guarded(lambda: self._session.execute(statement))
        if outcome is None:
            return False
        done = self._guarded(lambda: self._tell(outcome)) is not None
        if self._timing:
            self._out.write(f"Time: {(time.perf_counter() - begun) * 1e3:.1f} ms\n")
        self._out.flush()
        return done

    def _tell(self, outcome: Outcome) -> bool:
        for text in outcome.notices:
            self._err.write(f"NOTICE: {text}\n")
        if outcome.feed is not None:
            rows = SubscriptionRows(outcome.feed)
            try:
                self._follow(rows)
            finally:
                rows.close()
        elif outcome.result is not None:
            self._show(outcome.result)
        else:
            self._out.write(f"{outcome.tag}\n")
        return True

    def _follow(self, rows: SubscriptionRows) -> None:
        """Changes as they come, until the end or Ctrl-C."""
        self._out.write("\t".join(rows.names) + "\n")
        while not rows.ended:
            change = rows.next_rows(_LOOK_S)
            for row in [] if change is None else text_rows(change):
                self._out.write("\t".join("" if v is None else v for v in row) + "\n")
            self._out.flush()

    def _show(self, result: ResultSet) -> None:
        zone = UTC if self._session.zone is None else zone_of(self._session.zone)
        for line in table_lines(result.names, result.types, text_rows(result, zone)):
            self._out.write(line + "\n")

    def _guarded(self, call: Callable[[], T]) -> T | None:
        """What ``call`` gives, made on another thread; None if it failed, which has been said."""
        results: list[T] = []
        failures: list[BaseException] = []

        def body() -> None:
            try:
                results.append(call())
            except BaseException as problem:  # noqa: BLE001 - it is raised or told by the thread that waits
                failures.append(problem)

        thread = threading.Thread(target=body, name="eddyline-sql")
        with _interrupts() as asked:
            thread.start()
            while thread.is_alive():
                thread.join(_LOOK_S)
                if asked.is_set():
                    asked.clear()
                    self._session.cancel()
        if not failures:
            return results[0]
        if not isinstance(failures[0], Error):
            raise failures[0]
        self._tell_error(failures[0])
        return None

    def _tell_error(self, error: Error) -> None:
        self._out.flush()
        self._err.write(f"ERROR: {error.message} ({error.sqlstate})\n")
        for name, text in (("DETAIL", error.detail), ("HINT", error.hint)):
            if text:
                self._err.write(f"{name}: {text}\n")
        self._err.flush()
