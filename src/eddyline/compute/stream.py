"""Edges between operators of one dataflow on one worker.

Invariants:
I1  an update enters a stream at a time at or past the stream's frontier as it stood before the send;
I2  frontiers never regress;
I3  what was sent before ``advance(f)`` is in the queue before the consumer can see ``f``.
All state here belongs to the worker's thread.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier

if TYPE_CHECKING:
    from eddyline.compute.frozen import FrozenArrangement
    from eddyline.trace.reserve import Reserve
    from eddyline.trace.run import Run
    from eddyline.trace.trace import Trace

__all__ = ["ArrangedOutput", "ArrangedStream", "Arrangement", "Operator", "Output", "Sealed", "Stream"]


class Stream:
    """One consumer's queue of row and error batches, with the frontier below which nothing more comes."""

    __slots__ = ("errors", "frontier", "updates")

    def __init__(self) -> None:
        self.updates: deque[Batch] = deque()
        self.errors: deque[Batch] = deque()
        self.frontier: Frontier = Frontier(MIN_TIME)

    def drained(self) -> bool:
        return not self.updates and not self.errors

    def done(self) -> bool:
        """Nothing is queued and nothing will come."""
        return self.drained() and self.frontier == EMPTY


class Output:
    """The producing end: fans out to every consumer by reference."""

    __slots__ = ("consumers", "frontier")

    def __init__(self) -> None:
        self.consumers: list[Stream] = []
        self.frontier: Frontier = Frontier(MIN_TIME)

    def connect(self) -> Stream:
        stream = Stream()
        self.consumers.append(stream)
        return stream

    def send(self, batch: Batch) -> None:
        if len(batch):
            for stream in self.consumers:
                stream.updates.append(batch)

    def send_errors(self, batch: Batch | None) -> None:
        if batch is not None and len(batch):
            for stream in self.consumers:
                stream.errors.append(batch)

    def advance(self, frontier: Frontier) -> bool:
        """Raises the frontier; True if it moved.  It is an error to call this with work below it unsent."""
        if frontier <= self.frontier:
            return False
        self.frontier = frontier
        for stream in self.consumers:
            stream.frontier = frontier
        return True


class Sealed:
    """One sealed interval of an arrangement: its rows as runs (none: no rows), its errors, its bounds.

    A consumer moves times below the dataflow's as_of up to it (an imported snapshot keeps older ones) and ignores
    times at or past ``upper``.  The first interval's ``upper`` is past as_of, so that it holds the whole snapshot.
    """

    __slots__ = ("errors", "lower", "runs", "upper")

    def __init__(self, runs: tuple[Run, ...], errors: Batch | None, lower: Frontier, upper: Frontier) -> None:
        self.runs = runs
        self.errors = errors
        self.lower = lower
        self.upper = upper


class Arrangement:
    """The traces of one arranged collection on one worker: rows (oks) and errors (errs).

    ``reserve``: rows that are yet to enter the trace, of keys that its only reader has not asked for
    (``operators.partner``).
    """

    __slots__ = ("errs", "oks", "reserve")

    def __init__(self, oks: Trace, errs: Trace) -> None:
        self.oks = oks
        self.errs = errs
        self.reserve: Reserve | None = None


class ArrangedStream:
    """One consumer's queue of sealed intervals, contiguous and in order; ``frontier`` is the last one's upper.

    The trace behind it may already hold later intervals: a consumer reads it only below the frontier that it has
    itself consumed.
    """

    __slots__ = ("arrangement", "frontier", "sealed")

    def __init__(self, arrangement: Arrangement | FrozenArrangement) -> None:
        self.arrangement = arrangement
        self.sealed: deque[Sealed] = deque()
        self.frontier: Frontier = Frontier(MIN_TIME)


class ArrangedOutput:
    """The producing end of an arranged edge."""

    __slots__ = ("arrangement", "consumers", "frontier")

    def __init__(self, arrangement: Arrangement | FrozenArrangement) -> None:
        self.arrangement = arrangement
        self.consumers: list[ArrangedStream] = []
        self.frontier: Frontier = Frontier(MIN_TIME)

    def connect(self) -> ArrangedStream:
        stream = ArrangedStream(self.arrangement)
        self.consumers.append(stream)
        return stream

    def seal(self, sealed: Sealed) -> None:
        """Hands an interval on; its runs must be in the trace already."""
        self.frontier = sealed.upper
        for stream in self.consumers:
            stream.sealed.append(sealed)
            stream.frontier = sealed.upper


class Operator(Protocol):
    """One operator instance on one worker."""

    name: str

    def step(self) -> bool:
        """One activation: at most about 64 Ki rows or 5 ms of work; True if it did anything.

        Atomic: between activations every output frontier is honest (all work below it has been sent).
        """
        ...

    def pending(self) -> bool:
        """Whether a step would do something now."""
        ...

    def close(self) -> None:
        """Releases trace handles.  Called once, when the dataflow is dropped."""
        ...
