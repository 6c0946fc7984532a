"""A trace: the history of one arranged collection on one worker, as a spine of runs.

Invariants:
I1  the spine's runs have ascending, disjoint intervals, and hold every update below ``upper`` with time advanced to at
    most ``since``; an interval without a run had no updates, or none that remain; a run whose ``lower`` is its
    ``upper`` holds a part of the updates of that open time, put in ahead of its sealing;
I2  ``since`` never passes a handle's ``since``; neither it nor ``upper`` regresses;
I3  a merge reads only its inputs and is swapped in whole: a snapshot never changes;
I4  no run reaches from below the lowest ``through`` hold to at or past it, unless its merge began before the hold.

*Merging.* One-row inserts are kept as tiny runs, folded once there are TINY_RUNS of them. The rest have levels, each of
runs four times as long as the one below; FAN neighbours of one level (and whatever is shorter between them) merge at
once, so that a row is copied once per level: half as often as by merging pairs, for about half as many runs more. That
is for rows that stay. What since has not passed is merged once more when it has, since only then anything vanishes:
until then HISTORY_FAN long neighbours are waited for, for fewer copies of more runs. Retractions that since has passed
free space only where they meet what they take back: a run merges with all newer ones once these hold passed retractions
of a quarter of its rows. A merge of M rows is left to idle time (``work``) until M / 8 newer rows have come: readers
wait for what an insert brought and not for merges, which go on while somebody else has the turn. From then on each
insert of n rows gives it 8n + 1024 rows of fuel: it ends by the time that M / 4 newer rows have come, so sizes stay
geometric and runs logarithmic, however busy the writer is. Rows that came and went in one run meet no other run that
would make them vanish: such a run is rewritten alone, in idle time, once since has passed it.

Thread: one writer (insert, advance_upper, work).  Snapshots and handles: any thread.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Final

from eddyline.repr.time import MIN_TIME, Frontier
from eddyline.trace.merge import Merge, RunSet
from eddyline.trace.run import Layout, Run
from eddyline.trace.snapshot import Snapshot

__all__ = ["Trace", "TraceHandle"]

_START: Final = Frontier(MIN_TIME)
TINY_RUNS: Final = 16
FAN: Final = 4
HISTORY_FAN: Final = 8
#: shorter runs cost readers more than their merges save
_HISTORY_ROWS: Final = 4096
#: newer runs merge into one at least so many times as long as what they retract of it
_RETRACTED_SHARE: Final = 4
_TINY_ROWS: Final = 64
_FUEL_PER_ROW: Final = 8
#: a merge is left to idle time until one newer row in so many of its own has come
_GRACE_SHARE: Final = 8
_FUEL_ROWS: Final = 1024
#: a run is rewritten alone if at least one in so many of its updates is a retraction that since has passed
_REWRITE_SHARE: Final = 4
#: at most this much of the walks' fuel in one insert
_OWED_FUEL_ROWS: Final = 1 << 14


class Trace:
    """See the module.  ``lower``: where it starts; rows below have been advanced to it."""

    def __init__(self, layout: Layout, *, lower: Frontier = _START) -> None:
        self.layout = layout
        # the runs in force, oldest first; replaced, never changed; written by the writer's thread
        self._set = RunSet(layout, ())
        # merges in progress by the identity of their first input; writer's thread only
        self._merges: dict[int, Merge] = {}
        # how many newer rows each of them waits for idle time, by the same key
        self._grace: dict[int, int] = {}
        # the identities of all their inputs
        self._inputs: set[int] = set()
        # the present runs that ``_begin_rewrite`` has looked at, by identity; writer's thread only
        self._looked_at: set[int] = set()
        # whether something may be due that ``work`` has not looked at; writer's thread only, like the next
        self._changed = False
        # ``_bounds`` when ``work`` last found nothing to do
        self._settled: tuple[Frontier, Frontier | None] | None = None
        # how many of the runs are tiny
        self._tiny_runs = 0
        # of the runs that are not tiny: what since is past when it is past all of them, and where the last one begins
        # (None: there are none); None until it is asked for
        self._reach: tuple[Frontier, Frontier | None] | None = None
        # walks over dead rows not yet paid for by starting a merge
        self._debt_rows = 0
        # the fuel that such walks add to inserts, not yet spent
        self._owed_fuel_rows = 0
        # guards _holds and _since against handles of other threads; held for O(handles)
        self._lock = threading.Lock()
        self._holds: dict[TraceHandle, tuple[Frontier, Frontier]] = {}
        # the lowest physical hold; replaced with the lock held, read without
        self._lowest_through: Frontier | None = None
        self._since = lower
        self._snapshot = Snapshot(layout, self._set, lower, lower)

    @property
    def upper(self) -> Frontier:
        """Every update below it is in the trace."""
        return self._snapshot.upper

    @property
    def since(self) -> Frontier:
        """The trace answers exactly for times at or past it."""
        return self._since

    @property
    def rows(self) -> int:
        """Updates held, merges in progress not counted."""
        return self._set.rows

    @property
    def bytes(self) -> int:
        return sum(run.nbytes for run in self._set.runs)

    @property
    def runs(self) -> int:
        return len(self._set.runs)

    def snapshot(self) -> Snapshot:
        """The trace as it stands.  O(1)."""
        return self._snapshot

    def insert(self, run: Run) -> None:
        """Appends an interval and pays for merging.  ValueError unless ``run.lower`` is the trace's upper.

        With ``run.upper`` at ``run.lower`` the trace's upper stays; its rows are ahead, and readers pass them over.
        Amortised O(rows × log(trace rows)).
        """
        if run.lower != self.upper:
            raise ValueError(f"a run of [{run.lower}, {run.upper}) cannot follow upper {self.upper}")
        if len(run):
            tiny = len(run) <= _TINY_ROWS
            reach, tiny_runs = self._reach if tiny else None, self._tiny_runs + tiny
            self._replace(self._set.appended(run), run.upper)
            self._reach, self._tiny_runs = reach, tiny_runs
            if self._merges:
                self._pay(len(run))
            # Nothing can be due because of one more tiny run: those are looked at when they are folded.
            if self._fold_tiny() or len(run) > _TINY_ROWS or self._debt_rows:
                self._changed = True
                self._begin_merges()
        else:
            self.advance_upper(run.upper)

    def advance_upper(self, upper: Frontier) -> None:
        """Seals an interval without updates.  ValueError if it regresses.  O(1)."""
        if upper < self.upper:
            raise ValueError(f"upper {upper} regresses from {self.upper}")
        self._snapshot = Snapshot(self.layout, self._set, upper, self._since)

    def add_debt(self, rows: int) -> None:
        """Asks for as much more merging: readers passed ``rows`` updates of rows that are gone.  O(1)."""
        self._debt_rows += rows
        self._owed_fuel_rows += rows
        self._changed = True

    def work(self, fuel_rows: int) -> bool:
        """Merges up to ``fuel_rows`` rows; True if more is left to do.  O(runs) where nothing is."""
        if not self._set.runs:
            return False
        found = self._bounds()
        if not self._merges and not self._changed and found == self._settled:
            return False
        self._begin_merges()
        self._fuel(fuel_rows)
        if not self._merges:
            self._begin_rewrite()
        if not self._merges:
            self._settled, self._changed = found, False
        return bool(self._merges)

    def _bounds(self) -> tuple[Frontier, Frontier | None]:
        """What since and the physical hold mean for merges: since as far as it passes runs that are not tiny, and the
        hold if it keeps such runs apart.  O(1), and O(runs) once such runs have come or gone.
        """
        reach = self._reach
        if reach is None:
            large = [run for run in self._set.runs if len(run) > _TINY_ROWS]
            passed = max((max(run.upper, run.since + 1) for run in large), default=_START)
            reach = self._reach = (Frontier(passed), large[-1].lower if large else None)
        passed, last = reach
        if last is None:
            return _START, None
        boundary = self._lowest_through
        apart = boundary is not None and boundary <= last
        return min(self._since, passed), boundary if apart else None

    def handle(self, *, since: Frontier, through: Frontier) -> TraceHandle:
        """A hold: the trace stays exact from ``since`` on, and keeps a run boundary at ``through``.

        ValueError if ``since`` is below the trace's.
        """
        handle = TraceHandle(self)
        with self._lock:
            if since < self._since:
                raise ValueError(f"since {since} is below the trace's {self._since}")
            self._holds[handle] = (since, through)
            self._follow_holds()
        return handle

    def _hold(self, handle: TraceHandle, since: Frontier | None, through: Frontier | None) -> None:
        with self._lock:
            old = self._holds[handle]
            new = (old[0] if since is None else since, old[1] if through is None else through)
            if new == old:
                return
            if new[0] < old[0]:
                raise ValueError(f"since {new[0]} regresses from {old[0]}")
            self._holds[handle] = new
            self._follow_holds()

    def _release(self, handle: TraceHandle) -> None:
        with self._lock:
            if self._holds.pop(handle, None) is not None:
                self._follow_holds()

    def _follow_holds(self) -> None:
        """With the lock held.  Without holds since stays: nobody has said how far it may go."""
        if not self._holds:
            self._lowest_through = None
            return
        holds = self._holds.values()
        since, through = min(holds)[0], min([held for _, held in holds])
        self._since = max(self._since, since)
        self._lowest_through = through

    def _holds_of(self, handle: TraceHandle) -> tuple[Frontier, Frontier]:
        with self._lock:
            return self._holds[handle]

    def _replace(self, runs: RunSet, upper: Frontier) -> None:
        self._set = runs
        self._reach = None
        if self._looked_at:
            self._looked_at.intersection_update(map(id, runs.runs))
        self._snapshot = Snapshot(self.layout, self._set, upper, self._since)

    def _exchange(self, runs: tuple[Run, ...]) -> None:
        """Other runs for the same updates."""
        self._replace(RunSet(self.layout, runs), self.upper)
        self._tiny_runs = sum(len(run) <= _TINY_ROWS for run in runs)

    def _fold_tiny(self) -> bool:
        """Merges the trailing tiny runs at once when there are many, on either side of the physical hold; True if so.

        A reader that keeps up holds the boundary before the newest run: the ones behind it are those that pile up.
        """
        if self._tiny_runs < TINY_RUNS:
            return False
        boundary = self._lowest_through
        runs = self._set.runs
        stop = len(runs)
        while stop > 0:
            start = self._tiny_from(stop, boundary)
            if stop - start >= TINY_RUNS:
                merge = Merge(self.layout, runs[start:stop], self._since)
                merge.work(merge.left_rows + 1)
                merged = merge.result()
                middle = () if merged is None else (merged,)
                self._exchange((*runs[:start], *middle, *runs[stop:]))
                return True
            if start in (0, stop) or not self._apart(runs[start - 1], runs[start], boundary):
                return False
            stop = start
        return False

    def _tiny_from(self, stop: int, boundary: Frontier | None) -> int:
        """Where the neighbouring tiny runs that end before position ``stop`` begin."""
        runs = self._set.runs
        start = stop
        while start > 0 and len(runs[start - 1]) <= _TINY_ROWS and not self._merging(start - 1):
            if start < stop and self._apart(runs[start - 1], runs[start], boundary):
                break
            start -= 1
        return start

    @staticmethod
    def _apart(older: Run, newer: Run, boundary: Frontier | None) -> bool:
        """Whether the physical hold lies between two neighbours."""
        return boundary is not None and older.lower < boundary <= newer.lower

    def _merging(self, position: int) -> bool:
        return id(self._set.runs[position]) in self._inputs

    def _begin(self, runs: tuple[Run, ...]) -> None:
        merge = Merge(self.layout, runs, self._since)
        self._merges[id(runs[0])] = merge
        self._grace[id(runs[0])] = merge.left_rows // _GRACE_SHARE
        self._inputs.update(map(id, runs))

    def _begin_merges(self) -> None:
        """Starts every merge that is due, newest first, and one for the debt.  O(runs)."""
        boundary = self._lowest_through
        runs = self._set.runs
        stop = len(runs)
        while stop > 1:
            start = stop - 1
            while (
                start > 0 and not self._merging(start - 1) and not self._apart(runs[start - 1], runs[start], boundary)
            ):
                start -= 1
            if start < stop - 1 and not self._merging(stop - 1):
                for first, last in self._due(start, stop):
                    self._begin(runs[first:last])
            stop = start
        self._begin_for_debt(boundary)

    def _due(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The stretches [first, last) that are to be merged among the runs from ``start`` to before ``stop``."""
        runs = self._set.runs
        rewritten = self._retracted_from(start, stop)
        if rewritten is not None:
            return [(rewritten, stop)]
        due = []
        while stop > start and len(runs[stop - 1]) <= _TINY_ROWS:
            stop -= 1
        level = 0
        for position in range(stop - 1, start - 1, -1):
            of_run = runs[position].level
            if of_run > level:
                if stop - position > self._fan(runs[stop - 1]):
                    due.append((position + 1, stop))
                stop, level = position + 1, of_run
        if stop - start >= self._fan(runs[stop - 1]):
            due.append((start, stop))
        return due

    def _fan(self, newest: Run) -> int:
        """How many neighbours of one level merge, ``newest`` being the last of them."""
        history = len(newest) >= _HISTORY_ROWS and newest.upper > self._since + 1
        return HISTORY_FAN if history else FAN

    def _retracted_from(self, start: int, stop: int) -> int | None:
        """The oldest run of which the newer ones retract a good part, if there is one."""
        runs = self._set.runs
        found, retracted = None, 0
        for position in range(stop - 1, start - 1, -1):
            run = runs[position]
            if position < stop - 1 and retracted and retracted * _RETRACTED_SHARE >= len(run) > _TINY_ROWS:
                found = position
            if run.lower < run.upper <= self._since + 1:
                retracted += run.retracted.all
        return found

    def _begin_for_debt(self, boundary: Frontier | None) -> None:
        """Starts the largest merge that the debt pays for: dead rows go when both their updates meet."""
        if not self._debt_rows or self._merges:
            return
        pairs = [
            (len(older) + len(newer), older, newer)
            for older, newer in pairwise(self._set.runs)
            if not self._apart(older, newer, boundary)
        ]
        if not pairs:
            self._debt_rows = self._owed_fuel_rows = 0
            return
        affordable = [pair for pair in pairs if pair[0] <= self._debt_rows]
        if affordable:
            size, older, newer = max(affordable, key=lambda pair: pair[0])
            self._debt_rows -= size
            self._begin((older, newer))

    def _begin_rewrite(self) -> None:
        """Starts a merge of one run with nothing, if that makes enough of its rows vanish.

        Each run is looked at once, when since has passed all of it.  Tiny ones are folded soon.  O(runs).
        """
        runs = self._set.runs
        for run in runs:
            passed = run.since < self._since and run.lower < run.upper <= self._since + 1
            if not passed or len(run) <= _TINY_ROWS or id(run) in self._looked_at:
                continue
            self._looked_at.add(id(run))
            if run.retracted.late * _REWRITE_SHARE >= len(run):
                self._begin((run,))
                return

    def _pay(self, rows: int) -> None:
        """An insert of ``rows`` pays for the merges in progress, but for those that idle time may still get to."""
        owed = min(self._owed_fuel_rows, _OWED_FUEL_ROWS)
        self._owed_fuel_rows -= owed
        for key, merge in list(self._merges.items()):
            self._grace[key] -= rows
            if self._grace[key] >= 0 and not owed:
                continue
            merge.work(_FUEL_PER_ROW * rows + _FUEL_ROWS + owed)
            if merge.done:
                self._finish(key, merge)

    def _fuel(self, fuel_rows: int) -> None:
        """Spends ``fuel_rows`` on the merges in progress, smallest remainder first."""
        while fuel_rows > 0 and self._merges:
            key, merge = min(self._merges.items(), key=lambda item: item[1].left_rows)
            fuel_rows = merge.work(fuel_rows)
            if merge.done:
                self._finish(key, merge)
                self._begin_merges()

    def _finish(self, key: int, merge: Merge) -> None:
        """Swaps the result in for the inputs; their memory goes with the last snapshot that holds them."""
        del self._merges[key], self._grace[key]
        self._inputs.difference_update(map(id, merge.runs.runs))
        runs = self._set.runs
        at = runs.index(merge.runs.runs[0])
        merged = merge.result()
        middle = () if merged is None else (merged,)
        self._exchange((*runs[:at], *middle, *runs[at + len(merge.runs.runs) :]))


class TraceHandle:
    """A logical hold (``since``) and a physical one (``through``) on a trace.  Any thread, one at a time."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def trace(self) -> Trace:
        return self._trace

    @property
    def since(self) -> Frontier:
        """The hold's own since.  KeyError after ``close``."""
        return self._trace._holds_of(self)[0]

    @property
    def through(self) -> Frontier:
        return self._trace._holds_of(self)[1]

    def downgrade(self, since: Frontier) -> None:
        """Gives up the times below ``since``.  ValueError if it regresses."""
        self._trace._hold(self, since, None)

    def set_through(self, through: Frontier) -> None:
        """Moves the run boundary that is kept."""
        self._trace._hold(self, None, through)

    def move(self, since: Frontier, through: Frontier) -> None:
        """Both at once."""
        self._trace._hold(self, since, through)

    def close(self) -> None:
        """Releases both holds.  Idempotent."""
        self._trace._release(self)

    def snapshot(self) -> Snapshot:
        return self._trace.snapshot()
