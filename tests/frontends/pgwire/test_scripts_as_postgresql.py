"""Scripts that PostgreSQL 15 and the server answer alike: tag, names, types, modifiers and values of the rows, errors.

A statement ends with a semicolon at the end of a line.  Materialized views are refreshed in PostgreSQL only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection

_SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.sql"))
#: of CREATE MATERIALIZED VIEW, where PostgreSQL counts the rows, and there are none to count yet
_MADE = "CREATE MATERIALIZED VIEW"


class Answer(NamedTuple):
    """``position``: PostgreSQL does not say one for every error."""

    said: str
    columns: list[tuple[bytes | None, int, int]]
    rows: list[tuple[bytes | None, ...]]
    position: str = ""


def statements(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if line.endswith(";"):
            yield "\n".join(lines).removesuffix(";")
            lines = []


def is_ordered(statement: str) -> bool:
    """Not by an ORDER BY in parentheses."""
    return "order by" in statement.rpartition(")")[2].lower()


def answer(connection: PGconn, statement: str) -> Answer:
    result = connection.exec_(statement.encode())
    if result.status == ExecStatus.FATAL_ERROR:
        said = " ".join(field(result, f) for f in (DiagnosticField.SQLSTATE, DiagnosticField.MESSAGE_PRIMARY))
        return Answer(said, [], [], field(result, DiagnosticField.STATEMENT_POSITION))
    columns = [(result.fname(i), result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
    rows = [tuple(result.get_value(r, c) for c in range(result.nfields)) for r in range(result.ntuples)]
    tag = _MADE if statement.startswith(_MADE.lower()) else (result.command_status or b"").decode()
    return Answer(tag, columns, rows if is_ordered(statement) else sorted(rows, key=repr))


def field(result: PGresult, which: DiagnosticField) -> str:
    return (result.error_field(which) or b"").decode()


def connected(port: int, database: str) -> Connection:
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname=database, autocommit=True)


@pytest.fixture
def oracle(postgres: PostgresServer) -> Iterator[PGconn]:
    with postgres.connect() as maker:
        maker.execute("CREATE DATABASE scripted")
        with connected(postgres.port, "scripted") as connection:
            yield connection.pgconn
        maker.execute("DROP DATABASE scripted")


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda p: p.stem)
def test_every_answer_is_postgresqls(path: Path, oracle: PGconn) -> None:
    different = []
    with ServedDatabase() as served, connected(served.port, "postgres") as ours:
        for statement in statements(path.read_text()):
            expected = answer(oracle, statement)
            if statement.startswith("refresh"):
                continue
            found = answer(ours.pgconn, statement)
            if not expected.position:
                found = found._replace(position="")
            if found != expected:
                different.append((statement, expected, found))
    assert different == []


def test_scripts_have_statements() -> None:
    assert {p.stem: len(list(statements(p.read_text()))) > 20 for p in _SCRIPTS} == dict.fromkeys(
        (
            "joins_and_subqueries",
            "queries",
            "recursion",
            "sequence_rights",
            "sequences",
            "texts_and_errors",
            "types_of_results",
            "values",
            "views",
            "writes",
        ),
        True,
    )
