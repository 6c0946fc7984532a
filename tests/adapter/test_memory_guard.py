"""What is refused, and what is stopped first, as memory runs short: look by look, with a clock and sizes of its own."""

from __future__ import annotations

import errno
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from eddyline.adapter import memory_guard
from eddyline.adapter.memory_guard import MemoryGuard
from eddyline.adapter.memory_use import anonymous_bytes, available_bytes, can_be_watched, usual_limit
from eddyline.errors import DatabaseError
from tests.waiting import wait_until

MB = 1 << 20


class Statement:
    def __init__(self, reading: str | None = None) -> None:
        self.reading = reading
        self.failure: DatabaseError | None = None

    def stop(self, failure: DatabaseError) -> None:
        self.failure = failure


class World:
    """A process of 1000 MB.  ``free``: what is given back once it is asked to."""

    def __init__(self) -> None:
        self.used_mb, self.free_mb, self.now = 0, 0, 100.0
        self.held: dict[str, int] = {}
        self.builds: list[str] = []
        self.stopped: list[tuple[str, str]] = []
        self.weighing = False
        self.guard = MemoryGuard(
            self, used=lambda: self.used_mb * MB, trim=self.trim, clock=lambda: self.now, threads=False
        )
        self.guard.watch(1000 * MB)

    def trim(self) -> None:
        self.used_mb, self.free_mb = self.used_mb - self.free_mb, 0

    def look(self, used_mb: int, after: float = 1.0) -> float | None:
        self.used_mb, self.now = used_mb, self.now + after
        return self.guard.look()

    def weigh_dataflows(self, *, on: bool) -> None:
        self.weighing = on

    def held_bytes(self) -> Mapping[str, int]:
        return self.held

    def builds_under_way(self) -> Sequence[str]:
        return self.builds

    def stop_build(self, id: str, why: DatabaseError) -> None:
        self.builds.remove(id)
        self.stopped.append((id, why.sqlstate))


def test_new_work_is_refused_from_nine_tenths_on_until_there_is_room_again() -> None:
    world = World()
    world.look(900)
    world.guard.admit()
    assert not world.weighing
    world.look(901)
    with pytest.raises(
        DatabaseError, match="short of memory: 901 MB are in use, and server_memory_limit is 1000 MB"
    ) as e:
        world.guard.admit()
    assert e.value.sqlstate == "53200" and "ALTER SYSTEM" in (e.value.hint or "")
    assert world.weighing
    world.look(500)
    world.guard.admit()
    assert not world.weighing


def test_pages_that_are_free_do_not_count() -> None:
    world, statement = World(), Statement()
    with world.guard.under_way(statement):
        world.free_mb = 300
        world.look(1100)
        world.guard.admit()
        assert statement.failure is None


def test_the_statement_that_holds_most_is_stopped_and_the_next_only_when_that_was_not_enough() -> None:
    world = World()
    small, large, larger = Statement("a"), Statement("b"), Statement("c")
    world.held = {"a": 1 * MB, "b": 200 * MB, "c": 300 * MB}
    with ExitStack() as under_way:
        for statement in (small, large):
            under_way.enter_context(world.guard.under_way(statement))
        with world.guard.under_way(larger):
            world.look(950)
            world.look(1001)
            assert larger.failure is not None and larger.failure.sqlstate == "53200"
            assert "stopped: 1001 MB are in use" in larger.failure.message
            world.look(1001, after=0.1)  # it has yet to notice
        world.free_mb = 300
        world.look(1001, after=0.01)  # it is gone: what it held is looked at first
        world.look(1001, after=0.01)
        world.look(701, after=1)
        assert large.failure is None
        world.look(1001)
        world.look(1001)
        assert large.failure is not None and small.failure is None


def test_of_sizes_that_nobody_knows_the_one_that_began_last_is_stopped() -> None:
    world = World()
    first, last = Statement(), Statement("z")
    world.held = {"z": 31 * MB}  # less than a thirty-second of the limit
    with world.guard.under_way(first):
        with world.guard.under_way(last):
            world.look(950)
            world.look(1100)
            assert last.failure is not None and first.failure is None
        world.look(1100)
        world.look(1100)
        assert first.failure is not None


