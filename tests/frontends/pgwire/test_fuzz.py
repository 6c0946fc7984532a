"""Any messages in any order, and any bytes: no hang, no crash, one ReadyForQuery for each Query and Sync, nothing kept.

No socket and no clock: the backend is fed and advanced here.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eddyline.adapter.engine import Engine
from eddyline.adapter.session import Session
from eddyline.frontends.pgwire.backend import Backend
from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.steps import Finish, Send, StartTls, WaitForNews
from eddyline.sql.password_verifier import Verifier

STARTUP = struct.pack("!ii", 17, 196608) + b"user\0me\0\0"
SEQUENCES = settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
BYTES = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


class FuzzHost:
    """Lets everybody in, or those with a password."""

    offers_tls = False
    needs_tls = False

    def __init__(self, engine: Engine, passwords: Passwords | None = None) -> None:
        self.engine = engine
        self.passwords = passwords
        self.sessions: list[Session] = []

    def admit(self, backend: Backend) -> tuple[int, int]:
        return 1, 2

    def open_session(self, user: str, database: str) -> Session:
        self.sessions.append(Session(self.engine))
        return self.sessions[-1]

    def cancel(self, process: int, secret: int) -> None:
        assert process >= 0 and secret >= 0


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    database = Engine(process_settings=False)
    session = Session(database)
    session.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    session.execute("INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    session.close()
    yield database
    database.close()


def message(tag: str, body: bytes) -> bytes:
    return tag.encode() + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def parse(name: str, query: str, types: list[int]) -> bytes:
    return message("P", text(name) + text(query) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(portal: str, name: str, formats: list[int], values: list[bytes | None], results: list[int]) -> bytes:
    body = text(portal) + text(name) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(values))
    body += b"".join(struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    return message("B", body + struct.pack(f"!H{len(results)}h", len(results), *results))


QUERIES = st.sampled_from(
    [
        "", ";", "SELECT 1", "SELECT * FROM t", "SELECT 1; SELECT 2", "SELECT 1/0", "nonsense", "BEGIN", "COMMIT",
        "SELECT $1::int + 1", "SELECT a FROM t WHERE a = $1", "SELECT $1, $2", "INSERT INTO t VALUES (1, 'again')",
        "BEGIN; SELECT 1/0", "COPY t FROM STDIN", "COPY t TO STDOUT", "COPY t FROM STDIN; SELECT 1", "SAVEPOINT s",
        "COPY (SELECT 1) TO STDOUT (FORMAT binary)", "SUBSCRIBE t UP TO 1", "SHOW timezone", "EXPLAIN SELECT 1",
        "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH 1 FROM c", "SET timezone = 'Europe/Prague'", "DEALLOCATE ALL",
        "PREPARE p AS SELECT 1", "EXECUTE p", "SUBSCRIBE t", "SELECT x FROM generate_series(1, 3000) x", "ROLLBACK",
        "DISCARD ALL", "UPDATE t SET b = b WHERE a = 1 RETURNING *", "CREATE TABLE t (a int)", "SELECT '\x01é'",
        "COPY (SUBSCRIBE t) TO STDOUT", "CLOSE ALL",
    ]
)  # fmt: skip
NAMES = st.sampled_from(["", "p", "q"])
CODES = st.lists(st.sampled_from([0, 1, 1, 0, 2, -1]), max_size=3)
VALUES = st.lists(st.sampled_from([None, b"", b"1", b"\0\0\0\1", b"x", b"\xff", b"1\0"]), max_size=3)
MESSAGES = st.one_of(
    QUERIES.map(lambda q: message("Q", text(q))),
    st.builds(parse, NAMES, QUERIES, st.lists(st.sampled_from([0, 23, 25, 705, 1700, 9999]), max_size=2)),
    st.builds(bind, NAMES, NAMES, CODES, VALUES, CODES),
    st.builds(lambda kind, name: message("D", kind + text(name)), st.sampled_from([b"S", b"P", b"X"]), NAMES),
    st.builds(lambda name, limit: message("E", text(name) + struct.pack("!i", limit)), NAMES, st.integers(-1, 2)),
    st.builds(lambda kind, name: message("C", kind + text(name)), st.sampled_from([b"S", b"P"]), NAMES),
    st.just(message("S", b"")),
    st.just(message("S", b"")),
    st.just(message("H", b"")),
    st.sampled_from([b"1\tone\n", b"9\tnine\n", b"\\.\n", b"x\n", b"\xff"]).map(lambda data: message("d", data)),
    st.just(message("c", b"")),
    st.just(message("f", text("no more"))),
    st.just(message("p", text("secret"))),
    st.just(message("F", b"")),
)


def advance(backend: Backend, data: bytes) -> bytes:
    """What is sent for ``data``; whoever waits for news is told that there are none, by a cancel."""
    backend.feed(data)
    sent = b""
    for step in backend.advance():
        match step:
            case Send():
                sent += step.data
            case WaitForNews():
                backend.cancel()
            case StartTls():
                raise AssertionError("not offered")
            case Finish():
                assert backend.over
    return sent


def said(data: bytes) -> list[tuple[str, bytes]]:
    """The server's messages; fails unless they are whole."""
    found = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at + 1)
        assert length >= 4 and at + 1 + length <= len(data)
        found.append((chr(data[at]), data[at + 5 : at + 1 + length]))
        at += 1 + length
    return found


