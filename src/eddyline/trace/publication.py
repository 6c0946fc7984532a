"""Publication points: the face of a trace towards another thread than its writer's.

A point begins as a *placeholder*, to which a trace is *attached* later, once.  Readers may look and take holds before.

Invariants:
I1  a placeholder's frontiers are the minimum: the empty frontier would read as "sealed for ever";
I2  runs and the frontier that seals them come in one snapshot, whose upper is never past its runs;
I3  the check of since and the registration of a hold are one step, under one lock;
I4  holds only rise, are logical only, and since comes from the trace, never from who reads;
I5  without its writer a trace stays as it was: its upper does not move.
Locks: a point's, then its trace's; both are held for O(holds), never across a merge.
"""

from __future__ import annotations

import threading

from eddyline.repr.time import EMPTY, MIN_TIME, Frontier
from eddyline.trace.merge import RunSet
from eddyline.trace.run import Layout
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.trace import Trace, TraceHandle

__all__ = ["PublicationPoint", "SharedHold", "empty_snapshot"]

_START = Frontier(MIN_TIME)


def empty_snapshot(layout: Layout) -> Snapshot:
    """What a placeholder shows: nothing, sealed nowhere."""
    return Snapshot(layout, RunSet(layout, ()), _START, _START)


class PublicationPoint:
    """See the module.  Any thread."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._nothing = empty_snapshot(layout)
        self._lock = threading.Lock()
        self._trace: Trace | None = None  # set once, under _lock
        self._waiting: dict[SharedHold, Frontier] = {}  # holds older than the trace; guarded by _lock

    @property
    def attached(self) -> bool:
        return self._trace is not None

    @property
    def upper(self) -> Frontier:
        return self.snapshot().upper

    @property
    def since(self) -> Frontier:
        trace = self._trace
        return _START if trace is None else trace.since

    @property
    def rows(self) -> int:
        """Updates in the trace."""
        return self.snapshot().rows

    def snapshot(self) -> Snapshot:
        """The trace as it stands, by reference.  O(1)."""
        trace = self._trace
        return self._nothing if trace is None else trace.snapshot()

    def attach(self, trace: Trace) -> None:
        """Puts ``trace`` behind the point, and the holds taken so far on it.

        It is an error to attach twice, a trace of another layout, or one whose since is past a hold.
        """
        if trace.layout.key != self.layout.key or len(trace.layout.types) != len(self.layout.types):
            raise ValueError(f"a trace keyed by {trace.layout.key} for a point keyed by {self.layout.key}")
        with self._lock:
            if self._trace is not None:
                raise ValueError("a trace is attached already")
            for hold, since in self._waiting.items():
                hold.bind(trace.handle(since=since, through=EMPTY))
            self._waiting.clear()
            self._trace = trace

    def hold(self, since: Frontier) -> SharedHold:
        """Keeps the trace exact from ``since`` on.  ValueError if that is gone already."""
        hold = SharedHold(self)
        with self._lock:
            if self._trace is None:
                self._waiting[hold] = since
            else:
                hold.bind(self._trace.handle(since=since, through=EMPTY))
        return hold

    def since_of(self, hold: SharedHold) -> Frontier:
        """For ``SharedHold`` only; the empty frontier once it is closed."""
        with self._lock:
            handle = hold.handle
            return self._waiting.get(hold, EMPTY) if handle is None else handle.since

    def move(self, hold: SharedHold, since: Frontier) -> None:
        """For ``SharedHold`` only."""
        with self._lock:
            handle = hold.handle
            if handle is None:
                if hold in self._waiting and since > self._waiting[hold]:
                    self._waiting[hold] = since
            elif since > handle.since:
                handle.downgrade(since)

    def release(self, hold: SharedHold) -> None:
        """For ``SharedHold`` only."""
        with self._lock:
            self._waiting.pop(hold, None)
            handle = hold.unbind()
        if handle is not None:
            handle.close()


class SharedHold:
    """A logical hold of another thread on a trace that may not be there yet.  Any thread, one at a time."""

    __slots__ = ("_point", "handle")

    def __init__(self, point: PublicationPoint) -> None:
        self._point = point
        self.handle: TraceHandle | None = None  # guarded by the point's lock

    @property
    def since(self) -> Frontier:
        return self._point.since_of(self)

    def bind(self, handle: TraceHandle) -> None:
        """For the point only."""
        self.handle = handle

    def unbind(self) -> TraceHandle | None:
        """For the point only."""
        handle, self.handle = self.handle, None
        return handle

    def downgrade(self, since: Frontier) -> None:
        """Gives up the times below ``since``; lower values change nothing."""
        self._point.move(self, since)

    def close(self) -> None:
        """Idempotent."""
        self._point.release(self)
