"""Who waits for views that are behind, on a clock that the tests move."""

from __future__ import annotations

import threading
from collections.abc import Collection

import pytest

from eddyline.controller import lag as module
from eddyline.controller.lag import Lag
from eddyline.repr.time import EMPTY, Frontier, Time

_S = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.ns = 100 * _S

    def __call__(self) -> int:
        return self.ns

    def pass_s(self, seconds: float) -> None:
        self.ns += int(seconds * _S)


class World:
    """A bound of a second; commits are at times 1, 2, 3 and so on."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.lag = Lag(1.0, self.clock)
        self.time = 0

    def follow(
        self, id: str, *tables: str, inputs: Collection[str] = (), cluster: str = "s1", steady: bool = True
    ) -> None:
        self.lag.follow(id, cluster, frozenset(tables), inputs)
        if steady:
            self.reach(id)

    def reach(self, id: str, time: int | None = None) -> None:
        """The export has passed the commit at ``time``, or all of them."""
        self.lag.moved(id, Frontier((self.time if time is None else time) + 1))

    def commit(self, *tables: str, times: int = 1) -> None:
        for _ in range(times):
            self.time += 1
            self.lag.wrote(tables, Time(self.time))

    def waits(self, *tables: str) -> bool:
        return not self.lag.wait(tables, 0)


@pytest.fixture
def world() -> World:
    return World()


def test_nobody_waits_for_what_keeps_up(world: World) -> None:
    world.follow("i", "t")
    for _ in range(10):
        world.commit("t")
        world.clock.pass_s(5)
        assert not world.waits("t")
        world.reach("i")
    assert world.lag.behind("t") == 0
    assert sum(world.lag.waits.seen()[0]) == 0


def test_a_single_commit_may_take_as_long_as_it_takes(world: World) -> None:
    world.follow("i", "t")
    world.commit("t")
    world.clock.pass_s(2.9)
    assert not world.waits("t")


def test_writers_wait_once_the_oldest_commit_is_past_the_bound(world: World) -> None:
    world.follow("i", "t")
    world.commit("t", times=100)
    assert not world.waits("t"), "they are all young"
    world.clock.pass_s(1.1)
    assert world.waits("t")
    assert world.lag.behind("t") == 100
    assert world.lag.seconds() == pytest.approx(1.1)
    world.reach("i", 98)
    assert world.waits("t"), "two are left"
    world.reach("i", 99)
    assert not world.waits("t")


def test_the_slowest_counts(world: World) -> None:
    world.follow("fast", "t")
    world.follow("slow", "t")
    world.commit("t", times=3)
    world.clock.pass_s(2)
    world.reach("fast")
    assert world.waits("t")
    world.reach("slow")
    assert not world.waits("t")


def test_other_tables_never_wait(world: World) -> None:
    world.follow("i", "t", "u")
    world.follow("j", "v")
    world.commit("t", times=3)
    world.clock.pass_s(2)
    assert world.waits("t")
    assert world.waits("t", "u")
    assert not world.waits("u"), "the view is behind the other table's commits"
    assert not world.waits("v")
    assert not world.waits("nobody reads it")


@pytest.mark.parametrize("how", ["dropped", "lost", "complete"])
def test_nobody_waits_for_what_is_gone(world: World, how: str) -> None:
    world.follow("i", "t")
    world.commit("t", times=3)
    world.clock.pass_s(2)
    assert world.waits("t")
    match how:
        case "dropped":
            world.lag.leave("i")
        case "lost":
            world.lag.moved("i", None)
        case _:
            world.lag.moved("i", EMPTY)
    assert not world.waits("t")
    assert world.lag.behind("t") == 0


def test_what_is_being_built_counts_for_nothing(world: World) -> None:
    world.follow("i", "t", steady=False)
    world.commit("t", times=100)
    world.clock.pass_s(100)
    assert not world.waits("t")


def test_what_begins_behind_slows_writers_down_and_stops_nobody(world: World) -> None:
    """The view passes a commit a second, and the writer never waits longer than it has to."""
    world.follow("i", "t", steady=False)
    world.commit("t", times=200)
    world.clock.pass_s(60)
    world.reach("i", 100)
    assert world.lag.behind("t") == 100
    assert not world.waits("t"), "it may stay as far behind as it begins"
    passed, written = 100, 0
    for _ in range(190):
        if not world.waits("t"):
            world.commit("t")
            written += 1
        world.clock.pass_s(1)
        world.lag.heard("s1")
        passed += 1
        world.reach("i", passed)
        assert world.lag.behind("t") <= 101
    assert written == pytest.approx(95, abs=1), "half of what was passed"
    assert world.lag.behind("t") == 100 + written - 190


def test_what_reads_something_that_is_not_computed_counts_for_nothing(world: World) -> None:
    world.follow("below", "t")
    world.follow("above", "t", inputs=["below"], cluster="u1")
    world.follow("top", "t", inputs=["above", "unknown"], cluster="u1")
    world.commit("t", times=5)
    world.clock.pass_s(2)
    world.lag.moved("below", None)
    assert not world.waits("t")
    world.reach("above", 1)
    assert not world.waits("t"), "it cannot come further"
    world.reach("below", 3)
    assert not world.waits("t"), "what begins behind may be so"
    world.reach("below")
    world.reach("above")
    world.reach("top")
    world.commit("t", times=5)
    world.clock.pass_s(2)
    world.reach("below")
    world.reach("above")
    assert world.waits("t"), "the last one counts again, too"


def test_a_cluster_that_has_fallen_silent_is_not_waited_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.follow("i", "t")
    world.commit("t", times=3)
    world.clock.pass_s(2.9)
    assert world.waits("t")
    world.lag.heard("s1")
    world.lag.heard("another")
    world.clock.pass_s(2.9)
    assert world.waits("t"), "it has said something since"
    world.clock.pass_s(0.2)
    assert not world.waits("t")
    assert "writers no longer wait for i" in caplog.text
    world.commit("t", times=3)
    world.reach("i", 2)
    world.clock.pass_s(5)
    world.lag.heard("s1")
    assert not world.waits("t"), "it counts again, and begins behind"
    world.commit("t")
    assert world.waits("t")


def test_what_does_not_move_is_not_waited_for_even_if_its_cluster_speaks(world: World) -> None:
    world.follow("stuck", "t")
    world.follow("slow", "t")
    world.commit("t", times=5)
    for second in range(31):
        world.lag.heard("s1")
        assert world.waits("t") == (second > 1), second
        world.clock.pass_s(1)
        if second == 20:
            world.reach("slow", 2)
    assert world.waits("t"), "the other one has moved, and is waited for"
    assert world.lag.behind("t") == 3
    world.reach("slow")
    assert not world.waits("t")


def test_what_is_remembered_is_bounded_and_nothing_is_miscounted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ENTRIES", 64)
    world.follow("steady", "t")
    world.follow("building", "t", steady=False)
    for _ in range(1_000):
        world.commit("t")
        world.reach("steady")
    remembered = world.lag._tables["t"].passed
    assert len(remembered) <= 65
    assert sum(e.commits for e in remembered) == 1_000
    world.reach("building", 500)
    assert 500 <= world.lag.behind("t") <= 562, "an entry that is partly passed counts whole"
    world.reach("building")
    assert world.lag.behind("t") == 0
    assert not remembered, "nobody will ask for it"
    world.lag.set_bound(None)
    world.commit("t", times=1_000)
    assert len(world.lag._tables["t"].behind) <= 65
    assert world.lag.behind("t") == 1_000


def test_a_commit_that_was_passed_before_it_was_told_of_is_passed(world: World) -> None:
    world.follow("i", "t")
    world.lag.moved("i", Frontier(10))
    world.commit("t", times=9)
    assert world.lag.behind("t") == 0


def test_the_bound_can_be_changed_while_somebody_waits(world: World) -> None:
    world.follow("i", "t")
    world.commit("t", times=3)
    world.clock.pass_s(2)
    world.lag.set_bound(3.0)
    assert not world.waits("t")
    world.lag.set_bound(1.0)
    assert world.waits("t")
    done: list[bool] = []
    writer = threading.Thread(target=lambda: done.append(world.lag.wait(["t"], None)))
    writer.start()
    world.lag.set_bound(None)
    writer.join(30)
    assert done == [True]


@pytest.mark.parametrize("end", ["moved", "cancelled", "closed"])
def test_a_wait_ends(world: World, end: str) -> None:
    world.follow("i", "t")
    world.commit("t", times=3)
    world.clock.pass_s(2)
    cancelled, begun, done = threading.Event(), threading.Event(), list[bool]()

    def looked() -> bool:
        begun.set()
        return cancelled.is_set()

    writer = threading.Thread(target=lambda: done.append(world.lag.wait(["t"], None, looked)))
    writer.start()
    assert begun.wait(30)
    match end:
        case "moved":
            world.reach("i")
        case "cancelled":
            cancelled.set()
        case _:
            world.lag.close()
    writer.join(30)
    assert done == [end == "moved"]
    assert sum(world.lag.waits.seen()[0]) == 1
