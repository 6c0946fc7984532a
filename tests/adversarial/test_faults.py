"""An exception inside the replica: waiting statements fail with 58000, and after a rebuild every answer is right."""

from __future__ import annotations

import errno
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.adapter.replica import Client, Replica
from eddyline.compute.exports import MaterializedViewSink
from eddyline.compute.imports import ImportIndexOperator, ImportSourceOperator
from eddyline.compute.operators.arrange import ArrangeOperator
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.mfp import MfpOperator
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.messages import Command
from tests.waiting import wait_until

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

    def answered() -> list[list[tuple[Any, ...]]]:
        try:
            return [db.execute(query).fetchall()]
        except eddyline.OperationalError as error:
            assert error.sqlstate == "58000"
            return []

    return wait_until(answered, "the replica comes back")[0]


def test_a_replica_that_the_system_refuses_to_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    db = database(1)
    step, start = ReduceOperator.step, Replica._made
    faults: list[Exception] = [OSError(errno.EMFILE, "too many open files"), RuntimeError("can't start new thread")]
    failures = iter([RuntimeError("injected")])

    def failing(self: ReduceOperator) -> bool:
        for error in failures:
            raise error
        return bool(step(self))

    def refused(self: Replica) -> Client:
        if faults:
            raise faults.pop(0)
        return start(self)

    try:
        before = answer(db, READS[0])
        monkeypatch.setattr(Replica, "_made", refused)
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


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next step of a grouping ends the replica."""
    step, failures = ReduceOperator.step, iter([RuntimeError("injected")])

    def failing(self: ReduceOperator) -> bool:
        for error in failures:
            raise error
        return bool(step(self))

    monkeypatch.setattr(ReduceOperator, "step", failing)


def lost(db: eddyline.Connection) -> None:
    """Waits until the database knows that its replica has failed."""
    wait_until(lambda: db._engine.first_replica.present.failed, "it is known that the replica has failed")


def refusal(statement: Callable[[], object]) -> str:
    with pytest.raises(eddyline.OperationalError) as refused:
        statement()
    assert refused.value.sqlstate == "58000"
    assert refused.value.hint
    return refused.value.message


@pytest.mark.parametrize("interactive", [True, False], ids=["two runtimes", "solo"])
def test_without_a_thread_that_rebuilds_the_replica_statements_say_so_until_there_is_one(
    interactive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, scarce = threading.Thread.start, threading.Event()
    refusals: list[str] = []

    def limited(self: threading.Thread) -> None:
        if self.name == "eddyline-rebuild" and scarce.is_set():
            refusals.append(self.name)
            raise RuntimeError("can't start new thread")
        start(self)

    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE t (a int, b int)")
        db.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        db.execute("CREATE INDEX vi ON v (b)")
        db.append("t", [{"a": 1, "b": 1}])
        assert answer(db, "SELECT n FROM v") == [(1,)]
        monkeypatch.setattr(threading.Thread, "start", limited)
        fails_once(monkeypatch)
        scarce.set()
        db.execute("SET statement_timeout = '60s'")  # nothing may come near it
        db.append("t", [{"a": 2, "b": 1}])
        refusal(lambda: db.execute("SELECT n FROM v"))  # it waited for the replica, or came too late
        lost(db)
        for statement in (
            lambda: db.execute("SELECT n FROM v"),
            lambda: db.execute("SELECT count(*) FROM t x, t y"),
            lambda: db.wait_hydrated("vi"),
            lambda: db.subscribe("v"),
        ):
            tried = len(refusals)
            assert "no thread can be started" in refusal(statement)
            assert len(refusals) > tried, "each statement tries again"
        db.append("t", [{"a": 3, "b": 1}])  # needs no replica
        scarce.clear()
        assert db.execute("SELECT n FROM v").fetchall() == [(3,)]
        db.wait_hydrated("vi")
        assert db.execute("SELECT count(*) FROM t x, t y").fetchall() == [(9,)]


@pytest.mark.parametrize("told", [0, 3, 1000])
def test_a_replica_that_cannot_be_told_what_there_is_is_replaced_by_another(
    told: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The history breaks off after so many commands; what the half-built replica says of it counts for nothing."""
    reduced, broken = CommandHistory.reduced, threading.Event()

    def breaks_off(self: CommandHistory, own: CommandHistory | None = None) -> Iterator[Command]:
        yield from itertools.islice(reduced(self, own), told)
        if broken.is_set():
            raise RuntimeError("the history is broken")

    db = database(1)
    try:
        before = answer(db, READS[0])
        monkeypatch.setattr(CommandHistory, "reduced", breaks_off)
        fails_once(monkeypatch)
        broken.set()
        db.execute("SET statement_timeout = '60s'")
        db.append("t", [{"a": 1000, "b": 3}])
        db.delete("t", [{"a": 1000}])
        messages = {refusal(lambda: db.execute(READS[0])) for _ in range(200)}
        assert "the replica failed and does not come up: RuntimeError: the history is broken" in messages
        assert "the history is broken" in caplog.text
        broken.clear()
        monkeypatch.setattr(CommandHistory, "reduced", reduced)
        wait_until(lambda: not db._engine.first_replica.present.failed, "it is tried again by itself")
        assert answer(db, READS[0]) == before
        groups = Counter(b for (b,) in answer(db, "SELECT b FROM t"))
        for query in READS:
            assert answer(db, query) == [(sum(n * n for n in groups.values()),)]
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