def settle(backend: Backend) -> list[tuple[str, bytes]]:
    """Brings a backend that is not over to rest, and has it answer a question."""
    out = advance(backend, message("f", text("enough")) + message("S", b"") + message("Q", text("ROLLBACK")))
    return said(out + advance(backend, message("Q", text("SELECT 41 + 1"))))


def check_nothing_kept(host: FuzzHost, backend: Backend) -> None:
    backend.close()
    assert not [t for t in threading.enumerate() if t.name == "eddyline-copy-in"]
    assert host.engine.locks._owners == {} and host.engine._control.feeds == {}
    for session in host.sessions:
        assert session._transaction.current is None and session._running.idle


@SEQUENCES
@given(messages=st.lists(MESSAGES, min_size=1, max_size=9), cut=st.integers(1, 50))
def test_every_sequence_is_answered(engine: Engine, messages: list[bytes], cut: int) -> None:
    host = FuzzHost(engine)
    backend = Backend(host, lambda: None)
    assert advance(backend, STARTUP).endswith(b"Z\0\0\0\5I")
    data = b"".join(messages)
    out = advance(backend, data[:cut]) + advance(backend, data[cut:])
    answers = said(out)
    if not backend.over:
        answers += settle(backend)
        assert ("D", b"\0\1\0\0\0\x0242") in answers
        asked = [m[:1] for m in messages] + [b"S", b"Q", b"Q"]
        ready = [tag for tag, _ in answers].count("Z")
        # A Query that is skipped after an error has no answer, and neither has a Sync in the middle of COPY FROM STDIN.
        copying = any(b"FROM STDIN" in m for m in messages)
        assert (0 if copying else asked.count(b"S")) <= ready <= sum(map(asked.count, (b"S", b"Q", b"F")))
        assert answers[-1][0] == "Z"
    check_nothing_kept(host, backend)


@BYTES
@given(
    messages=st.lists(MESSAGES, min_size=1, max_size=5),
    changes=st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=4)), min_size=1, max_size=3),
    begun=st.booleans(),
)
def test_no_bytes_do_harm(engine: Engine, messages: list[bytes], changes: list[tuple[int, bytes]], begun: bool) -> None:
    data = bytearray((b"" if begun else STARTUP) + b"".join(messages))
    for at, new in changes:
        data[at % len(data) : at % len(data) + len(new)] = new
    host = FuzzHost(engine)
    backend = Backend(host, lambda: None)
    if begun:
        advance(backend, STARTUP)
    said_so_far = advance(backend, bytes(data))
    if host.sessions and begun:
        said(said_so_far)
    check_nothing_kept(host, backend)


@BYTES
@given(data=st.lists(st.one_of(st.binary(max_size=40), st.just(STARTUP), MESSAGES), max_size=4).map(b"".join))
def test_nobody_gets_in_without_a_password(engine: Engine, data: bytes) -> None:
    host = FuzzHost(engine, Passwords({"me": Verifier(1, b"salt", b"s" * 32, b"k" * 32)}.get, b"secret"))
    backend = Backend(host, lambda: None)
    advance(backend, data)
    assert host.sessions == [] and backend.conversation is None
    check_nothing_kept(host, backend)
