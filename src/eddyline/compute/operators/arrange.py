"""Seals a stream into intervals and keeps them in traces.

Invariants:
I1  the output's frontier is never past the traces' uppers;
I2  where one time has more rows than a piece, its runs but the last enter the trace ahead of the seal, with the
    bounds [t, t): the trace's upper is t, and no reader below it sees them.  Merging is paid as rows come in, and a
    snapshot of any size is sealed in O(1) after its last morsel: no stall proportional to it;
I3  the first interval's upper is past as_of.
"""

from __future__ import annotations

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.stash import Stash
from eddyline.compute.state_size import StateSize, size_of_traces
from eddyline.compute.stream import ArrangedOutput, Arrangement, Sealed, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Frontier
from eddyline.trace.run import Layout, Run, build_run
from eddyline.trace.trace import Trace

__all__ = ["ERRORS_LAYOUT", "ArrangeOperator", "new_arrangement"]

#: rows sorted and inserted in one activation; inserting also merges several times as many
_PIECE_ROWS = 16_384

_NO_ERRORS = Batch.empty(ERR_TYPES)
ERRORS_LAYOUT = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))


def new_arrangement(layout: Layout, context: OperatorContext) -> Arrangement:
    """Traces for rows in ``layout`` and for errors, empty, beginning at as_of."""
    lower = Frontier(context.as_of)
    return Arrangement(Trace(layout, lower=lower), Trace(ERRORS_LAYOUT, lower=lower))


class ArrangeOperator:
    """Arranges by ``layout``; the traces are those of ``output.arrangement`` and have this one writer."""

    def __init__(
        self, name: str, input: Stream, layout: Layout, output: ArrangedOutput, context: OperatorContext
    ) -> None:
        self.name = name
        self._input = input
        self._layout = layout
        self._output = output
        assert isinstance(output.arrangement, Arrangement), "only its one writer's traces can be written"
        self._arrangement = output.arrangement
        self._context = context
        self._piece_rows = min(context.budget_rows, _PIECE_ROWS)
        self._rows = Stash(self._piece_rows)
        self._error_stash = Stash(self._piece_rows)
        #: errors of the interval being sealed
        self._errors = Batch.empty(ERR_TYPES)
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
            self._error_stash.seal(self._target)
            self._errors = self._closed_errors()
            moved = True
        if self._target > self._output.frontier:
            self._seal_some()
            moved = True
        return moved

    def pending(self) -> bool:
        return not self._input.drained() or self._target > self._output.frontier or self._may_open()

    def state_size(self) -> StateSize:
        return size_of_traces((self._arrangement.oks, self._arrangement.errs))

    def close(self) -> None:
        self._morsel.clear()
        self._runs.clear()

    def _may_open(self) -> bool:
        frontier = self._input.frontier
        return self._input.drained() and frontier > self._output.frontier and frontier > self._context.as_of

    def _take(self) -> bool:
        moved = not self._input.drained()
        as_of = self._context.as_of
        while self._input.errors:
            self._error_stash.add(self._input.errors.popleft().advanced(as_of))
        taken = 0
        while self._input.updates and taken < self._piece_rows:
            batch = self._input.updates.popleft()
            if self._target > as_of or (len(batch) and int(batch.times.max()) > as_of):
                self._rows.add(batch.advanced(as_of))
                continue
            if len(batch) > self._piece_rows:
                self._input.updates.appendleft(batch.slice(self._piece_rows, len(batch)))
                batch = batch.slice(0, self._piece_rows)
            self._morsel.append(batch.advanced(as_of))
            self._morsel_rows += len(batch)
            taken += len(batch)
            if self._morsel_rows >= self._piece_rows:
                self._flush_morsel()
        return moved

    def _flush_morsel(self) -> None:
        if self._morsel_rows:
            self._insert_ahead(Batch.concat(self._layout.types, self._morsel), self._context.as_of)
        self._morsel = []
        self._morsel_rows = 0

    def _insert_ahead(self, batch: Batch, time: int) -> None:
        """Puts a part of the updates of ``time`` in, before the time is sealed."""
        trace = self._arrangement.oks
        lower = Frontier(time)
        if trace.upper < lower:
            trace.advance_upper(lower)
        built = build_run(
            batch, self._layout, self._context.hasher, lower=lower, upper=Frontier(time + 1), since=trace.since
        )
        if len(built):
            run = Run(
                built.layout,
                built.columns,
                key_hashes=built.key_hashes,
                value_hashes=built.value_hashes,
                times=built.times,
                diffs=built.diffs,
                lower=lower,
                upper=lower,
                since=built.since,
            )
            trace.insert(run)
            self._runs.append(run)

    def _seal_some(self) -> None:
        """One piece.  Pieces whose times do not meet are intervals of their own; the last one ends at the target."""
        piece = self._rows.piece()
        following = self._rows.next_time()
        if piece is None or following is None:
            self._seal(piece, self._target)
            return
        if int(piece.times.max()) < following:
            self._seal(piece, Frontier(following))
            return
        early = piece.times < following
        if early.any() or (self._arrangement.oks.upper < following and self._runs):
            self._seal(piece.take(np.flatnonzero(early)), Frontier(following))
            piece = piece.take(np.flatnonzero(~early))
        self._insert_ahead(piece, following)

    def _seal(self, batch: Batch | None, upper: Frontier) -> None:
        """Seals up to ``upper`` with ``batch`` and the runs put in ahead."""
        trace = self._arrangement.oks
        run: Run | None = None
        if batch is not None and len(batch):
            run = build_run(
                batch, self._layout, self._context.hasher, lower=trace.upper, upper=upper, since=trace.since
            )
        if run is not None and len(run):
            trace.insert(run)
            self._runs.append(run)
        else:
            trace.advance_upper(upper)
        errors = self._seal_errors(upper)
        self._output.seal(Sealed(tuple(self._runs), errors, self._output.frontier, upper))
        self._runs = []

    def _closed_errors(self) -> Batch:
        pieces: list[Batch] = []
        while (piece := self._error_stash.piece()) is not None:
            pieces.append(piece)
        return Batch.concat(ERR_TYPES, pieces) if pieces else _NO_ERRORS

    def _seal_errors(self, upper: Frontier) -> Batch | None:
        trace = self._arrangement.errs
        closed = self._errors.times < upper
        if not closed.any():
            trace.advance_upper(upper)
            return None
        errors = self._errors.take(np.flatnonzero(closed))
        self._errors = self._errors.take(np.flatnonzero(~closed))
        trace.insert(
            build_run(errors, ERRORS_LAYOUT, self._context.hasher, lower=trace.upper, upper=upper, since=trace.since)
        )
        return errors
