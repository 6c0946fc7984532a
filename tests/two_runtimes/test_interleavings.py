"""Short scripts under every schedule of the two runtimes."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from eddyline.protocol.messages import InitializationComplete
from eddyline.testing.driver import ReplicaDriver, index_on, read_of
from eddyline.testing.simulation.interleavings import explore, schedules
from tests.two_runtimes.test_driver import LARGE

ROWS = [(1, 10), (2, 20), (3, 40)]


def with_table() -> ReplicaDriver:
    """Table u1 with rows since time 1, and nothing on the replica."""
    driver = ReplicaDriver()
    driver.table("u1", ROWS)
    driver.rest()
    return driver


def with_index() -> ReplicaDriver:
    """Index u2 on it, at 1, known and sealed on both sides, and a write at 2."""
    driver = with_table()
    driver.create(index_on("u2", "u1", 1))
    driver.rest()
    driver.write("u1", [(4, 50)])
    return driver


def test_create_cancel_and_compact_while_the_owner_may_be_ahead() -> None:
    """A read is created at a time, canceled, and the index compacted past it: the queued create must still build."""

    def check(driver: ReplicaDriver) -> None:
        answers = driver.answers("peek 1")
        assert len(answers) == 1, "exactly one"
        assert answers[0].canceled or driver.rows("peek 1") == Counter(ROWS), "of its time"
        later = driver.peek("u2", 2)
        driver.rest()
        assert driver.rows(later) == Counter([*ROWS, (4, 50)])
        early = driver.peek("u2", 1)
        driver.rest()
        assert driver.answer(early).error is not None, "nothing keeps the compaction from coming through"
        driver.drop("u2")
        driver.rest()
        assert driver.at_rest()

    def create(driver: ReplicaDriver) -> None:
        driver.create(read_of("t3", "u2", 1))
        driver.peek("t3", 1)

    commands = (
        create,
        lambda d: d.cancel("peek 1"),
        lambda d: d.drop("t3"),
        lambda d: d.compact("u2", 2),
    )
    assert explore(with_index, commands, check, schedules(len(commands))) == 13**3 * 2


def test_the_same_over_an_index_that_is_created_with_the_read() -> None:
    """The reader may come to all of it before the owner has published anything, and the owner to its compaction."""

    def check(driver: ReplicaDriver) -> None:
        answers = driver.answers("peek 1")
        assert len(answers) == 1
        assert answers[0].canceled or driver.rows("peek 1") == Counter(ROWS)
        later = driver.peek("u2", driver.time)
        driver.rest()
        assert driver.rows(later) == Counter([*ROWS, (4, 50)])

    def create(driver: ReplicaDriver) -> None:
        driver.create(read_of("t3", "u2", 1))
        driver.peek("t3", 1)

    def end(driver: ReplicaDriver) -> None:
        driver.cancel("peek 1")
        driver.drop("t3")
        driver.write("u1", [(4, 50)])

    commands = (lambda d: d.create(index_on("u2", "u1", 1)), create, end, lambda d: d.compact("u2", 2))
    assert explore(with_table, commands, check, schedules(len(commands))) == 13**3 * 2


@pytest.mark.parametrize("changed", [False, True])
def test_a_reconnection_at_an_equal_as_of(changed: bool) -> None:
    """What is retained, and what is made anew at the time of the old one, in either runtime's order."""

    def begin(driver: ReplicaDriver) -> None:
        driver.hello()
        driver.create(index_on("u2", "u1", 1, *((LARGE,) if changed else ())))

    def finish(driver: ReplicaDriver) -> None:
        driver.peek("u2", 1)
        driver.send(InitializationComplete())

    def check(driver: ReplicaDriver) -> None:
        expected = [r for r in ROWS if not changed or r[1] > 30]
        assert driver.rows("peek 1") == Counter(expected)
        driver.drop("u2")
        driver.rest()
        assert driver.at_rest()

    commands = (lambda d: d.create(index_on("u2", "u1", 1)), begin, finish, lambda d: d.create(read_of("t3", "u2", 1)),
                lambda d: d.drop("t3"))  # fmt: skip
    some = itertools.islice(schedules(len(commands)), 0, None, 61)
    assert explore(with_table, commands, check, some) > 900
