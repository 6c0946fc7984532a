"""SET TimeZone: what a session reads, casts and keeps in a zone of its own is what PostgreSQL makes of it there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import psycopg
import pytest

import eddyline
from eddyline.testing.cells import text_rows
from eddyline.testing.postgres import PostgresServer

_Pair = tuple[eddyline.Connection, psycopg.Connection[tuple[object, ...]]]
_SETUP = (
    "CREATE {} TABLE z (id int, at timestamptz, local timestamp, d date)",
    "SET TimeZone = 'America/New_York'",
    "INSERT INTO z VALUES (1, '2024-03-10 01:30', '2024-03-10 01:30', '2024-03-10')",
    "INSERT INTO z VALUES (2, '2024-03-10 12:00+00', '2024-07-01 00:00', '2024-12-31'), (3, NULL, NULL, NULL)",
    "INSERT INTO z SELECT id + 3, local, at, at FROM z",
)
_EXPRESSIONS = (
    "at < local", "d >= at", "at || ''", "at::text",
    "at::timestamp", "at::date", "at::time", "local::timestamptz = at", "d::timestamptz::text",
    "at AT TIME ZONE 'UTC'", "at = '2024-03-10 08:00'", "'2024-01-01'::timestamptz::text", "local::timestamptz::text",
    "at - timestamptz '2024-01-01'", "date_trunc('day', at AT TIME ZONE 'Europe/Paris')", "coalesce(at, local)::text",
    "at IN ('2024-03-10 01:30', '2024-03-10 12:00+00')", "greatest(at, '2024-06-01')::text",
    "CASE WHEN id = 1 THEN at ELSE local END::text", "extract(hour from at AT TIME ZONE 'America/New_York')",
)  # fmt: skip
_REFUSED = (
    "at + interval '1 day'", "date_trunc('day', at)", "extract(hour from at)", "concat(at)",
    "to_char(at, 'HH24')", "make_timestamptz(2024, 1, 1, 0, 0, 0)",
)  # fmt: skip


@pytest.fixture(scope="module")
def sessions(postgres: PostgresServer) -> Iterator[_Pair]:
    with eddyline.connect() as own, postgres.connect() as other:
        for statement in _SETUP:
            own.execute(statement.format(""))
            other.execute(statement.format("TEMP"))
        yield own, other


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_expressions_in_another_zone(sessions: _Pair, expression: str) -> None:
    query = f"SELECT ({expression})::text FROM z ORDER BY id"
    own, other = sessions
    assert text_rows(own.execute(query)) == other.execute(query).fetchall()


@pytest.mark.parametrize("expression", _REFUSED)
def test_what_depends_on_the_zone_otherwise_is_refused(sessions: _Pair, expression: str) -> None:
    with pytest.raises(eddyline.Error) as caught:
        sessions[0].execute(f"SELECT {expression} FROM z")
    assert caught.value.sqlstate in ("0A000", "42883")


def test_parameters_and_prepared_statements_follow_the_zone(sessions: _Pair) -> None:
    own, _ = sessions
    noon = dt.datetime(2024, 7, 1, 12)
    expected = dt.datetime(2024, 7, 1, 16, tzinfo=dt.UTC)
    for value in (noon, "2024-07-01 12:00", expected):
        assert own.execute("SELECT $1::timestamptz", [value]).fetchone() == (expected,)
    with own.session() as session:
        session.execute("PREPARE q AS SELECT '2024-07-01 12:00'::timestamptz, $1::timestamptz")
        assert session.execute("EXECUTE q('2024-07-01 12:00')").fetchone() == (noon.replace(tzinfo=dt.UTC),) * 2
        session.execute("SET TimeZone = 'America/New_York'")
        assert session.execute("EXECUTE q('2024-07-01 12:00')").fetchone() == (expected, expected)
        session.execute("RESET TimeZone")
        assert session.execute("EXECUTE q('2024-07-01 12:00')").fetchone() == (noon.replace(tzinfo=dt.UTC),) * 2


def test_a_view_keeps_the_zone_it_was_made_in(sessions: _Pair) -> None:
    own, _ = sessions
    own.execute("CREATE VIEW days AS SELECT id, at::date AS day FROM z")
    own.execute("CREATE DEFAULT INDEX ON days")
    with own.session() as utc:
        assert utc.execute("SHOW TimeZone").fetchone() == ("UTC",)
        utc.execute("INSERT INTO z VALUES (9, '2024-05-02 03:00', NULL, NULL)")
        assert utc.execute("SELECT day FROM days WHERE id = 9").fetchone() == (dt.date(2024, 5, 1),)
        utc.execute("DELETE FROM z WHERE id = 9")


def test_zones_that_are_none_are_refused(sessions: _Pair) -> None:
    with pytest.raises(eddyline.DataError) as caught:
        sessions[0].execute("SET TimeZone = 'Mars/Olympus'")
    assert caught.value.sqlstate == "22023"
