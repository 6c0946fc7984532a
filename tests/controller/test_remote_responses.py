"""What the processes of a replica answer is passed on in order, and nobody waits for whoever listens."""

from __future__ import annotations

import threading

from eddyline.controller.remote_responses import RemoteResponses
from eddyline.protocol.messages import Frontiers, PeekResponse, Response, Status
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher


class Remote:
    """Two processes; the listener stays in a response "slow" until it may go on."""

    def __init__(self) -> None:
        self.heard: list[Response] = []
        self.hung_up = 0
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.answers = RemoteResponses(2, TableStore(Hasher(1)), self._emit, self._hang_up)

    def _emit(self, response: Response) -> None:
        if response == Status("slow"):
            self.inside.set()
            assert self.go_on.wait(30)
        self.heard.append(response)

    def _hang_up(self) -> None:
        self.hung_up += 1

    def slow(self) -> threading.Thread:
        thread = threading.Thread(target=self.answers.put, args=(0, Status("slow")))
        thread.start()
        assert self.inside.wait(10)
        return thread


def test_a_slow_listener_keeps_no_process_from_being_heard() -> None:
    r = Remote()
    slow = r.slow()

    def others() -> None:
        for process in (0, 1):
            r.answers.put(process, PeekResponse("u", canceled=True))

    other = threading.Thread(target=others)
    other.start()
    other.join(10)
    assert not other.is_alive() and r.heard == []
    r.go_on.set()
    slow.join(10)
    assert r.heard == [Status("slow"), PeekResponse("u", canceled=True)]


def test_an_end_waits_for_no_listener_and_is_the_last_that_it_hears() -> None:
    r = Remote()
    slow = r.slow()
    r.answers.put(1, Status("not passed on yet"))
    r.answers.end("lost", tell=True)
    assert r.answers.over and r.hung_up == 1 and r.heard == []
    r.go_on.set()
    slow.join(10)
    assert r.heard == [Status("slow"), Status("lost", fatal=True)]


def test_after_an_end_without_a_word_nothing_is_passed_on() -> None:
    r = Remote()
    slow = r.slow()
    for process in (0, 1):
        r.answers.put(process, Frontiers("i", 7))
    r.answers.end("closed", tell=False)
    r.answers.put(0, Status("late"))
    r.go_on.set()
    slow.join(10)
    assert r.heard == [Status("slow")] and r.hung_up == 1
    r.answers.end("again", tell=True)
    assert r.heard == [Status("slow")] and r.hung_up == 1
