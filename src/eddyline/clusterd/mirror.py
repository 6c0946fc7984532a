"""What a replica in a process of its own reads and writes instead of storage: mirrors of collections, fed by messages.

A mirror is a local copy of one collection, shared by all dataflows that read it, with bounds of its own.  It begins
empty; its readers get nothing until its history is complete.  When the connection is lost a complete mirror is resumed
where it stands, and one that is not begins anew.  One that nobody reads is kept for a while, then given up.

Invariants:
I1  a reader sees the mirror below its upper only, and everything there;
I2  since is at most every hold, and the as_of of every reader that has not begun;
I3  what is read at a time that the mirror has forgotten gets another mirror: storage still has it, by the
    controller's holds;
I4  changes of a view are kept until storage says that it has them, and sent again on every connection, unless that is
    another storage's: then a view is written from its beginning, and what went before reaches nobody.
Locks, in order: a collection's ``turn`` (its traces' writer), ``_state`` (bounds and queues, O(1) steps).
Threads: one receives; any thread reads.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time as wall
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eddyline.protocol.handshake import Seen
from eddyline.protocol.messages import RowBatch
from eddyline.protocol.sources import Committed, Polled, Selection, SourceReader
from eddyline.protocol.storage_messages import (
    BeginView,
    Follow,
    Following,
    FollowRefused,
    StageView,
    StorageRequest,
    StorageUpdate,
    TimesClosed,
    Unfollow,
    Updates,
    ViewWritten,
    WriteView,
)
from eddyline.repr.batch import Batch
from eddyline.repr.holds import Holds
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.storage.collection import Collection, CollectionKind
from eddyline.storage.followers import FollowerQueues
from eddyline.storage.reader import Reader
from eddyline.storage.selection import selected_hashes
from eddyline.storage.settling import Settling
from eddyline.storage.watchers import Watchers
from eddyline.trace.hasher import Hasher

__all__ = ["MirrorStore"]

_log = logging.getLogger("eddyline.clusterd")
#: what is notified where a commit changed nothing that is mirrored here
_ELSEWHERE = frozenset(("",))


@dataclass(slots=True, eq=False)
class _Mirror:
    """All guarded by the store's state lock, but for ``rows`` and ``errors``, which the receiving thread owns."""

    number: int
    id: str
    as_of: Time
    collection: Collection | None = None
    table: bool = False
    #: its first history is complete
    ready: bool = False
    #: it has caught up on the present connection
    live: bool = False
    #: it gets nothing any more: storage refused it, or is another one than the view was written to
    stalled: bool = False
    #: storage refused it, for good
    refused: bool = False
    holds: Holds = field(default_factory=Holds)
    readers: int = 0
    idle_since: float = 0.0
    #: what came of an interval that is not complete
    rows: list[Batch] = field(default_factory=list)
    errors: list[Batch] = field(default_factory=list)


class _Shares:
    """The readers of one source of one dataflow; attached together, once the mirror is ready."""

    def __init__(
        self,
        store: MirrorStore,
        mirror: _Mirror,
        token: int,
        count: int,
        selection: Selection | None,
        hashes: npt.NDArray[np.uint64] | None,
        key: tuple[int, ...] | None,
    ) -> None:
        self.store = store
        self.mirror = mirror
        self.token = token
        self.count = count
        self.selection = selection
        #: of what is selected
        self.hashes = hashes
        self.key = key
        #: the faces of ``readers`` that the runtime knows
        self.faces: tuple[_MirrorReader, ...] = tuple(_MirrorReader(self, i) for i in range(count))
        # Guarded by the store's state lock.
        self.readers: Sequence[Reader] | None = None
        self.left = 0


class _MirrorReader:
    """``protocol.sources.SourceReader``; one thread reads."""

    def __init__(self, shares: _Shares, index: int) -> None:
        self._shares = shares
        self._index = index
        self._reader: Reader | None = None
        self._steady = False
        self._open = True

    def poll(self, max_rows: int) -> Polled:
        reader = self._attached()
        return Polled(Frontier(MIN_TIME)) if reader is None else reader.poll(max_rows)

    def pending(self) -> bool:
        reader = self._attached()
        return reader is not None and reader.pending()

    def set_steady(self) -> None:
        self._steady = True
        if self._reader is not None:
            self._reader.set_steady()

    def close(self) -> None:
        if self._open:
            self._open = False
            # The shares were opened together: one that was never polled has a queue to give up, too.
            if self._shares.readers is not None:
                self._shares.readers[self._index].close()
            self._shares.store.leave(self._shares)

    def _attached(self) -> Reader | None:
        if self._reader is None and self._open:
            readers = self._shares.store.attach(self._shares)
            if readers is not None:
                self._reader = readers[self._index]
                if self._steady:
                    self._reader.set_steady()
        return self._reader


