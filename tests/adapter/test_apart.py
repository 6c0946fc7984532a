"""Calls of the main thread: interrupted at any moment, they are made whole or not at all, and the database goes on."""

from __future__ import annotations

import io
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

import eddyline
from eddyline.adapter.apart import Apart, on_caller
from eddyline.adapter.running import Call
from tests.waiting import wait_until


class Interrupted(Exception):
    """What the alarm raises on the main thread, as Ctrl-C raises KeyboardInterrupt."""


@contextmanager
def alarms() -> Iterator[Callable[[float], object]]:
    """``arm(seconds)``: raises ``Interrupted`` on the main thread then."""
    assert threading.current_thread() is threading.main_thread(), "where signals are handled"

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        connection.executescript("""
            SET statement_timeout = '60s';
            CREATE TABLE t (id int PRIMARY KEY, v int);
            CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS c FROM t GROUP BY v;
        """)
        connection.wait_hydrated("m", timeout=60)
        yield connection


def _append(db: eddyline.Connection, i: int) -> None:
    db.append("t", [{"id": i, "v": i % 5}])


def _transaction(db: eddyline.Connection, i: int) -> None:
    with db.transaction():
        db.execute("INSERT INTO t VALUES ($1, 1)", [i])
        db.execute("SELECT * FROM m").fetchall()


def _many(db: eddyline.Connection, i: int) -> None:
    db.executemany("INSERT INTO t VALUES ($1, $2)", ((i * 10 + k, k) for k in range(5)))


def _read(db: eddyline.Connection, i: int) -> None:
    db.execute("SELECT * FROM m").fetchall()


def _define(db: eddyline.Connection, i: int) -> None:
    db.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS z AS SELECT max(v) FROM t")
    db.execute("DROP MATERIALIZED VIEW IF EXISTS z")


@pytest.mark.parametrize("work", [_append, _transaction, _many, _read, _define])
def test_interrupts_at_any_moment_leave_nothing_half_done(
    db: eddyline.Connection, work: Callable[[eddyline.Connection, int], None]
) -> None:
    random_ = random.Random(work.__name__)
    interrupted, number = 0, itertools.count(1)
    begun = time.monotonic()

    def go_on() -> None:
        # A function of its own, since the jump that ends a loop is in no ``try`` of Python 3.13; not for ever, since
        # what is raised in the callback of a weak reference is dropped.
        until = time.monotonic() + 3.0
        while time.monotonic() < until:
            work(db, next(number))

    with alarms() as arm:
        while (passed := time.monotonic() - begun) < 2.0 or (interrupted <= 10 and passed < 60.0):
            try:
                arm(random_.uniform(0.0002, 0.02))
                go_on()
            except Interrupted:
                interrupted += 1
            if db.in_transaction:
                db.rollback()
    assert interrupted > 10
    rows = db.execute("SELECT count(*) FROM t").fetchall()
    counted = db.execute("SELECT coalesce(sum(c), 0)::bigint FROM m").fetchall()
    assert counted == rows
    _append(db, next(number) * 10)
    assert db.execute("SELECT sum(c)::bigint FROM m").fetchall() == [(rows[0][0] + 1,)]


def test_an_interrupted_wait_cancels_what_is_waited_for(db: eddyline.Connection) -> None:
    subscription = db.subscribe("t", snapshot=False)
    with alarms() as arm:
        with pytest.raises(Interrupted):
            arm(0.2)
            subscription.next(60)
        _append(db, 1)
        change = subscription.next(60)
        assert change is not None and change.updates.num_rows == 1, "it is the wait that ends, not the subscription"
        with pytest.raises(Interrupted):
            arm(0.2)
            for _ in subscription:
                pass


