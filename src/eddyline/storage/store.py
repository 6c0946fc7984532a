"""The tables and materialized views of one database, in memory.

Tables change by commits.  A commit at T is atomic over collections and closes T for *all* tables: their common upper
becomes T + 1.  It is ``prepare``d, where it is checked and put into the traces ahead of their upper, then ``publish``ed
or taken back; between these, later commits are checked against it and no reader sees it.  A materialized view has an
upper of its own, moved by the dataflow that writes it.

Invariants:
I1  a commit is checked whole before any of it is written, and becomes visible (uppers, last writes, followers'
    queues) in one step under ``_state``;
I2  since <= upper - 1, and since <= every hold, for every collection;
I3  commit times strictly increase; commits are published in their order, and taken back only all at once.

Locks, in order: ``_commit`` (one commit is prepared at a time), a collection's ``turn`` (its traces' writer),
``_state`` (bounds and queues; O(1) steps, never held across a kernel).  Readers take ``_state`` only, so they never
wait for a writer.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.errors import Error, NoLongerReadableError, make_error
from eddyline.protocol.sources import Committed, Selection, SourceReader
from eddyline.repr.batch import Batch
from eddyline.repr.holds import Holds
from eddyline.repr.rowerror import ERR_TYPES, first_row_error
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.storage.checks import check_append
from eddyline.storage.collection import Collection, CollectionKind, Commit
from eddyline.storage.followers import FollowerQueues
from eddyline.storage.hash_slices import hash_slices
from eddyline.storage.reader import Reader
from eddyline.storage.selection import selected_hashes
from eddyline.storage.settling import Settling
from eddyline.storage.watchers import Watchers
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import Found, PointProbe
from eddyline.trace.run import Run, consolidate

__all__ = ["NONE_CHECKED", "PreparedCommit", "StorageHold", "StoreHold", "TableStore"]


_log = logging.getLogger("eddyline.storage")


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit that is in the traces and not visible.  ``rows``: what it changes, net, by table."""

    time: Time
    parts: tuple[tuple[Collection, Commit], ...]

    @property
    def rows(self) -> dict[str, Batch]:
        return {collection.id: part.rows for collection, part in self.parts if part.rows is not None}


#: each write is checked
NONE_CHECKED: Final[Mapping[str, Time]] = MappingProxyType({})
_RESTORED_ROWS = 1 << 16
#: commits of so many rows merge by themselves, and how much for each row: about what its levels take
_PAYING_ROWS = 1_024
_FUEL_PER_ROW = 8


class StorageHold:
    """Keeps a collection's since at or below ``since`` until it is closed.  Any thread."""

    __slots__ = ("_store", "collection", "id", "since", "token")

    def __init__(self, store: TableStore, collection: Collection, token: int, since: Frontier) -> None:
        self._store = store
        self.collection = collection
        self.id = collection.id
        self.token = token
        self.since = since

    def downgrade(self, since: Frontier) -> None:
        """Raises the hold; lower values change nothing."""
        if since > self.since:
            self.since = since
            self._store.move_hold(self)

    def close(self) -> None:
        self._store.drop_hold(self)


class StoreHold:
    """Keeps every collection's since at or below ``since`` until it is closed.  Any thread."""

    __slots__ = ("_store", "since", "token")

    def __init__(self, store: TableStore, token: int) -> None:
        self._store = store
        self.token = token
        self.since = Frontier(MIN_TIME)

    def downgrade(self, since: Frontier) -> None:
        """Raises the hold; lower values change nothing."""
        if since > self.since:
            self.since = since
            self._store.move_hold_of_all(self)

    def close(self) -> None:
        self._store.drop_hold_of_all(self)


