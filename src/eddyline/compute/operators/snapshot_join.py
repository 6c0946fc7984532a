"""The join at the one time of a read: the larger input is only looked through, so that it is never arranged.

Where the plan arranges an input for nobody but the join, the rows are kept as they come, by reference, until both
inputs are complete.  Then the smaller of the two is arranged, unless the other one is an arrangement already, and the
rows of the larger find theirs in it batch by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.join_changes import PROBE_ROWS
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import ArrangedOutput, Output, Stream
from eddyline.plan.dataflow import Join
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.trace.run import Layout

__all__ = ["SnapshotJoinOperator", "Unarranged"]


class Unarranged:
    """An input of a join that nobody has arranged.  ``layout``: by which it would be."""

    def __init__(self, name: str, stream: Stream, layout: Layout, context: OperatorContext) -> None:
        self._stream = stream
        self._context = context
        self._feed = Output()
        #: the edge behind ``arrange``
        self.arranged = ArrangedOutput(new_arrangement(layout, context))
        self._arrange = ArrangeOperator(name, self._feed.connect(), layout, self.arranged, context)
        self._batches: deque[Batch] = deque()
        self._nbytes = 0
        #: updates that came
        self.rows = 0

    @property
    def frontier(self) -> Frontier:
        return self._stream.frontier

    @property
    def moves(self) -> bool:
        """Whether something came that is not taken yet."""
        return not self._stream.drained()

    @property
    def complete(self) -> bool:
        return self._stream.drained() and self._stream.frontier > self._context.as_of

    def take(self, errors: Output) -> bool:
        """Takes all that came; its errors go on to ``errors``.  True if there was anything."""
        moved, stream = self.moves, self._stream
        while stream.errors:
            errors.send_errors(stream.errors.popleft().advanced(self._context.as_of))
        while stream.updates:
            batch = stream.updates.popleft()
            self.rows += len(batch)
            self._nbytes += batch.nbytes
            self._batches.append(batch)
        return moved

    def pieces(self) -> Iterator[Batch]:
        """The updates, at most ``PROBE_ROWS`` at once; those that were given out are let go."""
        while self._batches:
            batch = self._batches.popleft().advanced(self._context.as_of)
            for start in range(0, len(batch), PROBE_ROWS):
                yield batch.slice(start, min(start + PROBE_ROWS, len(batch)))
            self._nbytes -= batch.nbytes

    def arrange(self) -> Iterator[None]:
        """Puts the updates into ``arranged``; yields after each bounded step."""
        while self._batches:
            self._feed.send(self._batches.popleft())
        self._nbytes = 0
        self._feed.advance(self._stream.frontier)
        while self._arrange.pending():
            self._arrange.step()
            yield

    def state_size(self) -> StateSize:
        held = self._arrange.state_size()
        return held._replace(capacity=held.capacity + self._nbytes)

    def close(self) -> None:
        self._batches.clear()
        self._arrange.close()


class SnapshotJoinOperator(JoinOperator):
    """As ``JoinOperator`` at as_of, of inputs of which one at least is ``Unarranged``.

    Requires a dataflow with a single time (unchecked).  Cost: that of arranging the smaller input where both are
    unarranged, and of a lookup for each row of the other one, or of the unarranged one.
    """

    def __init__(
        self,
        name: str,
        left: ArrangedOutput | Unarranged,
        right: ArrangedOutput | Unarranged,
        node: Join,
        output: Output,
        context: OperatorContext,
    ) -> None:
        edges = [side if isinstance(side, ArrangedOutput) else side.arranged for side in (left, right)]
        super().__init__(name, edges[0].connect(), edges[1].connect(), node, output, context)
        self._unarranged = tuple(None if isinstance(side, ArrangedOutput) else side for side in (left, right))
        self._done = False

    def step(self) -> bool:
        moved = False
        for side in self._unarranged:
            if side is not None:
                moved |= side.take(self._output)
        if self._work is None and self._complete():
            self._work = self._join()
        rows = 0
        while self._work is not None and rows < self._context.budget_rows:
            moved = True
            done = next(self._work, None)
            if done is None:
                self._work, self._done = None, True
            else:
                rows += done
        return moved

    def pending(self) -> bool:
        if self._work is not None or any(side is not None and side.moves for side in self._unarranged):
            return True
        return self._complete()

    def close(self) -> None:
        super().close()
        for side in self._unarranged:
            if side is not None:
                side.close()

    def state_size(self) -> StateSize:
        """What the inputs keep here."""
        sizes = [side.state_size() for side in self._unarranged if side is not None]
        return StateSize(*[sum(parts) for parts in zip(*sizes, strict=True)])

    def _complete(self) -> bool:
        """Whether all rows are there, and not joined yet."""
        if self._done:
            return False
        sides = zip((self._left, self._right), self._unarranged, strict=True)
        return all(side.stream.sealed if given is None else given.complete for side, given in sides)

    def _join(self) -> Iterator[int]:
        """The whole work; yields the rows handled after each bounded piece."""
        left, right = self._unarranged
        # An arrangement is looked up in; of two inputs without one the smaller gets it.
        look_up_left = left is None or (right is not None and left.rows < right.rows)
        built, side, rows = (self._left, self._right, right) if look_up_left else (self._right, self._left, left)
        assert rows is not None, "one of the inputs at least is not arranged"
        to_arrange = left if look_up_left else right
        if to_arrange is not None:
            for _ in to_arrange.arrange():
                yield self._context.budget_rows
        sealed = built.stream.sealed.popleft()
        if to_arrange is None and sealed.errors is not None:
            self._output.send_errors(sealed.errors.advanced(self._context.as_of))
        snapshot = built.snapshot()
        assert snapshot is not None, "it is held until the operator is closed"
        if sealed.runs:
            for piece in rows.pieces():
                changes = side.changes.of_rows(piece)
                yield len(piece)
                yield from self._match(side, changes, snapshot, sealed.upper)
        self._output.advance(min(sealed.upper, rows.frontier))
        built.close()
        side.close()
