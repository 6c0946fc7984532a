"""Times and frontiers.

A *time* is a non-negative count of microseconds since the epoch, held as int64 (numpy and Numba turn uint64
mixed with int64 into float64, which would corrupt times silently).  Times are totally ordered, so a *frontier* is
one number: every update below it has been seen.  The empty frontier (complete for ever) is ``EMPTY``, one past
the largest time, so that ``t < frontier`` is right for it as well.
"""

from __future__ import annotations

from typing import Final, NewType

__all__ = ["EMPTY", "MAX_TIME", "MIN_TIME", "Frontier", "Time"]

Time = NewType("Time", int)
Frontier = NewType("Frontier", int)

MIN_TIME: Final = Time(0)
MAX_TIME: Final = Time(2**63 - 2)
EMPTY: Final = Frontier(2**63 - 1)