class MirrorStore:
    """``protocol.sources.Storage``.

    ``backlog_rows``, ``backlog_bytes``: what steady dataflows may leave unread before ``receive`` waits, and with it
    the connection.
    ``linger_seconds``: how long a mirror without readers is kept.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        retention_us: int = 1_000_000,
        backlog_rows: int = 4_000_000,
        backlog_bytes: int = 512 * 1024 * 1024,
        linger_seconds: float = 60.0,
        clock: Callable[[], float] = wall.monotonic,
    ) -> None:
        self._hasher = hasher
        self._retention_us = retention_us
        self._linger_seconds = linger_seconds
        self._clock = clock
        self._state = threading.Lock()
        self._followers = FollowerQueues(
            self._state,
            hasher,
            upper=lambda collection: collection.upper,
            backlog_rows=backlog_rows,
            backlog_bytes=backlog_bytes,
        )
        self._settling = Settling(self._state, self._advance_since)
        # All guarded by _state.
        self._send: Callable[[StorageRequest], None] | None = None
        self._mirrors: dict[int, _Mirror] = {}
        self._current: dict[str, _Mirror] = {}
        self._uppers: dict[str, Frontier] = {}
        self._unwritten: dict[str, deque[StageView | WriteView]] = {}
        #: views that an earlier storage had the beginning of
        self._disowned: set[str] = set()
        self._watchers = Watchers(self._state)
        self._tokens = 0
        # The receiving thread's: what was changed in tables since a time was last closed.
        self._changed: set[str] = set()
        self._touched: dict[SourceReader, None] = {}
        self._changed_rows = 0

    # -- the connection -------------------------------------------------------------------------------------------

    def connected(self, send: Callable[[StorageRequest], None]) -> None:
        """From here on requests go to ``send``, which never blocks; what an earlier connection may have lost first."""
        with self._state:
            self._send = send
            for mirror in list(self._mirrors.values()):
                if not mirror.readers and not mirror.ready:
                    self._give_up(mirror)
                elif not mirror.stalled:
                    self._begin(mirror)
            for id, unwritten in self._unwritten.items():
                send(BeginView(id))
                for request in unwritten:
                    send(request)

    def disconnected(self) -> None:
        with self._state:
            self._send = None

    def renewed(self) -> None:
        """The next connection is to another storage, of the same tables: views are written to it anew."""
        with self._state:
            self._disowned |= self._unwritten.keys()
            for id in self._disowned:
                self._uppers.pop(id, None)
            self._unwritten.clear()
            for mirror in self._mirrors.values():
                if mirror.ready and not mirror.table:
                    mirror.stalled, mirror.live = True, False
                    if self._current.get(mirror.id) is mirror:
                        del self._current[mirror.id]

    def seen(self) -> Seen | None:
        """What the mirrors of tables that are complete have; None if there are none."""
        with self._state:
            found = [m.collection for m in self._mirrors.values() if m.table and m.ready and m.collection is not None]
            if not found:
                return None
            return Seen(int(max(c.last_write for c in found)), int(min(c.upper for c in found)))

    def starved(self) -> str | None:
        """A collection that dataflows read and of which they are told nothing any more; None if there is none.

        For a moment it may be one that is read by what the next connection is about to drop.
        """
        with self._state:
            return next((m.id for m in self._mirrors.values() if m.refused and m.readers), None)

    def _begin(self, mirror: _Mirror) -> None:
        """Asks for the mirror's history, or what it lacks of it.  Needs ``_state``."""
        resume = None
        mirror.rows, mirror.errors, mirror.live = [], [], False
        if mirror.ready:
            assert mirror.collection is not None, "it was filled"
            resume = mirror.collection.upper
        else:
            mirror.collection = None
            # Whoever asked for an earlier time may be gone, and the time with him.
            mirror.as_of = Time(mirror.holds.least() or mirror.as_of)
        if self._send is not None:
            self._send(Follow(mirror.number, mirror.id, mirror.as_of, resume))

    def _give_up(self, mirror: _Mirror) -> None:
        """Needs ``_state``."""
        self._mirrors.pop(mirror.number, None)
        if self._current.get(mirror.id) is mirror:
            del self._current[mirror.id]
        if mirror.collection is not None:
            self._followers.drop(mirror.collection)
            self._settling.drop(mirror.collection)
        if self._send is not None:
            self._send(Unfollow(mirror.number))

    def expire(self) -> None:
        """Gives up the mirrors that nobody has read for a while.  To be called now and then."""
        with self._state:
            now = self._clock()
            for mirror in list(self._mirrors.values()):
                if not mirror.readers and mirror.idle_since + self._linger_seconds <= now:
                    self._give_up(mirror)

    # -- what comes -----------------------------------------------------------------------------------------------

    def receive(self, update: StorageUpdate) -> None:
        """Takes a message of storage's; waits while dataflows are far behind."""
        match update:
            case Following():
                self._following(update)
            case Updates():
                self._updates(update)
            case TimesClosed():
                self._close_times(update)
            case ViewWritten():
                self._view_written(update)
            case FollowRefused():
                self._refused(update)
        self._followers.wait_capacity(None)  # the connection comes to wait, and with it whoever writes

    def _following(self, update: Following) -> None:
        with self._state:
            mirror = self._mirrors.get(update.mirror)
            if mirror is None or mirror.collection is not None:
                return
            mirror.table = update.table
            mirror.collection = Collection(
                id=mirror.id, kind=CollectionKind.VIEW, types=update.types, key=None, names=(), title=mirror.id,
                constraint="", hasher=self._hasher, since=Time(update.since),
            )  # fmt: skip
            mirror.collection.holds = mirror.holds
            mirror.collection.last_write = Time(update.newest)

    def _refused(self, update: FollowRefused) -> None:
        with self._state:
            mirror = self._mirrors.get(update.mirror)
            if mirror is None:
                return
            mirror.stalled, mirror.live, mirror.refused = True, False, True
            if self._current.get(mirror.id) is mirror:
                del self._current[mirror.id]
            if not mirror.readers:
                self._give_up(mirror)
                return
            if self._try_again(mirror):
                return
        # Whoever reads it earliest was dropped while the connection was lost, or is about to be: the holds are gone.
        _log.warning("collection %s cannot be read: %s", mirror.id, update.message)

    def _try_again(self, mirror: _Mirror) -> bool:
        """Asks anew for a mirror that was refused, once the reader that wanted too early a time has left.

        True if it did.  Needs ``_state``.
        """
        if not mirror.stalled or mirror.ready or (mirror.holds.least() or mirror.as_of) <= mirror.as_of:
            return False
        mirror.stalled = mirror.refused = False
        self._begin(mirror)
        return True

    def _updates(self, update: Updates) -> None:
        with self._state:
            mirror = self._mirrors.get(update.mirror)
        collection = None if mirror is None else mirror.collection
        if mirror is None or collection is None:
            return
        rows, errors = (None if b is None else b.payload for b in (update.rows, update.errors))
        with collection.turn:
            if not mirror.ready:
                assert rows is None or isinstance(rows, Batch), "rows are decoded with their message"
                assert errors is None or isinstance(errors, Batch), "rows are decoded with their message"
                collection.fill(rows, errors)
            else:
                mirror.rows += [rows] if isinstance(rows, Batch) else []
                mirror.errors += [errors] if isinstance(errors, Batch) else []
            if update.upper is None:
                return
            committed = self._publish(mirror, collection, Frontier(update.upper))
        if mirror.table:
            # Once more when the time is closed, and what they read beside it is complete, too.
            self._changed.add(mirror.id)
            self._touched |= dict.fromkeys(committed.touched)
            self._changed_rows += committed.rows
        self._watchers.notify(committed)

    def _publish(self, mirror: _Mirror, collection: Collection, upper: Frontier) -> Committed:
        """Needs ``turn``."""
        rows, errors = Batch.concat(collection.types, mirror.rows), Batch.concat(ERR_TYPES, mirror.errors)
        mirror.rows, mirror.errors = [], []
        latest = [int(b.times.max()) + 1 for b in (rows, errors) if len(b)]
        bound = upper if upper != EMPTY else Frontier(max([collection.oks.upper, collection.errs.upper, *latest]))
        commit = dataclasses.replace(collection.write(rows, errors, bound), upper=upper)
        newest = commit.newest()
        with self._followers.publishing([(collection, commit)]) as touched:
            collection.last_write = max(collection.last_write, newest)
            collection.upper = max(collection.upper, upper)
            mirror.ready = mirror.live = True
            self._remember(mirror.id, collection.upper)
            since = self._advance_since(collection)
        if since is not None:
            collection.compact(since)
        self._settling.add(collection)
        return Committed(frozenset((mirror.id,)), touched, commit.row_count())

    def _close_times(self, update: TimesClosed) -> None:
        upper = Frontier(update.upper)
        with self._state:
            for mirror in self._mirrors.values():
                if mirror.table and mirror.live and mirror.collection is not None:
                    mirror.collection.upper = max(mirror.collection.upper, upper)
                    self._remember(mirror.id, mirror.collection.upper)
        changed = frozenset() if update.everything else frozenset(self._changed) or _ELSEWHERE
        committed = Committed(changed, tuple(self._touched), self._changed_rows)
        self._changed.clear()
        self._touched.clear()
        self._changed_rows = 0
        self._watchers.notify(committed)

    def _remember(self, id: str, upper: Frontier) -> None:
        self._uppers[id] = max(upper, self._uppers.get(id, upper))

    def _advance_since(self, collection: Collection) -> Frontier | None:
        """As far as the last write at most: strict reads are at its time, however long ago.  Needs ``_state``."""
        behind = collection.since if collection.upper == EMPTY else Frontier(collection.upper - 1 - self._retention_us)
        held = collection.holds.least()
        return collection.raise_since(min(behind, Frontier(collection.last_write), behind if held is None else held))

    # -- reading --------------------------------------------------------------------------------------------------

    def open_source(
        self,
        id: str,
        as_of: Time,
        readers: int,
        selection: Selection | None = None,
        key: tuple[int, ...] | None = None,
    ) -> Sequence[SourceReader]:
        """See ``protocol.sources.Storage``; what the mirror lacks comes later."""
        hashes = None if selection is None else selected_hashes(selection, self._hasher)
        with self._state:
            mirror = self._current.get(id)
            if mirror is None or as_of < (mirror.as_of if mirror.collection is None else mirror.collection.since):
                self._tokens += 1
                mirror = _Mirror(self._tokens, id, as_of)
                self._mirrors[mirror.number] = self._current[id] = mirror
                self._begin(mirror)
            self._tokens += 1
            mirror.holds.put(self._tokens, Frontier(as_of))
            mirror.readers += readers
            return _Shares(self, mirror, self._tokens, readers, selection, hashes, key).faces

    def attach(self, shares: _Shares) -> Sequence[Reader] | None:
        """For readers only: all readers of the shares once the mirror is ready."""
        with self._state:
            mirror = shares.mirror
            if shares.readers is not None or not mirror.ready or mirror.collection is None:
                return shares.readers
            mirror.holds.discard(shares.token)  # the snapshots answer for ever
            shares.readers = self._followers.follow(
                mirror.collection, shares.count, shares.selection, shares.hashes, shares.key, shares.faces
            )
            return shares.readers

    def leave(self, shares: _Shares) -> None:
        """For readers only: one of them is closed."""
        with self._state:
            mirror = shares.mirror
            mirror.readers -= 1
            mirror.idle_since = self._clock()
            shares.left += 1
            if shares.left == shares.count:
                mirror.holds.discard(shares.token)
            if not mirror.readers and (mirror.stalled or self._current.get(mirror.id) is not mirror):
                self._give_up(mirror)
            else:
                self._try_again(mirror)

    # -- views that are written here ------------------------------------------------------------------------------

    def begin_view(self, id: str, writer: object = None) -> None:
        """See ``protocol.sources.Storage``.  One sink of a process writes a view: storage knows the process."""
        with self._state:
            self._disowned.discard(id)
            self._unwritten[id] = deque()
            self._uppers.pop(id, None)
            if self._send is not None:
                self._send(BeginView(id))

    def stage_view(self, id: str, rows: Batch, writer: object = None) -> None:
        """See ``protocol.sources.Storage``."""
        self._write(StageView(id, RowBatch(rows)))

    def write_view(
        self, id: str, rows: Batch, errors: Batch, lower: Frontier, upper: Frontier, writer: object = None
    ) -> None:
        """See ``protocol.sources.Storage``."""
        self._write(WriteView(id, RowBatch(rows), RowBatch(errors), lower, upper))
        with self._state:
            if id not in self._disowned:
                self._remember(id, upper)

    def _write(self, request: StageView | WriteView) -> None:
        with self._state:
            if request.id in self._disowned:
                return
            self._unwritten.setdefault(request.id, deque()).append(request)
            if self._send is not None:
                self._send(request)

    def _view_written(self, update: ViewWritten) -> None:
        with self._state:
            unwritten = self._unwritten.get(update.id, deque())
            ends = [i for i, r in enumerate(unwritten) if isinstance(r, WriteView) and r.upper <= update.upper]
            for _ in range(ends[-1] + 1 if ends else 0):
                unwritten.popleft()

    # -- the rest of storage's face -------------------------------------------------------------------------------

    def upper(self, id: str) -> Frontier:
        """As far as is known here: of a view what was written, of a mirror what was received, the highest ever."""
        with self._state:
            return self._uppers.get(id, Frontier(MIN_TIME))

    def __contains__(self, id: str) -> bool:
        """Nothing is known not to exist."""
        return True

    def watch(self, callback: Callable[[Committed], None]) -> Callable[[], None]:
        """See ``protocol.sources.Storage``."""
        return self._watchers.add(callback)

    def work(self, fuel_rows: int) -> bool:
        """See ``protocol.sources.Storage``, and ``Settling.work``."""
        return self._settling.work(fuel_rows)

    def close(self) -> None:
        """Ends whoever waits in ``receive``."""
        with self._state:
            self._followers.close()
