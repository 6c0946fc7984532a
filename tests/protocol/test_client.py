"""Responses come in order, wait with a bound, and end when the replica is closed."""

from __future__ import annotations

import threading

from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.messages import Response, Status


def test_responses_come_in_order() -> None:
    queue = ResponseQueue()
    for n in range(5):
        queue.put(Status(str(n)))
    assert [queue.receive(0) for _ in range(6)] == [*(Status(str(n)) for n in range(5)), None]


def test_receive_waits_for_the_next_response_or_the_close() -> None:
    queue = ResponseQueue()
    got: list[Response | None] = []

    def receive_twice() -> None:
        got.append(queue.receive(None))
        got.append(queue.receive(None))

    receiver = threading.Thread(target=receive_twice)
    receiver.start()
    queue.put(Status("a"))
    queue.close()
    receiver.join(5)
    assert got == [Status("a"), None]


def test_a_listener_gets_responses_at_once() -> None:
    heard: list[Response] = []
    queue = ResponseQueue(heard.append)
    queue.put(Status("a"))
    assert heard == [Status("a")]
    assert queue.receive(0) is None
