"""Indexes as immutable snapshots: how a read sees the indexes of the other runtime, and its own result.

A snapshot taken under a hold answers its time for ever, so that nothing here holds anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddyline.compute.context import OperatorContext
from eddyline.compute.walk import Pace
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.merge import RunSet
from eddyline.trace.publication import empty_snapshot
from eddyline.trace.run import Layout, Run, build_run
from eddyline.trace.snapshot import Snapshot

__all__ = ["CollectedArrangement", "CollectedTrace", "FrozenArrangement", "FrozenHandle", "FrozenIndex", "FrozenTrace"]

_ERRORS = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))


class FrozenHandle:
    """A reader's registration with a frozen trace: nothing to hold, the snapshot stays what it is."""

    __slots__ = ("_trace",)

    def __init__(self, trace: FrozenTrace) -> None:
        self._trace = trace

    def downgrade(self, since: Frontier) -> None:
        """Nothing compacts."""

    def set_through(self, through: Frontier) -> None:
        """Nothing merges: there is no boundary to keep."""

    def move(self, since: Frontier, through: Frontier) -> None:
        """As both."""

    def close(self) -> None:
        """Nothing is held."""

    def snapshot(self) -> Snapshot:
        return self._trace.snapshot()


class FrozenTrace:
    """A trace at the moment when it is bound; empty and sealed nowhere before."""

    __slots__ = ("_snapshot", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._snapshot = empty_snapshot(layout)

    @property
    def rows(self) -> int:
        return self._snapshot.rows

    @property
    def since(self) -> Frontier:
        return self._snapshot.since

    @property
    def upper(self) -> Frontier:
        return self._snapshot.upper

    def bind(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def handle(self, *, since: Frontier, through: Frontier) -> FrozenHandle:
        return FrozenHandle(self)


class FrozenArrangement:
    """Rows and errors of one index."""

    __slots__ = ("errs", "oks")

    def __init__(self, layout: Layout) -> None:
        self.oks = FrozenTrace(layout)
        self.errs = FrozenTrace(_ERRORS)


class CollectedTrace(FrozenTrace):
    """Rows of one time in no order, as a read's dataflow gave them; empty and sealed nowhere before.

    Whoever reads all of them gets them as they are.  For whoever looks up in them they are put in order, once.
    """

    __slots__ = ("_batches", "_hasher")

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._batches: list[Batch] | None = None  # what ``snapshot`` has yet to put in order
        self._hasher: Hasher | None = None

    @property
    def rows(self) -> int:
        return super().rows if self._batches is None else sum(map(len, self._batches))

    def collect(self, batches: list[Batch], time: Time, until: Frontier, hasher: Hasher) -> None:
        """The rows, all at ``time``, none of which takes another one back."""
        self._batches, self._hasher = batches, hasher
        self.bind(Snapshot(self.layout, RunSet(self.layout, ()), until, Frontier(time)))

    def snapshot(self) -> Snapshot:
        """O(rows log rows) the first time.  The worker's thread."""
        if self._batches is not None and self._hasher is not None:
            batches, self._batches = self._batches, None
            since, upper = self.since, self.upper
            whole = Batch.concat(self.layout.types, batches).advanced(Time(since))
            run = build_run(whole, self.layout, self._hasher, lower=since, upper=upper, since=since)
            self.bind(Snapshot(self.layout, RunSet(self.layout, (run,) if len(run) else ()), upper, since))
        return super().snapshot()

    def slices(self, pace: Pace) -> Iterator[Batch] | None:
        """All rows, about ``pace.rows`` at once; None if they are in order by now."""
        return None if self._batches is None else _slices(list(self._batches), pace)


def _slices(batches: list[Batch], pace: Pace) -> Iterator[Batch]:
    for batch in batches:
        start = 0
        while start < len(batch):
            stop = min(start + pace.rows, len(batch))
            yield batch.slice(start, stop)
            start = stop


class CollectedArrangement(FrozenArrangement):
    """A read's rows and errors."""

    __slots__ = ("collected",)

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.oks = self.collected = CollectedTrace(layout)

    def collect(self, rows: list[Batch], errors: Batch | None, context: OperatorContext) -> None:
        """What is read at the one time of ``context``."""
        time, until = context.as_of, context.until
        self.collected.collect(rows, time, until, context.hasher)
        runs: tuple[Run, ...] = ()
        if errors is not None and len(errors):
            run = build_run(errors, _ERRORS, context.hasher, lower=Frontier(time), upper=until, since=Frontier(time))
            runs = (run,) if len(run) else ()
        self.errs.bind(Snapshot(_ERRORS, RunSet(_ERRORS, runs), until, Frontier(time)))


class FrozenIndex:
    """An index as a read sees it.  State of one thread; ``bound``: the snapshots are there."""

    __slots__ = ("arrangement", "bound", "published_ns", "types")

    def __init__(self, layout: Layout) -> None:
        self.types: tuple[SqlType, ...] = layout.types
        self.arrangement = FrozenArrangement(layout)
        self.bound = False
        #: when the index came to be there; 0: it was there before the read
        self.published_ns = 0

    def bind(self, oks: Snapshot, errs: Snapshot, published_ns: int = 0) -> None:
        self.published_ns = published_ns
        self.arrangement.oks.bind(oks)
        self.arrangement.errs.bind(errs)
        self.bound = True
