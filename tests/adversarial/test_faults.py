"""An exception inside the replica: waiting statements fail with 58000, and after a rebuild every answer is right."""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections import Counter
from typing import Any

import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.compute.exports import MaterializedViewSink
from eddyline.compute.imports import ImportIndexOperator, ImportSourceOperator
from eddyline.compute.operators.arrange import ArrangeOperator
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.mfp import MfpOperator
from eddyline.compute.operators.reduce import ReduceOperator

READS = ("SELECT s - 1 FROM shifted", "SELECT s FROM stored", "SELECT sum(n) FROM pairs")


def database(workers: int) -> eddyline.Connection:
    db = eddyline.connect(workers=workers)
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    db.execute("CREATE VIEW pairs AS SELECT x.b, count(*) AS n FROM t x JOIN t y ON x.b = y.b GROUP BY x.b")
    db.execute("CREATE INDEX ON pairs (b)")
    db.execute("CREATE MATERIALIZED VIEW stored AS SELECT sum(n) AS s FROM pairs")
    db.execute("CREATE VIEW shifted AS SELECT s + 1 AS s FROM stored")
    db.execute("CREATE INDEX ON shifted (s)")
    db.append("t", [{"a": i, "b": i % 7} for i in range(300)])
    return db


def answer(db: eddyline.Connection, query: str) -> list[tuple[Any, ...]]:
    """Tried again while the replica is lost."""
    for _ in range(50):
        try:
            return db.execute(query).fetchall()
        except eddyline.OperationalError as error:
            assert error.sqlstate == "58000"
            time.sleep(0.02)
    raise AssertionError("the replica does not come back")


def test_a_replica_that_the_system_refuses_to_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    db = database(1)
    step, start = ReduceOperator.step, Engine._start_replica
    faults: list[Exception] = [OSError(errno.EMFILE, "too many open files"), RuntimeError("can't start new thread")]
    failures = iter([RuntimeError("injected")])

    def failing(self: ReduceOperator) -> bool:
        for error in failures:
            raise error
        return bool(step(self))

    def refused(self: Engine) -> Any:
        if faults:
            raise faults.pop(0)
        return start(self)

    try:
        before = answer(db, READS[0])
        monkeypatch.setattr(Engine, "_start_replica", refused)
        monkeypatch.setattr(ReduceOperator, "step", failing)
        # Were it not tried again, the read would wait for ever.
        db.execute("SET statement_timeout = '30s'")
        db.append("t", [{"a": 1000, "b": 3}])
        db.delete("t", [{"a": 1000}])
        assert answer(db, READS[0]) == before
        assert not faults
        assert "too many open files" in caplog.text
        assert "can't start new thread" in caplog.text
    finally:
        db.close()


@pytest.mark.parametrize(("interactive", "started"), [*((True, n) for n in range(6)), *((False, n) for n in range(2))])
def test_of_a_database_that_gets_only_some_of_its_threads_none_goes_on(
    interactive: bool, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, runtimes = threading.Thread.start, ("maint:", "inter:", "solo:")
    left = itertools.count(started, -1)
    before = set(threading.enumerate())

    def refused(self: threading.Thread) -> None:
        if self.name.startswith(runtimes) and next(left) <= 0:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Engine(workers=2, interactive=interactive)
    assert [t for t in set(threading.enumerate()) - before if t.name.startswith(runtimes)] == []


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "operator",
    [
        ReduceOperator, JoinOperator, MaterializedViewSink, MfpOperator, ImportSourceOperator, ArrangeOperator,
        ImportIndexOperator,
    ],
)  # fmt: skip
def test_a_failure_in_an_operator_is_healed(operator: Any, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(workers)
    step, calls = operator.step, itertools.count()

    def failing(self: Any) -> bool:
        if next(calls) == 0:
            raise RuntimeError("injected")
        return bool(step(self))

    try:
        answer(db, READS[0])
        monkeypatch.setattr(operator, "step", failing)
        db.append("t", [{"a": 1000, "b": 3}])
        answer(db, READS[0])
        db.append("t", [{"a": 1001, "b": 3}])
        db.delete("t", [{"a": 1000}, {"a": 5}])
        groups = Counter(b for (b,) in answer(db, "SELECT b FROM t"))
        assert sum(groups.values()) == 300
        for query in READS:
            assert answer(db, query) == [(sum(n * n for n in groups.values()),)]
    finally:
        db.close()
