"""GROUP BY at the one time of a read: min and max stand beside the other aggregates, in one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.compute.operators.accumulators import Accumulator, Shown
from eddyline.compute.operators.growable import grown
from eddyline.compute.operators.reduce import ReduceOperator, accumulator_for
from eddyline.compute.operators.snapshot import Retractions
from eddyline.compute.operators.values import from_numbers, integers_of, valid_of
from eddyline.errors import InternalError
from eddyline.expr.ir import AggregateCall, SortKey
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT, Kind, SqlType
from eddyline.trace.best_rows import BestRows
from eddyline.trace.hasher import Hasher
from eddyline.trace.net import net_updates

__all__ = ["ExtremeAccumulator", "SnapshotReduceOperator"]

_INTEGERS: Final = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


class ExtremeAccumulator(Accumulator):
    """min or max of what is never retracted: a slot's word is 1 + the place of its value among those chosen, 0 if none.

    Ties go to the first value in canonical order.  Retractions are looked for; where there are any, the values, kept by
    reference, are netted and gone through once more by ``settle``.
    """

    def __init__(self, result: SqlType, argument: SqlType, func: str, hasher: Hasher) -> None:
        super().__init__(result, plain=1)
        self._types = (BIGINT, argument)  # slot, value
        self._order = (SortKey(1, desc=func == "max"),)
        self._hasher = hasher
        self._best = self._none_yet()
        self._seen = Retractions()
        self._slots = 0
        self._values = Batch.empty(self._types).columns[1]

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._best.nbytes + self._seen.nbytes

    def delta(self, args: Sequence[pa.Array], weights: Int64s, segments: Int64s, count: int) -> Int64s:
        raise InternalError("an extreme is no sum")

    def take(self, argument: pa.Array, weights: Int64s, slots: Int64s, count: int) -> None:
        """``slots``: of each row, all below ``count``."""
        self._slots = max(self._slots, count)
        batch = Batch(self._types, (pa.array(slots), argument), np.zeros(len(slots), np.int64), weights)
        if argument.null_count or not weights.all():
            batch = batch.take(np.flatnonzero(valid_of(argument) & (weights != 0)))
        if self._seen.see(batch):
            self._choose(batch)

    def _none_yet(self) -> BestRows | _Extremes:
        argument = self._types[1]
        if argument.kind in _INTEGERS:
            return _Extremes(argument, greatest=self._order[0].desc)
        return BestRows(self._types, self._order, 1)

    def _choose(self, batch: Batch) -> None:
        slots = None if self._slots == 1 else np.asarray(batch.columns[0])
        if isinstance(self._best, _Extremes):
            self._best.add(batch.columns[1], slots, self._slots)
        else:
            self._best.add(batch, slots, self._slots)

    def settle(self) -> Iterator[None]:
        """Finds the values, in bounded pieces.  Before it nothing can be shown."""
        if self._seen.broken:
            self._best = self._none_yet()
            for batch in net_updates(self._types, self._seen.batches, self._hasher):
                self._choose(batch.take(np.flatnonzero(batch.diffs > 0)))
                yield
        self._seen.forget()
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
        self._there = np.zeros(1, np.bool_)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._there.nbytes

    def add(self, column: pa.Array, slots: Int64s | None, count: int) -> None:
        """``slots``: of each row, all below ``count``; None: all of slot 0.  The column has no NULL."""
        if not len(column):
            return
        better = np.maximum if self._greatest else np.minimum
        values = integers_of(column, self._argument)
        self._values, self._there = grown(self._values, count, self._neutral), grown(self._there, count)
        if slots is None:
            self._values[0] = better(self._values[0], better.reduce(values))
            self._there[0] = True
        else:
            better.at(self._values, slots, values)
            self._there[slots] = True

    def chosen(self) -> tuple[Int64s, pa.Array]:
        """The slots that have a value, ascending, and their values."""
        slots = np.flatnonzero(self._there)
        return slots, from_numbers(self._values[slots], np.ones(len(slots), np.bool_), self._argument)


class SnapshotReduceOperator(ReduceOperator):
    """As ``ReduceOperator`` at as_of, min and max included.  Requires a dataflow with a single time (checked)."""

    def accumulator(self, call: AggregateCall) -> Accumulator:
        if call.func in ("min", "max"):
            return ExtremeAccumulator(call.type, call.args[0].type, call.func, self.context.hasher)
        return accumulator_for(call)

    def add(
        self, accumulator: Accumulator, args: Sequence[pa.Array], weights: Int64s, groups: Int64s, slots: Int64s
    ) -> None:
        if isinstance(accumulator, ExtremeAccumulator):
            alone = len(slots) == 1 and not slots[0]
            accumulator.take(args[0], weights, groups if alone else slots[groups], int(slots.max()) + 1)
        else:
            super().add(accumulator, args, weights, groups, slots)

    def publish(self) -> Iterator[None]:
        for accumulator in self.accumulators:
            if isinstance(accumulator, ExtremeAccumulator):
                yield from accumulator.settle()
        yield from super().publish()

    def apply(self, batch: Batch) -> Iterator[None]:
        raise InternalError(f"{self.name} is given updates past its one time")
