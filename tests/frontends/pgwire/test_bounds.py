"""What a client may take, and how long: the bounds of results, memory, statements and idleness, as drivers see them."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors

from eddyline.adapter.memory_guard import MemoryGuard
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection, newcomers
from tests.frontends.pgwire.test_limits import query, raw, read_until
from tests.waiting import wait_until

ALL_PAIRS = "SELECT DISTINCT a.i, b.i FROM generate_series(1, 3000) AS a(i), generate_series(1, 3000) AS b(i)"
FOREVER = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b"


def simple(pg: Connection, text: str) -> None:
    result = pg.pgconn.exec_(text.encode())
    if result.error_message:
        raise psycopg.errors.lookup((result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode())


def extended(pg: Connection, text: str) -> None:
    pg.execute(text, binary=True).fetchall()


def prepared(pg: Connection, text: str) -> None:
    pg.execute(text, prepare=True).fetchall()


def streamed(pg: Connection, text: str) -> None:
    list(pg.cursor().stream(text))


WAYS = [simple, extended, prepared, streamed]


@pytest.mark.parametrize("way", WAYS)
def test_a_result_past_its_bound_is_refused_and_the_session_goes_on(
    pg: Connection, way: Callable[[Connection, str], None]
) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    pg.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 1000) AS i")
    pg.execute("SET max_result_size = '20kB'")
    for text in ("SELECT a, b FROM t", "SELECT b, a FROM t ORDER BY a", "SELECT repeat('y', 30000)"):
        with pytest.raises(errors.ProgramLimitExceeded):
            way(pg, text)
    way(pg, "SELECT a, b FROM t WHERE a = 1")
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    pg.execute("RESET max_result_size")
    assert len(pg.execute("SELECT a, b FROM t").fetchall()) == 1000


@pytest.mark.parametrize("way", WAYS)
def test_a_read_past_its_memory_is_refused_and_the_session_goes_on(
    pg: Connection, way: Callable[[Connection, str], None]
) -> None:
    pg.execute("SET query_max_memory = '2MB'")
    with pytest.raises(errors.OutOfMemory):
        way(pg, ALL_PAIRS)
    assert pg.execute("SELECT 5").fetchone() == (5,)


def test_the_error_says_which_setting_it_was_and_what_to_do(pg: Connection) -> None:
    for setting, text in (("max_result_size", "SELECT repeat('y', 3000000)"), ("query_max_memory", ALL_PAIRS)):
        pg.execute(f"SET {setting} = '1MB'")
        with pytest.raises(psycopg.Error) as caught:
            pg.execute(text)
        assert setting in (caught.value.diag.message_primary or "")
        assert f"raise {setting}" in (caught.value.diag.message_hint or "")
        pg.execute(f"RESET {setting}")


def test_a_lookup_that_was_asked_before_obeys_a_new_bound(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    pg.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 10) AS i")

    def look() -> object:
        return pg.execute("SELECT b FROM t WHERE a = %s", [3], prepare=True).fetchone()

    for _ in range(5):
        assert look() == ("x" * 100,)
    pg.execute("SET max_result_size = '50B'")
    with pytest.raises(errors.ProgramLimitExceeded):
        look()
    pg.execute("RESET max_result_size")
    assert look() == ("x" * 100,)


def test_bounds_of_a_connection_come_with_it_and_those_of_all_from_the_system(served: ServedDatabase) -> None:
    with psycopg.connect(served.url, autocommit=True, options="-c max_result_size=1kB") as own:
        assert own.execute("SHOW max_result_size").fetchone() == ("1kB",)
        with pytest.raises(errors.ProgramLimitExceeded):
            own.execute("SELECT repeat('y', 3000)")
        with psycopg.connect(served.url, autocommit=True) as other:
            other.execute("SELECT repeat('y', 3000)")
            other.execute("ALTER SYSTEM SET max_result_size = '2kB'")
            try:
                with pytest.raises(errors.ProgramLimitExceeded):
                    other.execute("SELECT repeat('y', 3000)")
                assert own.execute("SHOW max_result_size").fetchone() == ("1kB",)
            finally:
                other.execute("ALTER SYSTEM RESET max_result_size")


def test_a_transaction_in_which_a_read_was_refused_is_rolled_back(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    pg.execute("SET max_result_size = '1kB'")
    pg.execute("BEGIN")
    pg.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(errors.ProgramLimitExceeded):
        pg.execute("SELECT repeat('y', 3000)")
    with pytest.raises(errors.InFailedSqlTransaction):
        pg.execute("SELECT 1")
    assert pg.execute("COMMIT").statusmessage == "ROLLBACK"
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_what_was_sent_after_a_read_that_is_refused_is_skipped(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    pg.execute("SET max_result_size = '1kB'")
    with pytest.raises(errors.ProgramLimitExceeded), pg.pipeline() as pipeline:
        pg.execute("INSERT INTO t VALUES (1)")
        pipeline.sync()
        pg.execute("SELECT repeat('y', 3000)")
        pg.execute("INSERT INTO t VALUES (2)")
        pipeline.sync()
    assert pg.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize("way", WAYS)
def test_a_statement_past_its_time_is_cancelled(pg: Connection, way: Callable[[Connection, str], None]) -> None:
    pg.execute("SET statement_timeout = '30ms'")
    with pytest.raises(errors.QueryCanceled):
        way(pg, FOREVER)
    pg.execute("SET statement_timeout = 0")
    assert pg.execute("SELECT 5").fetchone() == (5,)


def test_a_copy_whose_client_is_slow_has_no_more_time_than_others(
    pg: Connection, served: ServedDatabase, schema: str
) -> None:
    pg.execute("CREATE TABLE t (a int)")
    with raw(served) as client:
        client.sendall(query(f"SET statement_timeout = '100ms'; COPY {schema}.t FROM STDIN"))
        read_until(client, b"G\0\0\0\x09\0\0\x01\0\0")
        for _ in range(3000):  # it hears of it when it sends the next piece
            client.sendall(b"d\0\0\0\x06" + b"1\n")
            if select.select([client], [], [], 0.02)[0]:
                break
        assert b"statement timeout" in read_until(client, b"Z\0\0\0\x05I")
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_copy_that_waits_for_its_client_is_stopped_for_want_of_memory(pg: Connection, served: ServedDatabase) -> None:
    pg.execute("CREATE TABLE t (a int)")
    engine, used, now = served.engine, [0], [0.0]
    usual = engine.memory
    guard = MemoryGuard(engine.relief, used=lambda: used[0], trim=lambda: None, clock=lambda: now[0], threads=False)
    engine.memory = guard
    guard.watch(1000)
    try:
        with pytest.raises(errors.OutOfMemory, match="was stopped"), pg.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write("1\n")
            wait_until(lambda: bool(guard._statements), "it is under way")
            used[0], now[0] = 1100, 5.0
            for _ in range(2):
                guard.look()
    finally:
        engine.memory = usual
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_statement_that_waits_for_a_lock_is_ended_by_either_timeout(
    pg: Connection, served: ServedDatabase, schema: str
) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    pg.execute("INSERT INTO t VALUES (1, 1)")
    pg.execute("BEGIN")
    pg.execute("UPDATE t SET b = 2")
    with psycopg.connect(served.url, autocommit=True, options=f"-c search_path={schema}") as other:
        other.execute("SET statement_timeout = '30ms'")
        with pytest.raises(errors.QueryCanceled, match="statement timeout"):
            other.execute("UPDATE t SET b = 3")
        other.execute("SET statement_timeout = 0")
        other.execute("SET lock_timeout = '30ms'")
        with pytest.raises(errors.LockNotAvailable):
            other.execute("UPDATE t SET b = 3")
        pg.execute("COMMIT")
        other.execute("UPDATE t SET b = b + 10")
    assert pg.execute("SELECT b FROM t").fetchone() == (12,)


def test_an_idle_transaction_that_is_ended_lets_others_go_on(
    pg: Connection, served: ServedDatabase, schema: str
) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    pg.execute("INSERT INTO t VALUES (1, 1)")
    left = newcomers(served)
    options = f"-c search_path={schema} -c idle_in_transaction_session_timeout=300ms"
    idle = psycopg.connect(served.url, autocommit=True, options=options)
    idle.execute("BEGIN; UPDATE t SET b = 2")  # in one message: between two it is idle
    pg.execute("UPDATE t SET b = b + 10")  # waits until the other is gone, and finds nothing of it
    assert pg.execute("SELECT b FROM t").fetchone() == (11,)
    wait_until(lambda: not left(), left)
    with pytest.raises(psycopg.Error, match="idle-in-transaction timeout"):
        idle.execute("SELECT 1")
    idle.close()


def test_a_client_is_told_that_the_server_is_short_of_memory_and_goes_on(
    pg: Connection, served: ServedDatabase
) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY)")
    pg.execute("INSERT INTO t VALUES (1), (2)")
    engine = served.engine
    usual, engine.memory = engine.memory, MemoryGuard(engine.relief, used=lambda: 950, trim=lambda: None, threads=False)
    engine.memory.watch(1000)
    engine.memory.look()
    try:
        for text in ("INSERT INTO t VALUES (3)", "SELECT count(*) FROM t", "CREATE INDEX ON t (a)"):
            with pytest.raises(errors.OutOfMemory, match="short of memory"):
                pg.execute(text)
        with pytest.raises(errors.OutOfMemory, match="short of memory"), pg.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write("4\n")
        assert pg.execute("SELECT a FROM t WHERE a = 2").fetchone() == (2,)
        with psycopg.connect(served.url, autocommit=True) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        pg.execute("DELETE FROM t WHERE a = 2")
    finally:
        engine.memory = usual
    pg.execute("INSERT INTO t VALUES (3)")
    assert pg.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


def test_of_many_clients_one_that_takes_too_much_is_stopped(served: ServedDatabase) -> None:
    done: list[int] = []

    def ask(k: int) -> None:
        with psycopg.connect(served.url, autocommit=True, options="-c query_max_memory=2MB") as connection:
            if k == 0:
                with pytest.raises(errors.OutOfMemory):
                    connection.execute(ALL_PAIRS)
            else:
                for _ in range(20):
                    assert connection.execute("SELECT %s::int", [k]).fetchone() == (k,)
        done.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == [0, 1, 2, 3, 4]
