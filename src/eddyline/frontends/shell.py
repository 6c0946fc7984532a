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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOBase
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from eddyline.adapter.engine import Engine
from eddyline.adapter.notices import severity_of
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.restoring import open_engine
from eddyline.adapter.session import Session
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import Error
from eddyline.expr.timezone import UTC, zone_of
from eddyline.frontends.progress import CompilationProgress
from eddyline.frontends.script_lines import CopyWay, ScriptLines, copies, inline_data
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
  eddyline sql ./live.eddy < script.sql      a script; it ends at the first error, whose line it says
  eddyline sql ./live.eddy -c 'SELECT 1'     one or more statements
  eddyline sql ./live.eddy -c 'COPY t FROM STDIN (FORMAT csv)' < t.csv

What COPY … FROM STDIN reads are the lines behind its own, up to one that is \\. alone; after -c it is standard
input.

A directory is open in one process at a time.  One that is served is reached with PostgreSQL's shell:
  psql -h 127.0.0.1 -p 6875

commands:
  \\d            tables, views and indexes          \\timing       how long statements take
  \\d NAME       a relation's columns and indexes    \\q, Ctrl-D    leaves
  \\?            these

exit status: 0; 2 for wrong arguments or a database that cannot be opened; 3 if a statement of a script failed.
"""
#: what people type first, where no statement is begun
_WORDS: Final = {"quit": "\\q", "exit": "\\q", "help": "\\?"}
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
        return shell.script([arguments.statements], sys.stdin, numbered=False)
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

    def script(self, lines: Iterable[str], data: Iterable[str] | None = None, *, numbered: bool = True) -> int:
        """Runs what ``lines`` say, up to the first error; the exit status.

        ``data``: what COPY FROM STDIN reads; the lines after its own where there is none.  ``numbered``: errors say
        their line.
        """
        script = ScriptLines(lines)
        given = script if data is None else iter(data)
        for line in script:
            if script.blank and line.lstrip().startswith("\\"):
                script.drop()
                if not self._command(line.strip()):
                    return 0
                continue
            for statement in script.complete():
                if not self._run(statement.text, given, statement.line_of if numbered else None):
                    return _FAILED
        last = script.rest()
        done = last is None or self._run(last.text, given, last.line_of if numbered else None)
        return 0 if done else _FAILED

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
            if not text.strip() and (word := line.strip().rstrip(";").lower()) in _WORDS:
                line = _WORDS[word]
            if line.strip() and _PASSWORD.search(f"{text}{line}") is not None:
                forget()
            if not text.strip() and line.lstrip().startswith("\\"):
                if not self._command(line.strip()):
                    return 0
                continue
            statements, text = complete_statements(f"{text}{line}\n")
            for statement in statements:
                if not self._run_typed(statement, ask):
                    break

    def _run_typed(self, statement: str, ask: Callable[[str], str]) -> bool:
        """As ``_run``; the data of COPY FROM STDIN are asked for first, where Ctrl-C is heard."""
        if copies(statement) is not CopyWay.IN:
            return self._run(statement)
        try:
            return self._run(statement, iter(list(inline_data(self._asked_lines(ask)))))
        except KeyboardInterrupt:
            self._out.write("\n")
            return False

    def _asked_lines(self, ask: Callable[[str], str]) -> Iterator[str]:
        """Data as they are typed; Ctrl-D ends them, and so does what takes them."""
        self._out.write("Enter data to be copied, a line each.  End with \\. on a line by itself, or with Ctrl-D.\n")
        while True:
            try:
                yield ask(">> ") + "\n"
            except EOFError:
                return

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

    def _run(
        self,
        statement: str,
        data: Iterator[str] | None = None,
        line_of: Callable[[int | None], int] | None = None,
    ) -> bool:
        """Runs it and shows what it gives; whether it succeeded.

        ``data``: what COPY FROM STDIN reads, up to its end.  ``line_of``: the line of a position in the statement, for
        errors to say.
        """
        begun = time.perf_counter()
        way = copies(statement)
        file: Any = None
        if way is CopyWay.IN and data is not None:
            file = inline_data(data)
            if isinstance(data, TextIOBase) and data.isatty():  # read where Ctrl-C is heard
                file = list(file)
        elif way is CopyWay.OUT:
            self._out.flush()
            file = getattr(self._out, "buffer", self._out)
        outcome = self._guarded(lambda: self._session.execute(statement, file=file), line_of)
        if outcome is None:
            return False
        done = way is CopyWay.OUT or self._guarded(lambda: self._tell(outcome)) is not None
        if self._timing:
            self._out.write(f"Time: {(time.perf_counter() - begun) * 1e3:.1f} ms\n")
        self._out.flush()
        return done

    def _tell(self, outcome: Outcome) -> bool:
        for text in outcome.notices:
            self._err.write(f"{severity_of(text)}: {text}\n")
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

    def _guarded(self, call: Callable[[], T], line_of: Callable[[int | None], int] | None = None) -> T | None:
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
                if asked.is_set():  # again and again: between two waits for changes there is nothing to cancel
                    self._session.cancel()
        if not failures:
            return results[0]
        if not isinstance(failures[0], Error):
            raise failures[0]
        self._tell_error(failures[0], line_of)
        return None

    def _tell_error(self, error: Error, line_of: Callable[[int | None], int] | None) -> None:
        self._out.flush()
        where = "" if line_of is None else f"line {line_of(error.position)}: "
        self._err.write(f"{where}ERROR: {error.message} ({error.sqlstate})\n")
        for name, text in (("DETAIL", error.detail), ("HINT", error.hint), ("CONTEXT", error.context)):
            if text:
                self._err.write(f"{name}: {text}\n")
        self._err.flush()
