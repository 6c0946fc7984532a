"""The merging of partial answers."""

from __future__ import annotations

import threading

from eddyline.compute.merge_responses import ResponseMerger
from eddyline.protocol.messages import Frontiers, PeekResponse, Response, RowBatch, Status
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY
from tests.compute.runtime_harness import pairs, rows_of


class Merged:
    def __init__(self, workers: int) -> None:
        self.responses: list[Response] = []
        self.merger = ResponseMerger(workers, self.responses.append)

    def put(self, worker: int, response: Response) -> list[Response]:
        before = len(self.responses)
        self.merger.put(worker, 0, response)
        return self.responses[before:]


def rows(*values: tuple[int, int]) -> RowBatch:
    return RowBatch(pairs(values))


def test_a_peek_is_answered_once_all_workers_have() -> None:
    merged = Merged(3)
    assert merged.put(0, PeekResponse("u", rows=rows((1, 1)))) == []
    assert merged.put(2, PeekResponse("u", rows=rows())) == []
    (answer,) = merged.put(1, PeekResponse("u", rows=rows((1, 1), (2, 2))))
    assert isinstance(answer, PeekResponse)
    assert rows_of(answer) == {(1, 1): 2, (2, 2): 1}


def test_an_empty_answer_keeps_its_row_type() -> None:
    merged = Merged(2)
    merged.put(0, PeekResponse("u", rows=rows()))
    (answer,) = merged.put(1, PeekResponse("u", rows=rows()))
    assert isinstance(answer, PeekResponse)
    assert answer.rows is not None
    assert isinstance(answer.rows.payload, Batch)
    assert len(answer.rows.payload.types) == 2


def test_an_error_of_one_worker_is_the_answer_and_outranks_a_cancellation() -> None:
    merged = Merged(3)
    failed = PeekResponse("u", error=("22012", "division by zero", None))
    merged.put(0, PeekResponse("u", canceled=True))
    merged.put(1, failed)
    assert merged.put(2, PeekResponse("u", rows=rows((1, 1)))) == [failed]
    merged.put(0, PeekResponse("v", rows=rows((1, 1))))
    merged.put(1, PeekResponse("v", canceled=True))
    assert merged.put(2, PeekResponse("v", rows=rows())) == [PeekResponse("v", canceled=True)]


def test_frontiers_are_the_least_and_do_not_regress() -> None:
    merged = Merged(2)
    assert merged.put(0, Frontiers("i", 5)) == []
    assert merged.put(1, Frontiers("i", 3)) == [Frontiers("i", 3)]
    assert merged.put(0, Frontiers("i", 9)) == []
    assert merged.put(1, Frontiers("i", 7)) == [Frontiers("i", 7)]
    assert merged.put(0, Frontiers("i", EMPTY)) == []
    assert merged.put(1, Frontiers("i", EMPTY)) == [Frontiers("i", EMPTY)]


def test_what_is_over_leaves_nothing_behind() -> None:
    merged = Merged(2)
    for n in range(3):
        for worker in range(2):
            merged.put(worker, Frontiers(f"t{n}", 7))
            merged.put(worker, Frontiers(f"t{n}", EMPTY))
            merged.put(worker, PeekResponse(f"u{n}", rows=rows()))
    assert not merged.merger.pending()


def test_one_worker_passes_everything_on() -> None:
    merged = Merged(1)
    for response in (Frontiers("i", 5), PeekResponse("u", canceled=True), Status("x")):
        assert merged.put(0, response) == [response]


def test_a_slow_listener_keeps_no_other_worker_from_merging() -> None:
    """One worker's thread is in the listener: what the others put is merged, and passed on in order after it."""
    heard: list[Response] = []
    inside, go_on = threading.Event(), threading.Event()

    def emit(response: Response) -> None:
        if response == Status("slow"):
            inside.set()
            assert go_on.wait(30)
        heard.append(response)

    for workers in (1, 2):
        heard.clear()
        inside.clear()
        go_on.clear()
        merger = ResponseMerger(workers, emit)
        slow = threading.Thread(target=merger.put, args=(0, 0, Status("slow")))
        slow.start()
        assert inside.wait(10)

        def answer(merger: ResponseMerger = merger, workers: int = workers) -> None:
            for worker in range(workers):
                merger.put(worker, 0, PeekResponse("u", canceled=True))
                merger.put(worker, 0, Frontiers("i", 5))

        other = threading.Thread(target=answer)
        other.start()
        other.join(10)
        waited = other.is_alive()
        assert not waited and merger.pending() and heard == []
        go_on.set()
        for thread in (slow, other):
            thread.join(10)
        assert heard == [Status("slow"), PeekResponse("u", canceled=True), Frontiers("i", 5)]


def test_a_new_connection_gets_nothing_of_the_one_before() -> None:
    """Not even what is being passed on at the moment: it is waited for."""
    heard: list[Response] = []
    inside, go_on, begun = threading.Event(), threading.Event(), threading.Event()

    def emit(response: Response) -> None:
        if response == Status("slow"):
            inside.set()
            assert go_on.wait(30)
        heard.append(response)

    merger = ResponseMerger(1, emit)
    slow = threading.Thread(target=merger.put, args=(0, 0, Status("slow")))
    slow.start()
    assert inside.wait(10)
    merger.put(0, 0, Frontiers("i", 5))

    def begin() -> None:
        merger.begin_connection()
        begun.set()

    beginning = threading.Thread(target=begin)
    beginning.start()
    assert not begun.wait(0.05)
    go_on.set()
    for thread in (slow, beginning):
        thread.join(10)
    assert begun.is_set() and heard == [Status("slow")]
    merger.put(0, 0, Frontiers("i", 6))
    merger.put(0, 1, Frontiers("i", 7))
    assert heard == [Status("slow"), Frontiers("i", 7)]
