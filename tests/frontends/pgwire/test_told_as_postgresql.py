"""Notices, and prepared statements whose rows have other columns than they were told to have."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection

_SAYING = """
CREATE TABLE n (a int)
CREATE TABLE IF NOT EXISTS n (a int)
CREATE TABLE IF NOT EXISTS n AS SELECT 1
CREATE VIEW v AS SELECT * FROM n
CREATE INDEX n_a ON n (a)
CREATE INDEX IF NOT EXISTS n_a ON n (a)
CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1
DROP TABLE IF EXISTS nothing, nobody
DROP VIEW IF EXISTS nothing
DROP INDEX IF EXISTS nothing
DROP SCHEMA IF EXISTS nothing
ALTER TABLE IF EXISTS nothing RENAME TO something
DROP ROLE IF EXISTS nothing
COMMIT
ROLLBACK
BEGIN
START TRANSACTION
CREATE SCHEMA told
CREATE SCHEMA IF NOT EXISTS told
ROLLBACK
SET LOCAL statement_timeout = 0
SET TRANSACTION READ ONLY
DROP TABLE n CASCADE
""".strip().splitlines()


@pytest.fixture
def other(served: ServedDatabase, schema: str) -> Iterator[Connection]:
    """A second client: psycopg forgets what it has prepared when it drops something itself."""
    with psycopg.connect(served.url, autocommit=True, options=f"-c search_path={schema}") as connection:
        yield connection


def told(connection: Connection, statement: str) -> list[tuple[str | None, str | None, str | None]]:
    found = []
    connection.add_notice_handler(handler := lambda d: found.append((d.severity, d.sqlstate, d.message_primary)))
    try:
        connection.execute(statement)
    finally:
        connection.remove_notice_handler(handler)
    return found


def test_notices_have_postgresqls_severity_and_code(pg: Connection, postgres: PostgresServer) -> None:
    with postgres.connect() as oracle:
        oracle.execute("CREATE SCHEMA noticed")
        oracle.execute("SET search_path = noticed")
        expected = [(s, told(oracle, s)) for s in _SAYING]
        oracle.execute("DROP SCHEMA noticed")
    assert [(s, told(pg, s)) for s in _SAYING] == expected
    assert sum(map(len, (said for _, said in expected))) > 15


@pytest.mark.parametrize("changed", ["id text", "other int", "id int, more int"])
def test_a_prepared_statement_whose_rows_change_is_refused_until_prepared_anew(
    pg: Connection, other: Connection, changed: str
) -> None:
    pg.execute("CREATE TABLE c (id int)")
    pg.execute("PREPARE named AS SELECT * FROM c")
    for _ in range(2):
        assert pg.execute("SELECT * FROM c", prepare=True).fetchall() == []
        assert pg.execute("EXECUTE named").fetchall() == []
    other.execute("DROP TABLE c")
    other.execute(f"CREATE TABLE c ({changed})")
    for _ in range(2):
        for statement in ("SELECT * FROM c", "EXECUTE named"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
                pg.execute(statement, prepare="SELECT" in statement)
    pg.execute("DEALLOCATE ALL")
    description = pg.execute("SELECT * FROM c", prepare=True).description
    assert description is not None
    assert [c.name for c in description] == [part.split()[0] for part in changed.split(", ")]


def test_a_prepared_statement_goes_on_where_its_rows_stay_the_same(pg: Connection, other: Connection) -> None:
    pg.execute("CREATE TABLE c (id int, gone text)")
    pg.execute("PREPARE named AS SELECT id FROM c")
    assert pg.execute("SELECT id FROM c", prepare=True).fetchall() == []
    other.execute("DROP TABLE c")
    other.execute("CREATE TABLE c (id int)")
    other.execute("INSERT INTO c VALUES (5)")
    assert pg.execute("SELECT id FROM c", prepare=True).fetchall() == [(5,)]
    assert pg.execute("EXECUTE named").fetchall() == [(5,)]
