"""One stored collection: its traces, bounds, holds and followers.

Invariants:
I1  every update below ``upper`` is in the traces; readers look below the *published* upper only;
I2  ``since`` is at most every hold;
I3  the traces are written only with ``turn`` held.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.protocol.sources import Selection, SourceReader
from eddyline.repr.batch import Batch
from eddyline.repr.holds import Holds
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import Kind, SqlType
from eddyline.storage.stages import Stage, Stages
from eddyline.trace.duplicates import all_ascend
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import point_probe
from eddyline.trace.run import Layout, Run, Uint64s, build_run, consolidate
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.trace import Trace

if TYPE_CHECKING:
    from eddyline.storage.routes import Routes

__all__ = ["Collection", "CollectionKind", "Commit", "Follower", "batch_bytes"]

_SORTED_PROBE_ROWS = 64
#: of keys whose values in Python are the literals that ``point_probe`` takes
_PLAIN_KEYS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.VARCHAR})


class CollectionKind(enum.Enum):
    TABLE = "table"  # written by commits; a commit closes all tables
    VIEW = "view"  # a materialized view, written by its dataflow, with its own upper


@dataclass(frozen=True, slots=True)
class Commit:
    """One step of a collection: all its updates from the step before up to ``upper``."""

    upper: Frontier
    rows: Batch | None
    errors: Batch | None
    size_bytes: int

    def row_count(self) -> int:
        return (0 if self.rows is None else len(self.rows)) + (0 if self.errors is None else len(self.errors))

    def newest(self) -> Time:
        """The latest time of an update; 0 without any.  O(updates)."""
        return Time(max((int(b.times.max()) for b in (self.rows, self.errors) if b is not None and len(b)), default=0))


def batch_bytes(batch: Batch | None) -> int:
    """The bytes of a batch's columns, times and diffs."""
    if batch is None:
        return 0
    return sum(int(c.nbytes) for c in batch.columns) + batch.times.nbytes + batch.diffs.nbytes


class Follower:
    """One reader's queue of commits.  Guarded by the store's state lock, but for what it selects.

    ``hashes``: uint64, unique: of the values it selects.  ``reader``: whose queue it is, set before it is attached.
    """

    __slots__ = ("bytes", "commits", "hashes", "reader", "rows", "selection", "steady")

    def __init__(self, selection: Selection | None = None, hashes: npt.NDArray[np.uint64] | None = None) -> None:
        self.selection = selection
        self.hashes = np.empty(0, np.uint64) if hashes is None else hashes
        self.reader: SourceReader | None = None
        self.commits: deque[Commit] = deque()
        self.rows = 0
        self.bytes = 0
        self.steady = False


