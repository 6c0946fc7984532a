"""Storage's end of a replica in another process: histories and commits of what it reads, and the views it writes.

Invariants:
I1  the updates of a mirror are sent in the order of its frontier, and a frontier after all updates below it;
I2  a time is closed for the tables only once everything below it was sent to each mirror whose history was sent;
I3  of several processes each gets the rows whose hash falls to it: the shares are disjoint and together complete, and
    the same again when a lost connection is resumed.
One thread steps; ``receive`` is called by another one, in the order of the requests.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eddyline.errors import Error
from eddyline.protocol.messages import RowBatch
from eddyline.protocol.sources import Committed
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
from eddyline.repr.time import MIN_TIME, Frontier, Time
from eddyline.storage.collection import CollectionKind
from eddyline.storage.reader import Reader
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["StorageFeed"]

_START = Frontier(MIN_TIME)


@dataclass(slots=True, eq=False)
class _Followed:
    """A collection that one mirror follows.  ``resume``: the mirror has what is below; nothing of it is sent again."""

    mirror: int
    reader: Reader
    table: bool
    resume: Frontier
    #: below it everything was sent; the minimum while the history is on its way
    frontier: Frontier


class StorageFeed:
    """For process ``process`` of ``processes`` of a replica; ``send`` never blocks, ``written(id)`` is called after
    each write of a view.  ``room()`` says whether the connection takes more: while it does not, ``step`` does nothing,
    and what is unread counts as backlog that slows writers down.
    """

    def __init__(
        self,
        store: TableStore,
        hasher: Hasher,
        *,
        send: Callable[[StorageUpdate], None],
        written: Callable[[str], None] = lambda _id: None,
        room: Callable[[], bool] = lambda: True,
        process: int = 0,
        processes: int = 1,
        batch_rows: int = 65_536,
    ) -> None:
        self._store = store
        self._hasher = hasher
        self._send = send
        self._written = written
        self._room = room
        self._process = process
        self._processes = processes
        self._batch_rows = batch_rows
        self._changed = threading.Condition()
        self._requests: deque[Follow | Unfollow] = deque()  # guarded by _changed, like the rest
        self._awake = False
        self._everything = False
        self._commits = False
        # The stepping thread's.
        self._followed: dict[int, _Followed] = {}
        self._closed = Frontier(MIN_TIME)
        self._unwatch = store.watch(self._committed)

    # -- other threads --------------------------------------------------------------------------------------------

    def receive(self, request: StorageRequest) -> None:
        """Takes a request of the replica.  Writes of views are done before it returns."""
        match request:
            case Follow() | Unfollow():
                with self._changed:
                    self._requests.append(request)
                    self._wake()
            case BeginView():
                self._store.begin_view(request.id, self)
            case StageView():
                self._store.stage_view(request.id, _batch(request.rows), self)
            case WriteView():
                upper = Frontier(request.upper)
                rows, errors = _batch(request.rows), _batch(request.errors)
                self._store.write_view(request.id, rows, errors, Frontier(request.lower), upper, self)
                self._send(ViewWritten(request.id, upper))
                self._written(request.id)

    def _committed(self, committed: Committed) -> None:
        if committed.merges:
            return
        with self._changed:
            self._commits |= bool(committed.ids)
            self._everything |= not committed.ids
            self._wake()

    def wake(self) -> None:
        """The connection has room again, or the feed is to end."""
        with self._changed:
            self._wake()

    def _wake(self) -> None:
        self._awake = True
        self._changed.notify_all()

    def wait(self) -> None:
        """Until there may be something to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._awake)

    # -- the stepping thread --------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One bounded piece of each mirror's updates; True if anything was sent or taken in."""
        with self._changed:
            requests = list(self._requests)
            self._requests.clear()
            self._awake = False
        for request in requests:
            if isinstance(request, Follow):
                self._follow(request)
            else:
                self._unfollow(request.mirror)
        if not self._room():
            return bool(requests)
        with self._changed:
            commits, everything = self._commits, self._everything
            self._commits = self._everything = False
        moved = False
        for followed in self._followed.values():
            if followed.reader.pending():
                self._forward(followed)
                moved = True
        return self._close_times(commits=commits, everything=everything) or moved or bool(requests)

    def close(self) -> None:
        """Ends all readers; for the stepping thread, or after it."""
        self._unwatch()
        for mirror in list(self._followed):
            self._unfollow(mirror)

    def _follow(self, request: Follow) -> None:
        resume = Frontier(MIN_TIME if request.resume is None else request.resume)
        # What the mirror has is below ``resume``: that time is still told from earlier ones if since has not passed it.
        as_of = Time(request.as_of if request.resume is None else max(request.resume - 1, 0))
        try:
            kind, since = self._store.kind(request.id), self._store.since(request.id)
            if request.resume is None and since <= self._store.inherited:
                # Who asks for less was told so by an earlier program, and reads at no such time any more.
                as_of = max(as_of, Time(since))
            (reader,) = self._store.open_source(request.id, as_of)
            types, newest = self._store.types(request.id), self._store.last_write(request.id)
        except Error as error:
            self._send(FollowRefused(request.mirror, error.message))
            return
        table = kind is CollectionKind.TABLE
        self._send(Following(request.mirror, types, since, table, newest))
        self._followed[request.mirror] = _Followed(request.mirror, reader, table, resume, Frontier(MIN_TIME))

    def _unfollow(self, mirror: int) -> None:
        followed = self._followed.pop(mirror, None)
        if followed is not None:
            followed.reader.close()

    def _forward(self, followed: _Followed) -> None:
        """Sends what the reader has next.  A table's frontier that moved without rows is left to ``_close_times``."""
        history = followed.frontier == _START
        polled = followed.reader.poll(self._batch_rows)
        rows, errors = self._pieces(polled.rows, followed, history), self._pieces(polled.errors, followed, history)
        done = polled.frontier > followed.frontier
        followed.frontier = polled.frontier
        if history and done:
            followed.reader.set_steady()
        if not (rows or errors) and not (done and (history or not followed.table)):
            return
        messages = [Updates(followed.mirror, rows=RowBatch(b)) for b in rows]
        messages += [Updates(followed.mirror, errors=RowBatch(b)) for b in errors]
        for message in messages:
            self._send(message)
        if done:
            self._send(Updates(followed.mirror, upper=followed.frontier))

    def _pieces(self, batches: list[Batch], followed: _Followed, history: bool) -> list[Batch]:
        """The share of this process, without what the mirror has, in pieces of bounded size."""
        out: list[Batch] = []
        for batch in batches:
            share = batch
            if history and followed.resume > MIN_TIME and len(share):
                share = _kept(share, share.times >= int(followed.resume))
            if self._processes > 1 and len(share):
                hashes = self._hasher.hash_rows(share.columns, share.types, len(share))
                share = _kept(share, hashes % np.uint64(self._processes) == self._process)
            for start in range(0, len(share), self._batch_rows):
                out.append(share.slice(start, min(start + self._batch_rows, len(share))))
        return out

    def _close_times(self, *, commits: bool, everything: bool) -> bool:
        sent = [f.frontier for f in self._followed.values() if f.table and f.frontier > MIN_TIME]
        upper = max(self._closed, min(sent, default=self._closed))
        if upper == self._closed and not commits and not everything:
            return False
        moved = upper > self._closed
        self._closed = upper
        if sent or everything:
            self._send(TimesClosed(upper, everything))
        return moved


def _kept(batch: Batch, keep: np.typing.NDArray[np.bool_]) -> Batch:
    return batch if keep.all() else batch.take(np.flatnonzero(keep))


def _batch(rows: RowBatch) -> Batch:
    assert isinstance(rows.payload, Batch), "rows are decoded with their message"
    return rows.payload
