"""What a statement costs does not depend on how much else there is: counted in calls, at two sizes of the catalog."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import eddyline


@contextmanager
def _database(tables: int) -> Iterator[eddyline.Connection]:
    with eddyline.connect() as db:
        for i in range(tables):
            db.execute(f"CREATE TABLE t{i} (k bigint PRIMARY KEY, v bigint)")
            db.execute(f"CREATE VIEW v{i} AS SELECT v, count(*) AS n FROM t{i} GROUP BY v")
            db.execute(f"CREATE INDEX v{i}_i ON v{i} (v)")
        yield db


def _transaction(db: eddyline.Connection, number: int) -> None:
    db.execute("BEGIN")
    db.execute("SELECT v FROM t0 WHERE k = 1").fetchall()
    db.execute("COMMIT")


def _insert(db: eddyline.Connection, number: int) -> None:
    db.execute("INSERT INTO t1 VALUES ($1, 2)", (number,))


def _update(db: eddyline.Connection, number: int) -> None:
    db.execute("UPDATE t1 SET v = v + 1 WHERE k = 1")


def _lookup(db: eddyline.Connection, number: int) -> None:
    db.execute("SELECT n FROM v0 WHERE v = $1", (5,)).fetchall()


def _ad_hoc(db: eddyline.Connection, number: int) -> None:
    db.execute("SELECT count(*) FROM t0").fetchall()


def _calls(db: eddyline.Connection, statement: Callable[[eddyline.Connection, int], None]) -> int:
    """Of Python and C functions on this thread: the fewest of a few runs, with warm caches and nothing waited for."""
    counts = []
    for number in range(6):
        count = 0

        def note(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            statement(db, number)
        finally:
            sys.setprofile(None)
        counts.append(count)
    return min(counts)


@pytest.mark.parametrize("statement", [_transaction, _insert, _update, _lookup, _ad_hoc])
def test_calls_do_not_follow_the_catalog(statement: Callable[[eddyline.Connection, int], None]) -> None:
    with _database(3) as db:
        few = _calls(db, statement)
    with _database(60) as db:
        many = _calls(db, statement)
    assert many <= few + 40, "57 more tables and views, and at most a call for some of them"
