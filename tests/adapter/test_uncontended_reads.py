"""Lookups and answers wait for nobody who holds the engine's lock, and may be preempted for as long as it happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import eddyline
from eddyline.adapter.engine import Engine, Waiter
from eddyline.protocol.messages import PeekResponse


@contextmanager
def held(engine: Engine) -> Iterator[None]:
    """Another thread is in the middle of a call of the controller meanwhile."""
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.control():
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(params=[True, False], ids=["two runtimes", "solo"])
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    with eddyline.connect(interactive=request.param) as connection:
        connection.execute("CREATE TABLE t (k int, v int)")
        connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        connection.execute("CREATE INDEX t_k ON t (k)")
        connection.wait_hydrated("t_k", timeout=10)
        assert connection.execute("SELECT v FROM t WHERE k = 2").fetchall() == [(20,)]
        yield connection


@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
def test_a_lookup_of_a_sealed_index_takes_no_lock_of_the_engine(db: eddyline.Connection, isolation: str) -> None:
    db.execute(f"SET transaction_isolation = '{isolation}'")
    found: list[object] = []
    with held(db._engine):
        reader = threading.Thread(target=lambda: found.append(db.execute("SELECT v FROM t WHERE k = 1").fetchall()))
        reader.start()
        reader.join(10)
        assert found == [[(10,)]]


def test_an_answer_reaches_its_waiter_before_the_controller(db: eddyline.Connection) -> None:
    engine, waiter = db._engine, Waiter()
    engine.expect("p", waiter)
    with held(engine):
        answering = threading.Thread(target=engine._respond, args=(PeekResponse("p", canceled=True),))
        answering.start()
        assert waiter.wait(10)
    answering.join()
    assert waiter.answer == PeekResponse("p", canceled=True)


def test_an_index_that_is_dropped_is_not_looked_up(db: eddyline.Connection) -> None:
    assert db._engine.collections.readable("no such thing") is None
    db.execute("DROP INDEX t_k")
    assert db.execute("SELECT v FROM t WHERE k = 1").fetchall() == [(10,)]
