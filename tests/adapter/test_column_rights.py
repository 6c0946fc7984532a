"""Rights on columns: random scripts are refused and answered as by PostgreSQL, and so are all paths to a table."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import psycopg
import pytest

from eddyline.adapter.copy import HANDED_OVER
from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.testing.postgres import PostgresServer

Oracle = psycopg.Connection[tuple[object, ...]]

ROLES = ("c0", "c1", "c2")
SETUP = (
    "CREATE SCHEMA w",
    "SET search_path = w",
    "CREATE TABLE t (a int PRIMARY KEY, b int, c text)",
    "CREATE TABLE u (a int PRIMARY KEY, d int)",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')",
    "INSERT INTO u VALUES (1, 5), (3, 6)",
    "CREATE VIEW v AS SELECT a, b FROM t WHERE c <> 'z'",
    *(f"CREATE ROLE {role}" for role in ROLES),
    *(f"GRANT USAGE, CREATE ON SCHEMA w TO {role}" for role in ROLES),
)
GRANTED = (
    "SELECT (a)",
    "SELECT (a, b)",
    "SELECT (b, c)",
    "INSERT (a)",
    "INSERT (a, b)",
    "UPDATE (b)",
    "UPDATE (b, c), SELECT (a)",
    "REFERENCES (a)",
    "ALL (a)",
    "ALL (b, c)",
    "SELECT",
    "ALL",
    "INSERT (a), DELETE",
)
READS = (
    "SELECT a FROM t ORDER BY a",
    "SELECT b FROM t ORDER BY b",
    "SELECT * FROM t ORDER BY a",
    "SELECT t.* FROM t ORDER BY 1",
    "SELECT count(*) FROM t",
    "SELECT 1 FROM t",
    "SELECT a FROM t WHERE b > 1 ORDER BY a",
    "SELECT a FROM t ORDER BY c",
    "SELECT count(*) FROM t GROUP BY b",
    "SELECT s.a FROM (SELECT a, b FROM t) s ORDER BY 1",
    "SELECT s.a FROM (SELECT * FROM t) s ORDER BY 1",
    "WITH s AS (SELECT b FROM t) SELECT 1",
    "WITH s AS (SELECT b FROM t) SELECT count(*) FROM s",
    "SELECT d FROM t JOIN u USING (a) ORDER BY d",
    "SELECT d FROM t NATURAL JOIN u ORDER BY d",
    "SELECT d FROM u WHERE EXISTS (SELECT FROM t WHERE t.a = u.a)",
    "SELECT d FROM u WHERE a IN (SELECT b FROM t)",
    "SELECT (SELECT max(b) FROM t) FROM u",
    "SELECT x.a FROM t x JOIN t y ON x.a = y.b ORDER BY 1",
    "SELECT q FROM t AS t (p, q, r) ORDER BY 1",
    "SELECT a FROM v ORDER BY a",
    "SELECT count(*) FROM v",
    "SELECT count(*) FROM v, u",
    "SELECT b FROM w1 ORDER BY b",
    "TABLE t",
)
WRITES = (
    "INSERT INTO t (a) VALUES ({n})",
    "INSERT INTO t (a, b) VALUES ({n}, 1)",
    "INSERT INTO t VALUES ({n}, 1)",
    "INSERT INTO t VALUES ({n}, 1, 'q')",
    "INSERT INTO t (a) SELECT d + {n} FROM u",
    "INSERT INTO t (a) VALUES ({n}) RETURNING a",
    "INSERT INTO t (a) VALUES ({n}) RETURNING b",
    "INSERT INTO t (a) VALUES ({n}) ON CONFLICT DO NOTHING",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 7",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = t.b + 1 WHERE t.a > 0",
    "UPDATE t SET b = 5",
    "UPDATE t SET b = b + 1",
    "UPDATE t SET c = 'k' WHERE a = 1",
    "UPDATE t SET b = DEFAULT RETURNING a",
    "UPDATE t SET b = 1 RETURNING b",
    "UPDATE t SET (b, c) = (2, 'l')",
    "UPDATE t SET b = u.d FROM u WHERE u.a = t.a",
    "DELETE FROM t WHERE a > 50",
    "DELETE FROM t WHERE b = 99 RETURNING c",
    "DELETE FROM t USING u WHERE u.a = t.a AND u.d = 77",
    "TRUNCATE u",
)


def statement(rng: random.Random) -> str:
    table, role, other = rng.choice(("t", "t", "t", "u", "v")), rng.choice(ROLES), rng.choice(ROLES)
    given = rng.choice(GRANTED)
    if table == "u":
        given = given.replace("b, c", "d").replace("b", "d").replace("c", "d")
    if table == "v":  # which may be c2's, of whom nothing is revoked
        given, role = given.replace("b, c", "b").replace("c", "b"), rng.choice(ROLES[:2])
    match rng.randrange(10):
        case 0 | 1:
            return f"GRANT {given} ON {table} TO {role}{rng.choice(('', ' WITH GRANT OPTION'))}"
        case 2:
            return f"REVOKE {given} ON {table} FROM {role}{rng.choice(('', ' CASCADE'))}"
        case 3:
            return rng.choice(
                (
                    f"GRANT {given} ON {table} TO PUBLIC",
                    f"REVOKE {given} ON {table} FROM PUBLIC",
                    f"REVOKE GRANT OPTION FOR {given} ON {table} FROM {role}",
                    f"GRANT {role} TO {other}",
                    f"ALTER VIEW v OWNER TO {rng.choice(('c2', 'postgres'))}",
                    "CREATE OR REPLACE VIEW w1 AS SELECT b FROM t",
                )
            )
        case 4 | 5:
            return rng.choice((f"SET ROLE {role}", f"SET ROLE {role}", "RESET ROLE"))
        case 6 | 7:
            return rng.choice(WRITES).format(n=rng.randint(3, 10_000))
        case _:
            return rng.choice(READS)


def said(message: str, text: str) -> str:
    """PostgreSQL's first column is one of the system's, where all are meant."""
    return message if "(" in text else re.sub(r'for column "\w+"', "for a column", message)


def asked(session: Session, text: str) -> object:
    try:
        outcome = session.execute(text)
    except DatabaseError as error:
        return error.sqlstate, said(error.message, text)
    if outcome.result is None:
        return None
    return sorted(map(repr, zip(*(column.to_pylist() for column in outcome.result.columns), strict=True)))


def asked_of_postgres(connection: Oracle, text: str) -> object:
    try:
        cursor = connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate, said(str(error.diag.message_primary), text)
    return sorted(map(repr, cursor.fetchall())) if cursor.description is not None else None


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(interactive=False)
    yield engine
    engine.close()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    session = Session(engine)
    yield session
    session.execute("RESET ROLE")
    session.execute_script(
        "DROP SCHEMA w CASCADE;" + "".join(f"DROP OWNED BY {role}; DROP ROLE {role};" for role in ROLES)
    )
    session.close()


@pytest.fixture
def oracle(postgres: PostgresServer) -> Iterator[Oracle]:
    connection = postgres.connect()
    connection.autocommit = True
    yield connection
    connection.execute("RESET ROLE")
    connection.execute("DROP SCHEMA w CASCADE")
    for role in ROLES:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")
    connection.close()


SHOWN = (
    "SELECT grantor, grantee, table_name, column_name, privilege_type, is_grantable "
    "FROM information_schema.column_privileges WHERE table_schema = 'w' AND grantee <> grantor",
    "SELECT grantor, grantee, table_name, privilege_type, is_grantable "
    "FROM information_schema.role_table_grants WHERE table_schema = 'w' AND grantee <> grantor",
    *(
        f"SELECT has_column_privilege('{role}', 'w.t', '{column}', '{right}'), "
        f"has_any_column_privilege('{role}', 'w.t', '{right}')"
        for role in ROLES
        for column in "ab"
        for right in ("SELECT", "insert", "UPDATE WITH GRANT OPTION", "REFERENCES, SELECT")
    ),
)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_script_goes_as_in_postgresql(session: Session, oracle: Oracle, seed: int) -> None:
    rng = random.Random(seed)
    for text in SETUP:
        assert asked(session, text) == asked_of_postgres(oracle, text), text
    done: list[str] = []
    answers: list[object] = []
    for _ in range(160):
        text = statement(rng)
        done.append(text)
        expected = asked_of_postgres(oracle, text)
        answers.append(expected)
        assert asked(session, text) == expected, f"{done}"
    assert sum(isinstance(a, tuple) and a[0] == "42501" for a in answers) > 15
    assert sum(isinstance(a, list) for a in answers) > 5
    for text in ("RESET ROLE", *SHOWN, f"SET ROLE {ROLES[0]}", *SHOWN):
        assert asked(session, text) == asked_of_postgres(oracle, text), (done, text)


COPIED = (
    ("COPY t (a) TO STDOUT", "SELECT (a)"),
    ("COPY t (a, b) TO STDOUT", "SELECT (a, b)"),
    ("COPY t TO STDOUT", "SELECT (a, b, c)"),
    ("COPY (SELECT b FROM t) TO STDOUT", "SELECT (b)"),
)


def test_copy_takes_rights_on_its_columns(session: Session) -> None:
    for text in SETUP:
        session.execute(text)
    for text, needed in COPIED:
        session.execute("SET ROLE c0")
        with pytest.raises(DatabaseError, match="permission denied for table t"):
            session.execute(text, file=HANDED_OVER)
        session.execute("RESET ROLE")
        session.execute(f"GRANT {needed} ON t TO c0")
        session.execute("SET ROLE c0")
        session.execute(text, file=HANDED_OVER)
        session.execute("RESET ROLE")
        session.execute("REVOKE ALL ON t FROM c0")


def test_what_a_role_was_granted_of_columns_goes_with_drop_owned_and_follows_the_owner(
    session: Session, oracle: Oracle
) -> None:
    given = (
        "GRANT SELECT (a), UPDATE (b) ON t TO c0 WITH GRANT OPTION",
        "GRANT INSERT (a, c) ON t TO c1, PUBLIC",
        "SET ROLE c0",
        "GRANT SELECT (a) ON t TO c1",
        "RESET ROLE",
        "REVOKE SELECT (a) ON t FROM c0",
        "GRANT ALL (c) ON t TO c1",
    )
    shown = (
        "SELECT attname, array_to_string(ARRAY(SELECT x::text FROM unnest(attacl) x ORDER BY 1), ' ') "
        "FROM pg_attribute WHERE attrelid = 'w.t'::regclass AND attnum > 0",
        SHOWN[0],
    )
    for text in (*SETUP, *given):
        assert asked(session, text) == asked_of_postgres(oracle, text), text
    for change in (
        "SELECT 1",
        "ALTER TABLE t OWNER TO c2",
        "DROP OWNED BY c0",
        "REVOKE ALL ON t FROM c1",
        "DROP TABLE t CASCADE",
    ):
        assert asked(session, change) == asked_of_postgres(oracle, change)
        for text in shown if change[:4] != "DROP" or "OWNED" in change else shown[1:]:
            assert asked(session, text) == asked_of_postgres(oracle, text), (change, text)


def test_a_prepared_statement_and_a_subscription_ask_anew(session: Session) -> None:
    for text in (*SETUP, "GRANT SELECT (a, b) ON t TO c0", "SET ROLE c0", "PREPARE p AS SELECT a FROM t WHERE b = 10"):
        session.execute(text)
    assert asked(session, "EXECUTE p") == ["(1,)"]
    feed = session.execute("SUBSCRIBE (SELECT a, b FROM t)").feed
    assert feed is not None
    feed.close()
    assert asked(session, "SUBSCRIBE t") == ("42501", "permission denied for table t")
    for text in ("RESET ROLE", "REVOKE SELECT (b) ON t FROM c0", "SET ROLE c0"):
        session.execute(text)
    assert asked(session, "EXECUTE p") == ("42501", "permission denied for table t")
    assert asked(session, "SUBSCRIBE (SELECT a, b FROM t)") == ("42501", "permission denied for table t")
    assert asked(session, "SELECT a FROM t ORDER BY a") == ["(1,)", "(2,)"]
    assert asked(session, "SELECT a FROM t WHERE a = 1") == ["(1,)"]


def test_a_lookup_that_was_asked_before_ends_with_the_right(session: Session) -> None:
    for text in (*SETUP, "GRANT SELECT (a, b) ON t TO c0", "SET ROLE c0"):
        session.execute(text)
    for _ in range(3):
        assert asked(session, "SELECT b FROM t WHERE a = 1") == ["(10,)"]
    for text in ("RESET ROLE", "REVOKE SELECT (b) ON t FROM c0", "SET ROLE c0"):
        session.execute(text)
    assert asked(session, "SELECT b FROM t WHERE a = 1") == ("42501", "permission denied for table t")


REFUSED = (
    "GRANT SELECT (nope) ON t TO c0",
    "GRANT DELETE (a) ON t TO c0",
    "GRANT USAGE (a) ON SCHEMA w TO c0",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO c0",
    "GRANT SELECT (a) ON t TO nobody",
    "REVOKE UPDATE (nope) ON t FROM c0",
)


def test_what_is_wrong_is_said_in_postgresqls_words(session: Session, oracle: Oracle) -> None:
    for text in SETUP:
        assert asked(session, text) == asked_of_postgres(oracle, text)
    for text in REFUSED:
        expected = asked_of_postgres(oracle, text)
        assert isinstance(expected, tuple), text
        assert asked(session, text) == expected, text
    given = "GRANT SELECT (b), UPDATE (c) ON t TO c1"
    assert asked(session, given) == asked_of_postgres(oracle, given)
    dropped = "DROP ROLE c1"
    with pytest.raises(psycopg.Error) as theirs:
        oracle.execute(dropped)
    with pytest.raises(DatabaseError) as ours:
        session.execute(dropped)
    ours_told, theirs_told = ours.value.detail or "", theirs.value.diag.message_detail or ""
    assert sorted(ours_told.splitlines()) == sorted(theirs_told.splitlines())