class Collection:
    """``key``: the primary key's columns, or None; the traces are keyed by it, or else by the whole row."""

    def __init__(
        self,
        *,
        id: str,
        kind: CollectionKind,
        types: tuple[SqlType, ...],
        key: tuple[int, ...] | None,
        names: tuple[str, ...],
        title: str,
        constraint: str,
        hasher: Hasher,
        since: Time,
    ) -> None:
        self.id = id
        self.kind = kind
        self.types = types
        self.key = key
        self.names = names
        self.title = title
        self.constraint = constraint
        self.turn = threading.Lock()
        self.layout = Layout(types, key if key is not None else tuple(range(len(types))))
        self.error_layout = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))
        self._hasher = hasher
        key_types = [types[c] for c in self.layout.key]
        plain = key is not None and all(t.kind in _PLAIN_KEYS for t in key_types)
        self._probe = point_probe(key_types, hasher) if plain else None
        self.oks = Trace(self.layout)
        self.errs = Trace(self.error_layout)
        self._held = [t.handle(since=Frontier(MIN_TIME), through=EMPTY) for t in (self.oks, self.errs)]
        #: what writers of a view will publish next; guarded by ``turn``
        self.stages = Stages()
        #: whether the traces may have merges to do; guarded by ``turn``
        self.unmerged = False
        # The rest is guarded by the store's state lock.
        self.since = Frontier(since)
        self.upper = Frontier(MIN_TIME)  # views only; the tables share the store's
        self.last_write = Time(since)
        #: of a commit that may not be visible yet; tables only
        self.last_prepared = Time(since)
        self.holds = Holds()
        #: in the order in which they were attached
        self.followers: dict[Follower, None] = {}
        #: of ``followers``, those with commits queued
        self.behind: set[Follower] = set()
        #: rises when a follower comes or goes
        self.follower_version = 0
        #: made for a version of ``followers``; replaced whole
        self.routes: Routes | None = None
        self.dropped = False

    def write(self, rows: Batch | None, errors: Batch | None, upper: Frontier) -> Commit:
        """Puts updates into the traces; ``upper`` is past their times.  Needs ``turn``.

        The commit returned shares the columns of the new runs, so that nothing of the caller's is kept.
        """
        written = (
            _insert(self.oks, self.layout, rows, upper, self._hasher),
            _insert(self.errs, self.error_layout, errors, upper, self._hasher),
        )
        self.unmerged = True
        return Commit(upper, *written, sum(map(batch_bytes, written)))

    def built(self, rows: Batch, time: Time) -> Run:
        """The run of a table's commit at ``time``, for ``write_run`` before anything else is written.

        The times of ``rows`` are ignored.
        """
        at_time = Batch(rows.types, rows.columns, np.full(len(rows), time, np.int64), rows.diffs)
        trace = self.oks
        return build_run(
            at_time, self.layout, self._hasher, lower=trace.upper, upper=Frontier(time + 1), since=trace.since
        )

    def write_run(self, run: Run) -> Commit:
        """Puts what ``built`` has made into the traces; as ``write``.  Needs ``turn``."""
        rows = None
        if len(run):
            self.oks.insert(run)
            rows = run.batch()
        self.unmerged = True
        return Commit(run.upper, rows, None, batch_bytes(rows))

    def stage(self, writer: object, rows: Batch) -> None:
        """Keeps updates, all at one time and the same as the writer's that are staged, for ``publish_staged``.

        Needs ``turn``.
        """
        time = Frontier(int(rows.times[0]))
        built = build_run(rows, self.layout, self._hasher, lower=time, upper=Frontier(time + 1), since=self.oks.since)
        if not len(built):
            return
        stage = self.stages.of(writer, time)
        if stage is None:
            trace = Trace(self.layout)
            trace.advance_upper(time)
            stage = Stage(time, trace)
            self.stages.put(writer, stage)
        stage.add(built.rebounded(time, time))

    def fill(self, rows: Batch | None, errors: Batch | None) -> None:
        """Puts a part of the first history into the traces, at whatever times, before any frontier is published.

        No reader may be open, since none is told.  Needs ``turn``.
        """
        for trace, layout, batch in ((self.oks, self.layout, rows), (self.errs, self.error_layout, errors)):
            if batch is None or not len(batch):
                continue
            lower, bound = trace.upper, Frontier(int(batch.times.max()) + 1)
            built = build_run(batch, layout, self._hasher, lower=lower, upper=bound, since=trace.since)
            if len(built):
                trace.insert(built.rebounded(lower, lower))
        self.unmerged = True

    def take_back(self, part: Commit, time: Time) -> None:
        """Cancels what ``write`` put into the traces at ``time`` and nobody has seen.  Needs ``turn``."""
        for trace, layout, batch in ((self.oks, self.layout, part.rows), (self.errs, self.error_layout, part.errors)):
            if batch is not None and len(batch):
                built = build_run(
                    batch.negated(),
                    layout,
                    self._hasher,
                    lower=Frontier(time),
                    upper=Frontier(time + 1),
                    since=trace.since,
                )
                trace.insert(built.rebounded(trace.upper, trace.upper))
        self.unmerged = True

    def publish_staged(self, writer: object) -> list[Commit]:
        """Puts what the writer staged into the traces, but for what is below ``upper`` by now, which another one wrote.

        As commits that do not move the frontier: its write is to follow.  O(runs).  Needs ``turn``.
        """
        stage = self.stages.take(writer, self.upper)
        if stage is None:
            return []
        if self.oks.upper < stage.time:
            self.oks.advance_upper(stage.time)
        for run in stage.trace.snapshot().runs:
            self.oks.insert(run.rebounded(self.oks.upper, self.oks.upper))
        return [Commit(self.upper, batch, None, batch_bytes(batch)) for batch in stage.batches]

    def compact(self, since: Frontier) -> None:
        """Lets the traces forget times below ``since``, which the state lock's holder has chosen.  Needs ``turn``."""
        for handle in self._held:
            handle.downgrade(since)
        self.unmerged = True

    def work(self, fuel_rows: int) -> bool:
        """Merges runs; True if more is left.  Needs ``turn``."""
        if self.unmerged:
            more = self.oks.work(fuel_rows)
            self.unmerged = self.errs.work(fuel_rows) or more
        return self.unmerged

    def raise_since(self, target: Frontier) -> Frontier | None:
        """Raises the since to ``target``, which holds allow, and gives it if that is a rise.  Needs the state lock.

        Then the traces are to be told, by ``compact``.
        """
        if target <= self.since:
            return None
        self.since = target
        return target

    def snapshots(self) -> tuple[Snapshot, Snapshot]:
        """Rows and errors as they are in the traces, perhaps past the published upper."""
        return self.oks.snapshot(), self.errs.snapshot()

    def finds_nothing(self, key: Sequence[object], at: Time) -> bool:
        """Whether no row has ``key``, a row of the key columns' Python values, at ``at``.  False may say nothing.

        Whoever prepares commits calls it: one thread at a time.
        """
        probe = self._probe
        if probe is None or None in key or not probe.set_key(key):
            return False
        return probe.find(self.oks.snapshot(), at + 1) == []

    def lookup(self, keys: tuple[pa.Array, ...], at: Time, hashes: Uint64s | None = None) -> Batch:
        """The live rows at ``at`` whose key is one of ``keys`` (distinct; NULL finds NULL), consolidated.

        ``hashes``: those of ``keys``, which are in their order.
        """
        key_types = tuple(self.types[c] for c in self.layout.key)
        if hashes is None:
            hashes = self._hasher.hash_rows(keys, key_types, len(keys[0]) if keys else 1)
            if len(hashes) > _SORTED_PROBE_ROWS:
                # In hash order a probe goes through each run once, front to back.
                order = np.argsort(hashes)
                index = pa.array(order)
                keys, hashes = tuple(k.take(index) for k in keys), hashes[order]
        matches = self.oks.snapshot().probe(
            keys, key_types, hashes, below=Frontier(at + 1), null_safe=(True,) * len(keys)
        )
        found = Batch(self.types, tuple(matches.columns), matches.times, matches.diffs).advanced(at)
        # Updates whose keys' hashes differ are of rows that differ.
        alone = len(found) < 2 or all_ascend(hashes[matches.probe_rows])
        return found if alone else consolidate(found, self._hasher)


def _insert(trace: Trace, layout: Layout, batch: Batch | None, upper: Frontier, hasher: Hasher) -> Batch | None:
    """Adds a run with the batch's updates to the trace; the run's own columns, or None without updates."""
    if batch is None or not len(batch):
        return None
    run = build_run(batch, layout, hasher, lower=trace.upper, upper=upper, since=trace.since)
    trace.insert(run)
    return run.batch()
