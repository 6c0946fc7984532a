"""What is handed in is done by whoever has the lock, once, in order, and by nobody in the middle of its turn."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from eddyline.adapter.control_lock import ControlLock


def test_a_free_lock_makes_the_call_at_once_with_the_lock_held() -> None:
    lock, free = ControlLock(lambda: None), threading.Event()
    made: list[bool] = []

    def take() -> None:
        with lock:
            free.set()

    def call() -> None:
        other = threading.Thread(target=take)
        other.start()
        made.append(free.wait(0.05))
        others.append(other)

    others: list[threading.Thread] = []
    lock.hand_in(call)
    assert made == [False], "another one cannot have it meanwhile"
    others[0].join(10)
    assert free.is_set()


def test_a_held_lock_keeps_nobody_waiting_and_its_holder_makes_the_calls() -> None:
    lock = ControlLock(lambda: None)
    made: list[tuple[int, int]] = []

    def call(n: int) -> None:
        made.append((n, threading.get_ident()))

    with lock:
        threads = []
        for n in range(3):
            thread = threading.Thread(target=lock.hand_in, args=(partial(call, n),))
            thread.start()
            thread.join(10)
            threads.append(thread)
        assert not any(t.is_alive() for t in threads)
        assert made == []
    assert made == [(n, threading.get_ident()) for n in range(3)]


def test_calls_are_made_before_the_next_holder_begins_and_never_inside_a_turn() -> None:
    lock = ControlLock(lambda: None)
    made: list[str] = []
    with lock:
        lock.hand_in(lambda: made.append("handed in"))
        with lock:
            assert made == [], "the turn is not over"
        assert made == []
    assert made == ["handed in"]


def test_what_a_call_hands_in_is_made_after_it() -> None:
    lock = ControlLock(lambda: None)
    made: list[int] = []

    def first() -> None:
        lock.hand_in(lambda: made.append(2))
        made.append(1)

    lock.hand_in(first)
    assert made == [1, 2]


def test_a_call_that_raises_leaves_the_lock_free_and_the_other_calls_to_be_made() -> None:
    lock = ControlLock(lambda: None)
    made: list[int] = []

    def fail() -> None:
        raise ValueError("fails")

    with pytest.raises(ValueError, match="fails"), lock:
        for call in (fail, partial(made.append, 1)):
            lock.hand_in(call)
    assert not lock._depth and made == []
    lock._calls.appendleft(fail)  # as if it came while nobody looked
    with pytest.raises(ValueError, match="fails"), lock:
        raise AssertionError("it is not entered")
    assert not lock._depth
    lock.hand_in(partial(made.append, 2))
    assert made == [1, 2]
    other = threading.Thread(target=lock.hand_in, args=(partial(made.append, 3),))
    other.start()
    other.join(10)
    assert made == [1, 2, 3], "it is free"


def test_released_is_called_without_the_lock() -> None:
    found: list[bool] = []

    def released() -> None:
        taken = threading.Event()

        def take() -> None:
            with lock._lock:
                taken.set()

        thread = threading.Thread(target=take)
        thread.start()
        found.append(taken.wait(10))
        thread.join(10)

    lock = ControlLock(released)
    with lock:
        assert found == []
    lock.hand_in(lambda: None)
    assert found == [True, True]


def test_no_call_is_lost_between_many_threads() -> None:
    lock, start = ControlLock(lambda: None), threading.Barrier(4)
    made: list[tuple[int, int]] = []

    def hand_in(thread: int) -> None:
        start.wait(10)
        for n in range(500):
            if n % 3:
                lock.hand_in(partial(made.append, (thread, n)))
            else:
                with lock:
                    made.append((thread, n))

    threads = [threading.Thread(target=hand_in, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(made) == [(t, n) for t in range(4) for n in range(500)]
    assert all([n for t, n in made if t == thread and n % 3] == [n for n in range(500) if n % 3] for thread in range(4))
