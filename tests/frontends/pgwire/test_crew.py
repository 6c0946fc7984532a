"""The threads that run clients' statements: how many there are, and who makes room for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from eddyline.frontends.pgwire import crew as crew_module
from eddyline.frontends.pgwire.crew import Crew
from eddyline.storage.waiting import waiting

PATIENCE_S = 30.0


def run_all(call: Callable[[], object], count: int, *, usual: int, most: int = 100) -> int:
    """Runs ``count`` calls at once; how many threads there are in the end."""

    async def body() -> int:
        crew = Crew(usual, most)
        await asyncio.gather(*(crew.run(call) for _ in range(count)))
        threads = crew.threads
        crew.close()
        return threads

    return asyncio.run(body())


@pytest.fixture
def never_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that wait get no thread for that reason alone."""
    monkeypatch.setattr(crew_module, "_STUCK_S", PATIENCE_S)


@pytest.mark.usefixtures("never_stuck")
def test_a_thread_that_waits_for_the_disk_makes_room_for_another() -> None:
    all_there = threading.Barrier(30)

    def commit() -> None:
        with waiting():
            all_there.wait(PATIENCE_S)

    assert run_all(commit, 30, usual=2) >= 30


@pytest.mark.usefixtures("never_stuck")
def test_calls_that_wait_for_nothing_have_the_usual_threads() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1

    assert run_all(work, 40, usual=3) <= 3
    assert most <= 3


@pytest.mark.usefixtures("never_stuck")
def test_those_that_are_away_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew_module, "_MOST_AWAY", 4)

    def commit() -> None:
        with waiting():
            threading.Event().wait(0.002)

    assert run_all(commit, 60, usual=2) <= 6
    assert run_all(commit, 60, usual=2, most=3) <= 3


def test_calls_that_wait_for_one_another_get_threads_in_the_end() -> None:
    all_there = threading.Barrier(6)
    assert run_all(lambda: all_there.wait(PATIENCE_S), 6, usual=2) >= 6


def test_what_a_call_raises_is_raised_where_it_was_made() -> None:
    def fail() -> None:
        with waiting():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_all(fail, 1, usual=1)
