"""How the workers with one ordinal share indexes: maintenance publishes, the interactive runtime reads.

A *slot* is one incarnation (id, n) of an index: a publication point for its rows, one for its errors, and the *peer
hold*, which stands for the reader's position in the command stream.  Both sides count n from the commands alone.

Invariants:
I1  maintenance registers the peer hold at publication, at the dataflow's as_of; the reader takes it over when it
    records the peer; a reader that comes first registers its own, on the placeholder;
I2  a reader that has dropped the peer before it is published leaves no hold behind;
I3  a slot goes when both sides are done with it;
I4  the point is updated before the reader is woken, and the reader registers what it waits for before it looks again:
    no wake-up is lost, nobody polls, and no one is woken who does not wait; the same for callers that wait by
    themselves to read what is sealed (``tell_sealed``);
I5  one thread publishes and one reads (checked); callers of any number look at what is published;
I6  the slot of a dataflow that may not run yet is sealed nowhere, though the trace that it shares may be.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from typing import Final

from eddyline.compute.stream import Arrangement
from eddyline.repr.ids import is_log
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.trace.publication import PublicationPoint, SharedHold
from eddyline.trace.run import Layout
from eddyline.trace.snapshot import Snapshot

__all__ = ["LOG_INCARNATION", "PairHold", "SharingRegistry", "Slot"]


#: a log lives as long as its runtime
LOG_INCARNATION: Final = 1


class _Side(enum.Enum):
    """Where one side of a slot is in its life."""

    EXPECTED = "expected"
    HERE = "here"
    GONE = "gone"


class PairHold:
    """Holds on the rows and the errors of one index, as one."""

    __slots__ = ("_holds",)

    def __init__(self, holds: tuple[SharedHold, SharedHold]) -> None:
        self._holds = holds

    @property
    def since(self) -> Frontier:
        return max(h.since for h in self._holds)

    def downgrade(self, since: Frontier) -> None:
        for hold in self._holds:
            hold.downgrade(since)

    def close(self) -> None:
        for hold in self._holds:
            hold.close()


class Slot:
    """One incarnation of an index.  ``demand`` asks the publisher to catch up; both callbacks return at once."""

    def __init__(
        self,
        id: str,
        incarnation: int,
        layout: Layout,
        until: Frontier,
        *,
        wake_reader: Callable[[], None],
        demand: Callable[[str], None],
    ) -> None:
        self.id = id
        self.incarnation = incarnation
        self.oks = PublicationPoint(layout)
        self.errs = PublicationPoint(Layout(ERR_TYPES, tuple(range(len(ERR_TYPES)))))
        self._until = until
        self._wake_reader = wake_reader
        self._demand = demand
        self._lock = threading.Lock()
        self._publisher = _Side.EXPECTED  # guarded by _lock, like the rest
        self._reader = _Side.EXPECTED
        self._peer_hold: PairHold | None = None
        #: when it was published, for whoever waited for that; 0 before.  Written by the publisher.
        self.published_ns = 0
        #: whether its dataflow may run.  Written by the publisher.
        self.started = False
        #: how far the publisher's own commands let it compact.  Written by the publisher.
        self.publisher_since = Frontier(MIN_TIME)
        #: the least time that the reader waits to see sealed
        self._awaited: Time | None = None
        #: callers that wait for themselves: what tells each, and the time that it waits for
        self._callers: dict[Callable[[], None], Time] = {}

    def frontier(self) -> Frontier:
        """Sealed up to here, rows and errors; past the until of its dataflow nothing is missing."""
        if not self.started:
            return Frontier(MIN_TIME)
        sealed = min(self.oks.upper, self.errs.upper)
        return EMPTY if sealed >= self._until else sealed

    @property
    def since(self) -> Frontier:
        """The traces answer for times at or past it."""
        return max(self.oks.since, self.errs.since)

    def snapshots(self) -> tuple[Snapshot, Snapshot]:
        """Rows and errors as they stand, by reference."""
        return self.oks.snapshot(), self.errs.snapshot()

    def hold(self, since: Frontier) -> PairHold:
        """ValueError if ``since`` is gone already."""
        oks = self.oks.hold(since)
        try:
            return PairHold((oks, self.errs.hold(since)))
        except ValueError:
            oks.close()
            raise

    @property
    def awaited(self) -> bool:
        """Whether the reader, or a caller, waits for a time that is not sealed."""
        with self._lock:
            return self._awaited is not None or bool(self._callers)

    def hold_gap_us(self) -> int:
        """How far the reader's position keeps the trace from compacting as the publisher's would; 0 if it does not."""
        with self._lock:
            hold = self._peer_hold
        if hold is None or self.publisher_since == EMPTY:
            return 0
        held = hold.since
        return 0 if held == EMPTY else max(0, self.publisher_since - held)

    # -- the publisher's thread

    def publish(self, arrangement: Arrangement, as_of: Frontier) -> None:
        self.errs.attach(arrangement.errs)
        self.oks.attach(arrangement.oks)
        with self._lock:
            self._publisher = _Side.HERE
            if self._reader is _Side.EXPECTED:
                self._peer_hold = self.hold(as_of)

    def start(self) -> None:
        """The dataflow may run; a trace that it shares may be sealed already."""
        self.started = True
        self.announce()

    def announce(self) -> None:
        """After the points have moved: wakes the reader if it waits for that."""
        with self._lock:
            frontier = self.frontier()
            wake = self._awaited is not None and frontier > self._awaited
            if wake:
                self._awaited = None
            told = [tell for tell, time in self._callers.items() if frontier > time]
            for tell in told:
                del self._callers[tell]
        for tell in told:
            tell()
        if wake:
            self._wake_reader()

    # -- any thread

    def tell_sealed(self, time: Time, tell: Callable[[], None]) -> bool:
        """True if ``time`` is sealed; if not, ``tell`` is called once when it is, unless ``forget`` is first.

        ``tell`` is called on the publisher's thread and returns at once; it may be called while ``forget`` runs.
        """
        with self._lock:
            if self.frontier() > time:
                return True
            first = self._awaited is None and not self._callers
            self._callers[tell] = time
            published = self._publisher is _Side.HERE
        if first and published:
            self._demand(self.id)
        return False

    def forget(self, tell: Callable[[], None]) -> None:
        """Whoever ``tell`` tells waits no more.  Twice is harmless."""
        with self._lock:
            self._callers.pop(tell, None)

    # -- the reader's thread

    def record(self, as_of: Frontier) -> PairHold:
        """The peer hold: the one registered at publication, or a new one at ``as_of``."""
        with self._lock:
            self._reader = _Side.HERE
            if self._peer_hold is None:
                self._peer_hold = self.hold(as_of)
            return self._peer_hold

    def sealed_past(self, time: Time) -> bool:
        """Whether ``time`` is sealed; if not, the reader will be woken once it is."""
        with self._lock:
            if self.frontier() > time:
                return True
            first = self._awaited is None and not self._callers
            self._awaited = time if self._awaited is None else min(time, self._awaited)
            published = self._publisher is _Side.HERE
        if first and published:  # later on the publisher knows, and a slot published later is looked at then
            self._demand(self.id)
        return False

    # -- the registry's

    def leave(self, *, reader: bool) -> bool:
        """One side is done; True if the other is too."""
        with self._lock:
            if reader:
                self._reader, self._awaited = _Side.GONE, None
                hold, self._peer_hold = self._peer_hold, None
            else:
                self._publisher, hold = _Side.GONE, None
            done = self._reader is _Side.GONE and self._publisher is _Side.GONE
        if hold is not None:
            hold.close()
        return done


class SharingRegistry:
    """The slots of one worker ordinal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, int], Slot] = {}  # guarded by _lock
        self._wake_reader: Callable[[], None] = _nobody
        self._demand: Callable[[str], None] = _nothing
        self._demand_view: Callable[[str, Time], None] = _no_view
        self._threads: dict[bool, int] = {}  # reader or not -> the one thread that may
        self._digests: dict[int, str] = {}  # guarded by _lock

    def connect_reader(self, wake: Callable[[], None]) -> None:
        """Before either side runs."""
        self._wake_reader = wake

    def connect_publisher(self, demand: Callable[[str], None], demand_view: Callable[[str, Time], None]) -> None:
        """Before either side runs."""
        self._demand = demand
        self._demand_view = demand_view

    def want_view(self, id: str, time: Time) -> None:
        """The reader is about to read a stored collection: if it is a view, its maintainer is asked to seal ``time``.

        A view whose tables are quiet seals nothing by itself.
        """
        self._demand_view(id, time)

    def publish(self, id: str, incarnation: int, arrangement: Arrangement, as_of: Time, until: Frontier) -> Slot:
        """Attaches the traces of an index that has just been rendered."""
        self._check_thread(reader=False)
        slot = self._slot(id, incarnation, arrangement.oks.layout, until)
        slot.publish(arrangement, Frontier(as_of))
        return slot

    def record(self, id: str, incarnation: int, layout: Layout, until: Frontier) -> Slot:
        """The slot of a peer, a placeholder if it is not published yet; ``Slot.record`` gives its hold."""
        self._check_thread(reader=True)
        return self._slot(id, incarnation, layout, until)

    def withdraw(self, slot: Slot, *, reader: bool) -> None:
        """The publisher has dropped the index, or the reader the peer."""
        self._check_thread(reader=reader)
        if slot.leave(reader=reader):
            with self._lock:
                self._slots.pop((slot.id, slot.incarnation), None)

    def agree(self, reconciliation: int, digest: str) -> None:
        """Each side says what it derived from the commands; it is an error if they differ."""
        with self._lock:
            other = self._digests.pop(reconciliation, None)
            if other is None:
                self._digests[reconciliation] = digest
            elif other != digest:
                raise AssertionError(f"the runtimes retain different things: {other} and {digest}")

    def hold_gap_us(self) -> int:
        """The largest gap of a slot."""
        with self._lock:
            slots = list(self._slots.values())
        return max((slot.hold_gap_us() for slot in slots), default=0)

    def __len__(self) -> int:
        """Slots, but for those of the logs, which stay."""
        with self._lock:
            return sum(not is_log(id) for id, _ in self._slots)

    def _slot(self, id: str, incarnation: int, layout: Layout, until: Frontier) -> Slot:
        with self._lock:
            slot = self._slots.get((id, incarnation))
            if slot is None:
                slot = Slot(id, incarnation, layout, until, wake_reader=self._wake_reader, demand=self._demand)
                self._slots[id, incarnation] = slot
        return slot

    def _check_thread(self, *, reader: bool) -> None:
        mine = threading.get_ident()
        if self._threads.setdefault(reader, mine) != mine:
            raise AssertionError("a sharing registry has one publishing and one reading thread")


def _nobody() -> None:
    """No reader is connected."""


def _nothing(id: str) -> None:
    """No publisher is connected."""


def _no_view(id: str, time: Time) -> None:
    """No publisher is connected."""
