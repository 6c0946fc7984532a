"""Whether reads and writes, each with the interval in which it happened, could have happened one at a time.

Writes are totally ordered already, by their times, so that the state after the first *n* of them is known.  A history
is linearizable if each read can be given the state that it saw, numbered n, such that

* every write that had ended before the read began is in it, and none that began after the read had ended;
* a read that ended before another began saw no later state than that one.

The least state that fits, given to reads in the order in which they began, leaves the most room for later ones.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["NotLinearizableError", "Read", "Write", "check_linearizable"]


class NotLinearizableError(AssertionError):
    """A read saw a state that it could not see."""


@dataclass(frozen=True, slots=True)
class Write:
    """``began``, ``ended``: instants of the clients' clock; ``ended`` None: not acknowledged yet."""

    began: int
    ended: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """``saw``: whether its answer is that of the state after the first n writes."""

    name: str
    began: int
    ended: int
    saw: Callable[[int], bool]


def check_linearizable(writes: Sequence[Write], reads: Sequence[Read]) -> None:
    """``writes`` in the order of their times.  Raises ``NotLinearizableError``."""
    begins = [w.began for w in writes]
    if begins != sorted(begins):
        raise NotLinearizableError("the order of the writes' times is not the order in which they began")
    floor = 0  # the latest state that a read saw which had ended before the present one began
    finished: list[tuple[int, int]] = []  # (instant, state) of the reads that may not have
    for read in sorted(reads, key=lambda r: r.began):
        floor = max([floor, *(state for instant, state in finished if instant < read.began)])
        finished = [(instant, state) for instant, state in finished if instant >= read.began]
        acknowledged = (n + 1 for n, w in enumerate(writes) if w.ended is not None and w.ended < read.began)
        least = max(floor, max(acknowledged, default=0))
        most = bisect.bisect_right(begins, read.ended)
        state = next((n for n in range(least, most + 1) if read.saw(n)), None)
        if state is None:
            raise NotLinearizableError(f"{read.name} saw none of the states {least} to {most}")
        finished.append((read.ended, state))
