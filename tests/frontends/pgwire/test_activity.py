"""``pg_stat_activity`` and what ends others' statements and connections, beside PostgreSQL's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase

Client = psycopg.Connection[tuple[object, ...]]
_PATIENCE_S = 30.0
ROLES = ("act_a", "act_b")


@pytest.fixture(scope="module")
def places(served: ServedDatabase, postgres: PostgresServer) -> Iterator[tuple[str, str]]:
    """Where ours and PostgreSQL's are, with the same roles."""
    found = tuple(f"host=127.0.0.1 port={port} dbname=postgres" for port in (served.port, postgres.port))
    for place in found:
        with psycopg.connect(place, user="postgres", autocommit=True) as root:
            for role in ROLES:
                root.execute(f"CREATE ROLE {role} LOGIN".encode())
    yield found[0], found[1]
    for place in found:
        with psycopg.connect(place, user="postgres", autocommit=True) as root:
            for role in ROLES:
                root.execute(f"DROP ROLE {role}".encode())


def opened(place: str, user: str = "postgres", application: str = "") -> Client:
    return psycopg.connect(place, user=user, autocommit=True, application_name=application)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


SEEN = """SELECT datname, usename, application_name, client_addr, client_hostname, client_port > 0,
    backend_start <= now(), xact_start IS NULL, query_start IS NULL, state, query, backend_type, leader_pid
    FROM pg_stat_activity WHERE pid = %s"""


def seen(by: Client, of: Client) -> tuple[object, ...] | None:
    row = by.execute(SEEN, [of.info.backend_pid]).fetchone()
    return None if row is None else (*row[:3], str(row[3]), *row[4:])


def test_a_session_is_seen_as_by_postgresql(places: tuple[str, str]) -> None:
    told = []
    for place in places:
        rows: list[object] = []
        with opened(place) as root, opened(place, application="watched") as other:
            rows.append(seen(root, other))
            other.execute("SELECT 'first'")
            rows.append(seen(root, other))
            other.execute("BEGIN")
            other.execute("SELECT 1 AS in_it")
            rows.append(seen(root, other))
            with pytest.raises(psycopg.Error):
                other.execute("SELECT nothing")
            rows.append(seen(root, other))
            other.execute("ROLLBACK")
            rows.append(seen(root, other))
            other.execute("SET application_name = 'renamed'")
            rows.append(seen(root, other))
            for number in range(4):
                other.execute("SELECT %s + 1", [number], prepare=True)
            rows.append(seen(root, other))
            other.execute("SELECT '" + "é" * 2000 + "'")
            rows.append(seen(root, other))
            own = "SELECT state, query FROM pg_stat_activity WHERE pid = pg_backend_pid()"
            rows.append(root.execute(own).fetchall())
            assert root.execute("SELECT pg_backend_pid()").fetchone() == (root.info.backend_pid,)
        told.append(rows)
    assert told[0] == told[1]


def test_what_others_do_is_hidden_from_who_has_not_their_rights(places: tuple[str, str]) -> None:
    told = []
    for place in places:
        rows: list[object] = []
        with opened(place) as root, opened(place, "act_a") as a, opened(place, "act_b") as b:
            b.execute("SELECT 'of b'")
            root.execute("SELECT 'of root'")
            rows += [seen(a, b), seen(a, root), seen(root, b), seen(b, b)]
            root.execute("GRANT act_b TO act_a")
            rows.append(seen(a, b))
            root.execute("REVOKE act_b FROM act_a")
            rows.append(seen(a, b))
        told.append(rows)
    assert told[0] == told[1]


def test_a_password_is_not_shown(places: tuple[str, str]) -> None:
    with opened(places[0]) as root, opened(places[0]) as other:
        other.execute("ALTER ROLE act_a PASSWORD 'very secret'")
        row = root.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [other.info.backend_pid]).fetchone()
        assert row == ("<a statement with a password>",)
        other.execute("ALTER ROLE act_a PASSWORD NULL")


