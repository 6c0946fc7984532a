"""EXPLAIN ANALYZE of reads, in both layouts: who answered, at which time, and where the time went."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest

import eddyline
from eddyline.compute.operators.arrange import ArrangeOperator
from eddyline.compute.peek import PeekTask
from eddyline.protocol.read_costs import PHASES
from tests.waiting import wait_until

_NAMES = ("Queue", "Wait for publication", "Wait for seal", "Dataflow", "Walk", "Finish")


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        connection.execute("CREATE INDEX tb ON t (b)")
        connection.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
        connection.wait_hydrated("tb")
        connection.execute("SELECT count(*) FROM t WHERE b = 1")
        yield connection


def runtime(db: eddyline.Connection) -> str:
    return db._engine.default.reader or "solo"


def analyze(db: eddyline.Connection, query: str, options: str = "ANALYZE") -> dict[str, str]:
    """The lines behind the plan, by their names; ``plan`` is what stands before."""
    lines = [row[0] for row in db.execute(f"EXPLAIN ({options}) {query}").fetchall()]
    start = next(i for i, line in enumerate(lines) if line.startswith("Time: "))
    found = {"plan": "\n".join(lines[:start])}
    for line in lines[start:]:
        name, _, value = line.partition(": ")
        found[name] = value
    return found


def ms(found: dict[str, str], name: str) -> float:
    match = re.fullmatch(r"(\d+\.\d{3}) ms", found[name])
    assert match is not None, found
    return float(match[1])


@pytest.mark.parametrize(
    ("query", "rows", "lane"),
    [
        ("SELECT * FROM t WHERE b = 1", 2, "caller"),
        ("SELECT * FROM t WHERE b > 0 ORDER BY a LIMIT 2", 2, "heavy"),
        ("SELECT count(*) FROM t x JOIN t y USING (b)", 1, "heavy"),
    ],
)
def test_a_read_says_who_answered_it_and_when(db: eddyline.Connection, query: str, rows: int, lane: str) -> None:
    found = analyze(db, query)
    plain = "\n".join(row[0] for row in db.execute(f"EXPLAIN {query}").fetchall())
    assert found["plan"] == plain
    expected = "caller" if plain.startswith("Fast path") else lane
    assert found["Runtime"] == f"{runtime(db)}, lane: {expected}"
    assert found["Rows"] == str(rows)
    match = re.fullmatch(r"(\d+) \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00\), strict serializable", found["Time"])
    assert match is not None
    assert int(match[1]) == db.execute(query).time
    phases = sum(ms(found, name) for name in _NAMES)
    assert phases <= ms(found, "Execution Time") + 0.01
    assert ms(found, "Planning Time") > 0


def test_phases_have_a_line_each() -> None:
    assert len(_NAMES) == len(PHASES)


def test_reads_that_need_no_runtime(db: eddyline.Connection) -> None:
    for query in ("SELECT 1", "SELECT * FROM t WHERE a = 2"):
        assert analyze(db, query)["Runtime"] == "none, lane: caller"


def test_options(db: eddyline.Connection) -> None:
    query = "SELECT * FROM t WHERE b = 1"
    assert "Walk" not in analyze(db, query, "ANALYZE, TIMING off")
    assert "Execution Time" not in analyze(db, query, "ANALYZE, SUMMARY false, FORMAT text")
    assert db.execute("EXPLAIN (ANALYZE off) " + query).fetchall() == db.execute("EXPLAIN " + query).fetchall()


def test_parameters_isolation_and_as_of(db: eddyline.Connection) -> None:
    [*_, last] = db.execute("EXPLAIN ANALYZE SELECT * FROM t WHERE b = $1", [1]).fetchall()
    assert last[0].startswith("Execution Time")
    at = db.execute("INSERT INTO t VALUES (4, 4)").time
    assert analyze(db, f"SELECT count(*) FROM t AS OF {at}")["Time"].endswith(", as of")
    db.execute("SET transaction_isolation = 'serializable'")
    assert analyze(db, "SELECT * FROM t WHERE b = 1")["Time"].endswith(", serializable")


def test_a_read_that_fails_fails(db: eddyline.Connection) -> None:
    with pytest.raises(eddyline.DataError):
        db.execute("EXPLAIN ANALYZE SELECT 1 / (b - 1) FROM t")
    db.execute("SET max_result_size = '8B'")
    with pytest.raises(eddyline.OperationalError):
        db.execute("EXPLAIN ANALYZE SELECT * FROM t x, t y")


def test_waiting_is_told_apart_from_working(db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index seals late; then a slice of the walk is slow."""
    held, let_go = ArrangeOperator.step, threading.Event()
    monkeypatch.setattr(ArrangeOperator, "step", lambda self: let_go.is_set() and held(self))
    taken = PeekTask._take

    def slow(self: PeekTask, batch: object) -> None:
        time.sleep(0.1)
        taken(self, batch)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(PeekTask, "_take", slow)
    db.execute("INSERT INTO t VALUES (5, 1)")
    other = db.session()

    peeks = db._engine._control.controller._peeks

    def go_on() -> None:
        wait_until(lambda: len(peeks), "somebody asks")
        time.sleep(0.4)
        let_go.set()
        other.execute("INSERT INTO t VALUES (6, 2)")

    going_on = threading.Thread(target=go_on)
    going_on.start()
    found = analyze(db, "SELECT * FROM t WHERE b = 1")
    going_on.join()
    assert found["Rows"] == "3"
    assert found["Runtime"] == f"{runtime(db)}, lane: lookup"
    assert ms(found, "Wait for seal") >= 100
    assert ms(found, "Walk") >= 90
    assert ms(found, "Wait for seal") + ms(found, "Walk") <= ms(found, "Execution Time")
    assert ms(found, "Dataflow") == 0
