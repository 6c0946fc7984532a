"""Updates of a stream kept until their times close, then handed out in time order in bounded pieces.

Invariants:
I1  a piece holds at most about ``piece_rows`` rows, and no time of a later piece is below one of an earlier piece;
I2  what ``seal`` closed is handed out completely before the next interval is opened.
The state belongs to the worker's thread.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from eddyline.compute.stream import Stream
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import MIN_TIME, Frontier
from eddyline.repr.types import SqlType

__all__ = ["Stash"]

#: so many numbers are compared sooner as Python's than by two calls of NumPy
_FEW = 32


class Stash:
    """``take`` moves queued updates in; ``seal`` opens the interval up to a frontier; ``piece`` hands it out.

    Cost: each update is looked at when it arrives and when it leaves; one whose time stays open is sorted once, so
    that later frontiers only cut slices off.
    """

    def __init__(self, piece_rows: int) -> None:
        self._piece_rows = piece_rows
        self._open: list[tuple[int, int, Batch]] = []  # (least time, greatest time, updates), unordered
        self._pieces: deque[Batch] = deque()
        self.upper: Frontier = Frontier(MIN_TIME)  # of the last interval opened
        self.rows = 0  # in open times

    def take(self, stream: Stream) -> bool:
        """Moves all queued updates in, by reference; True if there were any."""
        moved = bool(stream.updates)
        while stream.updates:
            self.add(stream.updates.popleft())
        return moved

    def add(self, batch: Batch) -> None:
        if len(batch):
            self._open.append((*_span(batch.times), batch))
            self.rows += len(batch)

    def exhausted(self) -> bool:
        """Every piece of the interval opened last has been handed out."""
        return not self._pieces

    def seal(self, upper: Frontier) -> None:
        """Opens the interval of times below ``upper``.  It is an error to call this before ``exhausted()``."""
        self.upper = upper
        if not self._open:
            return
        if len(self._open) == 1 and self._open[0][1] < upper:
            self._close_one(self._open.pop()[2])
            return
        closed: list[Batch] = []
        kept: list[tuple[int, int, Batch]] = []
        for low, high, batch in self._open:
            if high < upper:
                closed.append(batch)
            elif low >= upper:
                kept.append((low, high, batch))
            else:
                ordered = _by_time(batch)
                cut = int(np.searchsorted(ordered.times, upper))
                closed.append(ordered.slice(0, cut))
                kept.append((int(ordered.times[cut]), high, ordered.slice(cut, len(ordered))))
        self._open = kept
        self.rows -= sum(len(b) for b in closed)
        if closed:
            self._cut(closed)

    def piece(self) -> Batch | None:
        """The next piece of the open interval; None when it is exhausted."""
        return self._pieces.popleft() if self._pieces else None

    def next_time(self) -> int | None:
        """The least time of the pieces left; None when they are exhausted."""
        return int(self._pieces[0].times.min()) if self._pieces else None

    def _close_one(self, batch: Batch) -> None:
        """All there is, and all of it closed: most often so."""
        self.rows = 0
        if len(batch) < self._piece_rows:
            self._pieces.append(_by_time(batch))
        else:
            self._cut([batch])

    def _cut(self, closed: list[Batch]) -> None:
        """Small batches are joined, large ones sliced; only batches of overlapping times must be sorted together."""
        closed.sort(key=lambda b: int(b.times.min()))
        group: list[Batch] = []
        rows, high = 0, -1
        for batch in closed:
            if rows >= self._piece_rows and int(batch.times.min()) > high:
                self._slice(group)
                group, rows = [], 0
            group.append(batch)
            rows += len(batch)
            high = max(high, int(batch.times.max()))
        self._slice(group)

    def _slice(self, group: list[Batch]) -> None:
        types: tuple[SqlType, ...] = group[0].types
        if len({int(b.times.min()) for b in group} | {int(b.times.max()) for b in group}) > 1:
            group = [_by_time(Batch.concat(types, group))]
        small: list[Batch] = []
        rows = 0
        for batch in group:
            if len(batch) >= self._piece_rows:
                for start in range(0, len(batch), self._piece_rows):
                    self._pieces.append(batch.slice(start, min(start + self._piece_rows, len(batch))))
                continue
            small.append(batch)
            rows += len(batch)
            if rows >= self._piece_rows:
                self._pieces.append(Batch.concat(types, small))
                small, rows = [], 0
        if small:
            self._pieces.append(Batch.concat(types, small))


def _span(times: Int64s) -> tuple[int, int]:
    """The least and the greatest; there is at least one."""
    first = int(times[0])
    if len(times) == 1:
        return first, first
    if len(times) <= _FEW:
        listed = times.tolist()
        return min(listed), max(listed)
    return int(times.min()), int(times.max())


def _by_time(batch: Batch) -> Batch:
    times = batch.times
    if len(times) == 1 or np.all(times[1:] >= times[:-1]):
        return batch
    return batch.take(np.argsort(times, kind="stable"))
