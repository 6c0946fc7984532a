"""Transactions: own writes, atomic commits, conflicts, savepoints, isolation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import eddyline
from tests.cancelling import cancelling

Rows = list[tuple[object, ...]]


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        connection.execute("CREATE TABLE u (a int)")
        connection.execute("CREATE VIEW v AS SELECT sum(b) AS total, count(*) AS n FROM t")
        connection.execute("CREATE DEFAULT INDEX ON v")
        connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        yield connection


@pytest.fixture
def other(db: eddyline.Connection) -> Iterator[eddyline.Connection]:
    with db.session() as session:
        yield session


def rows(session: eddyline.Connection, query: str = "SELECT * FROM t") -> Rows:
    return sorted(session.execute(query).fetchall())


def refused(session: eddyline.Connection, statement: str) -> str:
    with pytest.raises(eddyline.Error) as caught:
        session.execute(statement)
    return caught.value.sqlstate


def test_own_writes_are_seen_by_every_kind_of_statement_and_by_nobody_else(
    db: eddyline.Connection, other: eddyline.Connection
) -> None:
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (3, 30)")
    db.execute("UPDATE t SET b = b + 1 WHERE a >= 2")
    db.execute("DELETE FROM t WHERE a = 1")
    assert rows(db) == [(2, 21), (3, 31)]
    assert rows(db, "SELECT total::int, n FROM v") == [(52, 2)]
    assert rows(db, "SELECT count(*) FROM t x JOIN t y ON x.a < y.a") == [(1,)]
    db.append("t", [{"a": 4, "b": 40}])
    db.upsert("t", [{"a": 4, "b": 41}])
    db.delete("t", [{"a": 2}])
    assert rows(db) == [(3, 31), (4, 41)]
    assert rows(other) == [(1, 10), (2, 20)]
    assert rows(other, "SELECT total::int, n FROM v") == [(30, 2)]
    db.execute("COMMIT")
    assert rows(other) == [(3, 31), (4, 41)]
    assert rows(other, "SELECT total::int, n FROM v") == [(72, 2)]


def test_a_commit_is_one_time_for_all_tables(db: eddyline.Connection, other: eddyline.Connection) -> None:
    subscription = other.subscribe("SELECT t.a AS a FROM t JOIN u ON t.a = u.a", snapshot=False)
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (5, 50)")
    db.execute("INSERT INTO u VALUES (5)")
    db.execute("INSERT INTO u VALUES (1)")
    at = db.execute("COMMIT").time
    change = subscription.next(10)
    assert change is not None
    assert change.time == at
    assert sorted(change.updates["a"].to_pylist()) == [1, 5]
    subscription.close()


def test_rollback_forgets_everything(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("TRUNCATE t")
    assert rows(db) == []
    db.execute("ROLLBACK")
    assert rows(db) == [(1, 10), (2, 20)]
    assert not db.in_transaction


def test_reads_of_a_transaction_are_of_one_time(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    assert rows(db, "SELECT count(*) FROM t") == [(2,)]
    other.execute("INSERT INTO t VALUES (3, 30)")
    other.execute("INSERT INTO u VALUES (3)")
    assert rows(db, "SELECT count(*) FROM t") == [(2,)]
    assert rows(db, "SELECT n FROM v") == [(2,)]
    assert rows(db, "SELECT count(*) FROM u") == [(0,)]
    db.execute("COMMIT")
    assert rows(db, "SELECT n FROM v") == [(3,)]


def test_a_transaction_keeps_the_times_of_all_tables_and_not_the_names(
    db: eddyline.Connection, other: eddyline.Connection
) -> None:
    other.execute("BEGIN")
    assert rows(other, "SELECT * FROM u") == []
    time.sleep(1.1)  # past the retention: what is not held is forgotten
    for a in range(40):
        db.execute("INSERT INTO t VALUES ($1, 0)", (100 + a,))
    db.execute("DROP TABLE u")
    assert rows(other) == [(1, 10), (2, 20)]
    assert rows(other, "SELECT total::int, n FROM v") == [(30, 2)]
    with pytest.raises(eddyline.Error) as caught:
        other.execute("SELECT * FROM u")
    assert caught.value.sqlstate == "40001"
    other.execute("ROLLBACK")


def test_after_a_failure_only_rollback_is_left(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (3, 30)")
    assert refused(db, "SELECT 1 / 0") == "22012"
    assert refused(db, "SELECT 1") == "25P02"
    with pytest.raises(eddyline.Error) as caught:
        db.append("t", [{"a": 9}])
    assert caught.value.sqlstate == "25P02"
    assert db.execute("COMMIT").statusmessage == "ROLLBACK"
    assert rows(db) == [(1, 10), (2, 20)]


def test_savepoints(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (3, 30)")
    db.execute("SAVEPOINT one")
    db.execute("INSERT INTO t VALUES (4, 40)")
    db.execute("SAVEPOINT two")
    assert refused(db, "INSERT INTO t VALUES (4, 41)") == "23505"
    db.execute("ROLLBACK TO SAVEPOINT two")
    assert rows(db, "SELECT a FROM t") == [(1,), (2,), (3,), (4,)]
    db.execute("ROLLBACK TO one")
    assert refused(db, "RELEASE two") == "3B001"
    db.execute("ROLLBACK TO one")
    db.execute("RELEASE one")
    db.execute("COMMIT")
    assert rows(db, "SELECT a FROM t") == [(1,), (2,), (3,)]


def test_a_write_over_what_changed_meanwhile_is_refused(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    assert rows(db, "SELECT b FROM t WHERE a = 1") == [(10,)]
    other.execute("UPDATE t SET b = 11 WHERE a = 1")
    assert refused(db, "UPDATE t SET b = b + 1 WHERE a = 1") == "40001"
    db.rollback()
    db.execute("UPDATE t SET b = b + 1 WHERE a = 1")
    assert rows(db, "SELECT b FROM t WHERE a = 1") == [(12,)]


def test_a_deadlock_is_refused_for_one_of_the_two(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    other.execute("BEGIN")
    db.execute("UPDATE t SET b = 0 WHERE a = 1")
    other.execute("UPDATE u SET a = 0")
    outcomes: list[str] = []

    def cross(session: eddyline.Connection, statement: str) -> None:
        try:
            session.execute(statement)
        except eddyline.Error as error:
            outcomes.append(error.sqlstate)
        else:
            outcomes.append("ok")
        session.rollback()

    thread = threading.Thread(target=cross, args=(db, "UPDATE u SET a = 1"))
    thread.start()
    cross(other, "UPDATE t SET b = 1")
    thread.join(10)
    assert sorted(outcomes) in (["40P01", "ok"], ["40001", "40P01"])


def test_increments_from_many_threads_are_all_there(db: eddyline.Connection) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with db.session() as session:
                for _ in range(5):
                    session.execute("UPDATE t SET b = b + 1 WHERE a = 1")
        except BaseException as failure:  # noqa: BLE001 - reported by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert rows(db, "SELECT b FROM t WHERE a = 1") == [(50,)]


def test_waiting_for_a_lock_obeys_timeout_and_cancel(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("UPDATE t SET b = 0")
    other.execute("SET statement_timeout = '100ms'")
    assert refused(other, "UPDATE t SET b = 1") in ("55P03", "57014")
    other.execute("SET statement_timeout = 0")
    with cancelling(other):
        assert refused(other, "UPDATE t SET b = 1") == "57014"
    db.rollback()
    other.execute("UPDATE t SET b = 1")


def test_waiting_for_a_lock_obeys_lock_timeout(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("UPDATE t SET b = 0")
    other.execute("SET lock_timeout = '60ms'")
    assert refused(other, "UPDATE t SET b = 1") == "55P03"
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (9, 9)")
    assert refused(other, "COMMIT") == "55P03"
    db.rollback()
    other.execute("UPDATE t SET b = 1")
    assert rows(other) == [(1, 1), (2, 1)]


def test_plain_inserts_do_not_wait_for_writers(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("UPDATE t SET b = 0 WHERE a = 1")
    other.execute("SET statement_timeout = '60s'")
    other.execute("INSERT INTO u VALUES (1)")
    other.append("u", [{"a": 2}])
    db.commit()


def test_duplicate_keys_across_transactions(db: eddyline.Connection, other: eddyline.Connection) -> None:
    db.execute("BEGIN")
    other.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (7, 1)")
    other.execute("SET statement_timeout = '60s'")
    outcomes = []
    for session in (db, other):
        try:
            if session is other:
                session.execute("INSERT INTO t VALUES (7, 2)")
            session.execute("COMMIT")
        except eddyline.Error as error:
            outcomes.append(error.sqlstate)
            session.rollback()
        else:
            outcomes.append("ok")
    assert outcomes[0] == "ok"
    assert outcomes[1] in ("23505", "40001")
    assert rows(db, "SELECT b FROM t WHERE a = 7") == [(1,)]


def test_read_only_transactions(db: eddyline.Connection) -> None:
    db.execute("BEGIN READ ONLY")
    for statement in ("INSERT INTO t VALUES (9, 9)", "UPDATE t SET b = 0", "DELETE FROM t"):
        assert refused(db, statement) == "25006"
        db.rollback()
        db.execute("BEGIN READ ONLY")
    db.rollback()


@pytest.mark.parametrize(
    ("statements", "sqlstate"),
    [
        (["SAVEPOINT s"], "25P01"),
        (["RELEASE s"], "25P01"),
        (["BEGIN", "RELEASE s"], "3B001"),
        (["BEGIN", "SELECT 1", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"], "25001"),
    ],
)
def test_statements_out_of_place(db: eddyline.Connection, statements: list[str], sqlstate: str) -> None:
    *before, last = statements
    for statement in before:
        db.execute(statement)
    assert refused(db, last) == sqlstate
    db.rollback()


def test_needless_transaction_statements_only_notice(db: eddyline.Connection) -> None:
    assert db.execute("COMMIT").notices == ("there is no transaction in progress",)
    assert db.execute("ROLLBACK").notices == ("there is no transaction in progress",)
    db.execute("BEGIN")
    assert db.execute("BEGIN").notices == ("there is already a transaction in progress",)
    db.execute("COMMIT AND CHAIN")
    assert db.in_transaction
    db.rollback()


# -- AS OF and isolation -----------------------------------------------------------------------------------------------


def test_as_of_takes_microseconds_or_a_timestamp(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("SELECT * FROM t")  # keeps the past readable
    with db.session() as other:
        first = other.execute("INSERT INTO t VALUES (3, 30)").time
        assert first is not None
        other.execute("DELETE FROM t WHERE a <= 2")
        assert rows(other, f"SELECT a FROM t AS OF {first}") == [(1,), (2,), (3,)]
        assert rows(other, f"SELECT a FROM t AS OF {first}::bigint - 1") == [(1,), (2,)]
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(first // 1_000_000)) + f".{first % 1_000_000:06}+00"
        assert rows(other, f"SELECT a FROM t AS OF timestamptz '{text}'") == [(1,), (2,), (3,)]
        assert sorted(other.execute("SELECT a FROM t AS OF $1::bigint", [first])) == [(1,), (2,), (3,)]
        assert rows(other, f"SELECT n FROM v AS OF {first}") == [(3,)]
    db.rollback()


def test_as_of_before_the_since_names_it(db: eddyline.Connection) -> None:
    for query in ("SELECT * FROM t AS OF 1000000", "SELECT * FROM v AS OF 1000000"):
        with pytest.raises(eddyline.DataError) as caught:
            db.execute(query)
        assert caught.value.sqlstate == "22023"
        assert "since" in (caught.value.detail or "")


@pytest.mark.parametrize("time_", ["NULL", "-5", "'x'::timestamptz", "true"])
def test_as_of_nonsense(db: eddyline.Connection, time_: str) -> None:
    assert refused(db, f"SELECT * FROM t AS OF {time_}")[:2] in ("22", "42")


def test_as_of_the_future_waits(db: eddyline.Connection) -> None:
    started = time.monotonic()
    future = time.time_ns() // 1000 + 300_000
    assert rows(db, f"SELECT a FROM t AS OF {future}") == [(1,), (2,)]
    assert time.monotonic() - started >= 0.25
    db.execute("SET statement_timeout = '100ms'")
    assert refused(db, f"SELECT a FROM t AS OF {future + 10_000_000}") == "57014"


@pytest.mark.parametrize("level", ["serializable", "strict serializable"])
def test_isolation_levels_answer_exactly_at_their_time(db: eddyline.Connection, level: str) -> None:
    assert rows(db, "SELECT n FROM v") == [(2,)], "a strict read: the index has caught up"
    db.execute(f"SET transaction_isolation = '{level}'")
    assert db.execute("SHOW transaction_isolation").fetchone() == (level,)
    for n in range(3, 20):
        written = db.execute("INSERT INTO t VALUES ($1, 0)", [n]).time
        cursor = db.execute("SELECT n FROM v")
        [(count,)] = cursor.fetchall()
        if level == "strict serializable":
            assert count == n
        else:
            assert 2 <= count <= n
        assert cursor.time is not None
        assert written is not None
    assert refused(db, "SET transaction_isolation = 'chaos'") == "22023"


def test_begin_takes_an_isolation_level(db: eddyline.Connection) -> None:
    db.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert db.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    db.rollback()
    assert db.execute("SHOW transaction_isolation").fetchone() == ("strict serializable",)
