"""Lookups and answers wait for nobody who holds the engine's lock, and may be preempted for as long as it happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.adapter.waiter import Waiter
from eddyline.controller.events import Event
from eddyline.expr.ir import Mfp
from eddyline.protocol.messages import Frontiers, Peek, PeekResponse, Response
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import INTEGER
from tests.waiting import wait_until


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
        connection.wait_hydrated("t_k", timeout=60)
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
    engine, waiter, answer = db._engine, Waiter(), PeekResponse("p", error=("22012", "division by zero", None))
    engine.default.expect("p", waiter)
    with held(engine):
        replica = engine.first_replica
        answering = threading.Thread(target=engine._control.respond, args=(replica, replica.source, answer))
        answering.start()
        assert waiter.wait(10)
    answering.join()
    assert waiter.answer == answer


def test_a_held_lock_of_the_engine_delays_no_answer_of_a_sent_lookup(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is not in the way of the second: whoever made it does not wait for the lock to tell of it."""
    engine = db._engine
    item = engine.catalog.snapshot().view().resolve(None, "t_k")
    assert item is not None
    everything = Mfp((), (0, 1), (INTEGER, INTEGER))
    waiters = [Waiter() for _ in range(3)]
    expected = threading.Event()
    deliver = engine._control.deliver

    def deliver_once_expected(response: PeekResponse) -> None:
        assert expected.wait(10)  # an answer that is quicker than ``expect`` is told with the lock
        deliver(response)

    monkeypatch.setattr(engine._control, "deliver", deliver_once_expected)
    with engine.control() as controller:
        at = engine.store.newest_write(item.depends_on | {str(item.on)})
        for key, waiter in enumerate(waiters):
            uuid = controller.peek(item.id, at, everything, key_types=(INTEGER,), keys=((key,),))
            engine.default.expect(uuid, waiter)
        expected.set()
        assert [waiter.wait(10) for waiter in waiters] == [True] * 3
        assert len(controller._peeks) == 3, "it hears of them when its turn comes"
    assert not engine._control.controller._peeks
    found = [waiter.answer for waiter in waiters]
    assert [len(a.rows.batch()) for a in found if a is not None and a.rows is not None] == [0, 1, 1]


def test_a_held_lock_of_the_engine_does_not_stop_maintenance(db: eddyline.Connection) -> None:
    """Each commit is reported as sealed, which must not wait: otherwise the next one is not sealed."""
    engine = db._engine
    index = engine.catalog.snapshot().view().resolve(None, "t_k")
    assert index is not None and index.on is not None
    with held(engine):
        for key in (3, 4, 5):
            rows = Batch.at((INTEGER, INTEGER), (pa.array([key], pa.int32()),) * 2, 1, Time(0))
            at = engine.commit({index.on: rows})
            peek = Peek(index.id, "", at, (INTEGER,), ((key,),), Mfp((), (1,), (INTEGER,)))
            answer = wait_until(
                partial(engine.default.answer_now, peek, lambda: False), f"the commit of {key} is sealed"
            )
            assert answer is not None
            assert answer.rows is not None
    assert db.execute("SELECT k FROM t WHERE k > 2 ORDER BY k").fetchall() == [(3,), (4,), (5,)]


def test_a_subscription_hears_of_what_was_sealed_while_the_lock_was_held(db: eddyline.Connection) -> None:
    engine = db._engine
    table = engine.catalog.snapshot().view().resolve(None, "t")
    assert table is not None
    subscription = db.subscribe("SELECT k FROM t", snapshot=False)
    for key in (3, 4, 5):
        with held(engine):
            rows = Batch.at((INTEGER, INTEGER), (pa.array([key], pa.int32()),) * 2, 1, Time(0))
            engine.commit({table.id: rows})
        change = subscription.next(60)
        assert change is not None and change.updates.column("k").to_pylist() == [key]
    subscription.close()


def test_a_response_that_cannot_be_taken_costs_the_replica_not_whoever_has_the_lock(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, failed = db._engine, db._engine.first_replica.client
    original = engine._control.controller.process_response

    def process(response: Response, *whose: str) -> list[Event]:
        if isinstance(response, Frontiers):
            monkeypatch.undo()
            raise ValueError("not understood")
        return original(response, *whose)

    monkeypatch.setattr(engine._control.controller, "process_response", process)
    db.execute("INSERT INTO t VALUES (3, 30)")
    assert engine.default.wait_for(lambda _: engine.first_replica.client is not failed, 20)
    db.wait_hydrated("t_k", timeout=20)
    assert db.execute("SELECT v FROM t WHERE k = 3").fetchall() == [(30,)]


def test_an_index_that_is_dropped_is_not_looked_up(db: eddyline.Connection) -> None:
    assert db._engine.collections.readable("no such thing") is None
    db.execute("DROP INDEX t_k")
    assert db.execute("SELECT v FROM t WHERE k = 1").fetchall() == [(10,)]
