"""What the writers of one materialized view have computed of an interval that they have not come to the end of."""

from __future__ import annotations

from dataclasses import dataclass, field

from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.trace.run import Run
from eddyline.trace.trace import Trace

__all__ = ["Stage", "Stages"]


@dataclass(slots=True, eq=False)
class Stage:
    """Updates of one time.  ``trace``: merged as they come, so that little is left to merge when they are published."""

    time: Frontier
    trace: Trace
    #: as they came, for whoever follows the view
    batches: list[Batch] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """``run``: at ``time``, with bounds there."""
        self.trace.insert(run)
        self.batches.append(run.batch())


class Stages:
    """Each writer has its own, which no reader sees.  For the holder of the collection's ``turn``, but for ``size``."""

    def __init__(self) -> None:
        self._stages: dict[object, Stage] = {}  # replaced whole, so that ``size`` may look at any time

    def of(self, writer: object, time: Frontier) -> Stage | None:
        """What the writer has staged of ``time``."""
        stage = self._stages.get(writer)
        return stage if stage is not None and stage.time == time else None

    def put(self, writer: object, stage: Stage) -> None:
        self._stages = {**self._stages, writer: stage}

    def take(self, writer: object, upper: Frontier) -> Stage | None:
        """What the writer staged, if that is not below ``upper``; it is staged no more."""
        stage = self._stages.get(writer)
        self.forget(writer)
        return None if stage is None or stage.time < upper else stage

    def forget(self, writer: object) -> None:
        if writer in self._stages:
            self._stages = {w: s for w, s in self._stages.items() if w is not writer}

    def passed(self, upper: Frontier) -> None:
        """Everything below is written: what others staged of it, or had staged before they were lost, is in the way."""
        if self._stages:
            self._stages = {w: s for w, s in self._stages.items() if s.time >= upper}

    def size(self) -> tuple[int, int]:
        """(updates, bytes)."""
        stages = self._stages.values()
        return sum(s.trace.rows for s in stages), sum(s.trace.bytes for s in stages)
