"""The frame of the stateful operators over streams: what is absorbed, when it is published, in which pieces.

Until the dataflow's as_of is closed, updates at as_of are *absorbed* into the state without any output; then the
state is *published* once, in bounded pieces, at as_of.  From there on each sealed interval is *applied* in pieces of
ascending time, and every piece gives the exact changes of the output at the times it holds.  (A time that spans two
pieces is corrected by the second: the sum is exact, and nobody reads a time before it is closed.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

import numpy as np

from eddyline.compute.context import BUDGET_ROWS, OperatorContext
from eddyline.compute.operators.stash import Stash
from eddyline.compute.operators.stateless import pass_errors
from eddyline.compute.stream import Output, Stream
from eddyline.repr.batch import Batch

__all__ = ["SealedOperator"]


class SealedOperator(ABC):
    """Errors of the input pass on arrival: they do not depend on other updates."""

    #: rows absorbed or applied in one activation, at most
    PIECE_ROWS: ClassVar[int] = BUDGET_ROWS

    def __init__(self, name: str, input: Stream, output: Output, context: OperatorContext) -> None:
        self.name = name
        self.output = output
        self.context = context
        self._input = input
        self._piece_rows = min(context.budget_rows, self.PIECE_ROWS)
        self._stash = Stash(self._piece_rows)
        self._hydrated = False
        #: what is left of the publication, or of the piece that was taken last
        self._work: Iterator[None] | None = None
        #: the interval under way ends here; the output's frontier when none is under way
        self._target = output.frontier

    @abstractmethod
    def absorb(self, batch: Batch) -> None:
        """Takes updates at as_of into the state, without output."""

    def absorb_rest(self) -> int:
        """One bounded part of what ``absorb`` has left to be done; its rows, 0 if there is none."""
        return 0

    def absorb_all(self) -> Iterator[None]:
        """All that ``absorb`` has left to be done, before ``publish``; yields after each bounded part."""
        return iter(())

    @abstractmethod
    def publish(self) -> Iterator[None]:
        """Emits the state at as_of; yields after each bounded piece."""

    @abstractmethod
    def apply(self, batch: Batch) -> Iterator[None]:
        """Takes a piece into the state and emits what changes, at the piece's times; yields after each bounded part.

        What is done before the first yield may be done by the call itself.
        """

    def step(self) -> bool:
        moved = pass_errors(self._input, self.output)
        moved |= self._take()
        if self._target == self.output.frontier and self._may_open():
            self._target = self._input.frontier
            self._stash.seal(self._target)
            if not self._hydrated:
                self._hydrated = True
                self._work = chain(self.absorb_all(), self.publish())
            moved = True
        if self._target > self.output.frontier:
            self._advance()
            moved = True
        return moved

    def pending(self) -> bool:
        source, frontier = self._input, self.output.frontier
        if source.updates or source.errors or self._target > frontier:
            return True
        return source.frontier > frontier and source.frontier > self.context.as_of

    def close(self) -> None:
        self._work = None

    def _may_open(self) -> bool:
        frontier = self._input.frontier
        return self._input.drained() and frontier > self.output.frontier and frontier > self.context.as_of

    def _take(self) -> bool:
        """Moves what is queued into the state (updates at as_of, while hydrating) or the stash."""
        moved = bool(self._input.updates)
        if self._hydrated:
            self._stash.take(self._input)
            return moved
        absorbed = self.absorb_rest() if self._input.updates else 0
        while self._input.updates and absorbed < self._piece_rows:
            batch = self._input.updates.popleft()
            if not self.context.single_time:  # whose sources give nothing later
                early = batch.times <= self.context.as_of
                if not early.all():
                    self._stash.add(batch.take(np.flatnonzero(~early)))
                    batch = batch.take(np.flatnonzero(early))
            if len(batch) > self._piece_rows:
                self._input.updates.appendleft(batch.slice(self._piece_rows, len(batch)))
                batch = batch.slice(0, self._piece_rows)
            if len(batch):
                self.absorb(batch)
            absorbed += len(batch)
        return moved

    def _advance(self) -> None:
        """One bounded part of the publication or of a piece; after the last one the frontier moves."""
        if self._work is None:
            piece = self._stash.piece()
            self._work = None if piece is None else self.apply(piece)
        if self._work is not None:
            for _ in self._work:
                return
            self._work = None
        if self._stash.exhausted():
            self.output.advance(self._target)
