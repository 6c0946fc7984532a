"""What waits for the reader of a subscription."""

from __future__ import annotations

import threading

from eddyline.adapter.backlog import Backlog
from eddyline.errors import Error, make_error
from eddyline.protocol.messages import RowBatch, SubscribeResponse
from tests.compute.runtime_harness import pairs


def change(lower: int, rows: int) -> SubscribeResponse:
    return SubscribeResponse("s", lower, lower + 1, rows=RowBatch(pairs([(n, n) for n in range(rows)])))


def test_changes_come_in_order_and_none_is_lost_below_the_bound() -> None:
    backlog = Backlog(100_000)
    sent = [change(n, n) for n in range(1, 20)]
    assert all(backlog.put(each) for each in sent)
    assert [backlog.get(0) for _ in sent] == sent
    assert backlog.get(0) is None


def test_time_that_passes_without_changes_does_not_pile_up() -> None:
    backlog = Backlog(2_000)
    assert all(backlog.put(change(n, 0)) for n in range(10_000))
    assert backlog.put(change(10_000, 1))
    first, second = backlog.get(0), backlog.get(0)
    assert isinstance(first, SubscribeResponse) and isinstance(second, SubscribeResponse)
    assert (first.lower, first.upper, second.lower) == (0, 10_000, 10_000)


def test_what_is_taken_makes_room_and_what_is_not_ends_it() -> None:
    backlog = Backlog(3_000)
    for n in range(100):
        assert backlog.put(change(n, 30))
        assert isinstance(backlog.get(0), SubscribeResponse)
    assert backlog.put(change(0, 5_000)), "the first may be of any size"
    assert not backlog.put(change(1, 1))
    assert not backlog.put(change(2, 1)), "for good"
    error = backlog.get(0)
    assert isinstance(error, Error)
    assert error.sqlstate == "53400"


def test_whoever_waits_is_told_to_look_elsewhere_and_misses_nothing() -> None:
    backlog = Backlog(None)
    found: list[object] = []
    waiter = threading.Thread(target=lambda: found.append(backlog.get(None)))
    waiter.start()
    backlog.look_again()
    waiter.join(60)
    assert found == [None]
    backlog.look_again()
    assert backlog.put(change(0, 1))
    assert isinstance(backlog.get(None), SubscribeResponse), "what there is comes first"


def test_all_that_a_reader_may_want_to_see_is_news() -> None:
    backlog, news = Backlog(None), threading.Semaphore(0)
    backlog.on_news(news.release)
    backlog.put(change(0, 1))
    backlog.look_again()
    backlog.fail(make_error("57P01", "the database was closed"))
    assert [news.acquire(blocking=False) for _ in range(4)] == [True, True, True, False]
