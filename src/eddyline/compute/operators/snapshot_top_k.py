"""The first rows of each group at the one time of a read: only rows that may be among them are kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.group_table import GroupTable
from eddyline.compute.operators.snapshot import Retractions, SnapshotOperator
from eddyline.compute.operators.top_k import rows_in_window
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import Output, Stream
from eddyline.plan.dataflow import TopK
from eddyline.repr.batch import Batch
from eddyline.trace.best_rows import BestRows
from eddyline.trace.net import net_updates

__all__ = ["SnapshotTopKOperator"]


class SnapshotTopKOperator(SnapshotOperator):
    """As ``TopKOperator`` at as_of; requires a limit.

    Rows are chosen as they come, on the premise that none is retracted.  Where one was, the batches, kept by reference,
    are netted and gone through once more.
    """

    def __init__(self, name: str, input: Stream, node: TopK, output: Output, context: OperatorContext) -> None:
        super().__init__(name, input, output, context)
        assert node.limit is not None, "without a limit there is nothing to leave out"
        self._node = node
        self._stop = node.offset + node.limit if node.limit else 0
        self._seen = Retractions()
        self._restart()

    def _restart(self) -> None:
        node = self._node
        self._best = BestRows(node.types, node.order, self._stop)
        self._groups = GroupTable(tuple(node.types[k] for k in node.group), self.context.hasher)

    def absorb(self, batch: Batch) -> None:
        if self._seen.see(batch):
            self._choose(batch)

    def _choose(self, batch: Batch) -> None:
        if not self._node.group:
            self._best.add(batch)
            return
        groups, slots = self._groups.locate([batch.columns[k] for k in self._node.group], len(batch))
        self._best.add(batch, slots[groups], self._groups.size)

    def publish(self) -> Iterator[None]:
        if self._seen.broken:
            self._restart()
            for batch in net_updates(self._node.types, self._seen.batches, self.context.hasher):
                # What is below zero even so shows nothing, as in the incremental operator.
                self._choose(batch if int(batch.diffs.min()) > 0 else batch.take(np.flatnonzero(batch.diffs > 0)))
                yield
        self._seen.forget()
        groups, rows = self._best.chosen()
        kept, diffs = rows_in_window(groups, rows.diffs, self._node.offset, self._stop)
        budget = self.context.budget_rows
        for start in range(0, len(kept), budget):
            part = rows.take(kept[start : start + budget])
            times = np.full(len(part), self.context.as_of, np.int64)
            self.output.send(Batch(part.types, part.columns, times, diffs[start : start + budget]))
            yield

    def state_size(self) -> StateSize:
        size = self._best.nbytes + self._seen.nbytes
        return StateSize(self._seen.rows, len(self._seen.batches), size, size)

    def close(self) -> None:
        super().close()
        self._seen.forget()
