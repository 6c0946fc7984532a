"""Threads for calls that block, where the system gives only so many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import Interrupt
from eddyline.errors import DatabaseError
from eddyline.frontends.pgwire.copy_in import CopyIn
from eddyline.frontends.pgwire.crew import Crew


def run(usual: int, most: int, body: Callable[[Crew], Awaitable[None]]) -> None:
    async def main() -> None:
        crew = Crew(usual, most)
        try:
            await body(crew)
        finally:
            crew.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_calls_that_wait_for_one_another_get_a_thread_each() -> None:
    async def body(crew: Crew) -> None:
        together = threading.Barrier(5)
        await asyncio.gather(*(crew.run(lambda: together.wait(30)) for _ in range(5)))
        assert crew.threads == 5

    run(1, 5, body)


def test_what_a_call_raises_is_raised_where_it_was_made() -> None:
    def fail() -> None:
        raise ValueError("fails")

    async def body(crew: Crew) -> None:
        with pytest.raises(ValueError, match="fails"):
            await crew.run(fail)
        assert await crew.run(lambda: 7) == 7

    run(1, 1, body)


@pytest.mark.parametrize("usual", [1, 3])
def test_threads_that_the_system_refuses_are_asked_for_again_and_no_call_is_lost(
    usual: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, refusals = threading.Thread.start, list(range(5))

    def scarce(self: threading.Thread) -> None:
        if self.name == "eddyline-session" and refusals:
            refusals.pop()
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", scarce)

    async def body(crew: Crew) -> None:
        together = threading.Barrier(2)
        calls = [crew.run(lambda: together.wait(30)) for _ in range(2)]
        assert sorted(await asyncio.gather(*calls)) == [0, 1]
        assert 2 <= crew.threads <= 3

    run(usual, 3, body)
    assert caplog.text.count("can't start new thread") == 1


def test_a_copy_that_gets_no_thread_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(DatabaseError, match="can't start new thread") as caught:
        CopyIn(lambda pieces: Outcome("COPY 0"), lambda: Interrupt(None))
    assert (caught.value.sqlstate, bool(caught.value.hint)) == ("53000", True)
