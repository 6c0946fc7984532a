"""Databases in a directory whose disk is full for a while: statements fail whole, reads go on, and then writes too."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Iterator

import pytest

from eddyline.adapter.durability import Durability
from eddyline.adapter.engine import Engine
from eddyline.adapter.restoring import restored_engine
from eddyline.errors import DatabaseError
from eddyline.frontends.connection import Connection
from eddyline.testing.torn_files import Faults, TornFiles

FULL = Faults(fail=lambda operation, number: errno.ENOSPC if operation in ("write", "create") else None)


def opened(files: TornFiles) -> Connection:
    return Connection(restored_engine(Durability(files, log_file_bytes=4000, least_log_bytes=8000)), owner=True)


@pytest.fixture
def files() -> Iterator[TornFiles]:
    yield TornFiles(random.Random(0))


def rows(db: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(db.execute(query).fetchall(), key=repr)


REFUSED = (
    "INSERT INTO t VALUES (3, 'c')",
    "UPDATE t SET y = 'z' WHERE x = 1",
    "DELETE FROM t",
    "TRUNCATE t",
    "CREATE TABLE new (x int)",
    "CREATE TABLE copied AS SELECT * FROM t",
    "CREATE VIEW w AS SELECT x FROM t",
    "CREATE INDEX i ON t (y)",
    "CREATE MATERIALIZED VIEW m AS SELECT y, count(*) FROM t GROUP BY y",
    "ALTER TABLE t RENAME TO renamed",
    "DROP VIEW v CASCADE",
    "CREATE SCHEMA s",
    "ALTER SYSTEM SET max_result_size = '5MB'",
)


def test_every_kind_of_statement_fails_whole_and_can_be_run_again(files: TornFiles) -> None:
    db = opened(files)
    db.executescript(
        "CREATE TABLE t (x int PRIMARY KEY, y text); INSERT INTO t VALUES (1, 'a'), (2, 'b');"
        "CREATE VIEW v AS SELECT x + 1 AS x FROM t; CREATE MATERIALIZED VIEW sums AS SELECT sum(x) AS s FROM v"
    )
    state = ("SELECT * FROM t", "SELECT * FROM v", "SELECT s FROM sums", "SELECT name FROM mz_catalog.mz_objects")
    for statement in REFUSED:
        before = [rows(db, q) for q in state]
        files.faults = FULL
        with pytest.raises(DatabaseError) as caught:
            db.execute(statement)
        assert caught.value.sqlstate == "53100", statement
        assert [rows(db, q) for q in state] == before, statement
        files.faults = Faults()
        # What failed left nothing in the way of the same statement.
        if not statement.startswith("ALTER SYSTEM"):
            db.execute("BEGIN")
        db.execute(statement)
        if db.in_transaction:
            db.execute("ROLLBACK")
    db.execute("INSERT INTO t VALUES (3, 'c')")
    assert rows(db, "SELECT s FROM sums") == [(9,)]
    crashed = files.crash(random.Random(1))
    db.close()
    again = opened(crashed)
    assert rows(again, "SELECT * FROM t") == [(1, "a"), (2, "b"), (3, "c")]
    assert rows(again, "SELECT s FROM sums") == [(9,)]
    again.close()


def test_a_transaction_over_several_tables_fails_as_one(files: TornFiles) -> None:
    db = opened(files)
    db.executescript("CREATE TABLE a (x int); CREATE TABLE b (x int)")
    files.faults = FULL
    db.execute("BEGIN")
    db.execute("INSERT INTO a VALUES (1)")
    db.execute("CREATE TABLE c (x int)")
    db.execute("INSERT INTO b VALUES (1)")
    with pytest.raises(DatabaseError) as caught:
        db.execute("COMMIT")
    assert caught.value.sqlstate == "53100"
    assert not db.in_transaction
    files.faults = Faults()
    assert rows(db, "SELECT * FROM a UNION ALL SELECT * FROM b") == []
    db.execute("CREATE TABLE c (x int)")
    db.close()


def test_what_was_acknowledged_early_is_written_once_there_is_space(files: TornFiles) -> None:
    db = opened(files)
    db.execute("CREATE TABLE t (x int)")
    db.execute("SET synchronous_commit = off")
    db.execute("INSERT INTO t VALUES (0)")
    engine = db._engine
    assert isinstance(engine, Engine)
    assert engine.durability is not None
    engine.durability.group.flush()
    files.faults = FULL
    db.execute("INSERT INTO t VALUES (1)")
    assert rows(db, "SELECT * FROM t") == [(0,), (1,)]
    with pytest.raises(DatabaseError):
        engine.durability.group.flush()
    with pytest.raises(DatabaseError) as caught:  # no more of that, or they would be without number
        db.execute("INSERT INTO t VALUES (7)")
    assert caught.value.sqlstate == "53100"
    files.faults = Faults()
    db.execute("SET synchronous_commit = on")
    db.execute("INSERT INTO t VALUES (2)")
    again = opened(files.crash(random.Random(1)))
    assert rows(again, "SELECT * FROM t") == [(0,), (1,), (2,)]
    again.close()
    db.close()


def test_a_permission_that_is_missing_is_named(files: TornFiles) -> None:
    files.faults = Faults(fail=lambda operation, number: errno.EROFS if operation == "create" else None)
    with pytest.raises(DatabaseError, match="Read-only file system") as caught:
        opened(files)
    assert caught.value.sqlstate == "42501"
    files.faults = Faults()
    opened(files).close()


@pytest.mark.parametrize("seed", range(3))
def test_writers_side_by_side_lose_nothing_acknowledged_on_a_disk_that_is_full_now_and_then(seed: int) -> None:
    """Commits that share a write fail together; what is in memory, and in the directory, is what was acknowledged."""
    chance = random.Random(seed)
    guard = threading.Lock()

    def fail(operation: str, number: int) -> int | None:
        with guard:
            full = operation in ("write", "sync", "create", "truncate") and chance.random() < 0.15
        return errno.ENOSPC if full else None

    files = TornFiles(random.Random(seed))
    db = opened(files)
    db.executescript("CREATE TABLE t (x int PRIMARY KEY); CREATE TABLE pairs (x int, y int)")
    files.faults = Faults(fail=fail)
    acknowledged: list[int] = []
    codes: set[str] = set()

    def write(writer: int) -> None:
        session = db.session()
        rng = random.Random(seed * 10 + writer)
        for n in range(60):
            x = writer * 1000 + n
            session.execute(f"SET synchronous_commit = {rng.choice(('on', 'on', 'off'))}")
            try:
                session.execute("BEGIN")
                session.execute("INSERT INTO t VALUES (?)", (x,))
                session.execute("INSERT INTO pairs VALUES (?, 1), (?, 2)", (x, x))
                session.execute("COMMIT")
            except DatabaseError as error:
                session.rollback()
                codes.add(error.sqlstate)
            else:
                acknowledged.append(x)
        session.close()

    threads = [threading.Thread(target=write, args=(w,)) for w in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files.faults = Faults()
    expected = sorted((x,) for x in acknowledged)
    pairs = sorted((x, y) for x in acknowledged for y in (1, 2))
    assert 20 < len(acknowledged) < 240
    assert codes <= {"53100", "40001"}
    assert "53100" in codes
    assert sorted(db.execute("SELECT x FROM t").fetchall()) == expected
    assert sorted(db.execute("SELECT x, y FROM pairs").fetchall()) == pairs
    db.execute("INSERT INTO t VALUES (-1)")
    crashed = files.crash(random.Random(seed))
    db.close()
    again = opened(crashed)
    assert sorted(again.execute("SELECT x FROM t").fetchall()) == [(-1,), *expected]
    assert sorted(again.execute("SELECT x, y FROM pairs").fetchall()) == pairs
    again.close()


def test_a_database_is_opened_and_read_on_a_full_disk_and_written_once_there_is_room(files: TornFiles) -> None:
    db = opened(files)
    db.executescript(
        "CREATE TABLE t (x int PRIMARY KEY, y text); INSERT INTO t VALUES (1, 'a'), (2, 'b');"
        "CREATE MATERIALIZED VIEW sums AS SELECT sum(x) AS s FROM t; CREATE INDEX i ON t (y)"
    )
    left = files.kill()
    db.close()
    left.faults = Faults(fail=FULL.fail)
    again = opened(left)
    assert rows(again, "SELECT * FROM t") == [(1, "a"), (2, "b")]
    assert rows(again, "SELECT s FROM sums") == [(3,)]
    assert rows(again, "SELECT x FROM t WHERE y = 'b'") == [(2,)]
    for statement in ("INSERT INTO t VALUES (3, 'c')", "DROP INDEX i"):
        with pytest.raises(DatabaseError) as caught:
            again.execute(statement)
        assert caught.value.sqlstate == "53100"
    left.faults = Faults()
    again.execute("INSERT INTO t VALUES (3, 'c')")
    assert rows(again, "SELECT s FROM sums") == [(6,)]
    crashed = left.crash(random.Random(1))
    again.close()
    with opened(crashed) as found:
        assert rows(found, "SELECT * FROM t") == [(1, "a"), (2, "b"), (3, "c")]
