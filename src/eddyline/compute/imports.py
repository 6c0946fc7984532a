"""Where updates enter a dataflow: storage collections, indexes of the same worker, frozen indexes of the other runtime.

Invariants:
I1  no import is read below its since: a source is held by the controller, an index by handles taken here;
I2  frontiers stop at the dataflow's until, and nothing at or past it is sent;
I3  the first interval of an imported index ends past as_of, so that it holds the whole snapshot;
I4  while a view of the dataflow may not be written, a source gives its snapshot alone, and an index nothing: what comes
    later stays with those who keep it anyway.
"""

from __future__ import annotations

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.stream import ArrangedOutput, ArrangedStream, Output, Sealed
from eddyline.errors import make_error
from eddyline.protocol.sources import SourceReader
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import MIN_TIME, Frontier

__all__ = ["ImportFrozenOperator", "ImportIndexOperator", "ImportSourceOperator"]


class ImportSourceOperator:
    """Reads a share of a storage collection, as fast as its consumers take it."""

    def __init__(self, name: str, reader: SourceReader, output: Output, context: OperatorContext) -> None:
        self.name = name
        self.reader = reader
        self._output = output
        self._context = context
        self._open = True

    def step(self) -> bool:
        if not self.pending():
            return False
        polled = self.reader.poll(self._context.budget_rows)
        for batch in polled.rows:
            self._send(self._clip(batch))
        for batch in polled.errors:
            self._output.send_errors(self._clip(batch))
        self._output.advance(min(polled.frontier, self._context.until))
        if self._output.frontier >= self._context.until:
            self.close()
        return True

    def pending(self) -> bool:
        """What the consumers have not taken stays in storage, where it counts as backlog."""
        if not self._open or (self._output.frontier > self._context.as_of and not self._context.allowed.follows):
            return False
        return all(s.drained() for s in self._output.consumers) and self.reader.pending()

    def frontier(self) -> Frontier:
        return self._output.frontier

    def set_steady(self) -> None:
        self.reader.set_steady()

    def close(self) -> None:
        if self._open:
            self._open = False
            self.reader.close()

    def _send(self, batch: Batch) -> None:
        """A large commit goes on in slices, so that no activation downstream has more than it may take."""
        budget = self._context.budget_rows
        for start in range(0, len(batch), budget):
            stop = min(start + budget, len(batch))
            self._output.send(batch if stop - start == len(batch) else batch.slice(start, stop))

    def _clip(self, batch: Batch) -> Batch:
        """Times moved up to as_of; updates at or past until left out."""
        if not len(batch):
            return batch
        if int(batch.times.max()) >= self._context.until:
            batch = batch.take(np.flatnonzero(batch.times < self._context.until))
        if len(batch) and int(batch.times.min()) < self._context.as_of:
            batch = batch.advanced(self._context.as_of)
        return batch


class ImportIndexOperator:
    """Shares the arrangement of an index by reference: one interval that is its snapshot, then its own intervals.

    ``source``: the arranged edge behind the index; ``output``: made over the same arrangement.
    """

    def __init__(self, name: str, source: ArrangedOutput, output: ArrangedOutput, context: OperatorContext) -> None:
        self.name = name
        self._source = source
        self._output = output
        self._context = context
        self._stream: ArrangedStream | None = None
        self._open = True
        for trace in (source.arrangement.oks, source.arrangement.errs):
            if trace.since > context.as_of:
                raise make_error("XX000", f"{name} is read at {context.as_of}, below its since {trace.since}")
        since = Frontier(context.as_of)
        self._handles = [
            t.handle(since=since, through=Frontier(MIN_TIME)) for t in (source.arrangement.oks, source.arrangement.errs)
        ]

    def step(self) -> bool:
        if not self.pending():
            return False
        if self._stream is None:
            self._attach()
        else:
            while self._stream.sealed and self._output.frontier < self._context.until:
                self._forward(self._stream.sealed.popleft())
        if self._output.frontier >= self._context.until:
            self._detach()
        return True

    def pending(self) -> bool:
        if not self._open:
            return False
        if self._stream is None:
            return self._context.allowed.follows and self._source.frontier > self._context.as_of
        return bool(self._stream.sealed)

    def close(self) -> None:
        """Consumers hold the traces for themselves; the handles here stand for the time before they do."""
        self._detach()
        for handle in self._handles:
            handle.close()
        self._handles = []

    def _attach(self) -> None:
        self._stream = self._source.connect()
        upper = self._source.frontier
        runs = self._source.arrangement.oks.snapshot().runs
        errors = Batch.concat(ERR_TYPES, list(self._source.arrangement.errs.snapshot().scan(below=upper)))
        self._forward(Sealed(tuple(runs), errors, Frontier(MIN_TIME), upper))
        # The consumers have handles of their own since they were built; one kept here would pin the trace for ever.
        for handle in self._handles:
            handle.close()
        self._handles = []

    def _forward(self, sealed: Sealed) -> None:
        upper = min(sealed.upper, self._context.until)
        self._output.seal(Sealed(sealed.runs, _clipped(sealed.errors, self._context, upper), sealed.lower, upper))

    def _detach(self) -> None:
        self._open = False
        if self._stream is not None and self._stream in self._source.consumers:
            self._source.consumers.remove(self._stream)
        self._stream = None


class ImportFrozenOperator:
    """The index of the other runtime at the one time of a read: its snapshot's runs, by reference, as one interval.

    Built over a placeholder, in arrival order; it emits once the index is bound, and that ends it.
    """

    def __init__(self, name: str, index: FrozenIndex, output: ArrangedOutput, context: OperatorContext) -> None:
        self.name = name
        self._index = index
        self._output = output
        self._context = context
        self._open = True

    def step(self) -> bool:
        if not self.pending():
            return False
        self._open = False
        context, arrangement = self._context, self._index.arrangement
        oks, errs = arrangement.oks.snapshot(), arrangement.errs.snapshot()
        for snapshot in (oks, errs):
            if not snapshot.since <= context.as_of < snapshot.upper:
                raise make_error(
                    "XX000",
                    f"{self.name} is read at {context.as_of}, outside [{snapshot.since}, {snapshot.upper})",
                )
        errors = _clipped(Batch.concat(ERR_TYPES, list(errs.scan(below=context.until))), context, context.until)
        self._output.seal(Sealed(tuple(oks.runs), errors, Frontier(MIN_TIME), context.until))
        return True

    def pending(self) -> bool:
        return self._open and self._index.bound

    def close(self) -> None:
        """It holds nothing."""
        self._open = False


def _clipped(errors: Batch | None, context: OperatorContext, upper: Frontier) -> Batch | None:
    """Times moved up to as_of, those at or past ``upper`` left out; None if nothing remains."""
    if errors is None or not len(errors):
        return None
    if int(errors.times.max()) >= upper:
        errors = errors.take(np.flatnonzero(errors.times < upper))
    return errors.advanced(context.as_of)
