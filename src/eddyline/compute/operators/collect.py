"""A read's result as it comes: nobody looks anything up in it, so that it is not put in any order.

Rows that a retraction takes back are netted first; where there is none, batches are the result by reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import CollectedArrangement
from eddyline.compute.operators.snapshot import Retractions
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import ArrangedOutput, Sealed, Stream
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import MIN_TIME, Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.net import net_updates

__all__ = ["CollectOperator"]

#: batches of fewer rows share one with their neighbours
_FEW_ROWS = 4096


class CollectOperator:
    """The end of a dataflow with a single time.  ``arrangement``: that of ``output``, which has this one writer."""

    def __init__(
        self,
        name: str,
        input: Stream,
        types: tuple[SqlType, ...],
        arrangement: CollectedArrangement,
        output: ArrangedOutput,
        context: OperatorContext,
    ) -> None:
        self.name = name
        self._input = input
        self._types = types
        self._arrangement = arrangement
        self._output = output
        self._context = context
        self._seen = Retractions()
        self._errors: list[Batch] = []
        self._work: Iterator[None] | None = None

    def step(self) -> bool:
        moved = self._take()
        if self._work is None and self._complete():
            self._work = self._publish()
        if self._work is not None:
            moved = True
            for _ in self._work:
                return True
            self._work = None
        return moved

    def pending(self) -> bool:
        return self._work is not None or not self._input.drained() or self._complete()

    def close(self) -> None:
        self._work = None
        self._seen.forget()

    def state_size(self) -> StateSize:
        seen = self._seen
        return StateSize(seen.rows, len(seen.batches), seen.nbytes, seen.nbytes)

    def _complete(self) -> bool:
        frontier = self._input.frontier
        return self._input.drained() and frontier > self._output.frontier and frontier > self._context.as_of

    def _take(self) -> bool:
        moved, stream = not self._input.drained(), self._input
        while stream.errors:
            self._errors.append(stream.errors.popleft())
        taken = 0
        while stream.updates and taken < self._context.budget_rows:
            batch = stream.updates.popleft()
            taken += len(batch)
            self._seen.see(batch)
        return moved

    def _publish(self) -> Iterator[None]:
        if self._output.frontier > self._context.as_of:  # it was published; there is nothing more at its one time
            self._seal(None)
            return
        seen, types = self._seen, self._types
        if seen.broken:
            netted = []
            moved_up = [batch.advanced(self._context.as_of) for batch in seen.batches]
            for batch in net_updates(types, moved_up, self._context.hasher):
                netted.append(batch)
                yield
            seen.replace(netted)
        seen.replace(list(_together(types, seen.batches)))
        errors = Batch.concat(ERR_TYPES, self._errors).advanced(self._context.as_of) if self._errors else None
        self._errors = []
        self._arrangement.collect(seen.batches, errors, self._context)
        self._seal(errors)

    def _seal(self, errors: Batch | None) -> None:
        self._output.seal(Sealed((), errors, Frontier(MIN_TIME), self._input.frontier))


def _together(types: tuple[SqlType, ...], batches: list[Batch]) -> Iterator[Batch]:
    """The same rows: large batches as they are, small ones as one."""
    small: list[Batch] = []
    for batch in batches:
        if len(batch) >= _FEW_ROWS:
            yield batch
            continue
        small.append(batch)
        if sum(map(len, small)) >= _FEW_ROWS:
            yield Batch.concat(types, small)
            small = []
    if small:
        yield Batch.concat(types, small)
