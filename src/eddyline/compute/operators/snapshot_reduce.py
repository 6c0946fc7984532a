"""GROUP BY at the one time of a read: min and max stand beside the other aggregates, in one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.accumulators import Accumulator, Shown, present_weights
from eddyline.compute.operators.group_table import UInt64s
from eddyline.compute.operators.growable import grown
from eddyline.compute.operators.reduce import ReduceOperator, accumulator_for
from eddyline.compute.operators.snapshot import Retractions
from eddyline.compute.operators.values import INTEGERS, from_integers, integers_of
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import Output, Stream
from eddyline.errors import InternalError
from eddyline.expr.ir import AggregateCall, SortKey
from eddyline.kernels.reduce import extremes
from eddyline.plan.dataflow import Reduce
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT, SqlType
from eddyline.trace.best_rows import BestRows
from eddyline.trace.hasher import Hasher
from eddyline.trace.net import net_updates

__all__ = ["ExtremeAccumulator", "SnapshotReduceOperator"]


class ExtremeAccumulator(Accumulator):
    """min or max of what is never retracted: a slot's word is 1 + the place of its value among those chosen, 0 if none.

    Ties go to the first value in canonical order.
    """

    def __init__(self, result: SqlType, argument: SqlType, func: str, hasher: Hasher) -> None:
        super().__init__(result, plain=1)
        self._types = (BIGINT, argument)  # slot, value
        self._order = (SortKey(1, desc=func == "max"),)
        self._hasher = hasher
        self._best = self._none_yet()
        self._slots = 0
        self._values = Batch.empty(self._types).columns[1]

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._best.nbytes

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        raise InternalError("an extreme is no sum")

    def take(self, argument: pa.Array, weights: Int64s, groups: Int64s, slots: Int64s) -> None:
        """``groups``: of each row; ``slots``: of each group, without repeats.  No weight is negative."""
        self._slots = max(self._slots, int(slots.max()) + 1)
        if isinstance(self._best, _Extremes):
            self._best.add(argument, weights, groups, slots)
        else:
            rows = self._counting(argument, weights, slots[groups])
            alone = self._slots == 1
            self._best.add(rows, None if alone else np.asarray(rows.columns[0]), self._slots)

    def choose_again(self, parts: Iterable[tuple[pa.Array, Int64s, Int64s]]) -> Iterator[None]:
        """From all there is, retractions too: (argument, weights, slot of each row).  Yields after bounded pieces."""
        self._best = self._none_yet()
        counting = [self._counting(*part) for part in parts]
        for netted in net_updates(self._types, counting, self._hasher):
            left = netted.take(np.flatnonzero(netted.diffs > 0))
            if len(left):
                slots, groups = np.unique(np.asarray(left.columns[0]), return_inverse=True)
                self.take(left.columns[1], left.diffs, groups, slots)
            yield

    def _none_yet(self) -> BestRows | _Extremes:
        argument = self._types[1]
        if argument.kind in INTEGERS:
            return _Extremes(argument, greatest=self._order[0].desc)
        return BestRows(self._types, self._order, 1)

    def _counting(self, argument: pa.Array, weights: Int64s, slots: Int64s) -> Batch:
        """(slot, value) of the rows that count."""
        rows = Batch(self._types, (pa.array(slots), argument), np.zeros(len(slots), np.int64), weights)
        if argument.null_count or not weights.all():
            return rows.take(np.flatnonzero(present_weights(argument, weights)))
        return rows

    def settle(self) -> None:
        """Once all is taken: finds the values.  Before it nothing can be shown."""
        if isinstance(self._best, _Extremes):
            groups, self._values = self._best.chosen()
        else:
            groups, rows = self._best.chosen()
            self._values = rows.columns[1]
        self._state = grown(self._state, self._slots)
        self._state[groups, 0] = np.arange(1, len(groups) + 1)

    def show(self, states: Int64s) -> Shown:
        places = states[:, 0]
        return Shown(self._values.take(pa.array(places - 1, mask=places == 0)))


class _Extremes:
    """The least or greatest integer of each slot: a number, and no row is kept."""

    def __init__(self, argument: SqlType, *, greatest: bool) -> None:
        self._argument = argument
        self._greatest = greatest
        limits = np.iinfo(np.int64)
        self._neutral = limits.min if greatest else limits.max
        self._values = np.full(1, self._neutral, np.int64)
        self._there = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._there.nbytes

    def add(self, column: pa.Array, weights: Int64s, groups: Int64s, slots: Int64s) -> None:
        count = int(slots.max()) + 1
        self._values, self._there = grown(self._values, count, self._neutral), grown(self._there, count)
        best, there = self._values[slots], self._there[slots]
        weights = present_weights(column, weights)
        extremes(integers_of(column, self._argument), weights, groups, int(self._greatest), best, there)
        self._values[slots], self._there[slots] = best, there

    def chosen(self) -> tuple[Int64s, pa.Array]:
        """The slots that have a value, ascending, and their values."""
        slots = np.flatnonzero(self._there)
        return slots, from_integers(self._values[slots], np.ones(len(slots), np.bool_), self._argument)


class SnapshotReduceOperator(ReduceOperator):
    """As ``ReduceOperator`` at as_of, min and max included.  Requires a dataflow with a single time (checked).

    Extremes are chosen as rows come, on the premise that none is retracted.  Where one was, the rows, kept by
    reference, are gone through once more.
    """

    def __init__(self, name: str, input: Stream, node: Reduce, output: Output, context: OperatorContext) -> None:
        super().__init__(name, input, node, output, context)
        self._seen = Retractions()
        self._choosy = any(isinstance(a, ExtremeAccumulator) for a in self.accumulators)

    def accumulator(self, call: AggregateCall) -> Accumulator:
        if call.func in ("min", "max"):
            return ExtremeAccumulator(call.type, call.args[0].type, call.func, self.context.hasher)
        return accumulator_for(call)

    def take(self, rows: Batch, hashes: UInt64s | None = None) -> None:
        if self._choosy:
            self._seen.see(rows)
        super().take(rows, hashes)

    def add(
        self, accumulator: Accumulator, args: Sequence[pa.Array], weights: Int64s, groups: Int64s, slots: Int64s
    ) -> None:
        if not isinstance(accumulator, ExtremeAccumulator):
            super().add(accumulator, args, weights, groups, slots)
        elif not self._seen.broken:
            accumulator.take(args[0], weights, groups, slots)

    def publish(self) -> Iterator[None]:
        for accumulator, keeper, (places, condition) in self.aggregates():
            if isinstance(accumulator, ExtremeAccumulator) and accumulator is keeper:
                if self._seen.broken:
                    yield from accumulator.choose_again(self._parts(places[0], condition))
                accumulator.settle()
        self._seen.forget()
        yield from super().publish()

    def apply(self, batch: Batch) -> Iterator[None]:
        raise InternalError(f"{self.name} is given updates past its one time")

    def state_size(self) -> StateSize:
        size = super().state_size()
        return size._replace(capacity=size.capacity + self._seen.nbytes)

    def _parts(self, place: int, condition: int | None) -> Iterator[tuple[pa.Array, Int64s, Int64s]]:
        """(argument, weights, slot of each row) of all rows that came."""
        for rows in self._seen.batches:
            groups, slots = self.located(rows)
            (argument,) = self.arguments_of(rows, (place,))
            yield argument, self.weights_of(rows, condition), slots[groups]
