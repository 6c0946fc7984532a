"""Operators without state: they pass updates on as they arrive.

Updates may pass before their time is closed, because each output update depends on one input update only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import ArrangedStream, Output, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Frontier

if TYPE_CHECKING:
    from eddyline.trace.run import Run

__all__ = ["FlattenOperator", "NegateOperator", "UnionOperator", "pass_errors", "run_updates"]


def pass_errors(input: Stream, output: Output) -> bool:
    """Hands all queued error batches on as they are; True if there were any."""
    moved = bool(input.errors)
    while input.errors:
        output.send_errors(input.errors.popleft())
    return moved


class UnionOperator:
    """The multiset sum of its inputs; its frontier is the least of theirs.  No inputs: empty at once."""

    def __init__(self, name: str, inputs: Sequence[Stream], output: Output, context: OperatorContext) -> None:
        self.name = name
        self._inputs = tuple(inputs)
        self._output = output
        self._budget_rows = context.budget_rows

    def step(self) -> bool:
        moved = False
        rows = 0
        for stream in self._inputs:
            moved |= pass_errors(stream, self._output)
            while stream.updates and rows < self._budget_rows:
                batch = stream.updates.popleft()
                rows += len(batch)
                self._output.send(batch)
                moved = True
        return self._output.advance(self._frontier()) or moved

    def pending(self) -> bool:
        return any(not s.drained() for s in self._inputs) or self._frontier() > self._output.frontier

    def close(self) -> None:
        """Nothing is held."""

    def _frontier(self) -> Frontier:
        """An input that is not drained holds the output at where it is."""
        return min((s.frontier if s.drained() else self._output.frontier for s in self._inputs), default=EMPTY)


class NegateOperator:
    """Each row with the opposite diff; errors pass unchanged, so that a failing row fails whatever its sign."""

    def __init__(self, name: str, input: Stream, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._input = input
        self._output = output
        self._budget_rows = context.budget_rows

    def step(self) -> bool:
        moved = pass_errors(self._input, self._output)
        rows = 0
        while self._input.updates and rows < self._budget_rows:
            batch = self._input.updates.popleft()
            rows += len(batch)
            self._output.send(batch.negated())
            moved = True
        if self._input.drained():
            moved |= self._output.advance(self._input.frontier)
        return moved

    def pending(self) -> bool:
        source = self._input
        return bool(source.updates or source.errors) or source.frontier > self._output.frontier

    def close(self) -> None:
        """Nothing is held."""


def run_updates(run: Run, as_of: int, upper: Frontier) -> Batch:
    """A sealed run as a batch: times moved up to ``as_of``, those at or past ``upper`` left out.  Shares columns."""
    times = np.asarray(run.times)
    diffs = np.asarray(run.diffs)
    batch = Batch(run.types, tuple(run.columns), times, diffs)
    if len(times) == 0:
        return batch
    if upper != EMPTY and int(times.max()) >= upper:
        batch = batch.take(np.flatnonzero(times < upper))
    if int(times.min()) < as_of:
        batch = Batch(batch.types, batch.columns, np.maximum(batch.times, as_of), batch.diffs)
    return batch


class FlattenOperator:
    """An arranged edge read as a stream of its runs, in slices of the row budget."""

    def __init__(self, name: str, input: ArrangedStream, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._input = input
        self._output = output
        self._context = context
        #: what is left of the interval being read: runs, and from which row on; where it ends
        self._parts: deque[tuple[Run, int]] = deque()
        self._upper = output.frontier
        #: as_of again and again, where all rows are at it
        self._times = np.empty(0, np.int64)

    def step(self) -> bool:
        moved = False
        rows = 0
        while rows < self._context.budget_rows:
            if self._parts:
                rows += self._send_some()
                moved = True
            elif self._upper > self._output.frontier:
                moved |= self._output.advance(self._upper)
            elif self._input.sealed:
                self._open()
                moved = True
            else:
                break
        return moved

    def pending(self) -> bool:
        return bool(self._parts or self._input.sealed) or self._upper > self._output.frontier

    def close(self) -> None:
        self._parts.clear()

    def _open(self) -> None:
        sealed = self._input.sealed.popleft()
        self._output.send_errors(sealed.errors)
        self._parts.extend((run, 0) for run in sealed.runs if len(run))
        self._upper = sealed.upper

    def _send_some(self) -> int:
        """Sends a slice of the first run; how many rows were looked at."""
        run, start = self._parts.popleft()
        stop = min(start + self._context.budget_rows, len(run))
        if stop < len(run):
            self._parts.appendleft((run, stop))
        self._output.send(self._clipped(run.batch().slice(start, stop)))
        return stop - start

    def _clipped(self, piece: Batch) -> Batch:
        """Without the times from the interval's end on, and those below as_of moved up to it."""
        if self._upper != EMPTY and int(piece.times.max()) >= self._upper:
            piece = piece.take(np.flatnonzero(piece.times < self._upper))
        if self._context.single_time:
            if len(self._times) < len(piece):
                self._times = np.full(len(piece), self._context.as_of, np.int64)
            return Batch(piece.types, piece.columns, self._times[: len(piece)], piece.diffs)
        if len(piece) and int(piece.times.min()) < self._context.as_of:
            return piece.advanced(self._context.as_of)
        return piece
