"""Passwords of roles: what is kept of them, who may set and see it, and that nobody else does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import psycopg
import pytest

from eddyline.adapter.admission import login_verifier
from eddyline.adapter.durability import Durability
from eddyline.adapter.engine import Engine
from eddyline.adapter.restoring import restored_engine
from eddyline.adapter.session import Session
from eddyline.errors import DatabaseError
from eddyline.sql.password_verifier import Verifier
from eddyline.testing.postgres import PostgresServer
from eddyline.testing.torn_files import TornFiles


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(interactive=False)
    yield engine
    engine.close()


@pytest.fixture
def root(engine: Engine) -> Iterator[Session]:
    session = Session(engine)
    session.execute("CREATE ROLE ann LOGIN PASSWORD 'hunter2'")
    yield session
    session.execute("DROP ROLE IF EXISTS ann, bob")
    session.close()


@pytest.fixture
def ann(engine: Engine, root: Session) -> Iterator[Session]:
    session = Session(engine, "ann")
    yield session
    session.close()


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    result = session.execute(text).result
    assert result is not None
    return list(zip(*(c.to_pylist() for c in result.columns), strict=True))


def kept(session: Session, name: str = "ann") -> str | None:
    ((password,),) = rows(session, f"SELECT rolpassword FROM pg_authid WHERE rolname = '{name}'")
    assert password is None or isinstance(password, str)
    return password


def fits(text: str | None, password: str) -> bool:
    verifier = None if text is None else Verifier.of_text(text)
    return verifier is not None and verifier == Verifier.of_password(
        password, salt=verifier.salt, iterations=verifier.iterations
    )


def refused(act: Callable[[], object], sqlstate: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        act()
    assert caught.value.sqlstate == sqlstate, caught.value.message
    return caught.value


def test_a_verifier_is_kept_and_no_password(engine: Engine, root: Session) -> None:
    first = kept(root)
    assert fits(first, "hunter2") and not fits(first, "hunter3")
    root.execute("ALTER ROLE ann PASSWORD 'hunter2'")
    assert fits(kept(root), "hunter2") and kept(root) != first, "each time another salt"
    root.execute("ALTER ROLE ann LOGIN")
    assert fits(kept(root), "hunter2")
    root.execute("ALTER ROLE ann PASSWORD NULL")
    assert kept(root) is None
    root.execute("ALTER ROLE ann ENCRYPTED PASSWORD 'x'")
    assert root.execute("ALTER ROLE ann PASSWORD ''").notices and kept(root) is None
    root.execute(f"ALTER ROLE ann PASSWORD '{first}'")
    assert kept(root) == first, "a verifier is kept as it is"
    root.execute("ALTER ROLE ann PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAA'")
    assert fits(kept(root), "SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAA"), "what only looks like one is a password"
    assert refused(lambda: root.execute(f"ALTER ROLE ann PASSWORD 'md5{'0' * 32}'"), "0A000").hint


def test_only_superusers_see_verifiers(root: Session, ann: Session) -> None:
    for relation, column in (("pg_authid", "rolpassword"), ("pg_shadow", "passwd")):
        assert fits(str(rows(root, f"SELECT {column} FROM {relation} ORDER BY 1")[0][0]), "hunter2")
        for text in (
            f"SELECT count(*) FROM {relation}",
            f"COPY (SELECT * FROM {relation}) TO '/nowhere'",
            f"DECLARE c CURSOR WITH HOLD FOR SELECT * FROM {relation}",
            f"EXPLAIN ANALYZE SELECT * FROM {relation}",
        ):
            refused(lambda text=text: ann.execute(text), "42501")  # type: ignore[misc]  # lambdas of defaults are untyped
    assert rows(ann, "SELECT rolpassword FROM pg_roles WHERE rolname = 'ann'") == [("********",)]
    assert rows(ann, "SELECT passwd FROM pg_user WHERE usename = 'ann'") == [("********",)]
    root.execute("CREATE ROLE bob ROLE ann")
    assert rows(ann, "SELECT ann.oid = ANY (grolist) FROM pg_group, pg_roles ann WHERE ann.rolname = 'ann'") == [
        (True,)
    ]
    root.execute("CREATE SCHEMA s")
    root.execute("GRANT USAGE ON SCHEMA s TO ann")
    root.execute("CREATE VIEW s.names AS SELECT rolname FROM pg_authid")
    root.execute("GRANT SELECT ON s.names TO ann")
    assert ("ann",) in rows(ann, "SELECT * FROM s.names"), "a view is its owner's"
    root.execute("GRANT CREATE ON SCHEMA s TO ann")
    ann.execute("CREATE VIEW s.own AS SELECT rolpassword FROM pg_authid")
    refused(lambda: ann.execute("SELECT * FROM s.own"), "42501")
    root.execute("DROP SCHEMA s CASCADE")


def test_ones_own_password_is_ones_own_to_set(root: Session, ann: Session) -> None:
    ann.execute("ALTER ROLE ann PASSWORD 'mine'")
    assert fits(kept(root), "mine")
    ann.execute("ALTER USER CURRENT_USER PASSWORD 'mine too'")
    assert fits(kept(root), "mine too")
    refused(lambda: ann.execute("ALTER ROLE ann PASSWORD 'x' CREATEDB"), "42501")
    refused(lambda: ann.execute("ALTER ROLE ann PASSWORD 'x' VALID UNTIL 'infinity'"), "42501")
    refused(lambda: ann.execute("ALTER ROLE postgres PASSWORD 'x'"), "42501")
    root.execute("CREATE ROLE bob")
    refused(lambda: ann.execute("ALTER ROLE bob PASSWORD 'x'"), "42501")


def test_nobody_else_is_told_a_password(engine: Engine, root: Session) -> None:
    told: list[str] = []
    for text in (
        "CREATE ROLE bob PASSWORD hunter2",
        "CREATE ROLE bob PASSWORD 'hunter2",
        "CREATE ROLE bob PASSWORD = 'hunter2'",
        "CREATE ROLE bob 'hunter2' PASSWORD",
        "SELECT 1; ALTER ROLE bob\n PASSWORD\n 'x' 'hunter2'",
        "CREATE ROLE bob PASSWORD 'hunter2' NOTHING",
        "ALTER ROLE nobody PASSWORD 'hunter2'",
        "CREATE ROLE bob PASSWORD 'hunter2' VALID UNTIL 'never'",
        "CREATE ROLE bob PASSWORD 'hunter2' PASSWORD 'hunter2'",
    ):
        with pytest.raises(DatabaseError) as caught:
            root.execute_script(text)
        error = caught.value
        told += [error.message, str(error.detail), str(error.hint)]
    root.execute("ALTER ROLE ann PASSWORD 'hunter2' CONNECTION LIMIT 3")
    statement = root.statements.prepare("ALTER ROLE ann PASSWORD 'hunter2'", {})
    assert statement is not None
    root.execute_bound(statement, ())
    told += [repr(engine.catalog.snapshot().access), repr(statement.prepared), repr(vars(engine)["_plans"])]
    assert not [text for text in told if "hunter2" in text]
    verifier = kept(root)
    assert verifier is not None and not [text for text in told if verifier in text]
    assert told[0] == 'syntax error at or near "…"'


def test_what_a_password_is_checked_with(engine: Engine, root: Session) -> None:
    other = Verifier.of_password("other")
    assert fits(str(login_verifier(engine, "ann", other)), "hunter2"), "a role's own comes first"
    root.execute("ALTER ROLE ann PASSWORD NULL")
    assert login_verifier(engine, "ann", other) is other and login_verifier(engine, "nobody", None) is None
    root.execute("ALTER ROLE ann PASSWORD 'hunter2' VALID UNTIL '2001-01-01 00:00'")
    assert login_verifier(engine, "ann", other) is None
    for later in ("infinity", "2999-01-01 00:00+05"):
        root.execute(f"ALTER ROLE ann VALID UNTIL '{later}'")
        assert fits(str(login_verifier(engine, "ann", None)), "hunter2")


def test_roles_attributes_are_shown_and_refused_as_by_postgresql(root: Session, postgres: PostgresServer) -> None:
    shown = "SELECT rolconnlimit, rolvaliduntil::text FROM pg_roles WHERE rolname = 'bob'"
    statements = (
        "CREATE ROLE bob CONNECTION LIMIT 3 VALID UNTIL '2030-02-01 12:00+01'",
        "ALTER ROLE bob CONNECTION LIMIT -1",
        "ALTER ROLE bob CONNECTION LIMIT -2",
        "ALTER ROLE bob CONNECTION LIMIT 1 CONNECTION LIMIT 2",
        "ALTER ROLE bob VALID UNTIL 'infinity'",
        "ALTER ROLE bob VALID UNTIL 'soon'",
        "ALTER ROLE bob VALID UNTIL '2030-13-01'",
        "ALTER ROLE bob PASSWORD 'a' PASSWORD 'b'",
        "ALTER ROLE bob PASSWORD ''",
        "ALTER ROLE nobody PASSWORD 'x'",
        "ALTER ROLE bob PASSWORD 7",
    )
    oracle = postgres.connect()
    try:
        oracle.autocommit = True
        oracle.execute("SET timezone = 'UTC'")
        for text in statements:
            ours, theirs = None, None
            try:
                root.execute(text)
            except DatabaseError as error:
                ours = error.sqlstate
            try:
                oracle.execute(text)
            except psycopg.Error as error:
                theirs = error.sqlstate
            assert ours == theirs, text
            assert rows(root, shown) == oracle.execute(shown.encode()).fetchall(), text
    finally:
        oracle.execute("DROP ROLE IF EXISTS bob")
        oracle.close()


def test_passwords_outlive_a_crash_as_verifiers_alone() -> None:
    rng = random.Random(2)
    files = TornFiles(rng)
    first = restored_engine(Durability(files))
    Session(first).execute_script(
        "CREATE ROLE ann LOGIN PASSWORD 'hunter2' VALID UNTIL '2040-01-01' CONNECTION LIMIT 2;"
        "BEGIN; ALTER ROLE ann PASSWORD 'hunter3'; COMMIT"
    )
    before = first.catalog.snapshot().access
    left = files.crash(rng)
    first.close()
    again = restored_engine(Durability(left))
    try:
        assert again.catalog.snapshot().access == before
        assert fits(kept(Session(again)), "hunter3")
    finally:
        again.close()
    written = b"".join(left.open(name).read(0, left.size(name)) for name in left.names())
    assert b"SCRAM-SHA-256$4096:" in written and b"hunter" not in written
