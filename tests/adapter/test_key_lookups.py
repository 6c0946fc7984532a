"""Rows by primary key come straight from storage: reads, updates and deletes cost the rows, not the table."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

import eddyline


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (a int, b text, v numeric, PRIMARY KEY (b, a))")
        db.execute("INSERT INTO t SELECT i, 'k' || i % 10, i FROM generate_series(1, 1000) AS g(i)")
        yield db


def plan(db: eddyline.Connection, query: str) -> str:
    return str(db.execute(f"EXPLAIN {query}").fetchall()[0][0])


def test_a_whole_key_is_looked_up_in_storage(db: eddyline.Connection) -> None:
    query = "SELECT v FROM t WHERE a = 17 AND b = 'k7'"
    assert plan(db, query) == "Fast path: lookup in the primary key of t, key ('k7', 17)"
    assert db.execute(query).fetchall() == [(Decimal(17),)]


def test_a_part_of_the_key_is_not(db: eddyline.Connection) -> None:
    assert plan(db, "SELECT v FROM t WHERE a = 17") == "One-shot dataflow"


def test_several_keys_nulls_and_values_that_the_column_cannot_hold(db: eddyline.Connection) -> None:
    rows = db.execute("SELECT a FROM t WHERE b = 'k7' AND a IN ($1, $2, $3, 7)", [7, None, 27]).fetchall()
    assert sorted(rows) == [(7,), (27,)]
    assert db.execute("SELECT a FROM t WHERE b = 'k7' AND a = 5000000000").fetchall() == []


def test_a_lookup_sees_every_acknowledged_write_and_the_past(db: eddyline.Connection) -> None:
    before = db.execute("INSERT INTO t VALUES (2000, 'x', 1)").time
    db.execute("UPDATE t SET v = v + 1 WHERE a = 2000 AND b = 'x'")
    query = "SELECT v FROM t WHERE a = 2000 AND b = 'x'"
    assert db.execute(query).fetchall() == [(Decimal(2),)]
    assert db.execute(f"{query} AS OF {before}").fetchall() == [(Decimal(1),)]
    db.execute("DELETE FROM t WHERE a = 2000 AND b = 'x'")
    assert db.execute(query).fetchall() == []


def test_own_writes_of_a_transaction_are_seen(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.execute("UPDATE t SET v = -1 WHERE a = 17 AND b = 'k7'")
    assert db.execute("SELECT v FROM t WHERE a = 17 AND b = 'k7'").fetchall() == [(Decimal(-1),)]
    db.execute("ROLLBACK")
    assert db.execute("SELECT v FROM t WHERE a = 17 AND b = 'k7'").fetchall() == [(Decimal(17),)]


def test_an_expression_that_fails_on_the_row_is_raised(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError, match="division by zero"):
        db.execute("SELECT 1 / (v - 17) FROM t WHERE a = 17 AND b = 'k7'")
