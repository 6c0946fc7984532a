"""Clients that leave, stall, press in, or talk nonsense: an error to whom it concerns, and nobody else notices."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest

from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.server import WireConfig
from eddyline.sql.password_verifier import Verifier
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection, newcomers, told
from tests.waiting import wait_until

STARTUP = struct.pack("!ii", 17, 196608) + b"user\0me\0\0"


def raw(served: ServedDatabase, *, start: bool = True) -> socket.socket:
    connection = socket.create_connection((served.host, served.port), timeout=30)
    if start:
        connection.sendall(STARTUP)
        read_until(connection, b"Z\0\0\0\x05I")
    return connection


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def query(text: str) -> bytes:
    body = text.encode() + b"\0"
    return b"Q" + struct.pack("!i", len(body) + 4) + body


def test_cancel_requests_end_what_runs(pg: Connection) -> None:
    failure: list[BaseException] = []

    def run() -> None:
        try:
            pg.execute("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b")
        except psycopg.errors.QueryCanceled as problem:
            failure.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():  # the first may come before there is anything to cancel
        pg.cancel_safe(timeout=30)
        thread.join(0.1)
    assert len(failure) == 1
    assert pg.execute("SELECT 1").fetchone() == (1,)


def test_a_copy_that_waits_for_data_is_cancelled(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int)")
    with pytest.raises(psycopg.errors.QueryCanceled), pg.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write("1\n")
        pg.cancel_safe(timeout=30)
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_cancel_request_with_a_wrong_secret_is_nobodys(served: ServedDatabase) -> None:
    with socket.create_connection((served.host, served.port), timeout=30) as connection:
        connection.sendall(struct.pack("!iiiI", 16, 80877102, 1, 12345))
        assert read_all(connection) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"\xff" * 100,
        struct.pack("!ii", 8, 196608),
        struct.pack("!ii", 8, 0x20000),
    ],
)
def test_garbage_is_told_off_and_the_connection_ends(served: ServedDatabase, data: bytes) -> None:
    with raw(served, start=False) as connection:
        connection.sendall(data)
        answer = read_all(connection)
        assert answer[:1] == b"E" and b"SFATAL" in answer


@pytest.mark.parametrize("message", [b"z\0\0\0\x04", b"Q\0\0\0\0", b"Q\x7f\xff\xff\xff", b"Q\xff\xff\xff\xff"])
def test_messages_of_no_kind_or_length_end_the_connection(served: ServedDatabase, message: bytes) -> None:
    with raw(served) as connection:
        connection.sendall(message)
        assert b"C08P01" in read_all(connection)


@pytest.mark.parametrize("message", [b"Q\0\0\0\x05x", b"P\0\0\0\x06ab", b"B\0\0\0\x06\0\0", b"D\0\0\0\x06X\0"])
def test_a_malformed_message_is_an_error_and_the_session_goes_on(served: ServedDatabase, message: bytes) -> None:
    with raw(served) as connection:
        connection.sendall(message + (b"" if message[:1] == b"Q" else b"S\0\0\0\x04"))
        assert b"C08P01" in read_until(connection, b"Z\0\0\0\x05I")
        connection.sendall(query("SELECT 5"))
        assert b"SELECT 1" in read_until(connection, b"Z\0\0\0\x05I")


def test_a_client_that_vanishes_leaves_nothing_behind(served: ServedDatabase, pg: Connection, schema: str) -> None:
    pg.execute("CREATE TABLE t (a int)")
    pg.execute("INSERT INTO t SELECT generate_series(1, 1000)")
    left = newcomers(served)
    for text in (
        f"COPY {schema}.t FROM STDIN",
        "SELECT repeat('x', 1000) FROM generate_series(1, 100000)",
        f"COPY (SUBSCRIBE {schema}.t) TO STDOUT",
        f"BEGIN; INSERT INTO {schema}.t VALUES (1)",
        "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b",
    ):
        connection = raw(served)
        connection.sendall(query(text))
        if "count" not in text:
            connection.recv(1)
        if "FROM STDIN" in text:
            connection.sendall(b"d\0\0\0\x06" + b"1\n" + b"d\0\0\0\xff1")
        connection.close()
    wait_until(lambda: not left(), left)
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (1000,)


def test_a_slow_reader_costs_bounded_memory(served: ServedDatabase) -> None:
    with raw(served) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(query("SELECT repeat('x', 1000) FROM generate_series(1, 200000)"))
        connection.recv(1)

        def buffered() -> int:
            return max(c.unsent_bytes for c in served.server.open_connections)

        wait_until(lambda: buffered() > 0, "the system's own buffers are full")
        time.sleep(0.3)
        assert 0 < buffered() < 2_000_000
        with psycopg.connect(served.url) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)


def test_too_many_connections_are_refused_and_places_come_back() -> None:
    with ServedDatabase(WireConfig(max_connections=2)) as served:
        first, second = psycopg.connect(served.url), psycopg.connect(served.url)
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(served.url)
        first.close()
        wait_until(lambda: served.server.connections == 1, "one is there")
        psycopg.connect(served.url).close()
        second.close()


def test_a_connection_that_is_refused_after_it_had_a_place_gives_it_back() -> None:
    with ServedDatabase(WireConfig(max_connections=1)) as served:
        for options in ("nonsense", "-c", "-c no_such_setting=1"):
            with pytest.raises(psycopg.OperationalError, match=r"invalid command-line argument|unrecognized config"):
                psycopg.connect(served.url, options=options)
            wait_until(lambda: served.server.connections == 0, "it is gone")
        psycopg.connect(served.url).close()


def test_newer_protocols_are_told_the_newest_version_that_there_is_first_of_all(served: ServedDatabase) -> None:
    with raw(served, start=False) as packets:
        packets.sendall(struct.pack("!ii", 28, 196608 + 9) + b"user\0me\0_pq_.new\0001\0\0")
        told = read_until(packets, b"Z\0\0\0\x05I")
        assert told.startswith(b"v" + struct.pack("!iii", 21, 196608, 1) + b"_pq_.new\0R")


def test_a_function_call_is_refused_and_a_password_that_nobody_asked_for_ends_the_connection(
    served: ServedDatabase,
) -> None:
    with raw(served) as connection:
        for body in (b"\0" * 14, b""):
            connection.sendall(b"F" + struct.pack("!i", 4 + len(body)) + body)
            assert read_until(connection, b"Z\0\0\0\x05I")[:1] == b"E"
        connection.sendall(b"p\0\0\0\x06x\0")
        answer = read_all(connection)
        assert b"SFATAL" in answer and b"C08P01" in answer


@pytest.mark.parametrize("term", ["a", "'x'::text"])
def test_expressions_that_are_nested_too_deeply_are_refused_by_name(pg: Connection, term: str) -> None:
    pg.execute("CREATE TABLE t (a int)")
    operator = " + " if term == "a" else " || "
    for depth in (1000, 3000, 6000):
        deep = operator.join([term] * depth)
        for text in (f"SELECT {deep} FROM t", f"DELETE FROM t WHERE {deep} IS NULL"):
            try:
                pg.execute(text)
            except psycopg.errors.StatementTooComplex as problem:
                assert "stack depth limit exceeded" in str(problem)
            else:  # how deep the stack is depends on the interpreter; nothing is as deep as that
                assert depth < 6000
    assert pg.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_many_idle_connections_need_few_threads(served: ServedDatabase) -> None:
    before = threading.active_count()
    connections = [raw(served) for _ in range(400)]
    assert threading.active_count() - before < 30
    for connection in connections:
        connection.sendall(query("SELECT 1"))
    for connection in connections:
        assert b"SELECT 1" in read_until(connection, b"Z\0\0\0\x05I")
        connection.close()


def test_sessions_that_wait_for_another_leave_it_a_thread(pg: Connection, served: ServedDatabase, schema: str) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, n int)")
    pg.execute("INSERT INTO t VALUES (1, 0)")
    pg.execute("BEGIN")
    pg.execute("UPDATE t SET n = n + 1")
    waiting = [raw(served) for _ in range(40)]
    for connection in waiting:
        connection.sendall(query(f"UPDATE {schema}.t SET n = n + 1"))
    time.sleep(0.3)
    pg.execute("COMMIT")
    for connection in waiting:
        assert b"UPDATE 1" in read_until(connection, b"Z\0\0\0\x05I")
        connection.close()
    assert pg.execute("SELECT n FROM t").fetchone() == (41,)


def test_idle_sessions_end_when_their_time_is_up(served: ServedDatabase) -> None:
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("SET idle_session_timeout = '200ms'")
        assert told(connection, 60)
        with pytest.raises(psycopg.OperationalError, match="idle-session timeout"):
            connection.execute("SELECT 1")
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '200ms'")
        time.sleep(0.4)
        connection.execute("BEGIN")
        assert told(connection, 60)
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            connection.execute("SELECT 1")


def test_a_slow_copy_is_no_idle_session(served: ServedDatabase, pg: Connection, schema: str) -> None:
    pg.execute("CREATE TABLE t (a int)")
    with raw(served) as connection:
        connection.sendall(query(f"SET idle_session_timeout = '100ms'; COPY {schema}.t FROM STDIN"))
        read_until(connection, b"G\0\0\0\x09\0\0\x01\0\0")
        time.sleep(0.4)
        connection.sendall(b"d\0\0\0\x06" + b"1\n" + b"c\0\0\0\x04")
        before, copied, after = read_all(connection).partition(b"COPY 1")
        assert copied and b"57P05" not in before and b"57P05" in after
    assert pg.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_statement_timeouts_reach_clients(pg: Connection) -> None:
    pg.execute("SET statement_timeout = '50ms'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        pg.execute("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a < b")


def test_long_texts_and_thousands_of_prepared_statements(pg: Connection) -> None:
    text = "x" * 11_000_000
    assert pg.execute(f"SELECT length('{text}')").fetchone() == (11_000_000,)
    assert pg.execute("SELECT length(%s)", [text]).fetchone() == (11_000_000,)
    for i in range(2000):
        pg.execute(f"PREPARE p{i} AS SELECT $1::int + {i}")
    assert pg.execute("EXECUTE p1999(1)").fetchone() == (2000,)
    pg.execute("DEALLOCATE ALL")


# -- who may come in --------------------------------------------------------------------------------------------------


def test_passwords() -> None:
    users = {"alice": Verifier.of_password("sécret"), "bob": Verifier.of_text(str(Verifier.of_password("b")))}
    passwords = Passwords(users.get, b"secret")
    with ServedDatabase(WireConfig(passwords=passwords)) as served:
        where = {"host": served.host, "port": str(served.port), "dbname": "db"}
        for user, password in (("alice", "sécret"), ("bob", "b")):
            with psycopg.connect(user=user, password=password, **where) as connection:  # type: ignore[arg-type]  # texts
                assert connection.execute("SELECT 1").fetchone() == (1,)
        for user, password in (("alice", "secret"), ("carol", "b"), ("bob", "alice")):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(user=user, password=password, **where)  # type: ignore[arg-type]  # texts


def test_encrypted_connections(tmp_path: Path) -> None:
    tls = self_signed(tmp_path)
    with ServedDatabase(WireConfig(tls=tls, tls_required=True)) as served:
        with psycopg.connect(f"{served.url}?sslmode=require") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="encrypted connections only"):
            psycopg.connect(f"{served.url}?sslmode=disable")
        with socket.create_connection((served.host, served.port), timeout=30) as raw_connection:
            raw_connection.sendall(struct.pack("!ii", 8, 80877103) + STARTUP)
            assert b"unencrypted data after SSL request" in read_all(raw_connection)
        with socket.create_connection((served.host, served.port), timeout=30) as half_open:
            half_open.sendall(struct.pack("!ii", 8, 80877103))
            assert half_open.recv(1) == b"S"
            with psycopg.connect(f"{served.url}?sslmode=require") as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)


def self_signed(folder: Path) -> ssl.SSLContext:
    certificate, key = folder / "server.crt", folder / "server.key"
    subprocess.run(
        ["openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost", "-newkey", "rsa:2048",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