def test_an_interrupt_before_a_call_has_its_turn_ends_that_call_and_no_other(
    db: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = db._session
    cancel_call, cancelled = session._running.cancel_call, threading.Event()

    def cancel(call: Call) -> None:
        cancel_call(call)
        cancelled.set()

    monkeypatch.setattr(session._running, "cancel_call", cancel)
    others: list[bool] = []
    has_turn = threading.Event()

    def hold() -> None:
        with session._turn, session._running.statement(None) as interrupt:
            has_turn.set()
            assert cancelled.wait(60)
            others.append(interrupt.cancelled())

    other = threading.Thread(target=hold)
    other.start()
    assert has_turn.wait(60)
    with alarms() as arm, pytest.raises(Interrupted):
        arm(0.1)
        db.executescript("INSERT INTO t VALUES (1, 1)")
    other.join(60)
    assert others == [False]
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_iterators_and_files_are_used_on_the_thread_that_gave_them(db: eddyline.Connection) -> None:
    threads: set[threading.Thread] = set()

    def rows() -> Iterator[tuple[int, int]]:
        for i in range(3000):
            threads.add(threading.current_thread())
            yield i, 1

    class File(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            threads.add(threading.current_thread())
            return super().read(size)

        def write(self, data: object) -> int:
            threads.add(threading.current_thread())
            return super().write(data)  # type: ignore[arg-type]  # as it comes

    db.executemany("INSERT INTO t VALUES ($1, $2)", rows())
    db.copy("COPY t FROM STDIN", File(b"5000\t1\n"))
    db.copy("COPY t FROM STDIN", (f"{i}\t1\n" for i in range(6000, 6010)))
    written = File()
    db.copy("COPY t TO STDOUT", written)
    assert len(written.getvalue().splitlines()) == 3011
    assert threads == {threading.current_thread()}


def test_an_iterator_may_ask_the_session_that_consumes_it(db: eddyline.Connection) -> None:
    def rows() -> Iterator[tuple[int, int]]:
        for i in range(3):
            (count,) = db.execute("SELECT count(*) FROM t").fetchall()
            yield i, count[0]

    db.executemany("INSERT INTO t VALUES ($1, $2)", rows())
    assert sorted(db.execute("SELECT * FROM t").fetchall()) == [(0, 0), (1, 0), (2, 0)]


def test_an_iterator_that_fails_fails_the_statement(db: eddyline.Connection) -> None:
    def rows() -> Iterator[tuple[int, int]]:
        yield 1, 1
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        db.executemany("INSERT INTO t VALUES ($1, $2)", rows())
    assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    assert not db.in_transaction


def test_the_threads_end_with_the_database() -> None:
    before = set(threading.enumerate())

    def ours() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name == "eddyline-statements" and t not in before]

    with eddyline.connect() as db:
        for _ in range(50):
            db.execute("SELECT 1 WHERE now() IS NOT NULL").fetchall()
        assert len(ours()) == 1, "one thread is enough for one caller"
    wait_until(lambda: not ours(), "it ends with the database")


# -- the mechanism ---------------------------------------------------------------------------------------------------


def test_other_threads_call_directly() -> None:
    apart, found = Apart(), []
    thread = threading.Thread(target=lambda: found.append(apart.run(threading.current_thread)))
    thread.start()
    thread.join()
    assert found == [thread]
    assert apart.run(threading.current_thread) is not threading.main_thread()
    apart.close()
    assert apart.run(threading.current_thread) is threading.main_thread()


@pytest.mark.parametrize("ended", [True, False])
def test_a_call_that_meets_the_end_of_its_thread_is_made(ended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = Apart()
    apart.run(lambda: None)
    taker = apart._taker

    def closing() -> Callable[[Any], None]:
        """As if another thread closed the database just when a call has found that it is open."""
        give = taker()
        thread = threading.Thread(target=apart.close)
        thread.start()
        thread.join()
        if ended:
            apart._threads[0]._thread.join(60)
        return give

    monkeypatch.setattr(apart, "_taker", closing)
    assert apart.run(lambda: 42) == 42
    assert apart.run(threading.current_thread) is threading.main_thread()


def test_calls_while_another_thread_closes_are_all_made() -> None:
    for _ in range(200):
        apart = Apart()
        apart.run(lambda: None)
        closing = threading.Thread(target=apart.close)
        closing.start()
        assert [apart.run(lambda n=n: n) for n in range(5)] == list(range(5))  # type: ignore[misc]  # mypy cannot infer it
        closing.join()


def test_a_second_interrupt_leaves_a_call_that_does_not_end() -> None:
    apart, release, cancelled, ended = Apart(), threading.Event(), threading.Event(), threading.Event()

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def body() -> None:
        interrupt()
        release.wait(60)
        ended.set()

    def cancel() -> None:
        cancelled.set()
        interrupt()

    with alarms(), pytest.raises(Interrupted):
        apart.run(body, cancel)
    assert cancelled.is_set() and not ended.is_set()
    assert apart.run(lambda: "another thread serves the next call") is not None
    release.set()
    assert ended.wait(30)
    apart.close()


def test_what_interrupts_a_request_ends_the_call() -> None:
    apart = Apart()
    seen: list[BaseException] = []

    def wait() -> None:
        arm(0.1)
        time.sleep(60)

    def body() -> None:
        try:
            on_caller(wait)
        except BaseException as problem:
            seen.append(problem)
            raise

    with alarms() as arm, pytest.raises(Interrupted):
        apart.run(body)
    assert [type(p) for p in seen] == [Interrupted]
    assert apart.run(lambda: on_caller(threading.current_thread)) is threading.main_thread()
    apart.close()


def test_a_signal_is_heard_by_a_wait_that_it_does_not_end() -> None:
    """The system goes on with the wait, as a library's handler may ask of it, before Python has run its own."""
    apart, release = Apart(), threading.Event()
    released: list[bool] = []

    def body() -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        released.append(release.wait(60))

    try:
        with alarms():
            signal.siginterrupt(signal.SIGALRM, False)
            with pytest.raises(Interrupted):
                apart.run(body, release.set)
        assert released == [True], "it was cancelled, not waited out"
    finally:
        release.set()
        apart.close()
