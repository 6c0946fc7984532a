"""A failed replica is replaced, whatever fails meanwhile; what cannot be done is told, and tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from eddyline.adapter.recovery import Recovery
from eddyline.errors import Error, make_error


class Owner:
    """Replicas are names; ``script`` is what replacing does, call by call, and nothing afterwards."""

    def __init__(self, *script: Callable[[], None]) -> None:
        self.script = list(script)
        self.replaced: list[str] = []
        self.refusals: list[Error] = []
        self.recovery = Recovery(self.replace, self.refusals.append)

    def replace(self, failed: str) -> None:
        self.replaced.append(failed)
        if self.script:
            self.script.pop(0)()

    def settle(self) -> None:
        for thread in threading.enumerate():
            if thread.name == "eddyline-rebuild":
                thread.join(30)
        assert self.recovery.attended(), "nothing is left to do"


def refuse(error: Exception) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_what_cannot_be_replaced_is_told_and_tried_again() -> None:
    owner = Owner(refuse(make_error("58000", "no descriptor", hint="Close some.")), refuse(ValueError("odd")))
    assert owner.recovery.begin("a") is None
    owner.settle()
    assert owner.replaced == ["a"] * 3
    assert [(e.sqlstate, e.message, bool(e.hint)) for e in owner.refusals] == [
        ("58000", "the replica failed and does not come up: no descriptor", True),
        ("58000", "the replica failed and does not come up: ValueError: odd", True),
    ]


def test_a_replica_that_fails_while_another_is_replaced_is_replaced_too() -> None:
    owner = Owner()
    owner.script = [lambda: begin("b"), lambda: begin("c")]

    def begin(name: str) -> None:
        assert owner.recovery.begin(name) is None

    owner.recovery.begin("a")
    owner.settle()
    assert owner.replaced == ["a", "b", "c"]
    owner.recovery.begin("d")
    owner.settle()
    assert owner.replaced[-1] == "d", "also once it had come to rest"


def test_without_a_thread_nobody_is_at_it_until_somebody_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, start = Owner(), threading.Thread.start
    assert owner.recovery.attended(), "nothing has failed"

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        for failure in (owner.recovery.begin("a"), owner.recovery.attend()):
            assert failure is not None
            assert failure.sqlstate == "58000"
            assert "can't start new thread" in failure.message
        assert not owner.recovery.attended()
    assert threading.Thread.start is start
    assert owner.recovery.attend() is None
    owner.settle()
    assert owner.replaced == ["a"]


def test_at_the_end_nothing_more_is_tried_or_told() -> None:
    def ends() -> None:
        owner.recovery.end()
        raise make_error("57P01", "the database was closed")

    owner = Owner(ends)
    owner.recovery.begin("a")
    for thread in threading.enumerate():
        if thread.name == "eddyline-rebuild":
            thread.join(30)
    assert (owner.replaced, owner.refusals) == (["a"], [])
    assert owner.recovery.begin("b") is None
    assert owner.replaced == ["a"]


def test_tries_come_at_once_and_then_after_pauses_that_double() -> None:
    recovery: Recovery[Any] = Recovery(lambda _: None, lambda _: None)
    assert [recovery._pause() for _ in range(12)] == [0, 0, 0, 0, 0, 1, 2, 4, 8, 10, 10, 10]