def test_who_may_end_what(places: tuple[str, str]) -> None:
    told = []
    for place in places:
        rows: list[object] = []
        with opened(place) as root, opened(place, "act_a") as a, opened(place, "act_b") as b:
            for function in ("pg_cancel_backend", "pg_terminate_backend"):
                for target in (root, b):
                    with pytest.raises(psycopg.Error) as caught:
                        a.execute(f"SELECT {function}(%s)".encode(), [target.info.backend_pid])
                    rows.append((caught.value.sqlstate, caught.value.diag.message_primary))
                said: list[tuple[str | None, str | None]] = []
                a.add_notice_handler(lambda d, s=said: s.append((d.severity, d.message_primary)))  # type: ignore[misc]  # a default
                rows.append(a.execute(f"SELECT {function}(2147483647) AS done".encode()).fetchall())
                rows.append(a.execute(f"SELECT {function}(NULL)".encode()).fetchall())
                rows.append(said[:1])
            with pytest.raises(psycopg.Error) as caught:
                a.execute("SELECT pg_terminate_backend(1, -5)")
            rows.append((caught.value.sqlstate, caught.value.diag.message_primary))
            root.execute("GRANT act_b TO act_a")
            rows.append(a.execute("SELECT pg_cancel_backend(%s)", [b.info.backend_pid]).fetchall())
            root.execute("REVOKE act_b FROM act_a")
            assert b.execute("SELECT 1").fetchall() == [(1,)]  # it was idle
        told.append(rows)
    assert told[0] == told[1]


def test_a_running_statement_is_cancelled_and_its_session_goes_on(served: ServedDatabase, schema: str) -> None:
    place = f"host=127.0.0.1 port={served.port} dbname=postgres"
    with opened(place) as root, opened(place, application="runs") as other:
        root.execute(f"CREATE TABLE {schema}.t (a int)".encode())
        failures: list[psycopg.Error] = []

        def subscribe() -> None:
            try:
                with other.cursor() as cursor, cursor.copy(f"COPY (SUBSCRIBE {schema}.t) TO STDOUT".encode()) as copy:
                    for _ in copy:
                        pass
            except psycopg.Error as error:
                failures.append(error)

        thread = threading.Thread(target=subscribe)
        thread.start()
        asked = "SELECT state FROM pg_stat_activity WHERE application_name = 'runs' AND query LIKE 'COPY%'"
        until(lambda: root.execute(asked).fetchall() == [("active",)])
        done = root.execute(
            "SELECT pid, pg_cancel_backend(pid) AS ok FROM pg_stat_activity WHERE application_name = 'runs'"
        )
        assert [d.name for d in done.description or ()] == ["pid", "ok"]
        assert done.fetchall() == [(other.info.backend_pid, True)]
        thread.join(_PATIENCE_S)
        assert [f.sqlstate for f in failures] == ["57014"]
        assert other.execute("SELECT 1").fetchall() == [(1,)]


def test_connections_are_ended(served: ServedDatabase) -> None:
    place = f"host=127.0.0.1 port={served.port} dbname=postgres"
    with opened(place) as root:
        others = [opened(place, application="ended") for _ in range(3)]
        others[1].execute("BEGIN")
        asked = """SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
            WHERE application_name = 'ended' AND pid <> pg_backend_pid()"""
        assert root.execute(asked).fetchall() == [(True,)] * 3
        for other in others:
            with pytest.raises(psycopg.OperationalError) as caught:
                other.execute("SELECT 1")
            assert caught.value.sqlstate in ("57P01", None)
            assert other.closed
        assert root.execute(asked).fetchall() == []


def test_a_session_may_end_itself(served: ServedDatabase) -> None:
    place = f"host=127.0.0.1 port={served.port} dbname=postgres"
    with opened(place) as other, pytest.raises(psycopg.Error) as caught:
        other.execute("SELECT pg_cancel_backend(pg_backend_pid())")
    assert caught.value.sqlstate == "57014"
    other = opened(place)
    with pytest.raises(psycopg.Error):
        other.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(psycopg.OperationalError):
        other.execute("SELECT 1")
    assert other.closed


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 WHERE pg_cancel_backend(1)",
        "SELECT pg_cancel_backend(1) AND true",
        "SELECT * FROM (SELECT pg_cancel_backend(1)) s",
        "CREATE VIEW nope AS SELECT pg_cancel_backend(1)",
    ],
)
def test_what_does_something_stands_in_the_outermost_list_alone(served: ServedDatabase, query: str) -> None:
    with opened(f"host=127.0.0.1 port={served.port} dbname=postgres") as root:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            root.execute(query.encode())
        assert "outermost list" in str(caught.value.diag.message_hint)
