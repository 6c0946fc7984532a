"""Lookups that are answered on the event loop say byte for byte what the usual way says, or leave it to that."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from unittest import mock

import psycopg
import pytest

from eddyline.adapter.engine import Engine
from eddyline.adapter.prepare import bind_parsed
from eddyline.frontends.pgwire.backend import Backend
from eddyline.kernels.warm import warm
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection, told
from tests.frontends.pgwire.test_fuzz import STARTUP, FuzzHost, advance, bind, message, parse, text

TEXTS = (
    "SELECT b FROM t WHERE a = $1",
    "SELECT a, b, a IS NULL FROM t WHERE a = $1 AND b = $2",
    "SELECT c FROM s WHERE b = $1",
    "SELECT c, b FROM u WHERE c = $1",
    "SELECT count(*) FROM t WHERE a > $1",
)
VALUES: tuple[tuple[bytes | None, int], ...] = (
    (b"1", 0), (b"2", 0), (b"7", 0), (b"-3", 0), (b"one", 0), (b"", 0), (b" 2", 0), (b"2147483648", 0), (b"007", 0),
    (b"99999999999999999999", 0), (b"\xff", 0), (b"t\0", 0), (None, 0), (b"\0\0\0\2", 1), (b"\0\0\0\0\0\0\0\2", 1),
    (b"\0", 1), (b"one", 1), ("ü".encode(), 0),
)  # fmt: skip
KEYS: tuple[tuple[bytes | None, int], ...] = ((b"1", 0), (b"2", 0), (b"-3", 0), (b"7", 0), (b"\0\0\0\2", 1))
WORDS: tuple[tuple[bytes | None, int], ...] = ((b"one", 1), (b"one", 0), (b"t", 0), (b"none", 0))
USUAL = (KEYS, KEYS + WORDS, WORDS, KEYS[:4], KEYS)
CHANGES = (
    "INSERT INTO t VALUES (7, 'seven')",
    "DELETE FROM t WHERE a = 7",
    "UPDATE t SET b = 'uno' WHERE a = 1",
    "UPDATE t SET b = 'one' WHERE a = 1",
    "INSERT INTO s VALUES ('one', 1), ('none', NULL)",  # all rows of one word are alike: their order is anybody's
    "CREATE INDEX s_b ON s (b)",
    "DROP INDEX s_b",
    "CREATE TABLE other (a int)",
    "DROP TABLE other",
)
SETTINGS = ("SET timezone = 'Europe/Prague'", "RESET ALL", "BEGIN", "COMMIT", "SELECT 1/0", "SET search_path = nowhere")
RESTORING = "ROLLBACK; RESET ALL"


@pytest.fixture
def engine() -> Iterator[Engine]:
    warm()
    made = Engine(process_settings=False)
    yield made
    made.close()


class Client:
    """``at_once``: whether the event loop's way is tried first."""

    def __init__(self, engine: Engine, *, at_once: bool) -> None:
        self._host = FuzzHost(engine)
        self._at_once = at_once
        self.answered_at_once = 0
        self.backend = Backend(self._host, lambda: None)
        advance(self.backend, STARTUP)

    def say(self, data: bytes) -> bytes:
        answer = self.backend.answer_at_once(data) if self._at_once else None
        if answer is None:
            return advance(self.backend, data)
        self.answered_at_once += 1
        return answer

    def query(self, sql: str) -> bytes:
        return self.say(message("Q", text(sql)))


SYNC = message("S", b"")


def execute(limit: int = 0) -> bytes:
    return message("E", text("") + struct.pack("!i", limit))


def request(draw: random.Random) -> bytes:
    """A lookup as drivers ask it, or nearly."""
    number = draw.randrange(len(TEXTS))
    usual = draw.random() < 0.8
    values = [draw.choice(USUAL[number] if usual else VALUES) for _ in range(TEXTS[number].count("$"))]
    named = draw.random() < 0.6
    formats = draw.choice([[code for _, code in values], [values[0][1]]] if len(values) > 1 else [[values[0][1]], []])
    data = b"" if named else parse("", TEXTS[number], [])
    data += bind("", f"p{number}" if named else "", formats, [v for v, _ in values], draw.choice([[], [0], [1], [1]]))
    if draw.random() < 0.7:
        data += message("D", b"P" + text(""))
    data += execute(draw.choice([0, 0, 0, 0, 1])) + SYNC
    if draw.random() < 0.03:
        at = draw.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    return data


def prepare_all(*clients: Client) -> None:
    for client in clients:
        for number, sql in enumerate(TEXTS):
            client.say(parse(f"p{number}", sql, []) + SYNC)


