"""Waiting for tables' write locks: whoever waits is told, and looks at nothing meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from eddyline.adapter.locks import LockTable, Owner
from eddyline.adapter.read import Interrupt
from eddyline.errors import DatabaseError


class Waiting:
    """Somebody who waits for a lock that another one has."""

    def __init__(self, interrupt: Interrupt, *, timeout_s: float | None = None) -> None:
        self.locks, self.holder, self.owner = LockTable(), Owner(), Owner()
        self.checks = threading.Semaphore(0)
        self.failures: list[str] = []
        self._interrupt = interrupt
        self._timeout_s = timeout_s
        self.locks.acquire(self.holder, ["t"], timeout_s=None, check=lambda: None)
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        assert self.checks.acquire(timeout=60)

    def _check(self) -> None:
        self.checks.release()
        self._interrupt.check()

    def _wait(self) -> None:
        try:
            with self._interrupt.waking(self.locks.look_again):
                self.locks.acquire(
                    self.owner,
                    ["t"],
                    timeout_s=self._timeout_s,
                    check=self._check,
                    deadline=self._interrupt.deadline,
                )
        except DatabaseError as error:
            self.failures.append(error.sqlstate)

    def ended(self) -> list[str]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.failures


def test_a_release_gives_the_lock_on() -> None:
    waiting = Waiting(Interrupt(None))
    waiting.locks.release(waiting.holder)
    assert waiting.ended() == []
    assert waiting.owner.held == {"t"}


@pytest.mark.parametrize(
    ("end", "sqlstate"),
    [(lambda w, i: i.cancel(), "57014"), (lambda w, i: w.locks.close(), "57P01")],
)
def test_a_wait_is_ended_from_outside(end: Callable[[Waiting, Interrupt], None], sqlstate: str) -> None:
    interrupt = Interrupt(None)
    waiting = Waiting(interrupt)
    end(waiting, interrupt)
    assert waiting.ended() == [sqlstate]
    assert waiting.owner.waits_for is None
    waiting.locks.release(waiting.holder)
    waiting.locks.acquire(waiting.holder, ["t"], timeout_s=None, check=lambda: None)


def test_nobody_looks_while_nothing_happens() -> None:
    interrupt = Interrupt(None)
    waiting = Waiting(interrupt)
    time.sleep(0.2)
    assert not waiting.checks.acquire(blocking=False)
    interrupt.cancel()
    assert waiting.ended() == ["57014"]


def test_a_wait_ends_with_the_time_that_it_has() -> None:
    assert Waiting(Interrupt(None), timeout_s=0.05).ended() == ["55P03"]
    assert Waiting(Interrupt(0.05)).ended() == ["57014"]


def test_one_that_was_cancelled_before_does_not_wait() -> None:
    interrupt = Interrupt(None)
    interrupt.cancel()
    assert Waiting(interrupt).ended() == ["57014"]


def test_an_interrupt_wakes_the_innermost_wait_and_nobody_after_it() -> None:
    interrupt, woken = Interrupt(None), list[str]()
    with interrupt.waking(lambda: woken.append("outer")):
        with interrupt.waking(lambda: woken.append("inner")):
            interrupt.cancel()
        interrupt.cancel()
    interrupt.cancel()
    assert woken == ["inner", "outer"]
    with interrupt.waking(lambda: woken.append("late")):
        assert woken[2:] == ["late"]
