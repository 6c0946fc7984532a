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
    found = record.__dict__["told"]
    assert isinstance(found, dict)
    return found


def failures(pg: psycopg.Connection[tuple[object, ...]], served: ServedDatabase) -> int:
    """Failed statements so far, this one excluded."""
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
    pg: psycopg.Connection[tuple[object, ...]],
    served: ServedDatabase,
    records: list[logging.LogRecord],
    text: str,
    arguments: list[object] | None,
    sqlstate: str,
) -> None:
    before = failures(pg, served)
    with pytest.raises(psycopg.Error) as caught:
        pg.execute(text.encode(), arguments)
    assert caught.value.sqlstate == sqlstate
    assert failures(pg, served) == before + 1
    assert [told(r)["sqlstate"] for r in records] == [sqlstate]


def test_each_failed_request_has_a_number_of_its_own_and_says_whose_it_is(
    pg: psycopg.Connection[tuple[object, ...]], records: list[logging.LogRecord]
) -> None:
    for text in ("SELEC", "SELECT nothing_there", "SELECT 1 / 0", "SELEC", "SELECT 1 / 0"):
        with pytest.raises(psycopg.Error):
            pg.execute(text.encode())
    assert len({told(r)["statement"] for r in records}) == len(records) == 5
    for record in records:
        assert (told(record)["user"], told(record)["database"]) == ("postgres", "postgres")
        assert str(told(record)["address"]).startswith("127.0.0.1:")


def test_a_commit_of_several_statements_that_fails_is_counted_and_logged(
    pg: psycopg.Connection[tuple[object, ...]], served: ServedDatabase, records: list[logging.LogRecord]
) -> None:
    pg.execute("CREATE TABLE t (id int PRIMARY KEY)")
    before = failures(pg, served)
    with pytest.raises(psycopg.errors.UniqueViolation):
        pg.execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert failures(pg, served) == before + 1 and len(records) == 1
    assert pg.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_refused_logins_are_logged_with_the_reason_that_the_client_is_not_told(
    records: list[logging.LogRecord],
) -> None:
    given = {"postgres": Verifier.of_password("given"), "mallory\nsqlstate=00000": Verifier.of_password("x")}
    with ServedDatabase(WireConfig(passwords=Passwords(given.get, b"secret"))) as served:

        def login(user: str, password: str) -> psycopg.Connection[tuple[object, ...]]:
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
    assert {told(r)["user"]: (told(r)["sqlstate"], told(r).get("reason")) for r in records} == expected
    assert {r.levelno for r in records} == {logging.WARNING}
    assert all(told(r)["database"] == "d" and str(told(r)["address"]).startswith("127.0.0.1:") for r in records)


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
