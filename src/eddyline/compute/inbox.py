"""What other threads leave for a worker.  ``wait`` returns at once if anything came since the last ``take``.

A commit that gives the worker nothing to do does not wake it: it would ask for the interpreter just when whoever has
committed is about to answer.  Such commits are kept for the next ``take``, which comes after so many of them or of
their rows at the latest.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from eddyline.compute.lane import Item
from eddyline.protocol.messages import Peek
from eddyline.protocol.sources import Committed, SourceReader
from eddyline.repr.time import Time

__all__ = ["Inbox", "Taken"]

#: commits that wake a worker though none of them concerns it: it also merges what they have written,
_MOST_UNHEEDED = 64
#: and so do so many rows: what a load leaves is otherwise merged while the first view over it is built
_MOST_UNHEEDED_ROWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Taken:
    """Commands in order; ids of collections with commits; whether a time was closed without any; indexes asked for."""

    commands: list[Item]
    commits: set[str] = field(default_factory=set)
    closed_times: bool = False
    #: selective readers with new rows, and how many updates all commits had
    touched: list[SourceReader] = field(default_factory=list)
    commit_rows: int = 0
    wanted: set[str] = field(default_factory=set)
    #: stored views, and the time up to which they are asked for
    wanted_views: dict[str, Time] = field(default_factory=dict)
    #: when the peeks among the commands were sent
    sent_ns: dict[str, int] = field(default_factory=dict)


class Inbox:
    """``follows_commits`` False: commits are left out until ``follow_commits`` says otherwise.  ``clock``: ns."""

    def __init__(self, *, follows_commits: bool = True, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._awake = False  # guarded by _changed, like the rest
        self._follows_commits = follows_commits
        self._commands: deque[Item] = deque()
        self._commits: set[str] = set()
        self._closed_times = False
        self._touched: list[SourceReader] = []
        self._commit_rows = 0
        #: while the worker rests: the collections whose commits wake it; None: all
        self._heeded: frozenset[str] | None = None
        #: commits since the last ``take``
        self._unheeded = 0
        self._wanted: set[str] = set()
        self._wanted_views: dict[str, Time] = {}
        self._sent_ns: dict[str, int] = {}

    def command(self, item: Item, sent_ns: int | None = None) -> None:
        """``sent_ns``: when a peek that is passed on was sent first."""
        with self._changed:
            self._commands.append(item)
            if isinstance(item, Peek):
                self._sent_ns[item.uuid] = self._clock() if sent_ns is None else sent_ns
            self._wake()

    def commit(self, committed: Committed) -> None:
        """A commit changed collections; without any it only closed a time."""
        with self._changed:
            if committed.merges:
                self._wake()
            elif self._follows_commits:
                self._commits |= committed.ids
                self._closed_times |= not committed.ids
                self._touched += committed.touched
                self._commit_rows += committed.rows
                self._unheeded += 1
                heeded = self._heeded
                if (
                    heeded is None
                    or not committed.ids
                    or not heeded.isdisjoint(committed.ids)
                    or self._unheeded >= _MOST_UNHEEDED
                    or self._commit_rows >= _MOST_UNHEEDED_ROWS
                ):
                    self._wake()

    def follow_commits(self, *, follow: bool) -> None:
        """Whoever reads no collection need not be woken by commits."""
        with self._changed:
            self._follows_commits = follow

    def want(self, id: str) -> None:
        """A reader waits for index ``id`` to catch up."""
        with self._changed:
            self._wanted.add(id)
            self._wake()

    def want_view(self, id: str, until: Time) -> None:
        """A reader waits for the stored collection ``id``, if that is a view, to seal ``until``."""
        with self._changed:
            self._wanted_views[id] = max(until, self._wanted_views.get(id, until))
            self._wake()

    def wake(self) -> None:
        with self._changed:
            self._wake()

    def _wake(self) -> None:
        self._awake = True
        self._changed.notify()

    def take(self) -> Taken:
        with self._changed:
            self._awake = False
            taken = Taken(
                list(self._commands),
                self._commits,
                self._closed_times,
                self._touched,
                self._commit_rows,
                self._wanted,
                self._wanted_views,
                self._sent_ns,
            )
            self._commands.clear()
            self._commits = set()
            self._closed_times = False
            self._touched = []
            self._commit_rows = self._unheeded = 0
            self._wanted = set()
            self._wanted_views = {}
            self._sent_ns = {}
        return taken

    def wait(self, timeout: float | None = None, heeded: frozenset[str] | None = None) -> None:
        """Until something comes, or for ``timeout`` seconds.

        ``heeded``: the collections whose commits end the wait; None: those of all do.
        """
        with self._changed:
            self._heeded = heeded
            self._changed.wait_for(lambda: self._awake, timeout)
            self._heeded = None
