"""Random scripts about roles and rights: refused and answered as by PostgreSQL."""

from __future__ import annotations

import random

import psycopg
import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.testing.postgres import PostgresServer

RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "ALL", "SELECT, INSERT")
ROLES = ("r0", "r1", "r2", "r3")
SETUP = (
    "CREATE SCHEMA w",
    "SET search_path = w",
    "CREATE TABLE t0 (a int PRIMARY KEY, b int)",
    "CREATE TABLE t1 (a int PRIMARY KEY, b int)",
    "INSERT INTO t0 VALUES (1, 10), (2, 20)",
    "CREATE VIEW v0 AS SELECT a FROM t0",
    *(f"CREATE ROLE {role}" for role in ROLES),
    *(f"GRANT USAGE, CREATE ON SCHEMA w TO {role}" for role in ROLES),
)


def statement(rng: random.Random) -> str:
    table = rng.choice(("t0", "t1", "v0", "v1"))
    stored = rng.choice(("t0", "t1"))
    role, other = rng.choice(ROLES), rng.choice(ROLES)
    return rng.choice(
        (
            f"SET ROLE {role}",
            f"SET ROLE {other}",
            "RESET ROLE",
            f"GRANT {rng.choice(RIGHTS)} ON {table} TO {role}",
            f"GRANT {rng.choice(RIGHTS)} ON {table} TO {role} WITH GRANT OPTION",
            f"GRANT SELECT ON {table} TO PUBLIC",
            f"REVOKE {rng.choice(RIGHTS)} ON {table} FROM PUBLIC",
            f"GRANT {role} TO {other}",
            f"GRANT {role} TO {other} WITH ADMIN OPTION",
            f"REVOKE {role} FROM {other}",
            f"ALTER ROLE {role} {rng.choice(('INHERIT', 'NOINHERIT', 'CREATEROLE', 'NOCREATEROLE', 'LOGIN'))}",
            f"ALTER TABLE {stored} OWNER TO {role}",
            f"CREATE OR REPLACE VIEW v1 AS SELECT a FROM {rng.choice(('t0', 't1', 'v0'))}",
            "DROP VIEW v1",
            f"DROP ROLE {role}",
            f"CREATE ROLE {role}",
            f"SELECT a FROM {table} ORDER BY a",
            f"SELECT a FROM {table} ORDER BY a",
            f"SELECT count(*) FROM {stored}, v0",
            f"INSERT INTO {stored} VALUES ({rng.randint(3, 99)}, 1) ON CONFLICT DO NOTHING",
            f"INSERT INTO {stored} SELECT a + 100, 1 FROM v0 ON CONFLICT DO NOTHING",
            f"UPDATE {stored} SET b = 5",
            f"UPDATE {stored} SET b = b + 1 WHERE a = 1",
            f"DELETE FROM {stored} WHERE a > 50",
            f"DELETE FROM {stored}",
            f"TRUNCATE {stored}",
            f"CREATE INDEX ON {stored} (b)",
            "SELECT current_user, session_user",
        )
    )


def asked(session: Session, text: str) -> object:
    try:
        outcome = session.execute(text)
    except DatabaseError as error:
        return error.sqlstate
    if outcome.result is None:
        return None
    return list(zip(*(column.to_pylist() for column in outcome.result.columns), strict=True))


def asked_of_postgres(connection: psycopg.Connection[tuple[object, ...]], text: str) -> object:
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description is not None else None


@pytest.mark.parametrize("seed", range(8))
def test_a_random_script_goes_as_in_postgresql(postgres: PostgresServer, seed: int) -> None:
    rng = random.Random(seed)
    engine = Engine(interactive=False)
    session, oracle = Session(engine), postgres.connect()
    try:
        oracle.autocommit = True
        for text in SETUP:
            assert asked(session, text) == asked_of_postgres(oracle, text), text
        done: list[str] = []
        refusals = 0
        for _ in range(150):
            text = statement(rng)
            done.append(text)
            expected = asked_of_postgres(oracle, text)
            refusals += expected == "42501"
            assert asked(session, text) == expected, f"{done}"
        assert refusals > 10
    finally:
        oracle.execute("RESET ROLE")
        oracle.execute("DROP SCHEMA w CASCADE")
        for role in ROLES:
            if oracle.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                oracle.execute(f"DROP OWNED BY {role}")
                oracle.execute(f"DROP ROLE {role}")
        oracle.close()
        engine.close()
