"""DISTINCT and threshold: both follow the multiplicity of each row through the times of a batch.

Rows are one when SQL calls them equal; the image shown is that of the row's first update since it was last absent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.accumulators import CountAccumulator
from eddyline.compute.operators.group_table import GroupTable
from eddyline.compute.operators.sealed import SealedOperator
from eddyline.compute.operators.segments import Segments, cut_segments
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import Output, Stream
from eddyline.plan.dataflow import Distinct, Threshold
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT

__all__ = ["DistinctOperator", "ThresholdOperator"]


class ThresholdOperator(SealedOperator):
    """Each row as often as its multiplicity says, never less than zero times.

    Cost: proportional to the updates.
    """

    def __init__(
        self, name: str, input: Stream, node: Threshold | Distinct, output: Output, context: OperatorContext
    ) -> None:
        super().__init__(name, input, output, context)
        self._types = node.types
        self._table = GroupTable(node.types, context.hasher)
        self._counts = CountAccumulator(BIGINT)

    def shown(self, counts: Int64s) -> Int64s:
        """How often rows of these multiplicities come out."""
        return np.maximum(counts, 0)

    def absorb(self, batch: Batch) -> None:
        groups, slots = self._table.locate(batch.columns, len(batch))
        delta = self._counts.delta((), batch.diffs, groups, len(slots))
        self._counts.run(slots, np.arange(len(slots) + 1), delta)  # of one time: a segment for each group

    def publish(self) -> Iterator[None]:
        budget = self.context.budget_rows
        for start in range(0, self._table.size, budget):
            slots = np.arange(start, min(start + budget, self._table.size), dtype=np.int64)
            times = np.full(len(slots), self.context.as_of, np.int64)
            self._emit(slots, times, self.shown(self._counts.states(slots)[:, 0]))
            yield
        self._forget(np.arange(self._table.size))

    def apply(self, batch: Batch) -> Iterator[None]:
        segments, slots, before, after = self._accumulate(batch)
        diffs = self.shown(after[:, 0]) - self.shown(before[:, 0])
        self._emit(slots[segments.group], segments.times, diffs)
        self._forget(slots)
        return iter(())

    def state_size(self) -> StateSize:
        return self._table.state_size(self._counts.nbytes)

    def _accumulate(self, batch: Batch) -> tuple[Segments, Int64s, Int64s, Int64s]:
        groups, slots = self._table.locate(batch.columns, len(batch))
        segments = cut_segments(groups, len(slots), batch.times)
        delta = self._counts.delta((), batch.diffs, segments.of_row, len(segments))
        before, after = self._counts.run(slots, segments.starts, delta)
        return segments, slots, before, after

    def _emit(self, slots: Int64s, times: Int64s, diffs: Int64s) -> None:
        moved = np.flatnonzero(diffs)
        if len(moved):
            self.output.send(Batch(self._types, self._table.keys(slots[moved]), times[moved], diffs[moved]))

    def _forget(self, slots: Int64s) -> None:
        empty = (self._counts.states(slots)[:, 0] == 0) & self._table.alive[slots]
        self._table.release(slots[empty])
        kept = self._table.compact()
        if kept is not None:
            self._counts.keep(kept)


class DistinctOperator(ThresholdOperator):
    """Each row with a positive multiplicity, once."""

    def shown(self, counts: Int64s) -> Int64s:
        return (counts > 0).astype(np.int64)
