"""ALTER SYSTEM SET of what sessions begin with: system, then database, then role, then session, the last one wins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session
from eddyline.adapter.system_settings import SESSION_DEFAULTS


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


@pytest.fixture
def engine() -> Iterator[Engine]:
    database = Engine(process_settings=False)
    yield database
    database.close()


def show(db: eddyline.Connection, name: str) -> object:
    row = db.execute(f"SHOW {name}").fetchone()
    assert row is not None
    return row[0]


def test_it_holds_at_once_for_sessions_that_have_nothing_else(db: eddyline.Connection) -> None:
    with db.session() as other:
        other.execute("SET statement_timeout = '7s'")
        db.execute("ALTER SYSTEM SET statement_timeout = '90s'")
        assert (show(db, "statement_timeout"), show(other, "statement_timeout")) == ("90s", "7s")
        other.execute("RESET statement_timeout")
        assert show(other, "statement_timeout") == "90s"
        db.execute("ALTER SYSTEM RESET statement_timeout")
        assert (show(db, "statement_timeout"), show(other, "statement_timeout")) == ("0", "0")


def test_the_narrowest_wins(engine: Engine) -> None:
    def begun() -> str:
        session = Session(engine, "ann")
        try:
            return session.setting("statement_timeout")
        finally:
            session.close()

    root = Session(engine)
    root.execute("CREATE ROLE ann LOGIN")
    found = []
    for statement in (
        "ALTER SYSTEM SET statement_timeout = '1s'",
        "ALTER ROLE ALL SET statement_timeout = '2s'",
        "ALTER DATABASE postgres SET statement_timeout = '3s'",
        "ALTER ROLE ann SET statement_timeout = '4s'",
        "ALTER ROLE ann IN DATABASE postgres SET statement_timeout = '5s'",
        "ALTER ROLE ann IN DATABASE postgres RESET statement_timeout",
        "ALTER ROLE ann RESET statement_timeout",
        "ALTER DATABASE postgres RESET statement_timeout",
        "ALTER ROLE ALL RESET statement_timeout",
        "ALTER SYSTEM RESET ALL",
    ):
        root.execute(statement)
        found.append(begun())
    root.close()
    assert found == ["1s", "2s", "3s", "4s", "5s", "4s", "3s", "2s", "1s", "0"]


def test_a_timeout_of_the_system_ends_statements(db: eddyline.Connection) -> None:
    db.execute("ALTER SYSTEM SET statement_timeout = '20ms'")
    with pytest.raises(eddyline.OperationalError) as caught:
        db.execute("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b")
    assert caught.value.sqlstate == "57014"


def test_defaults_of_transactions_are_obeyed(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (a int)")
    db.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    db.execute("ALTER SYSTEM SET default_transaction_isolation = 'serializable'")
    assert show(db, "transaction_isolation") == show(db, "default_transaction_isolation") == "serializable"
    with pytest.raises(eddyline.Error, match="read-only"):
        db.execute("INSERT INTO t VALUES (1)")
    db.execute("SET default_transaction_read_only = off")
    db.execute("INSERT INTO t VALUES (1)")


def test_names_are_found_where_the_systems_path_says(db: eddyline.Connection) -> None:
    db.execute('CREATE SCHEMA "My S"')
    db.execute('CREATE TABLE "My S".t (a int)')
    db.execute('ALTER SYSTEM SET search_path = "My S", public')
    assert show(db, "search_path") == '"My S", public'
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_they_are_kept(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "d") as db:
        db.execute('ALTER SYSTEM SET search_path = "My S", public')
        db.execute("ALTER SYSTEM SET idle_session_timeout = 90000")
        db.execute("ALTER SYSTEM SET timezone = 'Europe/Berlin'")
    with eddyline.connect(tmp_path / "d") as db:
        shown = [show(db, name) for name in ("search_path", "idle_session_timeout", "timezone", "lock_timeout")]
        assert shown == ['"My S", public', "90s", "Europe/Berlin", "0"]
        db.execute("ALTER SYSTEM RESET ALL")
    with eddyline.connect(tmp_path / "d") as db:
        assert show(db, "search_path") == "public"


@pytest.mark.parametrize("name", sorted(SESSION_DEFAULTS))
def test_what_is_shown_can_be_set_and_reads_the_same(db: eddyline.Connection, name: str) -> None:
    shown = show(db, name)
    db.execute(f"ALTER SYSTEM SET {name} = '{shown}'")
    assert show(db, name) == shown


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("ALTER SYSTEM SET statement_timeout = 'soon'", "22023"),
        ("ALTER SYSTEM SET timezone = 'Nowhere'", "22023"),
        ("ALTER SYSTEM SET nothing_there = 1", "42704"),
        ("ALTER SYSTEM SET server_version = '9'", "55P02"),
        ("ALTER SYSTEM SET role = 'postgres'", "55P02"),
        ("ALTER SYSTEM SET transaction_isolation = 'serializable'", "55P02"),
        ("ALTER SYSTEM RESET transaction_read_only", "55P02"),
        ("ALTER SYSTEM SET cluster = 'default'", "55P02"),
    ],
)
def test_what_is_refused(db: eddyline.Connection, statement: str, sqlstate: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        db.execute(statement)
    assert caught.value.sqlstate == sqlstate


def test_only_superusers_set_them(engine: Engine) -> None:
    root = Session(engine)
    root.execute("CREATE ROLE ann LOGIN")
    ann = Session(engine, "ann")
    with pytest.raises(eddyline.Error) as caught:
        ann.execute("ALTER SYSTEM SET statement_timeout = '1s'")
    assert caught.value.sqlstate == "42501"
    ann.close()
    root.close()