def fill(client: Client) -> None:
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TABLE s (b text, c smallint)")
    client.query("CREATE VIEW u AS SELECT c, b FROM s; CREATE INDEX u_c ON u (c)")
    client.query("INSERT INTO t VALUES (1, 'one'), (2, 'ü'), (-3, NULL); INSERT INTO s VALUES ('one', 1), ('t', 2)")


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_say_the_same(engine: Engine, seed: int) -> None:
    draw = random.Random(seed)
    writer = Client(engine, at_once=False)
    fill(writer)
    quick, usual = Client(engine, at_once=True), Client(engine, at_once=False)
    prepare_all(quick, usual)
    answered = 0
    for _ in range(1200):
        dice = draw.random()
        if dice < 0.02:
            writer.query(draw.choice(CHANGES))
            continue
        if dice < 0.05:
            setting = message("Q", text(draw.choice(SETTINGS) if dice < 0.025 else RESTORING))
            assert quick.say(setting) == usual.say(setting)
            continue
        if dice < 0.06:
            closing = message("C", b"S" + text("p0")) + SYNC
            again = parse("p0", draw.choice(TEXTS[:1] + TEXTS[2:4]), []) + SYNC
            assert (quick.say(closing), quick.say(again)) == (usual.say(closing), usual.say(again))
            continue
        data = request(draw)
        assert quick.say(data) == usual.say(data), data
        if quick.backend.over or quick.backend.waiting_bytes:  # changed bytes have ended it, or left it waiting
            assert quick.backend.over == usual.backend.over
            answered += quick.answered_at_once
            quick.backend.close()
            usual.backend.close()
            quick, usual = Client(engine, at_once=True), Client(engine, at_once=False)
            prepare_all(quick, usual)
    assert answered + quick.answered_at_once > 100


def test_simple_queries_with_other_literals_say_what_they_say_by_themselves(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing, alone = Client(engine, at_once=False), Client(engine, at_once=False)
    fill(sharing)
    conversation = alone.backend.conversation
    assert conversation is not None
    monkeypatch.setattr(conversation.session, "shared", lambda sql: None)
    texts = (
        "SELECT a, b, 'x' FROM t WHERE a = {};",
        "SELECT c, b FROM u WHERE c = {} ; ",
        "INSERT INTO t VALUES ({}, '')",
    )
    for sql in texts:
        for number in (100, 101):
            sharing.query(sql.format(number))
    binding = mock.Mock(wraps=bind_parsed)
    monkeypatch.setattr("eddyline.adapter.named_statements.bind_parsed", binding)
    asked = [sql.format(value) for sql in texts[:2] for value in (1, 2, 7)] + [texts[2].format(1)] * 2
    said = [sharing.query(sql) for sql in asked]
    assert binding.call_count == 0
    assert said == [alone.query(sql) for sql in asked]
    assert binding.call_count > 0
    assert b"one" in said[0] and b"23505" in said[-1]


def test_a_lookup_is_answered_at_once_when_it_is_asked_again(engine: Engine) -> None:
    client = Client(engine, at_once=True)
    fill(client)
    prepare_all(client)
    asked = bind("", "p0", [], [b"1"], []) + execute() + SYNC
    answers = [client.say(asked) for _ in range(5)]
    assert len(set(answers)) == 1 and b"one" in answers[0]
    assert client.answered_at_once == 3
    client.query("BEGIN")
    client.say(asked)
    assert client.answered_at_once == 3, "transactions read at their own time"
    client.query("COMMIT")
    client.query("UPDATE t SET b = 'uno' WHERE a = 1")
    client.say(asked)
    assert b"uno" in client.say(asked)


def test_what_becomes_a_lookup_is_found_in_time(engine: Engine) -> None:
    client = Client(engine, at_once=True)
    client.query("CREATE TABLE w (a int, b text)")
    client.query("INSERT INTO w VALUES (1, 'one')")
    client.say(parse("p", "SELECT b FROM w WHERE a = $1", []) + SYNC)
    asked = bind("", "p", [], [b"1"], []) + execute() + SYNC
    for _ in range(20):
        assert b"one" in client.say(asked)
    assert client.answered_at_once == 0
    client.query("CREATE INDEX w_a ON w (a)")
    index = engine.catalog.snapshot().view().resolve(None, "w_a")
    assert index is not None
    assert engine.default.wait_for(lambda controller: controller.hydrated(index.id), 60)
    for _ in range(150):
        assert b"one" in client.say(asked)
    assert client.answered_at_once > 50


def test_a_dropped_table_is_missed_at_once(engine: Engine) -> None:
    client = Client(engine, at_once=True)
    fill(client)
    asked = parse("", TEXTS[0], []) + bind("", "", [], [b"1"], []) + execute() + SYNC
    for _ in range(4):
        assert b"one" in client.say(asked)
    client.query("DROP TABLE t")
    assert b"C42P01" in client.say(asked)


def test_drivers_lookups_take_no_thread(served: ServedDatabase, pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    pg.execute("INSERT INTO t SELECT i, i::text FROM generate_series(1, 100) g(i)")
    pg.prepare_threshold = 0
    for i in range(1, 6):
        pg.execute("SELECT b FROM t WHERE a = %s", [i])
    calls = served.server.calls
    for i in range(1, 101):
        assert pg.execute("SELECT b FROM t WHERE a = %s", [i]).fetchall() == [(str(i),)]
    assert served.server.calls - calls < 20, "a few may be of connections that end meanwhile"


def test_idle_sessions_end_though_their_lookups_take_no_thread(pg: Connection) -> None:
    pg.execute("CREATE TABLE t (a int PRIMARY KEY)")
    for _ in range(5):
        pg.execute("SELECT a FROM t WHERE a = %s", [1], prepare=True)
    with pytest.raises(psycopg.OperationalError, match="idle-session timeout"):
        pg.execute("SET idle_session_timeout = '300ms'")
        for _ in range(5):
            pg.execute("SELECT a FROM t WHERE a = %s", [1], prepare=True)
        assert told(pg, 60)
        pg.execute("SELECT a FROM t WHERE a = %s", [1], prepare=True)