def test_builds_are_stopped_by_their_size_and_after_statements_without_one() -> None:
    world, statement = World(), Statement("r")
    world.builds, world.held = ["u2", "u1"], {"u1": 400 * MB, "r": 100 * MB}
    with world.guard.under_way(statement):
        world.look(950)
        world.look(1100)
        assert world.stopped == [("u1", "53200")] and statement.failure is None
        world.look(1100, after=0.1)
        assert statement.failure is None, "what it held may be on its way back"
        world.look(1100)
        assert statement.failure is not None and world.stopped == [("u1", "53200")]
    world.look(1100)
    world.look(1100)
    assert world.stopped == [("u1", "53200"), ("u2", "53200")]


def test_a_statement_that_has_ended_is_left_alone() -> None:
    world, statement = World(), Statement("r")
    world.held = {"r": 400 * MB}
    with world.guard.under_way(statement):
        world.look(950)
    world.look(1100)
    assert statement.failure is None


def test_with_nothing_to_stop_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for _ in range(5):
        world.look(1100)
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == [
        "there is nothing to stop: 1100 MB are in use, and server_memory_limit is 1000 MB"
    ]


def test_it_looks_more_often_the_less_room_there_is() -> None:
    world = World()
    waits = [world.look(used) for used in (0, 700, 880, 899, 950, 1100)]
    assert waits == sorted((w for w in waits if w is not None), reverse=True)
    assert waits[0] is not None and waits[0] <= 0.5 and waits[-1] == 0.01


def test_without_a_limit_nothing_is_refused() -> None:
    world = World()
    world.look(950)
    world.guard.watch(None)
    assert world.look(2000) is None
    world.guard.admit()
    assert not world.weighing


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "300000\n"}, 300_000),
        (
            {
                "proc/self/cgroup": "0::/system.slice/eddyline.service\n",
                "sys/fs/cgroup/system.slice/memory.max": "200000\n",
                "sys/fs/cgroup/system.slice/eddyline.service/memory.max": "max\n",
            },
            200_000,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n",
                "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            100_000,
        ),
        ({"proc/self/cgroup": "0::/not/seen/from/here\n"}, None),
        ({}, None),
    ],
)
def test_a_control_group_bounds_what_there_is(tmp_path: Path, files: Mapping[str, str], limit: int | None) -> None:
    physical = available_bytes(tmp_path / "nothing")
    assert physical > 100 * MB
    assert available_bytes(write(tmp_path, files)) == (physical if limit is None else limit)


@pytest.mark.skipif(not can_be_watched(), reason="only Linux says how much memory is in use")
def test_memory_in_use_is_what_was_written_to() -> None:
    before = anonymous_bytes()
    block = bytearray(b"x") * (64 * MB)
    assert 60 * MB < anonymous_bytes() - before < 80 * MB
    del block
    usual = usual_limit()
    assert usual is not None and 0 < usual <= available_bytes()


# -- its thread -------------------------------------------------------------------------------------------------------


def wait_until_refused(guard: MemoryGuard) -> None:
    def refused() -> bool:
        try:
            guard.admit()
        except DatabaseError:
            return True
        return False

    wait_until(refused, "somebody looks")


def test_a_look_that_fails_is_not_the_last_one_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(memory_guard, "_LONGEST_S", 0.005)
    failures: list[Exception] = [OSError(errno.EMFILE, "too many open files"), ValueError("odd"), OSError("again")]

    def used() -> int:
        if failures:
            raise failures.pop(0)
        return 950 * MB

    guard = MemoryGuard(World(), used=used, trim=lambda: None)
    guard.watch(1000 * MB)
    try:
        wait_until_refused(guard)
    finally:
        guard.close()
    assert [r.message for r in caplog.records if "could not be looked at" in r.message] == [
        "memory in use could not be looked at, or brought down: [Errno 24] too many open files"
    ]


def test_without_a_thread_it_says_so_and_begins_when_the_limit_is_set_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    guard = MemoryGuard(World(), used=lambda: 950 * MB, trim=lambda: None)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        guard.watch(1000 * MB)
    assert "can't start new thread" in caplog.text
    guard.watch(1000 * MB)
    try:
        wait_until_refused(guard)
    finally:
        guard.close()
