"""executemany: many rows of parameters are one insert where that is the same, and one after the other where not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import eddyline


@pytest.fixture(autouse=True)
def table(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, name text DEFAULT 'none', n numeric(8,2))")


def rows(db: eddyline.Connection) -> list[tuple[Any, ...]]:
    return db.execute("SELECT * FROM t ORDER BY id").fetchall()


@pytest.mark.parametrize(
    ("statement", "given", "expected"),
    [
        ("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", 2), (2, None, "1.5")], [(1, "a", "2.00"), (2, None, "1.50")]),
        ("INSERT INTO t (n, id) VALUES ($2, $1)", [(1, None), (2, 3.25)], [(1, "none", None), (2, "none", "3.25")]),
        ("INSERT INTO t VALUES ($1 + 1, $2 || $2, $1)", [(1, "a"), (2, "b")], [(2, "aa", "1.00"), (3, "bb", "2.00")]),
        ("INSERT INTO t (id) SELECT $1 WHERE $1 > 1", [(1,), (2,), (3,)], [(2, "none", None), (3, "none", None)]),
        ("INSERT INTO t (id) VALUES ($1), ($1 + 10)", [(1,), (2,)], [(i, "none", None) for i in (1, 2, 11, 12)]),
        (
            "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = t.name || excluded.name",
            [(1, "a"), (1, "b"), (1, "c")],
            [(1, "abc", None)],
        ),
        ("INSERT INTO t (id) SELECT count(*) + $1 FROM t", [(0,), (0,), (0,)], [(i, "none", None) for i in range(3)]),
    ],
)
def test_the_rows_are_those_of_one_statement_after_the_other(
    db: eddyline.Connection, statement: str, given: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]
) -> None:
    found = [(i, name, None if n is None else Decimal(n)) for i, name, n in expected]
    for row in given:
        db.execute(statement, row)
    assert rows(db) == found
    db.execute("DELETE FROM t")
    cursor = db.executemany(statement, given)
    assert rows(db) == found
    if "CONFLICT" not in statement:
        assert cursor.rowcount == len(expected)


@pytest.mark.parametrize(
    ("values", "bad", "sqlstate"),
    [
        ("(?, ?, ?)", (0, "again", None), "23505"),
        ("(?, ?, ?)", (4_999, "again", None), "23505"),
        ("(?, ?, ?)", (None, "x", None), "23502"),
        ("(?, ?, ?)", (9_000, "x", 10**9), "22003"),
        ("(?, ?, ?)", (9_000, "x"), "08P01"),
        ("(?, ?, ?)", ("one", "x", None), "22P02"),
        ("(?, ?, 1 / ?)", (9_000, "x", 0), "22012"),
    ],
)
def test_one_bad_row_refuses_all(db: eddyline.Connection, values: str, bad: tuple[Any, ...], sqlstate: str) -> None:
    db.execute("INSERT INTO t VALUES (4999)")
    with pytest.raises(eddyline.Error) as caught:
        db.executemany(f"INSERT INTO t VALUES {values}", [*((i, "x", 1) for i in range(3_000)), bad])
    assert caught.value.sqlstate == sqlstate
    assert (len(rows(db)), db.in_transaction) == (1, False)


def test_in_a_transaction_a_bad_row_fails_the_transaction(db: eddyline.Connection) -> None:
    db.execute("BEGIN")
    db.executemany("INSERT INTO t (id) VALUES (?)", ((i,) for i in range(5)))
    assert len(rows(db)) == 5
    with pytest.raises(eddyline.IntegrityError):
        db.executemany("INSERT INTO t (id) VALUES (?)", [(7,), (0,)])
    with pytest.raises(eddyline.Error) as caught:
        db.executemany("INSERT INTO t (id) VALUES (?)", [(7,), (8,)])
    assert caught.value.sqlstate == "25P02"
    db.rollback()
    assert rows(db) == []


def test_many_rows_are_one_commit(db: eddyline.Connection) -> None:
    feed = db.subscribe("t", snapshot=False)
    cursor = db.executemany("INSERT INTO t (id) VALUES (?)", ((i,) for i in range(4_500)))
    assert cursor.rowcount == 4_500
    change = feed.next(30)
    assert change is not None
    assert (change.time, change.updates.num_rows) == (cursor.time, 4_500)
    feed.close()
