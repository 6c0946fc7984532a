"""REASSIGN OWNED, DROP OWNED, ALTER DEFAULT PRIVILEGES and settings of roles: refused and answered as by PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.login import open_login
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.testing.postgres import PostgresServer
from tests.adapter.test_roles_as_postgresql import asked, asked_of_postgres

ROLES = ("q0", "q1", "q2")
SETUP = (
    "CREATE SCHEMA w",
    "SET search_path = w",
    *(f"CREATE ROLE {role} LOGIN" for role in ROLES),
    *(f"GRANT USAGE, CREATE ON SCHEMA w TO {role} WITH GRANT OPTION" for role in ROLES),
    "CREATE TABLE t0 (a int PRIMARY KEY)",
    "CREATE TABLE t1 (a int PRIMARY KEY)",
    "CREATE VIEW v0 AS SELECT a FROM t0",
)
OWNERS = """
    SELECT nspname, relname, relkind, rolname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_roles r ON r.oid = relowner WHERE nspname IN ('w', 'x') AND relkind IN ('r', 'v', 'm') ORDER BY 1, 2"""
SCHEMAS = """
    SELECT nspname, rolname FROM pg_namespace JOIN pg_roles r ON r.oid = nspowner WHERE nspname IN ('w', 'x')
    ORDER BY 1"""
DEFAULTS = """
    SELECT rolname, coalesce(nspname, ''), defaclobjtype FROM pg_default_acl
    JOIN pg_roles r ON r.oid = defaclrole LEFT JOIN pg_namespace n ON n.oid = defaclnamespace ORDER BY 1, 2, 3"""


_NOT_THERE = {"3F000", "42704", "42P01"}
#: stands for ``privileges``
PRIVILEGES = "-- privileges"


def privileges(session: Session) -> str:
    """Of all roles that there are on all tables and views that there are."""
    found = asked(session, OWNERS)
    assert isinstance(found, list)
    roles = [r for r in ROLES if asked(session, f"SELECT 1 FROM pg_roles WHERE rolname = '{r}'")]
    tests = [
        f"has_table_privilege('{role}', '{schema}.{name}', '{right}')"
        for schema, name, _, _ in found
        for role in roles
        for right in ("SELECT", "INSERT")
    ]
    return f"SELECT {', '.join(tests) or '1'}"


@pytest.fixture
def oracle(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with postgres.connect() as connection:
        connection.autocommit = True
        try:
            yield connection
        finally:
            connection.execute("RESET ROLE")
            connection.execute("ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM PUBLIC")
            connection.execute("ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM PUBLIC")
            connection.execute("DROP SCHEMA IF EXISTS w, x, postgres CASCADE")
            for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname ~ '^q[0-9]$'").fetchall():
                connection.execute(f"DROP OWNED BY {role} CASCADE")
                connection.execute(f"DROP ROLE {role}")


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(interactive=False)
    yield made
    made.close()


def statement(rng: random.Random) -> str:
    role, other, third = (rng.choice(ROLES) for _ in range(3))
    table = rng.choice(("t0", "t1", "t2", "t3"))
    right = rng.choice(("SELECT", "INSERT", "ALL", "SELECT, INSERT"))
    where = rng.choice(("", " IN SCHEMA w", " IN SCHEMA x"))
    whose = rng.choice(("", f" FOR ROLE {role}", f" FOR ROLE {role}, {other}"))
    to = rng.choice((third, third, "PUBLIC"))
    return rng.choice(
        (
            f"SET ROLE {role}",
            "RESET ROLE",
            "RESET ROLE",
            f"GRANT {role} TO {other}",
            f"REVOKE {role} FROM {other}",
            f"ALTER TABLE {table} OWNER TO {role}",
            f"GRANT {right} ON {table} TO {role}",
            f"CREATE TABLE {table} (a int PRIMARY KEY)",
            f"CREATE TABLE {table} (a int PRIMARY KEY)",
            f"CREATE VIEW v1 AS SELECT a FROM {table}",
            f"DROP TABLE {table}",
            "CREATE SCHEMA x",
            f"ALTER SCHEMA x OWNER TO {role}",
            f"CREATE SCHEMA x AUTHORIZATION {role}",
            f"CREATE TABLE x.{table} (a int)",
            "DROP SCHEMA x",
            f"REASSIGN OWNED BY {role} TO {other}",
            f"REASSIGN OWNED BY {role}, {other} TO {third}",
            f"DROP OWNED BY {role}",
            f"DROP OWNED BY {role}, {other} CASCADE",
            f"ALTER DEFAULT PRIVILEGES{whose}{where} GRANT {right} ON TABLES TO {to}",
            f"ALTER DEFAULT PRIVILEGES{whose}{where} GRANT {right} ON TABLES TO {to}",
            f"ALTER DEFAULT PRIVILEGES{whose}{where} REVOKE {right} ON TABLES FROM {to}",
            f"ALTER DEFAULT PRIVILEGES{whose} GRANT USAGE ON SCHEMAS TO {to}",
            f"DROP ROLE {role}",
            PRIVILEGES,
            OWNERS,
            SCHEMAS,
        )
    )


def is_its_own(text: str) -> bool:
    """What only PostgreSQL does: REVOKE from an owner by default, which here is refused by name."""
    return "REVOKE" in text


@pytest.mark.parametrize("seed", range(8))
def test_a_random_script_goes_as_in_postgresql(
    engine: Engine, oracle: psycopg.Connection[tuple[object, ...]], seed: int
) -> None:
    rng = random.Random(seed)
    session = Session(engine)
    for text in SETUP:
        assert asked(session, text) == asked_of_postgres(oracle, text), text
    done: list[str] = []
    for _ in range(120):
        text = statement(rng)
        done.append(text)
        if text == PRIVILEGES:
            if asked(session, "SELECT current_user") != [("postgres",)]:
                continue  # PostgreSQL asks for USAGE of the schema, the function here does not
            text = privileges(session)
        answer = asked(session, text)
        if answer == "0A000" and is_its_own(text):
            done.pop()
            continue
        expected = asked_of_postgres(oracle, text)
        if text not in (OWNERS, SCHEMAS) and isinstance(answer, str) and {answer, expected} <= _NOT_THERE:
            continue  # where several things are not there, which of them is said
        assert answer == expected, f"{done}"
        if "DEFAULT" in text or "OWNED" in text:
            for look in (OWNERS, SCHEMAS, DEFAULTS):
                assert asked(session, look) == asked_of_postgres(oracle, look), f"{done}"


def said(session: Session, text: str) -> tuple[object, ...]:
    try:
        outcome = session.execute(text)
    except DatabaseError as error:
        return error.sqlstate, error.message, error.detail, error.hint
    return (outcome.tag,)


def said_by_postgres(connection: psycopg.Connection[tuple[object, ...]], text: str) -> tuple[object, ...]:
    try:
        return (connection.execute(text).statusmessage,)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_detail, error.diag.message_hint


def in_any_order(part: object) -> object:
    """A detail of several lines, which PostgreSQL orders by the ages of objects."""
    return sorted(part.splitlines()) if isinstance(part, str) else part


def test_tags_messages_details_and_hints_are_postgresqls(
    engine: Engine, oracle: psycopg.Connection[tuple[object, ...]]
) -> None:
    session = Session(engine)
    for text in SETUP:
        session.execute(text)
        oracle.execute(text)
    script = """
        GRANT q1 TO q2
        CREATE SCHEMA x AUTHORIZATION q0
        CREATE SCHEMA y AUTHORIZATION nobody
        CREATE SCHEMA AUTHORIZATION q1
        CREATE SCHEMA IF NOT EXISTS AUTHORIZATION q1
        CREATE SCHEMA AUTHORIZATION CURRENT_USER
        SET ROLE q0
        CREATE TABLE owned (a int)
        CREATE VIEW owned_view AS SELECT a FROM owned
        ALTER DEFAULT PRIVILEGES IN SCHEMA w GRANT SELECT ON TABLES TO q1
        ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO q2 WITH GRANT OPTION
        ALTER DEFAULT PRIVILEGES GRANT CREATE ON SCHEMAS TO q2
        ALTER DEFAULT PRIVILEGES FOR ROLE q1 GRANT SELECT ON TABLES TO q2
        ALTER DEFAULT PRIVILEGES IN SCHEMA nowhere GRANT SELECT ON TABLES TO q2
        ALTER DEFAULT PRIVILEGES IN SCHEMA w GRANT USAGE ON SCHEMAS TO q2
        ALTER DEFAULT PRIVILEGES GRANT USAGE ON TABLES TO q2
        ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC WITH GRANT OPTION
        ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO nobody
        REASSIGN OWNED BY q0 TO q1
        REASSIGN OWNED BY nobody TO q1
        DROP OWNED BY q1
        DROP OWNED BY nobody
        RESET ROLE
        REASSIGN OWNED BY postgres TO q1
        DROP OWNED BY postgres
        DROP ROLE q1
        GRANT SELECT ON owned TO q1
        SET ROLE q1
        CREATE VIEW of_another AS SELECT a FROM owned
        RESET ROLE
        DROP OWNED BY q0
        DROP OWNED BY q0 CASCADE
        DROP OWNED BY q0, q1
        DROP ROLE q0
        ALTER ROLE q1 SET search_path = w, "X y"
        ALTER ROLE q1 SET nothing_of_the_kind = 1
        ALTER ROLE q1 SET statement_timeout = 'x'
        ALTER ROLE q1 SET server_version = '1'
        ALTER ROLE q1 IN DATABASE nowhere SET work_mem = 1
        ALTER ROLE q1 RESET search_path
        ALTER ROLE q1 RESET ALL
        ALTER ROLE ALL SET statement_timeout = '1min'
        ALTER ROLE ALL RESET statement_timeout
        ALTER ROLE nobody SET statement_timeout = '1min'
        SET ROLE q1
        ALTER ROLE q1 SET statement_timeout = '1h'
        ALTER ROLE q2 SET statement_timeout = '1h'
        ALTER ROLE postgres SET statement_timeout = '1h'
        ALTER ROLE ALL SET statement_timeout = '1h'
        ALTER ROLE CURRENT_USER RESET statement_timeout
    """
    for line in filter(None, map(str.strip, script.splitlines())):
        if "work_mem" in line:
            assert said(session, line)[0] in ("3D000", "42704")
            continue
        mine, theirs = said(session, line), said_by_postgres(oracle, line)
        if mine[0] in ("42704", "42601", "22023"):
            mine, theirs = mine[:2], theirs[:2]  # hints of our own
        assert [in_any_order(part) for part in mine] == [in_any_order(part) for part in theirs], line


def rows(session: Session, text: str) -> object:
    answer = asked(session, text)
    assert isinstance(answer, list), answer
    return answer


def test_default_rights_are_shown_as_by_postgresql(
    engine: Engine, oracle: psycopg.Connection[tuple[object, ...]]
) -> None:
    session = Session(engine)
    for text in (
        *SETUP,
        "SET ROLE q0",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA w GRANT SELECT, INSERT ON TABLES TO q1",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO q2 WITH GRANT OPTION",
        "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO PUBLIC",
        "CREATE TABLE made (a int)",
        "CREATE VIEW seen AS SELECT a FROM made",
    ):
        session.execute(text)
        oracle.execute(text)
    for text in (
        "SELECT defaclacl::text FROM pg_default_acl WHERE defaclobjtype = 'r' ORDER BY 1",
        "SELECT relname, relacl::text FROM pg_class WHERE relname IN ('made', 'seen') ORDER BY 1",
        DEFAULTS,
    ):
        expected = [
            tuple(sorted(c.strip("{}").split(",")) if isinstance(c, str) and "=" in c else c for c in row)
            for row in oracle.execute(text).fetchall()
        ]
        found = rows(session, text)
        assert isinstance(found, list)
        shown = [
            tuple(sorted(c.strip("{}").split(",")) if isinstance(c, str) and "=" in c else c for c in row)
            for row in found
        ]
        assert shown == expected, text


def setting(session: Session, name: str) -> str:
    found = rows(session, f"SHOW {name}")
    assert isinstance(found, list)
    return str(found[0][0])


def test_a_session_begins_with_the_narrowest_of_its_settings_and_resets_to_it(engine: Engine) -> None:
    root = Session(engine)
    root.execute_script("CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE SCHEMA s")
    open_before = open_login(engine, "ann")
    root.execute_script(
        """
        ALTER ROLE ALL SET statement_timeout = '1min';
        ALTER DATABASE postgres SET statement_timeout = '2min';
        ALTER ROLE ann SET statement_timeout = '3min';
        ALTER ROLE ann SET search_path = s, public;
        ALTER ROLE ann SET TimeZone = 'Europe/Paris';
        ALTER ROLE ann IN DATABASE postgres SET lock_timeout = '4min';
        ALTER ROLE ALL SET max_result_size = '5MB'
        """
    )
    assert setting(open_before, "statement_timeout") == "0"
    ann, bob = open_login(engine, "ann"), open_login(engine, "bob")
    names = ("statement_timeout", "search_path", "timezone", "lock_timeout", "max_result_size")
    assert [setting(ann, n) for n in names] == ["3min", "s, public", "Europe/Paris", "4min", "5MB"]
    assert [setting(bob, n) for n in names] == ["2min", "public", "UTC", "0", "5MB"]
    for change, undo in (
        ("SET statement_timeout = 1", "RESET statement_timeout"),
        ("SET statement_timeout = 1", "RESET ALL"),
        ("SET statement_timeout = 1", "SET statement_timeout TO DEFAULT"),
        ("SET max_result_size = '1kB'", "RESET max_result_size"),
        ("SET TimeZone = 'UTC'", "DISCARD ALL"),
        ("BEGIN; SET LOCAL statement_timeout = 1", "ROLLBACK"),
    ):
        ann.execute_script(change)
        ann.execute(undo)
        assert [setting(ann, n) for n in names] == ["3min", "s, public", "Europe/Paris", "4min", "5MB"], undo
    root.execute("SET SESSION AUTHORIZATION ann")
    assert setting(root, "statement_timeout") == "0", "they are of who logs in"


def test_a_role_may_begin_as_another_until_it_may_not(engine: Engine) -> None:
    root = Session(engine)
    root.execute_script(
        "CREATE ROLE ann LOGIN; CREATE ROLE staff; GRANT staff TO ann; ALTER ROLE ann SET role = 'staff'"
    )
    who = "SELECT current_user, session_user"
    ann = open_login(engine, "ann")
    assert rows(ann, who) == [("staff", "ann")]
    ann.execute("SET ROLE NONE")
    assert rows(ann, who) == [("ann", "ann")]
    ann.execute("RESET ROLE")
    assert rows(ann, who) == [("staff", "ann")]
    root.execute("REVOKE staff FROM ann")
    assert rows(open_login(engine, "ann"), who) == [("ann", "ann")]


def test_settings_are_shown_and_go_with_their_role(engine: Engine) -> None:
    root = Session(engine)
    root.execute_script(
        """CREATE ROLE ann; ALTER ROLE ann SET search_path = a, "B c"; ALTER ROLE ann SET lock_timeout = 5;
           ALTER DATABASE postgres SET lock_timeout = '1h'; ALTER ROLE ann IN DATABASE postgres SET lock_timeout = 7"""
    )
    assert rows(root, "SELECT array_to_string(rolconfig, ' + ') FROM pg_roles WHERE rolname = 'ann'") == [
        ('search_path=a, "B c" + lock_timeout=5ms',)
    ]
    shown = """SELECT rolname, datname, array_to_string(setconfig, ' + ') FROM pg_db_role_setting s
               LEFT JOIN pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole ORDER BY 1, 2"""
    assert rows(root, shown) == [
        ("ann", "postgres", "lock_timeout=7ms"),
        ("ann", None, 'search_path=a, "B c" + lock_timeout=5ms'),
        (None, "postgres", "lock_timeout=1h"),
    ]
    root.execute("DROP ROLE ann")
    assert rows(root, shown) == [(None, "postgres", "lock_timeout=1h")]
    root.execute("ALTER DATABASE postgres RESET ALL")
    assert rows(root, shown) == []


def test_what_is_dropped_with_its_owner_leaves_nothing_running(engine: Engine) -> None:
    root = Session(engine)
    root.execute_script(
        """CREATE ROLE ann; CREATE SCHEMA own; ALTER SCHEMA own OWNER TO ann; SET ROLE ann; SET search_path = own;
           CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1);
           CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a; CREATE INDEX i ON v (a);
           CREATE MATERIALIZED VIEW m AS SELECT sum(n) AS s FROM v; CREATE INDEX j ON m (s)"""
    )
    ids = list(engine.catalog.snapshot().by_id)
    root.execute("RESET ROLE")
    root.execute("DROP OWNED BY ann")
    assert not engine.catalog.snapshot().by_id and "own" not in engine.catalog.snapshot().schemas
    with engine.control() as controller:
        assert not any(map(controller.exists, ids))
    root.execute("DROP ROLE ann")


def test_the_definitions_of_a_transaction_that_is_rolled_back_are_undone(engine: Engine) -> None:
    root = Session(engine)
    root.execute_script("CREATE ROLE ann; CREATE ROLE bob; CREATE TABLE t (a int); ALTER TABLE t OWNER TO ann")
    before = engine.catalog.snapshot()
    for text in (
        "REASSIGN OWNED BY ann TO bob",
        "DROP OWNED BY ann",
        "ALTER DEFAULT PRIVILEGES FOR ROLE ann GRANT SELECT ON TABLES TO bob",
        "ALTER ROLE ann SET lock_timeout = 5",
    ):
        root.execute("BEGIN")
        root.execute(text)
        root.execute("ROLLBACK")
        assert engine.catalog.snapshot() is before, text
