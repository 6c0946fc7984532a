"""No step of the heaviest work keeps a thread that wants to run for a moment from running.

A call that holds the GIL for as long as it works on a million rows would show as a hold of its whole length: tens of
milliseconds to seconds.  What is measured is told by the messages; docs/limits.md says what is longer than a
millisecond, and why.
"""

from __future__ import annotations

import gc
import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import eddyline
from eddyline.testing.heartbeat import Heartbeat

_ROWS = 1_000_000
#: ms for which any call may hold the GIL, and for which all but one beat in a hundred may have been held up
_WORST_MS = 10.0
_USUAL_MS = 5.0
#: of the text of an INSERT with 50,000 rows: the grammar decodes its tokens, and its tree, in one call each
_PARSED_MS = 60.0
_ATTEMPTS = 4


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(_ROWS),
            "k": random.integers(0, 1000, _ROWS, dtype=np.int32),
            "v": random.integers(0, 10**6, _ROWS),
            "s": pa.array([f"name {i % 5000}" for i in range(_ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def db(rows: pa.Table) -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.execute("CREATE TABLE big (id bigint PRIMARY KEY, k int, v bigint, s text)")
        connection.append("big", rows)
        yield connection


def assert_within_budget(
    work: Callable[[], object], prepare: Callable[[], object] = lambda: None, worst_ms: float = _WORST_MS
) -> None:
    """A machine that stalls everybody for a moment may spoil an attempt, but hardly each of four."""
    seen = []
    for _ in range(_ATTEMPTS):
        prepare()
        with Heartbeat() as heart:
            work()
        if heart.held.worst_ms <= worst_ms and heart.held.usual_ms <= _USUAL_MS:
            return
        seen.append(str(heart.held))
    pytest.fail("; ".join(seen))


def test_a_call_that_holds_the_gil_is_noticed() -> None:
    with Heartbeat() as heart:
        assert sum(range(10_000_000)) > 0  # one C call
    assert heart.held.worst_ms > 10
    assert heart.held.longest_ms[0][1] == threading.current_thread().name


def test_a_call_that_computes_without_the_gil_is_none_that_holds_it() -> None:
    data = bytes(30_000_000)
    seen = []
    for _ in range(_ATTEMPTS):
        with Heartbeat() as heart:
            hashlib.sha256(data)
        seen.append(heart.held.worst_ms)
        if seen[-1] < 5:
            return
    pytest.fail(f"held for {seen} ms")


def test_a_full_collection_is_counted_apart() -> None:
    visited = [[n] for n in range(500_000)]  # whatever others have set aside
    with Heartbeat() as heart:
        gc.collect()
    assert len(visited) == 500_000
    assert len(heart.held.collections_ms) == 1
    assert heart.held.collections_ms[0] > 5
    assert heart.held.worst_ms < heart.held.collections_ms[0]


def test_append(db: eddyline.Connection, rows: pa.Table) -> None:
    def prepare() -> None:
        db.execute("DROP TABLE IF EXISTS fresh")
        db.execute("CREATE TABLE fresh (id bigint PRIMARY KEY, k int, v bigint, s text)")

    assert_within_budget(lambda: db.append("fresh", rows), prepare)


def test_hydration(db: eddyline.Connection) -> None:
    def prepare() -> None:
        db.execute("DROP VIEW IF EXISTS grouped CASCADE")
        db.execute(
            "CREATE VIEW grouped AS SELECT k, count(*) AS n, sum(v) AS total, max(s) AS last, count(DISTINCT s) AS d "
            "FROM big GROUP BY k"
        )

    def work() -> None:
        db.execute("CREATE INDEX ON grouped (k)")
        db.wait_hydrated("grouped", timeout=60)

    assert_within_budget(work, prepare)


def test_rows_as_python_objects(db: eddyline.Connection) -> None:
    kept: list[list[tuple[object, ...]]] = []  # a list of half a million rows is given back in one call: the program's
    assert_within_budget(lambda: kept.append(db.execute("SELECT * FROM big WHERE k < 500").fetchall()), kept.clear)


def test_rows_as_arrow(db: eddyline.Connection) -> None:
    assert_within_budget(lambda: db.execute("SELECT * FROM big").arrow())


def test_sorting_a_table(db: eddyline.Connection) -> None:
    assert_within_budget(lambda: db.execute("SELECT * FROM big ORDER BY s, v DESC LIMIT 10").fetchall())


def test_merging_large_runs(db: eddyline.Connection, rows: pa.Table) -> None:
    def prepare() -> None:
        db.execute("DROP TABLE IF EXISTS pieces")
        db.execute("CREATE TABLE pieces (id bigint, k int, v bigint, s text)")
        db.execute("CREATE INDEX ON pieces (k)")

    def work() -> None:
        for start in range(0, _ROWS, _ROWS // 16):
            db.append("pieces", rows.slice(start, _ROWS // 16))
        db.execute("SELECT * FROM pieces WHERE k = 1").fetchall()

    assert_within_budget(work, prepare)


def test_reading_a_csv_file(db: eddyline.Connection, rows: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pa.csv.write_csv(rows, path)

    def prepare() -> None:
        db.execute("DROP TABLE IF EXISTS filed")
        db.execute("CREATE TABLE filed (id bigint, k int, v bigint, s text)")

    assert_within_budget(lambda: db.append("filed", path), prepare)
    assert_within_budget(lambda: db.execute(f"COPY filed FROM '{path}' (FORMAT csv, HEADER)"), prepare)


def test_a_long_insert(db: eddyline.Connection) -> None:
    db.execute("CREATE TABLE written (id int, s text, n numeric(10,2))")
    text = "INSERT INTO written VALUES " + ", ".join(f"({i}, 'text {i}', {i}.25)" for i in range(50_000))
    assert_within_budget(lambda: db.execute(text), worst_ms=_PARSED_MS)


def test_updates_and_deletes_of_many_rows(db: eddyline.Connection) -> None:
    assert_within_budget(lambda: db.execute("UPDATE big SET v = v + 1 WHERE k < 200"))
    ranges = iter(range(0, 1000, 100))  # what an attempt has deleted is not there for the next one
    assert_within_budget(lambda: db.execute("DELETE FROM big WHERE k / 100 = $1", (next(ranges) // 100,)))
