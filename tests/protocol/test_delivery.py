"""Delivery is in order, one at a time, and nobody who adds waits for whoever takes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from eddyline.protocol.delivery import Delivery


class Slow:
    """Takes items; the one called "slow" until it may go on."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.delivery: Delivery[str] = Delivery(self.take)

    def take(self, item: str) -> None:
        if item == "slow":
            self.inside.set()
            assert self.go_on.wait(30)
        self.taken.append(item)


def started(body: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=body)
    thread.start()
    return thread


def test_items_are_taken_in_the_order_in_which_they_were_added() -> None:
    taken: list[int] = []
    delivery: Delivery[int] = Delivery(taken.append)
    for n in range(3):
        delivery.add(n)
    assert taken == [] and len(delivery) == 3
    delivery.deliver()
    delivery.put(3)
    assert taken == [0, 1, 2, 3] and not len(delivery)


def test_who_finds_another_at_it_leaves_its_items_to_that_one() -> None:
    slow = Slow()
    delivering = started(lambda: slow.delivery.put("slow"))
    assert slow.inside.wait(10)
    others = [started(lambda: slow.delivery.put("quick")) for _ in range(3)]
    for other in others:
        other.join(10)
    assert not any(o.is_alive() for o in others), "nobody waits"
    assert slow.taken == [] and len(slow.delivery) == 3
    slow.go_on.set()
    delivering.join(10)
    assert slow.taken == ["slow", "quick", "quick", "quick"]


def test_what_is_added_while_an_item_is_taken_comes_after_it() -> None:
    taken: list[int] = []

    def take(item: int) -> None:
        if item < 3:
            delivery.put(item + 1)
        taken.append(item)

    delivery: Delivery[int] = Delivery(take)
    delivery.put(0)
    assert taken == [0, 1, 2, 3]


def test_a_failure_is_the_deliverers_and_loses_nothing_else() -> None:
    taken: list[int] = []

    def take(item: int) -> None:
        if item == 1:
            raise ValueError("one")
        taken.append(item)

    delivery: Delivery[int] = Delivery(take)
    for n in range(3):
        delivery.add(n)
    with pytest.raises(ValueError, match="one"):
        delivery.deliver()
    delivery.deliver()
    assert taken == [0, 2]


def test_clearing_waits_for_the_item_that_is_being_taken_and_forgets_the_rest() -> None:
    slow = Slow()
    delivering = started(lambda: slow.delivery.put("slow"))
    assert slow.inside.wait(10)
    slow.delivery.put("forgotten")
    cleared = threading.Event()

    def clear() -> None:
        slow.delivery.clear()
        cleared.set()

    clearing = started(clear)
    while len(slow.delivery):
        pass
    assert not cleared.wait(0.05)
    slow.go_on.set()
    assert cleared.wait(10)
    for thread in (delivering, clearing):
        thread.join(10)
    assert slow.taken == ["slow"]


def test_clearing_from_within_does_not_wait_for_itself() -> None:
    taken: list[int] = []

    def take(item: int) -> None:
        taken.append(item)
        delivery.clear()

    delivery: Delivery[int] = Delivery(take)
    delivery.add(0)
    delivery.add(1)
    delivery.deliver()
    assert taken == [0]