class TableStore:
    """``retention_us``: how far since trails the upper where no hold asks for more.

    ``backlog_rows``/``backlog_bytes``: what steady dataflows may leave unread before ``wait_capacity`` waits.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        retention_us: int = 1_000_000,
        backlog_rows: int = 4_000_000,
        backlog_bytes: int = 512 * 1024 * 1024,
    ) -> None:
        self._hasher = hasher
        self._retention_us = retention_us
        #: times up to it are an earlier program's; set before anybody else has the store
        self.inherited = Time(0)
        self._commit = threading.Lock()
        self._state = threading.Lock()
        self._followers = FollowerQueues(
            self._state, hasher, upper=self._upper, backlog_rows=backlog_rows, backlog_bytes=backlog_bytes
        )
        self._settling = Settling(self._state, self._advance_since)
        # All guarded by _state.
        self._collections: dict[str, Collection] = {}
        self._tables_upper = Frontier(MIN_TIME)
        self._prepared_upper = Frontier(MIN_TIME)  # one past the newest commit that is prepared
        self._watchers = Watchers(self._state)
        self._next_token = 0
        self._holds_of_all = Holds()

    # -- collections ----------------------------------------------------------------------------------------------

    def create_table(
        self,
        id: str,
        types: tuple[SqlType, ...],
        *,
        key: tuple[int, ...] | None,
        names: Sequence[str],
        table: str,
        constraint: str,
        at: Time,
    ) -> None:
        """An empty table, readable from ``at``.  ``names``, ``table`` and ``constraint`` are for messages."""
        self._add(
            Collection(
                id=id, kind=CollectionKind.TABLE, types=types, key=key, names=tuple(names), title=table,
                constraint=constraint, hasher=self._hasher, since=at,
            )
        )  # fmt: skip

    def create_view(self, id: str, types: tuple[SqlType, ...], *, names: Sequence[str], view: str, as_of: Time) -> None:
        """A materialized view without content; its dataflow, computed from ``as_of``, writes it by ``write_view``."""
        self._add(
            Collection(
                id=id, kind=CollectionKind.VIEW, types=types, key=None, names=tuple(names), title=view,
                constraint="", hasher=self._hasher, since=as_of,
            )
        )  # fmt: skip

    def _add(self, collection: Collection) -> None:
        with self._state:
            if collection.id in self._collections:
                raise make_error("XX000", f"collection {collection.id} exists already")
            self._collections[collection.id] = collection

    def drop(self, id: str) -> None:
        """Forgets the collection.  Readers that are open keep what they have; nothing more is appended."""
        with self._state:
            collection = self._collections.pop(id, None)
            if collection is not None:
                self._followers.drop(collection)
                self._settling.drop(collection)

    def __contains__(self, id: str) -> bool:
        with self._state:
            return id in self._collections

    def ids(self) -> tuple[str, ...]:
        with self._state:
            return tuple(self._collections)

    def types(self, id: str) -> tuple[SqlType, ...]:
        return self._collection(id).types

    def kind(self, id: str) -> CollectionKind:
        return self._collection(id).kind

    def key(self, id: str) -> tuple[int, ...] | None:
        """The primary key's columns."""
        return self._collection(id).key

    def size(self, id: str) -> tuple[int, int]:
        """(updates, bytes) in the collection's traces, and staged for them."""
        c = self._collection(id)
        rows, size = c.stages.size()
        return c.oks.rows + c.errs.rows + rows, c.oks.bytes + c.errs.bytes + size

    def nbytes(self) -> int:
        """Bytes in the traces of all collections.  O(collections and their runs)."""
        with self._state:
            collections = list(self._collections.values())
        return sum(c.oks.bytes + c.errs.bytes + c.stages.size()[1] for c in collections)

    def _collection(self, id: str) -> Collection:
        with self._state:
            collection = self._collections.get(id)
        if collection is None:
            raise make_error("XX000", f"collection {id} does not exist")
        return collection

    # -- bounds ---------------------------------------------------------------------------------------------------

    def upper(self, id: str) -> Frontier:
        collection = self._collection(id)
        with self._state:
            return self._upper(collection)

    def _upper(self, collection: Collection) -> Frontier:
        return self._tables_upper if collection.kind is CollectionKind.TABLE else collection.upper

    @property
    def tables_upper(self) -> Frontier:
        """One past the newest commit."""
        with self._state:
            return self._tables_upper

    def since(self, id: str) -> Frontier:
        collection = self._collection(id)
        with self._state:
            return collection.since

    def newest_write(self, ids: Iterable[str]) -> Time:
        """The last write to any of ``ids``; the ones that are not there, or no longer, count for nothing."""
        with self._state:
            return self._newest_write(ids)

    def _newest_write(self, ids: Iterable[str]) -> Time:
        """Needs ``_state``."""
        newest = Time(0)
        for id in ids:
            collection = self._collections.get(id)
            if collection is not None and collection.last_write > newest:
                newest = collection.last_write
        return newest

    def newest_readable(self, tables: Iterable[str], read: Iterable[str]) -> Time | None:
        """``newest_write`` of ``tables``, or from when ``read`` are readable if that is later; None if one is gone."""
        with self._state:
            newest: int = self._newest_write(tables)
            for id in read:
                collection = self._collections.get(id)
                if collection is None:
                    return None
                newest = max(newest, collection.since)
        return Time(newest)

    def newest_prepared(self, ids: Iterable[str]) -> Time:
        """As ``newest_write``, with commits that are not visible yet."""
        with self._state:
            found = [c for c in (self._collections.get(id) for id in ids) if c is not None]
            return max((max(c.last_write, c.last_prepared) for c in found), default=Time(0))

    def last_write(self, id: str) -> Time:
        """The time of the newest commit that changed the collection, or of its creation.

        Rises before the commit can be read or is acknowledged.
        """
        collection = self._collection(id)
        with self._state:
            return collection.last_write

    def hold(self, id: str, since: Frontier | None = None) -> StorageHold:
        """A hold at ``since``, or at the collection's since.  Raises 22023 if it is below that."""
        collection = self._collection(id)
        with self._state:
            at = collection.since if since is None else since
            if at < collection.since:
                raise NoLongerReadableError.at(at, collection.since)
            self._next_token += 1
            collection.holds.put(self._next_token, at)
            return StorageHold(self, collection, self._next_token, at)

    def move_hold(self, hold: StorageHold) -> None:
        with self._state:
            if hold.token in hold.collection.holds:
                hold.collection.holds.put(hold.token, hold.since)

    def drop_hold(self, hold: StorageHold) -> None:
        with self._state:
            hold.collection.holds.discard(hold.token)

    def hold_all(self) -> StoreHold:
        """Keeps the since of every collection where it is, until the hold is downgraded.  O(1)."""
        with self._state:
            self._next_token += 1
            self._holds_of_all.put(self._next_token, Frontier(MIN_TIME))
            return StoreHold(self, self._next_token)

    def move_hold_of_all(self, hold: StoreHold) -> None:
        with self._state:
            if hold.token in self._holds_of_all:
                self._holds_of_all.put(hold.token, hold.since)

    def drop_hold_of_all(self, hold: StoreHold) -> None:
        with self._state:
            self._holds_of_all.discard(hold.token)

    def _advance_since(self, collection: Collection) -> Frontier | None:
        """Raises the since as far as retention and holds allow; the new one if it moved.  Needs ``_state``."""
        upper = self._upper(collection)
        bounds = [f for f in (collection.holds.least(), self._holds_of_all.least()) if f is not None]
        if upper < EMPTY:
            bounds.append(Frontier(upper - 1 - self._retention_us))
        elif not collection.holds:
            return None  # complete for ever, it has no newest time to trail: only its readers say how far it may go
        return collection.raise_since(min(bounds))

    # -- writing --------------------------------------------------------------------------------------------------

    def append(self, writes: Mapping[str, Batch], time: Time, checked: Mapping[str, Time] = NONE_CHECKED) -> None:
        """Commits ``writes`` (rows and diffs per table; their times are ignored) at ``time``, all or nothing.

        ``time`` must be past every earlier commit (XX000).  Raises 23505 on a second row with a key and 22023 on a
        retraction of a row that is not there; then nothing is written and no time is closed.  With no writes it
        just closes ``time``.  ``checked``: see ``prepare``.
        """
        self.publish(self.prepare(writes, time, checked))

    def prepare(
        self, writes: Mapping[str, Batch], time: Time, checked: Mapping[str, Time] = NONE_CHECKED
    ) -> PreparedCommit:
        """The first half of ``append``: checks the commit and puts it where the next one is checked against it.

        ``checked``: the tables whose writes keep what a check asks for, over what was in them at that time: they are
        looked at again only if somebody has written there since.
        """
        with self._commit:
            with self._state:
                newest = max(self._tables_upper, self._prepared_upper)
            if time < newest:
                raise make_error("XX000", f"commit at {time} is behind {newest - 1}")
            changes: list[tuple[Collection, Run]] = []
            for id, batch in sorted(writes.items()):
                collection = self._collection(id)
                run = collection.built(batch, time)
                at = checked.get(id)
                if at is None or self.newest_prepared((id,)) > at:
                    check_append(collection, batch, run, time, self._hasher)
                changes.append((collection, run))
            written: list[tuple[Collection, Commit]] = []
            for collection, run in changes:
                with collection.turn:
                    written.append((collection, collection.write_run(run)))
            with self._state:
                self._prepared_upper = Frontier(time + 1)
                for collection, _ in written:
                    collection.last_prepared = time
            return PreparedCommit(time, tuple(written))

    def publish(self, prepared: PreparedCommit) -> None:
        """Makes a commit visible; calls come in the order of the commits' times."""
        written = list(prepared.parts)
        touched = self._publish(written, prepared.time)
        rows = sum(commit.row_count() for _, commit in written)
        self._watchers.notify(Committed(frozenset(c.id for c, _ in written), touched, rows))
        self._merge_behind(written)

    def _merge_behind(self, written: Sequence[tuple[Collection, Commit]]) -> None:
        """Pays for the merges of a commit once everybody has been told of it: they work while the writer merges.

        A small one leaves that to idle time.  Idle workers have passed by what the writer was merging.
        """
        left = False
        for collection, commit in written:
            rows = commit.row_count()
            if rows >= _PAYING_ROWS:
                try:
                    with collection.turn:
                        left |= collection.work(_FUEL_PER_ROW * rows)
                except (Error, MemoryError) as problem:  # the commit is made; whoever merges next is told
                    _log.warning("merging behind a commit failed: %s", problem)
        if left:
            self._watchers.notify(Committed(frozenset(), merges=True))

    def take_back(self, prepared: PreparedCommit) -> None:
        """Undoes a commit that was not published, together with all later ones: its rows cancel at its own time."""
        for collection, part in prepared.parts:
            with collection.turn:
                collection.take_back(part, prepared.time)
            with self._state:
                collection.last_prepared = collection.last_write
            self._settling.add(collection)

    def restore(self, rows: Iterable[tuple[str, Batch]], newest: Time, *, since: Time | None = None) -> None:
        """Fills the tables, which are empty and unread, from parts in any order, and closes ``newest``, the last time.

        Up to ``since``, from which the tables are readable (None: ``newest``), all becomes one; what came later keeps
        its time, but for what has a time behind ``newest``, at which there was no commit: a file of rows has the last
        time that was closed.  Holds a few parts at a time: what is small is put together first.
        """
        floor = newest if since is None else since
        waiting: dict[str, list[Batch]] = {}
        for id, batch in rows:
            parts = waiting.setdefault(id, [])
            parts.append(batch)
            if sum(map(len, parts)) >= _RESTORED_ROWS:
                self._fill(id, waiting.pop(id), floor, newest)
        for id, parts in waiting.items():
            self._fill(id, parts, floor, newest)
        with self._state:
            self._tables_upper = Frontier(max(self._tables_upper, newest + 1))

    def inherit(self, upto: Time) -> None:
        """After ``restore``: closes the times that an earlier program may have given out, without any writes."""
        if upto >= self.tables_upper:
            self.append({}, upto)
        self.inherited = upto

    def _fill(self, id: str, parts: list[Batch], floor: Time, newest: Time) -> None:
        collection = self._collection(id)
        moved = [Batch(b.types, b.columns, np.clip(b.times, floor, newest), b.diffs) for b in parts]
        last = max((Time(int(b.times.max())) for b in moved if len(b)), default=floor)
        with collection.turn:
            collection.fill(Batch.concat(collection.types, moved), None)
            collection.work(4 * _RESTORED_ROWS)
        with self._state:
            collection.last_write = collection.last_prepared = max(collection.last_write, last)
        self._settling.add(collection)

    def stored_rows(self, id: str) -> tuple[Time, Iterator[Batch]] | None:
        """All rows of a table at the newest visible commit, and its time; None if there is no such table.

        In slices of about 64 Ki updates, each of which is consolidated when it is asked for.
        """
        with self._state:
            collection = self._collections.get(id)
            if collection is None or collection.kind is not CollectionKind.TABLE:
                return None
            at = Time(self._tables_upper - 1)
            snapshot = collection.oks.snapshot()
        return at, hash_slices(snapshot, at, self._hasher)

    def row_bytes(self, ids: Iterable[str]) -> int:
        """About what the rows of tables take without times and hashes.  O(runs)."""
        with self._state:
            found = [c for c in (self._collections.get(id) for id in ids) if c is not None]
        return sum(run.batch().column_bytes for c in found for run in c.oks.snapshot().runs)

    def _publish(self, written: list[tuple[Collection, Commit]], time: Time) -> list[SourceReader]:
        """Makes the commit visible; returns the selective readers that it touches."""
        moved: list[tuple[Collection, Frontier]] = []
        with self._followers.publishing(written) as touched:
            for collection, _ in written:
                collection.last_write = time
            self._tables_upper = Frontier(time + 1)
            for collection, _ in written:
                since = self._advance_since(collection)
                if since is not None:
                    moved.append((collection, since))
        for collection, since in moved:
            with collection.turn:
                collection.compact(since)
        for collection, _ in written:
            self._settling.add(collection)
        return touched

    def begin_view(self, id: str, writer: object = None) -> None:
        """See ``protocol.sources.Storage``."""
        with self._state:
            collection = self._collections.get(id)
        if collection is not None:
            with collection.turn:
                collection.stages.forget(writer)

    def stage_view(self, id: str, rows: Batch, writer: object = None) -> None:
        """See ``protocol.sources.Storage``."""
        with self._state:
            collection = self._collections.get(id)
        if collection is None:
            return
        with collection.turn:
            rows = _since(rows, collection.upper)
            if len(rows):
                collection.stage(writer, rows)

    def write_view(
        self, id: str, rows: Batch, errors: Batch, lower: Frontier, upper: Frontier, writer: object = None
    ) -> None:
        """See ``protocol.sources.Storage``.  A dropped view swallows its dataflow's last writes."""
        with self._state:
            collection = self._collections.get(id)
        if collection is None:
            return
        with collection.turn:
            if lower > collection.upper and collection.upper > MIN_TIME:
                raise make_error("XX000", f"a gap in {id}: [{collection.upper}, {lower}) was never written")
            rows, errors = (_since(b, collection.upper) for b in (rows, errors))
            if upper <= collection.upper:
                collection.stages.forget(writer)  # another one was faster
                return
            staged = collection.publish_staged(writer)
            latest = Frontier(max(collection.upper, collection.oks.upper))
            bound = upper if upper != EMPTY else _past(latest, rows, errors)
            commit = dataclasses.replace(collection.write(rows, errors, bound), upper=upper)
            parts = (*staged, commit)
            # Found before the lock is taken: it reads every time of a batch.
            newest = max(part.newest() for part in parts)
            with self._followers.publishing([(collection, part) for part in parts]) as touched:
                collection.last_write = max(collection.last_write, newest)
                collection.upper = upper
                since = self._advance_since(collection)
            collection.stages.passed(upper)
            if since is not None:
                collection.compact(since)
        self._settling.add(collection)
        self._watchers.notify(Committed(frozenset((id,)), touched, sum(part.row_count() for part in parts)))

    # -- reading --------------------------------------------------------------------------------------------------

    def snapshot(self, id: str, as_of: Time) -> Iterator[Batch]:
        """The content at ``as_of`` in batches of at most 64 Ki rows, times moved up to ``as_of``, not consolidated.

        Errors of a view are raised.  ``as_of`` must be readable: since <= as_of < upper (22023).
        """
        collection = self._collection(id)
        with self._state:
            since, upper = collection.since, self._upper(collection)
            oks, errs = collection.snapshots()
        if not since <= as_of < upper:
            raise make_error(
                "22023", f"time {as_of} is not readable", detail=f"Readable times are {since} <= t < {upper}."
            )
        found = [b.advanced(as_of) for b in errs.scan(below=Frontier(as_of + 1))]
        errors = consolidate(Batch.concat(ERR_TYPES, found), self._hasher)
        if len(errors):
            raise first_row_error(errors)
        return (batch.advanced(as_of) for batch in oks.scan(below=Frontier(as_of + 1)))

    def lookup(self, id: str, keys: tuple[pa.Array, ...], at: Time) -> Batch:
        """The live rows at ``at`` with one of the (distinct) ``keys`` of the primary key or, without one, equal to
        one of the whole rows ``keys``; consolidated.  NULL finds NULL.  One probe.
        """
        return self._collection(id).lookup(keys, at)

    def look_up(self, id: str, at: Time, probe: PointProbe) -> list[Found] | None:
        """The rows at ``at`` with the key that ``probe`` has, by the primary key; see ``PointProbe.find``.

        None also if the collection is gone or not readable at ``at``.
        """
        with self._state:
            collection = self._collections.get(id)
            if collection is None or not collection.since <= at < self._upper(collection):
                return None
            snapshot, _ = collection.snapshots()
        return probe.find(snapshot, at + 1)

    def open_source(
        self,
        id: str,
        as_of: Time,
        readers: int = 1,
        selection: Selection | None = None,
        key: tuple[int, ...] | None = None,
    ) -> Sequence[Reader]:
        """See ``protocol.sources.Storage``.  O(runs)."""
        collection = self._collection(id)
        hashes = None if selection is None else selected_hashes(selection, self._hasher)
        with self._state:
            if as_of < collection.since:
                raise make_error("XX000", f"source {id} is read at {as_of}, below its since {collection.since}")
            return self._followers.follow(collection, readers, selection, hashes, key)

    # -- backlog, idle work, watching -----------------------------------------------------------------------------

    def backlog(self) -> tuple[int, int]:
        """As ``FollowerQueues.backlog``, over all tables and views."""
        return self._followers.backlog()

    def wait_capacity(self, timeout: float | None, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """As ``FollowerQueues.wait_capacity``."""
        return self._followers.wait_capacity(timeout, cancelled)

    def look_again(self) -> None:
        """As ``FollowerQueues.look_again``."""
        self._followers.look_again()

    def work(self, fuel_rows: int) -> bool:
        """See ``protocol.sources.Storage``, and ``Settling.work``."""
        return self._settling.work(fuel_rows)

    def watch(self, callback: Callable[[Committed], None]) -> Callable[[], None]:
        """See ``protocol.sources.Storage``."""
        return self._watchers.add(callback)

    def close(self) -> None:
        """Wakes whoever waits for capacity."""
        with self._state:
            self._followers.close()


def _since(batch: Batch, frontier: Frontier) -> Batch:
    """The updates at or past ``frontier``."""
    keep = batch.times >= frontier
    return batch if keep.all() else batch.take(np.flatnonzero(keep))


def _past(upper: Frontier, rows: Batch, errors: Batch) -> Frontier:
    """A finite bound past ``upper`` and every update."""
    latest = [int(b.times.max()) for b in (rows, errors) if len(b)]
    return Frontier(max([upper, *latest]) + 1)
