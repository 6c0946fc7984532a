"""Statements that wait while the database, or their session, is closed under them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import eddyline
from eddyline.compute.solo import Solo
from eddyline.compute.worker import Worker
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

ENDED = ("57P01", "57014", "08003")


class Attempt:
    """A statement on a thread of its own, and how it ended."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.outcome: object = None
        self._thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self._thread.start()

    def _run(self, run: Callable[[], object]) -> None:
        try:
            run()
            self.outcome = "done"
        except eddyline.Error as error:
            self.outcome = error.sqlstate

    def ended(self, timeout: float = 10.0) -> object:
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "still waiting"
        return self.outcome


def database() -> eddyline.Connection:
    db = eddyline.connect()
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    db.append("t", [{"a": 1, "b": 0}])
    return db


def test_a_wait_for_a_lock_ends_when_the_database_closes() -> None:
    db = database()
    holder, waiter = db.session(), db.session()
    holder.execute("BEGIN")
    holder.execute("UPDATE t SET b = 1")
    attempt = Attempt(lambda: waiter.execute("UPDATE t SET b = 2"))
    time.sleep(0.1)
    db.close()
    assert attempt.ended() in ENDED


def test_a_read_of_the_future_ends_when_the_database_closes() -> None:
    db = database()
    reader = db.session()
    attempt = Attempt(lambda: reader.execute("SELECT * FROM t AS OF 9000000000000000"))
    time.sleep(0.1)
    db.close()
    assert attempt.ended() in ENDED


def test_a_subscription_ends_when_the_database_closes() -> None:
    db = database()
    subscription = db.session().subscribe("t")
    attempt = Attempt(lambda: [change.time for change in subscription])
    time.sleep(0.1)
    db.close()
    assert attempt.ended() in ENDED


@pytest.mark.parametrize("pause", [0.0, 0.0002, 0.001, 0.01])
def test_closing_a_session_ends_its_statement_however_early_it_comes(pause: float) -> None:
    with database() as db:
        for _ in range(20):
            session = db.session()
            attempt = Attempt(lambda: session.execute("SELECT * FROM t AS OF 9000000000000000"))  # noqa: B023 - runs within this turn of the loop
            time.sleep(pause)
            session.close()
            assert attempt.ended() in ENDED


def test_a_timeout_while_waiting_for_a_lock_is_a_cancelled_statement() -> None:
    with database() as db:
        holder, waiter = db.session(), db.session()
        holder.execute("BEGIN")
        holder.execute("UPDATE t SET b = 1")
        waiter.execute("SET statement_timeout = '50ms'")
        with pytest.raises(eddyline.OperationalError) as caught:
            waiter.execute("UPDATE t SET b = 2")
        assert caught.value.sqlstate == "57014"


def test_a_worker_whose_step_takes_the_last_wake_up_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    solo: list[Solo] = []
    closing = threading.Event()
    real = Worker.step

    def late(worker: Worker) -> bool:
        if closing.wait(5):
            while not worker.inbox._awake or not solo[0]._stop.is_set():
                time.sleep(0.001)
        return real(worker)

    monkeypatch.setattr(Worker, "step", late)
    hasher = Hasher()
    solo.append(Solo(TableStore(hasher), hasher))
    thread = threading.Thread(target=solo[0].close, daemon=True)
    thread.start()
    closing.set()
    thread.join(10)
    assert not thread.is_alive(), "close waits for a worker that sleeps"
