"""A worker's log of its own doings: the logs as indexes that it maintains.

What happens to a dataflow only marks it.  A *seal* compares what the logs said of the marked ones with what is the
case now, and puts the difference into the traces, all at one time of the log's own timeline: the microseconds of the
runtime's clock.  So the cost follows what changed, and many changes between two seals cost one.

Invariants:
I1  the uppers of all logs agree between seals, and whoever reads several at one sealed time sees one moment;
I2  seals come at least ``interval_ns`` apart, unless one has left something over, and take at most one part in SHARE
    of the thread's time; after a maintained dataflow went or hydrated the next may come sooner, at one part in
    SOON_SHARE; one that came is in the log before it does anything;
I3  a seal takes in at most MOST_DATAFLOWS, longest marked first, unless a reader of this very thread needs it whole;
I4  what is remembered between seals is bounded by the live dataflows.
State of the worker's thread; snapshots of the traces may be read anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.log_reads import LogPart
from eddyline.compute.log_rows import LogRow, LogRows, dataflow_rows, peek_rows
from eddyline.compute.operators.arrange import ERRORS_LAYOUT
from eddyline.compute.peek_log import PeekLog
from eddyline.compute.placement import Role
from eddyline.compute.stream import Arrangement
from eddyline.plan.dataflow import DataflowClass
from eddyline.protocol.logs import LOGS, Log
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import arrow_type
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, build_run
from eddyline.trace.trace import Trace, TraceHandle

__all__ = ["ComputeLog"]

_INTERVAL_NS: Final = 1_000_000_000
SHARE: Final = 100
SOON_SHARE: Final = 10
MOST_DATAFLOWS: Final = 32
#: log time between two reports of the frontiers, which only compaction needs
_REPORT_US: Final = 500_000
#: the owner of rows about peeks
_PEEKS: Final = -1


class ComputeLog:
    """``cost_clock``: nanoseconds that this thread has worked; without it ``clock`` tells what a seal costs."""

    def __init__(
        self,
        worker: int,
        role: Role,
        *,
        hasher: Hasher,
        peeks: PeekLog,
        clock: Callable[[], int],
        cost_clock: Callable[[], int] | None = None,
        interval_ns: int = _INTERVAL_NS,
    ) -> None:
        self._worker = worker
        self._role = role
        self._hasher = hasher
        self._peeks = peeks
        self._clock = clock
        self._cost_clock = cost_clock or clock
        self._interval_ns = interval_ns
        self.arrangements = {log.id: _empty(log) for log in LOGS}
        self._handles: dict[str, list[TraceHandle]] = {
            id: [t.handle(since=Frontier(MIN_TIME), through=EMPTY) for t in (a.oks, a.errs)]
            for id, a in self.arrangements.items()
        }
        #: what the logs say, by the dataflow that it is about
        self._rows: dict[int, LogRows] = {}
        #: dataflows that something happened to since they were last looked at; None: it went
        self._marked: dict[int, Dataflow | None] = {}
        #: ns of creation, until hydration is noticed; then how long it took
        self._born: dict[int, int] = {}
        self._hydrated: dict[int, int] = {}
        self._peeks_seen = 0
        self._soon = False
        #: a maintained dataflow is new: the next seal does not wait
        self.urgent = False
        self._next_ns = self._next_soon_ns = 0
        self._reported: Frontier | None = None

    @property
    def upper(self) -> Frontier:
        """Sealed up to here, in log time."""
        return self.arrangements[LOGS[0].id].oks.upper

    # -- what happens

    def created(self, dataflow: Dataflow) -> None:
        self._born[dataflow.number] = self._clock()
        self._mark(dataflow, dataflow, soon=False)
        self.urgent |= dataflow.description.dataflow_class is DataflowClass.MAINTAINED

    def touched(self, dataflow: Dataflow) -> None:
        """It was activated, or its arrangements were merged."""
        born = self._born.pop(dataflow.number, None) if dataflow.hydrated else None
        if born is not None:
            self._hydrated[dataflow.number] = self._clock() - born
        self._mark(dataflow, dataflow, soon=born is not None)

    def dropped(self, dataflow: Dataflow) -> None:
        number = dataflow.number
        self._born.pop(number, None)
        self._hydrated.pop(number, None)
        if number in self._rows:
            self._mark(dataflow, None, soon=True)
        else:
            self._marked.pop(number, None)  # it came and went between two seals

    def _mark(self, dataflow: Dataflow, now: Dataflow | None, *, soon: bool) -> None:
        self._marked[dataflow.number] = now
        self._soon |= soon and dataflow.description.dataflow_class is DataflowClass.MAINTAINED

    def hydrated_ns(self, dataflow: Dataflow) -> int | None:
        """How long its hydration took; None while it goes on."""
        return self._hydrated.get(dataflow.number)

    # -- seals

    def due_in_s(self) -> float | None:
        """Seconds until the next seal is due, at most 0 if it is; None if there is nothing to seal."""
        if not self._marked and self._peeks.version == self._peeks_seen:
            return None
        return 0.0 if self.urgent else ((self._next_soon_ns if self._soon else self._next_ns) - self._clock()) / 1e9

    def seal(self, *, everything: bool = False) -> None:
        """Brings the logs up to date with the marked dataflows (with ``everything``: all of them) and the peeks."""
        began, worked = self._clock(), self._cost_clock()
        changes: dict[str, list[tuple[LogRow, int]]] = {}
        for number in list(islice(self._marked, None if everything else MOST_DATAFLOWS)):
            dataflow = self._marked.pop(number)
            now = {} if dataflow is None else self._rows_of(dataflow)
            self._replace(number, now, changes)
        if self._peeks.version != self._peeks_seen:
            self._peeks_seen, rows = peek_rows(self._peeks, self._worker, self._role)
            self._replace(_PEEKS, rows, changes)
        upper = Frontier(max(self.upper, began // 1000) + 1)
        for log in LOGS:
            self._insert(log, changes.get(log.id, ()), upper)
        self._soon = self.urgent = bool(self._marked) and (self._soon or self.urgent)
        ended, cost = self._clock(), self._cost_clock() - worked
        self._next_ns = ended + max(0 if self._marked else self._interval_ns, SHARE * cost)
        self._next_soon_ns = ended + SOON_SHARE * cost

    def _rows_of(self, dataflow: Dataflow) -> LogRows:
        return dataflow_rows(dataflow, self.hydrated_ns(dataflow), self._worker, self._role)

    def _replace(self, owner: int, now: LogRows, changes: dict[str, list[tuple[LogRow, int]]]) -> None:
        """Notes how the rows about ``owner`` differ from those in the logs."""
        before = self._rows.get(owner, {})
        for log in now.keys() | before.keys():
            old, new = before.get(log, frozenset()), now.get(log, frozenset())
            if old != new:
                its = changes.setdefault(log, [])
                its += [(row, -1) for row in old - new]
                its += [(row, 1) for row in new - old]
        if now:
            self._rows[owner] = now
        else:
            self._rows.pop(owner, None)

    def _insert(self, log: Log, changes: Iterable[tuple[LogRow, int]], upper: Frontier) -> None:
        arrangement = self.arrangements[log.id]
        trace = arrangement.oks
        rows = list(changes)
        if rows:
            columns = tuple(pa.array([r[i] for r, _ in rows], arrow_type(t)) for i, t in enumerate(log.types))
            times = np.full(len(rows), upper - 1, np.int64)
            batch = Batch(log.types, columns, times, np.array([diff for _, diff in rows], np.int64))
            run = build_run(batch, trace.layout, self._hasher, lower=trace.upper, upper=upper, since=trace.since)
            trace.insert(run)
        else:
            trace.advance_upper(upper)
        arrangement.errs.advance_upper(upper)

    # -- readers

    def part(self, id: str) -> LogPart:
        """The log as it was last sealed."""
        upper = self.upper
        time = Time(upper - 1) if upper > MIN_TIME else None
        return LogPart(self.arrangements[id].oks.snapshot(), time)

    # -- compaction

    def to_report(self) -> Frontier | None:
        """The frontier of all logs, if it is worth a word."""
        if self._reported is not None and self.upper < self._reported + _REPORT_US:
            return None
        self._reported = self.upper
        return self.upper

    def allow_compaction(self, id: str, since: Frontier) -> None:
        """Lower values than before change nothing: a new connection begins at the beginning."""
        for handle in self._handles[id]:
            if since > handle.since:
                handle.downgrade(since)

    def compact(self) -> None:
        """Gives all history up, where nobody but this thread reads."""
        for id in self.arrangements:
            self.allow_compaction(id, Frontier(max(MIN_TIME, self.upper - 1)))


def _empty(log: Log) -> Arrangement:
    return Arrangement(Trace(Layout(log.types, log.key)), Trace(ERRORS_LAYOUT))
