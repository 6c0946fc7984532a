"""Reading logs: what each runtime sealed last, put together at the time of the read.

A log's rows are on a timeline of their own.  A *part* is one runtime's share on one worker: a snapshot and the time in
it that is read, which its writer has sealed and keeps exact.  All logs that a read needs of one runtime are read at
one such time, so that they fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.stream import Output
from eddyline.protocol.logs import Log
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.trace import Trace

__all__ = ["FrozenLog", "ImportLogOperator", "LogImport", "LogPart"]


@dataclass(frozen=True, slots=True)
class LogPart:
    """``time`` None: the writer has sealed nothing yet."""

    snapshot: Snapshot
    time: Time | None

    def rows(self, at: Time) -> Batch:
        """The rows, each once, at time ``at`` of the reader.  O(updates in the log)."""
        if self.time is None:
            return Batch.empty(self.snapshot.layout.types)
        found = self.snapshot.read_at(self.time)
        return Batch(found.types, found.columns, np.full(len(found), at, np.int64), found.diffs)


class LogImport:
    """A log that a dataflow imports; ``bind`` once says what it holds.  State of the worker's thread."""

    __slots__ = ("parts", "types")

    def __init__(self, types: tuple[SqlType, ...]) -> None:
        self.types = types
        self.parts: tuple[LogPart, ...] | None = None

    def bind(self, parts: tuple[LogPart, ...]) -> None:
        self.parts = parts


class ImportLogOperator:
    """Sends the parts at as_of, in one go: logs are small.  Nothing follows."""

    def __init__(self, name: str, log: LogImport, output: Output, context: OperatorContext) -> None:
        self.name = name
        self._log = log
        self._output = output
        self._context = context

    def step(self) -> bool:
        if not self.pending():
            return False
        for part in self._log.parts or ():
            rows = part.rows(self._context.as_of)
            for start in range(0, len(rows), self._context.budget_rows):
                self._output.send(rows.slice(start, min(start + self._context.budget_rows, len(rows))))
        self._output.advance(EMPTY)
        return True

    def pending(self) -> bool:
        return self._log.parts is not None and self._output.frontier < EMPTY

    def close(self) -> None:
        """It holds nothing but snapshots."""


class FrozenLog:
    """The parts as one index that answers time ``at``, for a peek: a ``PeekSource``.  O(updates in the log)."""

    #: it is no read's result, and was there before the peek
    read: None = None
    published_ns = 0
    since = Frontier(MIN_TIME)

    def __init__(self, log: Log, parts: Sequence[LogPart], at: Time, hasher: Hasher) -> None:
        layout = Layout(log.types, log.key)
        rows = Batch.concat(log.types, [p.rows(at) for p in parts])
        oks, upper = Trace(layout), Frontier(at + 1)
        oks.insert(build_run(rows, layout, hasher, lower=oks.upper, upper=upper, since=oks.since))
        index = FrozenIndex(layout)
        errs = Trace(index.arrangement.errs.layout)
        errs.advance_upper(upper)
        index.bind(oks.snapshot(), errs.snapshot())
        self.types = log.types
        self.arrangement = index.arrangement
        self._upper = upper

    def frontier(self) -> Frontier:
        return self._upper
