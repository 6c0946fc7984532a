"""Indexes as immutable snapshots: how a read sees the indexes of the other runtime.

A snapshot taken under a hold answers its time for ever, so that nothing here holds anything.
"""

from __future__ import annotations

from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.publication import empty_snapshot
from eddyline.trace.run import Layout
from eddyline.trace.snapshot import Snapshot

__all__ = ["FrozenArrangement", "FrozenHandle", "FrozenIndex", "FrozenTrace"]

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
