"""Values stored in columns whose types have modifiers are cut, rounded, padded or refused as PostgreSQL 15 does."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


def test_times_are_rounded_to_their_digits_however_they_come(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, a timestamp(0), b time(1))")
    db.execute("INSERT INTO t VALUES (1, '2020-01-01 00:00:00.5', '10:00:00.55')")
    db.execute("INSERT INTO t SELECT 2, timestamp '1999-12-31 23:59:59.5', time '23:59:59.99'")
    db.execute("INSERT INTO t VALUES ($1, $2, $3)", [3, "2020-01-01 00:00:00.4", "10:00:00.05"])
    db.append("t", pa.table({"id": [4], "a": [datetime.datetime(2020, 1, 1, 0, 0, 0, 600000)]}))
    db.execute("UPDATE t SET b = time '01:02:03.44' WHERE id = 4")
    assert db.execute("SELECT id, a::text, b::text FROM t ORDER BY id").fetchall() == [
        (1, "2020-01-01 00:00:01", "10:00:00.6"),
        (2, "1999-12-31 23:59:59", "24:00:00"),
        (3, "2020-01-01 00:00:00", "10:00:00.1"),
        (4, "2020-01-01 00:00:01", "01:02:03.4"),
    ]


def test_a_scale_above_the_precision_leaves_no_room_for_hundredths(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (x numeric(2, 4))")
    db.execute("INSERT INTO t VALUES (0.005), (0.0099), ('0.00004')")
    for text in ("0.01", "'1'", "-0.00995"):
        with pytest.raises(eddyline.Error) as caught:
            db.execute(f"INSERT INTO t VALUES ({text})")
        assert (caught.value.sqlstate, caught.value.args[0]) == ("22003", "numeric field overflow")
    rows = db.execute("SELECT x::text FROM t ORDER BY x").fetchall()
    assert rows == [("0.0000",), ("0.0050",), ("0.0099",)]
    assert db.execute("SELECT x FROM t WHERE x > 0.008").fetchall() == [(Decimal("0.0099"),)]
    assert db.execute("SELECT x FROM t").arrow().num_rows == 3


def test_blanks_of_a_bpchar_are_shown_and_not_compared_in_a_maintained_view(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, c char(3), d char(5))")
    db.execute("CREATE VIEW v AS SELECT coalesce(c, d) AS k, count(*) AS n FROM t GROUP BY coalesce(c, d)")
    db.execute("CREATE INDEX ON v (k)")
    db.execute("INSERT INTO t VALUES (1, 'a', NULL), (2, NULL, 'a'), (3, NULL, 'long'), (4, NULL, 'b')")
    assert sorted(db.execute("SELECT trim(k), n FROM v").fetchall()) == [("a", 2), ("b", 1), ("long", 1)]
    assert db.execute("SELECT k, n FROM v WHERE k = 'b'").fetchall() == [("b    ", 1)]
    db.execute("DELETE FROM t WHERE id = 1")
    assert db.execute("SELECT n FROM v WHERE k = 'a '").fetchall() == [(1,)]
    db.execute("INSERT INTO t VALUES (5, 'a', NULL)")
    assert db.execute("SELECT n FROM v WHERE k = 'a'").fetchall() == [(2,)]


def test_a_literal_beside_a_short_text_column_may_be_longer(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (v varchar(3), c char(3))")
    db.execute("INSERT INTO t VALUES ('abc', 'abc'), (NULL, NULL)")
    found = db.execute("SELECT coalesce(v, 'missing'), coalesce(c, 'missing') FROM t ORDER BY v").fetchall()
    assert found == [("abc", "abc"), ("missing", "missing")]
    assert db.execute("SELECT count(*) FROM t WHERE c IN ('abc', 'longer') OR v IN ('longer')").fetchall() == [(1,)]
