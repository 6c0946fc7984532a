"""COPY against PostgreSQL: what is stored, what is written, which error on which line."""

from __future__ import annotations

import io
from collections.abc import Iterator

import psycopg
import pytest

import eddyline
from eddyline.testing.postgres import PostgresServer
from tests.adapter.copy_cases import FROM_CASES, TO_OPTIONS, TO_QUERIES, FromCase

Pg = psycopg.Connection[tuple[object, ...]]
Answer = tuple[object, ...]


@pytest.fixture(scope="module")
def pg(postgres: PostgresServer) -> Iterator[Pg]:
    with postgres.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


def pg_output(pg: Pg, statement: str) -> bytes:
    with pg.cursor() as cursor, cursor.copy(statement) as copy:
        return b"".join(bytes(piece) for piece in copy)


def pg_stored(pg: Pg, case: FromCase) -> Answer:
    pg.execute("DROP TABLE IF EXISTS t")
    pg.execute(f"CREATE TABLE t ({case.table})")
    try:
        with pg.cursor() as cursor, cursor.copy(f"COPY t {case.columns} FROM STDIN {case.options}") as copy:
            copy.write(case.data)
    except psycopg.Error as error:
        found = error.diag
        return found.sqlstate, found.message_primary, found.message_detail, found.context
    return tuple(sorted(pg_output(pg, "COPY t TO STDOUT").splitlines()))


def our_stored(db: eddyline.Connection, case: FromCase) -> Answer:
    db.execute("DROP TABLE IF EXISTS t")
    db.execute(f"CREATE TABLE t ({case.table})")
    try:
        db.copy(f"COPY t {case.columns} FROM STDIN {case.options}", case.data)
    except eddyline.Error as error:
        assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        return error.sqlstate, error.message, error.detail, error.context
    out = io.BytesIO()
    db.copy("COPY t TO STDOUT", out)
    return tuple(sorted(out.getvalue().splitlines()))


@pytest.mark.parametrize("case", FROM_CASES, ids=lambda c: f"{c.options}{c.data[:24]!r}{c.columns}")
def test_from_stdin_stores_or_refuses_as_postgres_does(pg: Pg, db: eddyline.Connection, case: FromCase) -> None:
    assert our_stored(db, case) == pg_stored(pg, case)


@pytest.mark.parametrize("options", TO_OPTIONS)
def test_to_stdout_writes_as_postgres_does(pg: Pg, db: eddyline.Connection, options: str) -> None:
    for query in TO_QUERIES:
        if "FORCE_QUOTE (b)" in options and " b" not in query:
            continue
        out = io.BytesIO()
        statement = f"COPY ({query}) TO STDOUT {options}"
        db.copy(statement, out)
        assert out.getvalue() == pg_output(pg, statement), query
