"""The frame of operators that see one time only: they take what comes, and publish once.

A read's dataflow ends one step past its as_of, so that nothing is ever applied to what was published: such an operator
needs no history, no output to correct, and may forget rows that cannot matter any more.  What it gives is what the
incremental operator gives at that time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddyline.compute.operators.sealed import SealedOperator
from eddyline.errors import InternalError
from eddyline.repr.batch import Batch

__all__ = ["Retractions", "SnapshotOperator"]


class SnapshotOperator(SealedOperator):
    """Requires a dataflow with a single time (checked when something is applied)."""

    def apply(self, batch: Batch) -> Iterator[None]:
        raise InternalError(f"{self.name} is given updates past its one time")


class Retractions:
    """Remembers batches by reference, for whoever forgets rows on the premise that none is retracted.

    ``broken``: a batch had a retraction, so that whatever was forgotten has to be looked at again.
    """

    __slots__ = ("batches", "broken", "nbytes", "rows")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.broken = False
        self.rows = 0
        #: of the batches, although others may keep them too
        self.nbytes = 0

    def see(self, batch: Batch) -> bool:
        """Whether the premise still holds, with ``batch``."""
        self.batches.append(batch)
        self.rows += len(batch)
        self.nbytes += batch.nbytes
        self.broken = self.broken or int(np.min(batch.diffs, initial=1)) < 0
        return not self.broken

    def replace(self, batches: list[Batch]) -> None:
        """Keeps these in the place of those that were seen."""
        self.batches = batches
        self.rows = sum(map(len, batches))
        self.nbytes = sum(batch.nbytes for batch in batches)

    def forget(self) -> None:
        self.batches = []
        self.rows = self.nbytes = 0
