"""How far views are behind the tables they are computed from, and the writers that wait for them.

An export has *passed* a commit once its frontier is beyond the commit's time.  A table is behind by the commits to it
that the slowest export that counts has not passed.  Its writers wait while the oldest of these is older than a bound,
and there are more of them than are *allowed*: one, so that a single commit may take as long as it takes.

Invariants:
I1  what counts holds its state, and so does everything it is computed from: what is being built, what nobody computes,
    and what reads either, delays no writer.  Of several replicas the one that is ahead counts;
I2  only the tables count whose every commit moves the export: one that selects rows is passed by, and rightly so;
I3  nobody waits for ever: an export of a cluster that has fallen silent, or that does not move, stops counting until
    it moves;
I4  whatever begins to count while it is behind may stay as far behind: the commits it has yet to pass are allowed, and
    for every two that it passes one less.  So writers slow down to half its pace, and do not stop, until it is there;
I5  what is remembered of commits is bounded: neighbours are put together when there are too many.

Any thread.  ``_moved`` is held for O(1) steps and O(tables of an export), and nothing is called under it but the clock,
what says that a wait was cancelled, and what counts the waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eddyline.compute.measures import Durations
from eddyline.repr.holds import Holds
from eddyline.repr.time import Frontier, Time

__all__ = ["Lag"]

_log = logging.getLogger("eddyline.engine")
#: a worker that lives says something about every second, whatever it is busy with
_SILENT_NS: Final = 3_000_000_000
_STUCK_NS: Final = 30_000_000_000
#: remembered, of a table
_MOST_ENTRIES: Final = 4096
_LOOK_S: Final = 0.05


class _Commits(NamedTuple):
    """``newest``: the time of the last of ``commits`` neighbours; ``since_ns``: when the first of them came."""

    newest: Time
    since_ns: int
    commits: int


def _thinned(entries: deque[_Commits]) -> None:
    """Puts neighbours together where there are too many; all come to be about as large.  Amortised O(1) for each."""
    if len(entries) <= _MOST_ENTRIES:
        return
    old = list(entries)
    # Any two neighbours of the result are more than that, so that it has half as many as there may be.
    most = 4 * sum(e.commits for e in old) // _MOST_ENTRIES
    entries.clear()
    entries.append(old[0])
    for entry in old[1:]:
        last = entries[-1]
        if last.commits + entry.commits <= most:
            entries[-1] = _Commits(entry.newest, last.since_ns, last.commits + entry.commits)
        else:
            entries.append(entry)


@dataclass(slots=True, eq=False)
class _Export:
    id: str
    token: int
    cluster: str
    tables: frozenset[str]
    #: the exports that it is computed from
    inputs: tuple[_Export, ...]
    #: those that are computed from it
    readers: set[_Export] = field(default_factory=set)
    #: how far the replica is that is ahead of those that hold its state; None without any
    upper: Frontier | None = None
    counts: bool = False
    moved_ns: int = 0


@dataclass(slots=True, eq=False)
class _Table:
    exports: set[_Export] = field(default_factory=set)
    #: of the exports that count, by their tokens
    uppers: Holds = field(default_factory=Holds)
    #: not passed by all of these, oldest first, and how many commits that are
    behind: deque[_Commits] = field(default_factory=deque)
    commits: int = 0
    #: passed by these, but perhaps not by others that will count
    passed: deque[_Commits] = field(default_factory=deque)
    #: by how many half commits that may be without anybody waiting (I4)
    allowed_halves: int = 2

    def wrote(self, at: Time, now_ns: int) -> None:
        self.behind.append(_Commits(at, now_ns, 1))
        self.commits += 1
        _thinned(self.behind)
        self.settle()

    def settle(self) -> None:
        """Amortised O(1) for each commit."""
        least = self.uppers.least()
        done = 0
        while self.behind and (least is None or self.behind[0].newest < least):
            entry = self.behind.popleft()
            done += entry.commits
            self.passed.append(entry)
        self.commits -= done
        self.allowed_halves = 2 if least is None else max(2, self.allowed_halves - done)
        if len(self.uppers) == len(self.exports):
            self.passed.clear()
        else:
            _thinned(self.passed)

    def begin(self, export: _Export, upper: Frontier) -> None:
        """The export counts from here on (I4)."""
        self.uppers.put(export.token, upper)
        before = self.commits
        while self.passed and self.passed[-1].newest >= upper:
            entry = self.passed.pop()
            self.behind.appendleft(entry)
            self.commits += entry.commits
        if self.commits > before:
            self.allowed_halves = max(self.allowed_halves, 2 * self.commits)
        self.settle()

    def end(self, export: _Export) -> None:
        self.uppers.discard(export.token)
        self.settle()

    def age_ns(self, now_ns: int) -> int:
        """Of the oldest commit that is not passed; 0 without any."""
        return now_ns - self.behind[0].since_ns if self.behind else 0

    def slowest(self) -> list[_Export]:
        """O(exports)."""
        least = self.uppers.least()
        return [e for e in self.exports if e.counts and e.upper == least]


class Lag:
    """``bound_s``: how old the oldest commit may become before writers wait; None: as old as it likes.

    ``clock``: nanoseconds, of ages and waits.
    """

    def __init__(self, bound_s: float | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._moved = threading.Condition(threading.Lock())
        # All guarded by _moved.
        self._exports: dict[str, _Export] = {}
        self._tables: dict[str, _Table] = {}
        self._heard_ns: dict[str, int] = {}
        self._next_token = 0
        self._bound_s = bound_s
        self._waiting = 0
        self._closed = False
        #: how long writers have waited, those that have
        self.waits: Final = Durations()

    # -- the controller's -----------------------------------------------------------------------------------------

    def follow(self, id: str, cluster: str, tables: frozenset[str], inputs: Iterable[str]) -> None:
        """There is an export, which nobody holds the state of yet.

        ``tables``: those whose every commit moves it; ``inputs``: the exports that it is computed from.
        """
        with self._moved:
            self._next_token += 1
            known = tuple(self._exports[i] for i in inputs if i in self._exports)
            export = _Export(id, self._next_token, cluster, tables, known)
            self._exports[id] = export
            for other in known:
                other.readers.add(export)
            for table in tables:
                self._tables.setdefault(table, _Table()).exports.add(export)

    def leave(self, id: str) -> None:
        """It is dropped.  Unknown ids are ignored."""
        with self._moved:
            export = self._exports.pop(id, None)
            if export is None:
                return
            self._end(export)
            for other in export.inputs:
                other.readers.discard(export)
            for id_ in export.tables:
                table = self._tables[id_]
                table.exports.discard(export)
                table.settle()
                if not table.exports:
                    del self._tables[id_]
            self._wake()

    def moved(self, id: str, upper: Frontier | None) -> None:
        """How far the replica is that is ahead of those that hold the export's state; None: none does any more."""
        with self._moved:
            export = self._exports.get(id)
            if export is None or export.upper == upper:
                return
            export.upper, export.moved_ns = upper, self._clock()
            if upper is None:
                self._end(export)
            elif export.counts:
                for table in export.tables:
                    self._tables[table].uppers.put(export.token, upper)
                    self._tables[table].settle()
            elif all(i.counts or i.id not in self._exports for i in export.inputs):
                export.counts = True
                for table in export.tables:
                    self._tables[table].begin(export, upper)
            self._wake()

    def _end(self, export: _Export) -> None:
        """It counts no longer, nor does what is computed from it (I1).  O(those)."""
        if export.counts:
            export.counts = False
            for table in export.tables:
                self._tables[table].end(export)
            for reader in export.readers:
                self._end(reader)

    def heard(self, cluster: str) -> None:
        """One of its replicas has said something."""
        with self._moved:
            self._heard_ns[cluster] = self._clock()

    # -- the writers' ---------------------------------------------------------------------------------------------

    def wrote(self, tables: Collection[str], at: Time) -> None:
        """A commit is visible.  Calls come in the order of the commits' times.  O(tables)."""
        with self._moved:
            now = self._clock()
            for id in tables:
                table = self._tables.get(id)
                if table is not None:
                    table.wrote(at, now)

    def set_bound(self, seconds: float | None) -> None:
        """Whoever waits looks again."""
        with self._moved:
            self._bound_s = seconds
            self._moved.notify_all()

    def wait(
        self, tables: Collection[str], timeout: float | None, cancelled: Callable[[], bool] = lambda: False
    ) -> bool:
        """Until what counts is not further behind ``tables`` than the bound.

        False after ``timeout`` seconds, when cancelled, and once closed.
        """
        began = self._clock()
        with self._moved:
            if not self._too_far(tables):
                return not self._closed
            self._waiting += 1
            try:
                while not self._closed and self._too_far(tables):
                    left = None if timeout is None else timeout - (self._clock() - began) / 1e9
                    if cancelled() or (left is not None and left <= 0):
                        return False
                    # Woken by what moves; the pause lets a cancellation and a silence be seen.
                    self._moved.wait(_LOOK_S if left is None else min(_LOOK_S, left))
                return not self._closed
            finally:
                self._waiting -= 1
                self.waits.record(self._clock() - began)

    def _too_far(self, tables: Iterable[str]) -> bool:
        bound_s = self._bound_s
        if bound_s is None:
            return False
        now = self._clock()
        for id in tables:
            table = self._tables.get(id)
            while table is not None and 2 * table.commits > table.allowed_halves and table.age_ns(now) > bound_s * 1e9:
                if not self._set_aside(table, now):
                    return True
        return False

    def _set_aside(self, table: _Table, now_ns: int) -> bool:
        """Nobody waits any longer for the slowest exports that give no sign of coming (I3); whether there are any."""
        if table.age_ns(now_ns) <= _SILENT_NS:
            return False
        came = table.behind[0].since_ns
        given_up = []
        for export in table.slowest():
            silent = now_ns - max(self._heard_ns.get(export.cluster, 0), came) > _SILENT_NS
            if silent or now_ns - max(export.moved_ns, came) > _STUCK_NS:
                self._end(export)
                given_up.append(export.id)
        if given_up:
            _log.warning("writers no longer wait for %s, which does not move", ", ".join(sorted(given_up)))
        return bool(given_up)

    def _wake(self) -> None:
        if self._waiting:
            self._moved.notify_all()

    def close(self) -> None:
        """Ends all waits."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()

    # -- to look at -----------------------------------------------------------------------------------------------

    def seconds(self) -> float:
        """Age of the oldest commit that something which counts has not passed; 0 without any.  O(tables)."""
        with self._moved:
            now = self._clock()
            return max((table.age_ns(now) for table in self._tables.values()), default=0) / 1e9

    def behind(self, table: str) -> int:
        """How many commits to the table are not passed by all that count."""
        with self._moved:
            found = self._tables.get(table)
            return 0 if found is None else found.commits
