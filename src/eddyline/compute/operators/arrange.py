"""Seals a stream into intervals and keeps them in traces.

Invariants:
I1  the output's frontier is never past the traces' uppers;
I2  where one time has more rows than a piece, its runs but the last enter the trace ahead of the seal, with the
    bounds [t, t): the trace's upper is t, and no reader below it sees them.  Merging is paid as rows come in.  A
    snapshot waits until its last morsel is there and is then built as one run, step by step (``trace.bulk``), unless
    its keys' hashes are too unevenly spread for small steps; rows that its only reader does not ask for stay out
    (``operators.partner``);
I3  the first interval's upper is past as_of.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.partner import Partner, retract
from eddyline.compute.operators.stash import Stash
from eddyline.compute.state_size import StateSize, size_of_traces
from eddyline.compute.stream import ArrangedOutput, Arrangement, Sealed, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Frontier
from eddyline.trace.bulk import RunBuilder
from eddyline.trace.reserve import divide
from eddyline.trace.run import Layout, Run, build_run
from eddyline.trace.trace import Trace

__all__ = ["ERRORS_LAYOUT", "ArrangeOperator", "new_arrangement"]

#: rows of a snapshot that are sorted and inserted in one activation; inserting also merges several times as many
_PIECE_ROWS = 16_384
#: rows of later changes in one activation: a batch of a stream is to be one run, and not one and a rest
_SEALED_ROWS = 32_768

ERRORS_LAYOUT = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))


@cache
def _no_errors() -> Batch:
    """One for all.  Made when it is wanted: Arrow looks for pandas with the first array that it makes of a list."""
    return Batch.empty(ERR_TYPES)


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
        self.layout = layout
        self._output = output
        assert isinstance(output.arrangement, Arrangement), "only its one writer's traces can be written"
        self._arrangement = output.arrangement
        self._context = context
        self._piece_rows = min(context.budget_rows, _PIECE_ROWS)
        sealed_rows = min(context.budget_rows, _SEALED_ROWS)
        self._rows = Stash(sealed_rows)
        self._error_stash = Stash(sealed_rows)
        #: errors of the interval being sealed
        self._errors = _no_errors()
        #: updates at as_of, while nothing is sealed; None once they are in the trace
        self._snapshot: RunBuilder | None = RunBuilder(layout, context.hasher, context.as_of)
        #: what is left of it, where it is not built at once
        self._pieces: Iterator[Batch] | None = None
        #: small batches of updates at as_of that are to be added as one
        self._morsel: list[Batch] = []
        self._morsel_rows = 0
        #: whose keys decide over the snapshot's rows; None once they have
        self._partner: Partner | None = None
        #: the snapshot's batches until then
        self._collected: list[Batch] = []
        self._dividing: Generator[int, None, None] | None = None
        self.snapshot_rows = 0
        #: runs of the interval to be sealed next; they are in the trace already
        self._runs: list[Run] = []
        #: the interval being sealed runs up to here; the output's frontier when none is
        self._target = output.frontier

    def meet(self, partner: Partner) -> None:
        """Before the first step, if one join alone reads the arrangement, by a key that has columns."""
        self._partner = partner

    @property
    def snapshot_closed(self) -> bool:
        """Whether nothing is added to the snapshot any more."""
        return self._target > self._context.as_of

    def step(self) -> bool:
        moved = self._take()
        if self._target == self._output.frontier and self._may_open():
            self._target = self._input.frontier
            self._flush_morsel()
            self._rows.seal(self._target)
            self._error_stash.seal(self._target)
            self._errors = self._closed_errors()
            moved = True
        if self._target > self._output.frontier and not self._is_waiting():
            if self._snapshot is None or self._build_some(self._snapshot):
                self._seal_some()
            moved = True
        return moved

    def pending(self) -> bool:
        source, frontier = self._input, self._output.frontier
        if source.updates or source.errors:
            return True
        if self._target > frontier:
            return not self._is_waiting()
        return source.frontier > frontier and source.frontier > self._context.as_of

    def state_size(self) -> StateSize:
        held = size_of_traces((self._arrangement.oks, self._arrangement.errs))
        waiting = 0 if self._snapshot is None else self._snapshot.nbytes
        waiting += sum(batch.nbytes for batch in self._collected)
        if self._arrangement.reserve is not None:
            waiting += self._arrangement.reserve.nbytes
        return held._replace(capacity=held.capacity + waiting)

    def close(self) -> None:
        self._morsel.clear()
        self._collected.clear()
        self._dividing = None
        self._snapshot = self._arrangement.reserve = None
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
        while self._input.updates and taken < self._context.budget_rows:
            batch = self._input.updates.popleft()
            if self._output.frontier > as_of:  # nothing comes below it, so nothing is to be moved up
                self._rows.add(batch)
                continue
            if self._target > as_of or (len(batch) and int(batch.times.max()) > as_of):
                self._rows.add(batch.advanced(as_of))
                continue
            if len(batch) > self._context.budget_rows:
                self._input.updates.appendleft(batch.slice(self._context.budget_rows, len(batch)))
                batch = batch.slice(0, self._context.budget_rows)
            taken += len(batch)
            self._add_to_snapshot(batch)
        return moved

    def _add_to_snapshot(self, batch: Batch) -> None:
        """Large batches as they are, by reference; small ones together."""
        if len(batch) >= self._piece_rows:
            self._collect(batch)
            return
        self._morsel.append(batch)
        self._morsel_rows += len(batch)
        if self._morsel_rows >= self._piece_rows:
            self._flush_morsel()

    def _flush_morsel(self) -> None:
        if self._morsel_rows:
            self._collect(Batch.concat(self.layout.types, self._morsel))
        self._morsel = []
        self._morsel_rows = 0

    def _collect(self, batch: Batch) -> None:
        self.snapshot_rows += len(batch)
        if self._partner is not None:
            self._collected.append(batch)
        else:
            self._snapshot_of_hydration().add(batch)

    def _snapshot_of_hydration(self) -> RunBuilder:
        assert self._snapshot is not None, "updates at as_of come before it is sealed"
        return self._snapshot

    def _is_waiting(self) -> bool:
        """Whether the snapshot is all there, and the keys of the other side are to come first."""
        if self._partner is None or self._dividing is not None:
            return False
        return self._partner.is_awaited(self.snapshot_rows)

    def _divide_some(self, partner: Partner, snapshot: RunBuilder) -> bool:
        """One step of choosing the rows that are built; True once they are in ``snapshot``."""
        if self._dividing is None:
            self._dividing = self._divide(partner, snapshot)
        if next(self._dividing, None) is not None:
            return False
        self._dividing = self._partner = None
        return True

    def _divide(self, partner: Partner, snapshot: RunBuilder) -> Generator[int, None, None]:
        keys = partner.keys(self.snapshot_rows)
        batches, self._collected = self._collected, []
        if keys is None:
            for batch in batches:
                snapshot.add(batch)
                yield len(batch)
            return
        context = self._context
        self._arrangement.reserve = yield from divide(
            self.layout, context.hasher, context.as_of, keys, batches, snapshot.add, keep=not context.single_time
        )

    def _build_some(self, snapshot: RunBuilder) -> bool:
        """One step of putting the snapshot into the trace; True once it is there."""
        if self._partner is not None and not self._divide_some(self._partner, snapshot):
            return False
        trace, as_of = self._arrangement.oks, self._context.as_of
        if snapshot.rows > self._piece_rows and not snapshot.skewed:
            if snapshot.work(self._piece_rows):
                return False
            self._put_ahead(snapshot.result(lower=Frontier(as_of), upper=Frontier(as_of), since=trace.since), as_of)
        else:
            if self._pieces is None:
                self._pieces = snapshot.pieces(self._piece_rows)
            piece = next(self._pieces, None)
            if piece is not None:
                self._insert_ahead(piece, as_of)
                return False
        self._snapshot = self._pieces = None
        return True

    def _insert_ahead(self, batch: Batch, time: int) -> None:
        """Puts a part of the updates of ``time`` in, before the time is sealed."""
        lower, since = Frontier(time), self._arrangement.oks.since
        built = build_run(batch, self.layout, self._context.hasher, lower=lower, upper=Frontier(time + 1), since=since)
        self._tell_retracted(built)
        self._put_ahead(built.rebounded(lower, lower), time)

    def _put_ahead(self, run: Run | None, time: int) -> None:
        """Puts a run of updates of ``time`` in, which no reader below it sees."""
        trace = self._arrangement.oks
        lower = Frontier(time)
        if trace.upper < lower:
            trace.advance_upper(lower)
        if run is not None and len(run):
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
            run = build_run(batch, self.layout, self._context.hasher, lower=trace.upper, upper=upper, since=trace.since)
        if run is not None and len(run):
            self._tell_retracted(run)
            trace.insert(run)
            self._runs.append(run)
        else:
            trace.advance_upper(upper)
        errors = self._seal_errors(upper)
        self._output.seal(Sealed(tuple(self._runs), errors, self._output.frontier, upper))
        self._runs = []

    def _tell_retracted(self, run: Run) -> None:
        """Tells the reserve what the run, which enters the trace, takes back."""
        reserve = self._arrangement.reserve
        if reserve is not None and run.retracted.all:
            retract(self._arrangement, reserve, run.key_hashes[run.diffs < 0], self._context)

    def _closed_errors(self) -> Batch:
        if self._error_stash.exhausted():
            return _no_errors()
        pieces: list[Batch] = []
        while (piece := self._error_stash.piece()) is not None:
            pieces.append(piece)
        return Batch.concat(ERR_TYPES, pieces) if pieces else _no_errors()

    def _seal_errors(self, upper: Frontier) -> Batch | None:
        trace = self._arrangement.errs
        if self._errors is _no_errors():
            trace.advance_upper(upper)
            return None
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
