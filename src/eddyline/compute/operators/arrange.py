"""Seals a stream into intervals and keeps them in traces.

Invariants:
I1  the trace's upper is the output's frontier, except inside a step;
I2  a run may enter the trace before its interval is sealed, with the bounds [upper, upper): its times are all at or
    past the trace's upper, so that no reader below upper sees it, and merging it is paid as rows come in.
    A snapshot of any size is therefore sealed in O(1) after its last morsel: no stall proportional to it;
I3  the first interval's upper is past as_of.
"""

from __future__ import annotations

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.stash import Stash
from eddyline.compute.stream import ArrangedOutput, Arrangement, Sealed, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Frontier
from eddyline.trace.run import Layout, Run, build_run
from eddyline.trace.trace import Trace

__all__ = ["ERRORS_LAYOUT", "ArrangeOperator", "new_arrangement"]

ERRORS_LAYOUT = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))


def new_arrangement(layout: Layout, context: OperatorContext) -> Arrangement:
    """Empty traces for rows in ``layout`` and for errors."""
    return Arrangement(Trace(layout, context.hasher), Trace(ERRORS_LAYOUT, context.hasher))


class ArrangeOperator:
    """Arranges by ``layout``; the traces are those of ``output.arrangement`` and have this one writer."""

    def __init__(
        self, name: str, input: Stream, layout: Layout, output: ArrangedOutput, context: OperatorContext
    ) -> None:
        self.name = name
        self._input = input
        self._layout = layout
        self._output = output
        self._context = context
        self._rows = Stash(context.budget_rows)
        self._errors = Stash(context.budget_rows)
        #: updates at as_of not yet in a run, while nothing is sealed
        self._morsel: list[Batch] = []
        self._morsel_rows = 0
        #: runs of the interval to be sealed next; they are in the trace already
        self._runs: list[Run] = []
        #: the interval being sealed runs up to here; the output's frontier when none is
        self._target = output.frontier

    def step(self) -> bool:
        moved = self._take()
        if self._target == self._output.frontier and self._may_open():
            self._target = self._input.frontier
            self._flush_morsel()
            self._rows.seal(self._target)
            self._errors.seal(self._target)
            moved = True
        if self._target > self._output.frontier:
            self._seal_some()
            moved = True
        return moved

    def pending(self) -> bool:
        return not self._input.drained() or self._target > self._output.frontier or self._may_open()

    def close(self) -> None:
        self._morsel.clear()
        self._runs.clear()

    def _may_open(self) -> bool:
        frontier = self._input.frontier
        return self._input.drained() and frontier > self._output.frontier and frontier > self._context.as_of

    def _take(self) -> bool:
        moved = bool(self._input.errors or self._input.updates)
        while self._input.errors:
            self._errors.add(self._input.errors.popleft())
        taken = 0
        while self._input.updates and taken < self._context.budget_rows:
            batch = self._input.updates.popleft()
            if self._target > self._context.as_of or (len(batch) and int(batch.times.max()) > self._context.as_of):
                self._rows.add(batch)
                continue
            if len(batch) > self._context.budget_rows:
                self._input.updates.appendleft(batch.slice(self._context.budget_rows, len(batch)))
                batch = batch.slice(0, self._context.budget_rows)
            self._morsel.append(batch)
            self._morsel_rows += len(batch)
            taken += len(batch)
            if self._morsel_rows >= self._context.budget_rows:
                self._flush_morsel()
        return moved

    def _flush_morsel(self) -> None:
        if self._morsel_rows:
            self._insert_ahead(Batch.concat(self._layout.types, self._morsel))
        self._morsel = []
        self._morsel_rows = 0

    def _insert_ahead(self, batch: Batch) -> None:
        lower = self._output.frontier
        trace = self._output.arrangement.oks
        run = build_run(batch, self._layout, self._context.hasher, lower=lower, upper=lower, since=trace.since)
        if len(run):
            trace.insert(run)
            self._runs.append(run)

    def _seal_some(self) -> None:
        """One piece into a run; after the last one the interval is sealed."""
        piece = self._rows.piece()
        if piece is not None and not self._rows.exhausted():
            self._insert_ahead(piece)
            return
        lower, upper = self._output.frontier, self._target
        trace = self._output.arrangement.oks
        last: Run | None = None
        if piece is not None:
            last = build_run(piece, self._layout, self._context.hasher, lower=lower, upper=upper, since=trace.since)
        if last is not None and len(last):
            trace.insert(last)
            self._runs.append(last)
        else:
            trace.advance_upper(upper)
        errors = self._seal_errors(lower, upper)
        self._output.seal(Sealed(tuple(self._runs), errors, lower, upper))
        self._runs = []

    def _seal_errors(self, lower: Frontier, upper: Frontier) -> Batch | None:
        pieces: list[Batch] = []
        while (piece := self._errors.piece()) is not None:
            pieces.append(piece)
        trace = self._output.arrangement.errs
        if not pieces:
            trace.advance_upper(upper)
            return None
        errors = Batch.concat(ERR_TYPES, pieces)
        run = build_run(errors, ERRORS_LAYOUT, self._context.hasher, lower=lower, upper=upper, since=trace.since)
        if len(run):
            trace.insert(run)
        else:
            trace.advance_upper(upper)
        return errors
