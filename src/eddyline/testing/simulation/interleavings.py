"""Every order in which two runtimes can take a few commands: short scripts explored to the end.

The commands are sent one by one, and between them either runtime may take what it was sent, build, seal and answer, or
lie still.  A *schedule* says which: per command, which runtimes go on after it, and whether by one step or until they
rest.  Afterwards both go on, in either order, until everything rests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eddyline.testing.driver import ReplicaDriver

__all__ = ["Move", "Schedule", "explore", "schedules"]

Command = Callable[[ReplicaDriver], None]


@dataclass(frozen=True, slots=True)
class Move:
    """What happens between two commands: runtime ``role`` makes one step, or goes on until it rests."""

    role: str
    to_rest: bool

    def make(self, driver: ReplicaDriver) -> None:
        if self.to_rest:
            driver.rest(self.role)
        else:
            driver.sides[self.role]()


Schedule = tuple[tuple[Move, ...], ...]

_ROLES = ("maintenance", "interactive")


def schedules(commands: int) -> Iterator[Schedule]:
    """All of them: after each command nothing, one runtime, or both in either order; at the end either goes first."""
    single = [(Move(role, to_rest),) for role in _ROLES for to_rest in (False, True)]
    both = [(*one, *other) for one in single for other in single if one[0].role != other[0].role]
    between: list[tuple[Move, ...]] = [(), *single, *both]
    last = [(Move(one, True), Move(other, True)) for one, other in itertools.permutations(_ROLES)]
    yield from itertools.product(*[between] * (commands - 1), last)


def explore(
    prepare: Callable[[], ReplicaDriver],
    commands: Sequence[Command],
    check: Callable[[ReplicaDriver], None],
    among: Iterator[Schedule],
) -> int:
    """Runs ``commands`` on a fresh driver under each schedule, and ``check`` after each command's moves and at rest.

    How many schedules there were.
    """
    count = 0
    for schedule in among:
        count += 1
        driver = prepare()
        for command, moves in zip(commands, schedule, strict=True):
            command(driver)
            for move in moves:
                move.make(driver)
                if driver.replica.failed:
                    raise AssertionError(f"the replica failed under {schedule}")
        driver.rest()
        try:
            check(driver)
        except AssertionError as failure:
            raise AssertionError(f"under {schedule}: {failure}") from failure
        driver.replica.close()
    return count
