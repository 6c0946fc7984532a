"""What a server's log and metrics say of requests that fail, and of clients that are not let in."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import psycopg
import pytest

from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.server import WireConfig
from eddyline.frontends.structured_log import configure_log
from eddyline.sql.password_verifier import Verifier
from eddyline.testing.served import ServedDatabase


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "told" in record.__dict__:  # of a request, or of who is not let in; earlier tests' connections may end now
            self.records.append(record)


USER = "teller"  # whose records are told from those of connections that other tests have left
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def own() -> Iterator[ServedDatabase]:
    """A server whose statements nobody else counts."""
    with ServedDatabase() as served:
        yield served


@pytest.fixture
def pg(own: ServedDatabase) -> Iterator[Connection]:
    with psycopg.connect(host=own.host, port=own.port, dbname="d", user=USER, autocommit=True) as connection:
        yield connection


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What the wire's log has said of clients since the test began."""
    log, kept = logging.getLogger("eddyline.pgwire"), _Kept()
    level = log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    yield kept.records
    log.setLevel(level)
    log.removeHandler(kept)


def told(record: logging.LogRecord) -> dict[str, object]:
    found = record.__dict__.get("told", {})
    assert isinstance(found, dict)
    return found


def of(records: list[logging.LogRecord], *users: str) -> list[dict[str, object]]:
    return [told(record) for record in records if told(record).get("user") in users]


def failures(served: ServedDatabase) -> int:
    return served.engine.metrics.statements()["failed"]


@pytest.mark.parametrize(
    ("text", "arguments", "sqlstate"),
    [
        ("SELEC 1", None, "42601"),
        ("SELECT nothing_there", None, "42703"),
        ("SELECT nothing_there WHERE 1 = %s", [1], "42703"),
        ("SELECT %b::int", ["x"], "22P02"),
        ("SELECT 1 / 0", None, "22012"),
        ("SELECT 1; SELECT nothing_there", None, "42703"),
        ("EXECUTE nothing_there", None, "26000"),
    ],
)
def test_a_request_that_fails_counts_once_wherever_it_fails(
    pg: Connection,
    own: ServedDatabase,
    records: list[logging.LogRecord],
    text: str,
    arguments: list[object] | None,
    sqlstate: str,
) -> None:
    before = failures(own)
    with pytest.raises(psycopg.Error) as caught:
        pg.execute(text.encode(), arguments)
    assert caught.value.sqlstate == sqlstate
    assert failures(own) == before + 1
    assert [found["sqlstate"] for found in of(records, USER)] == [sqlstate]


def test_each_failed_request_has_a_number_of_its_own_and_says_whose_it_is(
    pg: Connection, records: list[logging.LogRecord]
) -> None:
    for text in ("SELEC", "SELECT nothing_there", "SELECT 1 / 0", "SELEC", "SELECT 1 / 0"):
        with pytest.raises(psycopg.Error):
            pg.execute(text.encode())
    found = of(records, USER)
    assert len({each["statement"] for each in found}) == len(found) == 5
    for each in found:
        assert each["database"] == "d" and str(each["address"]).startswith("127.0.0.1:")


def test_a_commit_of_several_statements_that_fails_is_counted_and_logged(
    pg: Connection, own: ServedDatabase, records: list[logging.LogRecord]
) -> None:
    pg.execute("CREATE TABLE t (id int PRIMARY KEY)")
    before = failures(own)
    with pytest.raises(psycopg.errors.UniqueViolation):
        pg.execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert failures(own) == before + 1 and len(of(records, USER)) == 1
    assert pg.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_refused_logins_are_logged_with_the_reason_that_the_client_is_not_told(
    records: list[logging.LogRecord],
) -> None:
    given = {"postgres": Verifier.of_password("given"), "mallory\nsqlstate=00000": Verifier.of_password("x")}
    with ServedDatabase(WireConfig(passwords=Passwords(given.get, b"secret"))) as served:

        def login(user: str, password: str) -> Connection:
            return psycopg.connect(
                host=served.host, port=served.port, dbname="d", user=user, password=password, autocommit=True
            )

        with login("postgres", "given") as root:
            root.execute("CREATE ROLE plain LOGIN")
            root.execute("CREATE ROLE old LOGIN PASSWORD 'p' VALID UNTIL '2001-01-01'")
            root.execute("CREATE ROLE locked PASSWORD 'p'")
        records.clear()
        expected = {
            "postgres": ("28P01", "wrong password"),
            "nobody": ("28P01", "no such role"),
            "plain": ("28P01", "no password set"),
            "old": ("28P01", "password expired"),
            "locked": ("28000", None),
            "mallory\nsqlstate=00000": ("28P01", "wrong password"),
        }
        for user in expected:
            with pytest.raises(psycopg.OperationalError):
                login(user, "p")
    found = of(records, *expected)
    assert {each["user"]: (each["sqlstate"], each.get("reason")) for each in found} == expected
    assert {r.levelno for r in records if told(r).get("user") in expected} == {logging.WARNING}
    assert all(each["database"] == "d" and str(each["address"]).startswith("127.0.0.1:") for each in found)


@pytest.mark.parametrize("json_lines", [False, True])
def test_what_clients_call_themselves_cannot_look_like_another_field(*, json_lines: bool) -> None:
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    try:
        configure_log(stream, json_lines=json_lines)
        fields = {"user": "x sqlstate=00000\nINFO", "database": "d" * 10_000, "sqlstate": "28P01"}
        logging.getLogger("eddyline.pgwire").warning("refused", extra={"told": fields})
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    (line,) = stream.getvalue().splitlines()
    if json_lines:
        assert json.loads(line)["user"] == "x sqlstate=00000\nINFO"
    else:
        assert 'user="x sqlstate=00000\\nINFO"' in line and len(line) < 300
        assert line.endswith("sqlstate=28P01")
