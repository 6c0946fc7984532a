"""Stored cases: a set-up, a query, and the answer, one JSON object a line.

``setup`` runs one statement at a time, then ``query`` is compared with ``expect``: a list of rows, or an error with
its SQLSTATE.  A case with ``during`` subscribes: a row of its ``expect`` is [batch, diff, columns …], batch 0 being the
snapshot and batch n the n-th commit of ``during``.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eddyline.errors import Error
from eddyline.frontends.connection import Connection
from eddyline.testing.cells import Cell, cell_rows, type_names

__all__ = ["Case", "load_cases", "play", "with_every_view_indexed"]

_VIEW = re.compile(r"CREATE (?:MATERIALIZED )?VIEW (\w+)", re.IGNORECASE)
_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Case:
    """``source`` names the public report the behaviour was described in."""

    name: str
    source: str
    setup: tuple[str, ...]
    query: str
    expect: Any
    ordered: bool
    tags: frozenset[str]
    types: tuple[str, ...] | None = None
    sqlstate: str | None = None
    params: tuple[Any, ...] | None = None
    during: tuple[str, ...] | None = None


def load_cases(path: Path) -> list[Case]:
    """All cases of a file."""
    return [_case(json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def _case(entry: dict[str, Any]) -> Case:
    def several(key: str) -> Any:
        return tuple(entry[key]) if key in entry else None

    return Case(
        entry["title"],
        entry["source"],
        tuple(entry["setup"]),
        entry["query"],
        entry["expect"],
        entry["ordered"],
        frozenset(entry["tags"]),
        types=several("types"),
        sqlstate=entry.get("sqlstate"),
        params=several("params"),
        during=several("during"),
    )


def with_every_view_indexed(case: Case) -> tuple[str, ...]:
    """The set-up with an index on each view right after its definition, and views instead of materialized ones:
    every view is then maintained in an index."""
    statements: list[str] = []
    for statement in case.setup:
        defined = _VIEW.match(statement)
        if defined is None:
            statements.append(statement)
            continue
        plain = re.sub(r"^CREATE MATERIALIZED VIEW", "CREATE VIEW", statement, flags=re.IGNORECASE)
        statements += [plain, f"CREATE DEFAULT INDEX ON {defined[1]}"]
    return tuple(statements)


def play(db: Connection, case: Case, setup: Sequence[str]) -> None:
    """Runs the case on an empty database; AssertionError where the answer is another one."""
    for statement in setup:
        db.execute(statement)
    if case.during is not None:
        got = _subscribed(db, case.query.removeprefix("SUBSCRIBE "), case.during)
        assert _sorted(got) == _sorted(case.expect)
    elif case.sqlstate is not None:
        _fails(db, case)
    elif case.query.startswith("COPY"):
        out = io.StringIO()
        db.copy(case.query, out)
        assert [[line] for line in out.getvalue().splitlines()] == case.expect
    else:
        cursor = db.execute(case.query, case.params)
        if case.types is not None:
            assert type_names(cursor) == list(case.types)
        got = cell_rows(cursor)
        assert (got if case.ordered else _sorted(got)) == (case.expect if case.ordered else _sorted(case.expect))


def _fails(db: Connection, case: Case) -> None:
    try:
        db.execute(case.query)
    except Error as error:
        assert error.sqlstate == case.sqlstate, error  # its absence is reported below
        return
    raise AssertionError(f"no error, where {case.sqlstate} was expected")


def _sorted(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    return sorted((list(row) for row in rows), key=repr)


def _subscribed(db: Connection, target: str, during: Sequence[str]) -> list[list[Cell]]:
    """The updates of a subscription to ``target`` as [batch, diff, columns …]."""
    rows: list[list[Cell]] = []
    with_progress = db.subscribe(target, progress=True)
    passed = _collect(with_progress, rows, 0, None)
    for batch, script in enumerate(during, start=1):
        committed = db.executescript(script).time
        passed = max(passed, _collect(with_progress, rows, batch, committed))
    with_progress.close()
    return rows


def _collect(subscription: Any, rows: list[list[Cell]], batch: int, committed: int | None) -> int:
    """Appends what comes until everything up to ``committed`` is known (None: until the first progress message)."""
    while (change := subscription.next(_WAIT_S)) is not None:
        table = change.updates
        if table.column("mz_progressed")[0].as_py():
            if committed is None or change.time > committed:
                return int(change.time)
            continue
        columns = [table.column(i).to_pylist() for i in range(2, table.num_columns)]
        rows.extend([batch, *row] for row in zip(*columns, strict=True))
    raise AssertionError("the subscription fell silent")
