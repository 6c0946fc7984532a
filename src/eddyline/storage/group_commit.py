"""Group commit: commits enter in order, share a sync, and become visible in order once they are safe.

A commit is checked and put into the tables first, where nobody sees it, so that the next one is checked against it;
then it is queued here.  One of those who wait leads: it writes everything that is queued with one sync and makes it
visible.  Commits that come while a sync is under way share the next one, which the first of them leads.  That one is
woken before all who wait for the last, and nobody waits for a sync that is not theirs.

If it cannot be written, all that is queued is taken back, latest first: later commits were checked against earlier
ones.
A commit that was acknowledged before it was safe (``synchronous_commit`` off) stays queued and is tried again.

Locks, in order: whoever orders commits (the database's commit lock), ``_turn`` (who writes), ``_queue_lock`` (O(1)
steps).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from eddyline.errors import Error, make_error
from eddyline.repr.batch import Batch
from eddyline.storage.log import Changes, DurableLog
from eddyline.storage.records import Installed, Released
from eddyline.storage.waiting import waiting

__all__ = ["GroupCommit", "QueuedCommit"]

_log = logging.getLogger("eddyline.storage")


_INVISIBLE = make_error(
    "58000",
    "a commit was written and could not be made visible",
    hint="Close the database and open it again: the commit is there.",
)


def _unwritten(fault: BaseException) -> Error:
    """Why commits that shared a write with one that failed by a fault of ours are not there."""
    if isinstance(fault, MemoryError):
        return make_error("53200", "out of memory")
    return make_error("XX000", f"a commit could not be written: {type(fault).__name__}: {fault}")


@dataclass(eq=False, slots=True)
class QueuedCommit:
    """``publish`` makes it visible, ``take_back`` undoes what was done to the tables; one of them is called, once.

    ``time`` None: it changes documents alone.
    """

    time: int | None
    writes: Mapping[str, Batch]
    changes: Changes
    publish: Callable[[], None]
    take_back: Callable[[], None]
    #: made visible, and acknowledged, before it was safe
    early: bool = False
    #: with ``failure``, guarded by the queue's lock: it is visible, or will never be
    settled: bool = False
    failure: Error | None = None


class GroupCommit:
    """``to_disk``: whether commits are synced to the disk, or just written (the setting ``fsync``), asked each time.

    ``grown`` is called whenever something was written, or is left to be written by whoever tidies up.
    """

    def __init__(
        self, log: DurableLog, *, to_disk: Callable[[], bool] = lambda: True, grown: Callable[[], None] = lambda: None
    ) -> None:
        self._log = log
        self._to_disk = to_disk
        self._grown = grown
        self._turn = threading.Lock()
        self._queue_lock = threading.Lock()
        # Guarded by _queue_lock: what is not written yet; how many of all commits under way are not visible; how often
        # commits were taken back, counted at the beginning and at the end of it; whether acknowledged ones could not be
        # written when that was last tried.
        self._queue: list[QueuedCommit] = []
        self._invisible = 0
        self._retreats = 0
        self._stuck = False
        self._closed = False
        # Guarded by _queue_lock: the commit whose waiter leads; what the others wait for, first come first.  A waiter's
        # lock is held until it is to lead or its commit is settled.
        self._leader: QueuedCommit | None = None
        self._followers: dict[QueuedCommit, threading.Lock] = {}
        #: how often commits were written; changed with ``_turn`` held
        self.groups = 0

    def ticket(self) -> int:
        """What ``add`` wants, to be asked for before the commit is checked.  Waits while commits are taken back."""
        while True:
            with self._queue_lock:
                if self._retreats % 2 == 0:
                    return self._retreats
            with self._turn:
                continue

    def add(self, commit: QueuedCommit, ticket: int, *, wait: bool = True) -> None:
        """Queues a commit.  Calls come in the order of the commits' times, one at a time.

        Without ``wait`` it is made visible at once if all before it are, so that nobody need wait for it, unless such
        commits could not be written; one without content, whose time is reserved, is not even written then.  If
        earlier commits were taken back since the ticket this one is too: 40001.  57P01 once closed.
        """
        with self._queue_lock:
            stale, closed = self._retreats != ticket, self._closed
            if not stale and not closed:
                empty = not commit.writes and not commit.changes and (commit.time or 0) <= self._log.reserved
                commit.early = (empty or not (wait or self._stuck)) and not self._invisible
                self._invisible += not commit.early
                if not (empty and commit.early):
                    self._queue.append(commit)
        if closed:
            commit.take_back()
            raise make_error("57P01", "the database was closed")
        if stale:
            commit.take_back()
            raise make_error(
                "40001",
                "could not serialize access due to a failed commit",
                detail="A commit that this one was checked against could not be written.",
                hint="Retry the transaction.",
            )
        if commit.early:
            commit.publish()
            self._grown()

    def wait(self, commit: QueuedCommit) -> None:
        """Returns once the commit is visible, and safe unless it was ``early``.  Raises why it never will be."""
        if not commit.early:
            with waiting():
                self._wait(commit)
        if commit.failure is not None:
            raise commit.failure

    def _wait(self, commit: QueuedCommit) -> None:
        try:
            if self._leads(commit):
                with self._turn:
                    if not commit.settled:
                        self._flush()
        finally:
            self._hand_on(commit)

    def _leads(self, commit: QueuedCommit) -> bool:
        """Returns once the caller is to write what is queued, True, or need not, since the commit is settled, False."""
        with self._queue_lock:
            if commit.settled:
                return False
            if self._leader is None:
                self._leader = commit
                return True
            told = self._followers[commit] = threading.Lock()
            told.acquire()
        try:
            told.acquire()
        finally:
            with self._queue_lock:
                self._followers.pop(commit, None)  # it is there if a signal's handler raised
                leads = self._leader is commit
        return leads

    def _hand_on(self, commit: QueuedCommit) -> None:
        """If the commit's waiter leads, that ends: the first whose commit is still queued leads, and begins at once."""
        with self._queue_lock:
            if self._leader is commit:
                self._leader = next((c for c in self._followers if not c.settled), None)
                if self._leader is not None:
                    self._followers.pop(self._leader).release()
        self._tell()

    def _tell(self) -> None:
        """Who waits for what is settled hears of it."""
        with self._queue_lock:
            for commit in [c for c in self._followers if c.settled]:
                self._followers.pop(commit).release()

    def flush(self) -> None:
        """Writes everything that is queued.  Raises what keeps acknowledged commits in the queue."""
        try:
            with self._turn:
                problem = self._flush()
        finally:
            self._tell()
        if problem is not None:
            raise problem

    @property
    def behind(self) -> bool:
        """Whether anything is queued."""
        with self._queue_lock:
            return bool(self._queue)

    @contextmanager
    def exclusive(self) -> Iterator[DurableLog]:
        """The log, while nothing is being written: for single records and O(1) steps."""
        with self._turn:
            yield self._log

    @contextmanager
    def keeping_files(self) -> Iterator[None]:
        """Meanwhile no file goes, so that a copy of them can be taken."""
        with self.exclusive() as log:
            log.pins += 1
        try:
            yield
        finally:
            with self.exclusive() as log:
                log.pins -= 1

    def record(self, record: Installed | Released) -> None:
        """Writes what compaction has to say, safely, and removes what is not needed then."""
        with self._turn:
            self._log.write_record(record)
            self._log.sync()
            self._log.remove_leftover()

    def close(self) -> None:
        """Writes what is queued and one more record, so that damage to the last commit would be told from a torn end.

        Gives the directory back whatever happens.  Raises what kept acknowledged commits from being written.
        """
        with self._queue_lock:
            self._closed = True
        with self._turn:
            try:
                problem = self._flush()
            finally:
                self._tell()
            try:
                self._log.write_record(Released(()))
                self._log.sync()
                self._log.remove_leftover()
            except Error as other:
                _log.warning("the directory is closed without its last record: %s", other.message)
            finally:
                self._log.close()
        if problem is not None:
            raise problem

    def reserve(self, time: int) -> None:
        """Makes sure that no commit after a crash has ``time`` or an earlier one.  A sync about once a second."""
        if time > self._log.reserved:
            with self._turn:
                if time > self._log.reserved:
                    self._write([(time, {}, Changes())])

    def _flush(self) -> Error | None:
        """What keeps early commits from being written; the others have it as their failure.  Needs ``_turn``."""
        with self._queue_lock:
            group, self._queue = self._queue, []
        if not group:
            return None
        try:
            self._write([(c.time, c.writes, c.changes) for c in group])
        except Error as problem:
            return problem if self._retreat(group, problem) else None
        except BaseException as fault:
            self._retreat(group, _unwritten(fault))
            raise
        self._publish(group)
        with self._queue_lock:
            self._invisible -= sum(not c.early for c in group)
            self._stuck = False
        self._grown()
        return None

    def _publish(self, group: list[QueuedCommit]) -> None:
        """Makes safe commits visible.  Should that fail, nobody who waits may take them for visible."""
        visible = 0
        try:
            for commit in group:
                if not commit.early:
                    commit.publish()
                visible += 1
        finally:
            self._settle(group[:visible], None)
            self._settle(group[visible:], _INVISIBLE)

    def _settle(self, group: Iterable[QueuedCommit], failure: Error | None) -> None:
        with self._queue_lock:
            for commit in group:
                commit.failure = None if commit.early else failure
                commit.settled = True

    def _write(self, commits: list[tuple[int | None, Mapping[str, Batch], Changes]]) -> None:
        self._log.write_commits(commits)
        self._log.sync(to_disk=self._to_disk())
        self.groups += 1
        self._log.remove_leftover()

    def _retreat(self, group: list[QueuedCommit], problem: Error) -> bool:
        """Takes everything back that nobody has seen; whether early commits are left, which are queued again."""
        with self._queue_lock:
            self._retreats += 1
            group, self._queue = [*group, *self._queue], []
        lost = [c for c in group if not c.early]
        try:
            for commit in reversed(lost):
                commit.take_back()
        finally:
            self._settle(lost, problem)
        with self._queue_lock:
            self._queue = [c for c in group if c.early]
            self._invisible -= len(lost)
            self._retreats += 1
            self._stuck = bool(self._queue)
            return self._stuck
