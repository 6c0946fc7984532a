"""A batch cut into segments, one per group and distinct time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eddyline.repr.batch import Int64s

__all__ = ["Segments", "cut_segments"]


class Segments(NamedTuple):
    """Segments stand by group, then by time: group *g* has those from ``starts[g]`` to ``starts[g + 1]``."""

    of_row: Int64s  # the segment of each row of the batch
    group: Int64s  # the group of each segment
    times: Int64s  # the time of each segment
    starts: Int64s

    def __len__(self) -> int:
        """The number of segments."""
        return len(self.times)

    def previous(self) -> tuple[Int64s, Int64s]:
        """(old, new) positions, for each segment, among the groups' first states followed by all segments' states."""
        groups = len(self.starts) - 1
        new = groups + np.arange(len(self.times), dtype=np.int64)
        old = new - 1
        old[self.starts[:-1]] = np.arange(groups)
        return old, new


def cut_segments(groups: Int64s, count: int, times: Int64s) -> Segments:
    """``groups``: int64[n] in 0..count-1, each occurring.  O(n) for a single time, else O(n log n)."""
    rows = len(groups)
    if rows == 0 or times.min() == times.max():
        time = int(times[0]) if rows else 0
        everything = np.arange(count + 1, dtype=np.int64)
        return Segments(groups, everything[:-1], np.full(count, time, np.int64), everything)
    order = np.lexsort((times, groups))
    group, time_of = groups[order], times[order]
    opens = np.ones(rows, np.bool_)
    opens[1:] = (group[1:] != group[:-1]) | (time_of[1:] != time_of[:-1])
    of_row = np.empty(rows, np.int64)
    of_row[order] = np.cumsum(opens) - 1
    group, time_of = group[opens], time_of[opens]
    starts = np.searchsorted(group, np.arange(count + 1))
    return Segments(of_row, group, time_of, starts.astype(np.int64))
