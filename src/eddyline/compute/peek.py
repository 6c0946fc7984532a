"""Reading an index at one time: lookups by one probe, full walks in slices.

Invariants:
I1  a peek is answered only when the index has sealed its time and its since is not past it;
I2  exactly one response per peek, whatever becomes of it;
I3  a walk reads one immutable snapshot, taken when it starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from eddyline.compute.frozen import CollectedTrace
from eddyline.compute.readable import PeekSource
from eddyline.compute.walk import Pace, walk_at, walk_keys
from eddyline.errors import DatabaseError, make_error
from eddyline.expr.ir import LiteralValue
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.text_io import literal_array
from eddyline.protocol.messages import Peek, PeekResponse, RowBatch
from eddyline.protocol.read_costs import PeekPhases, out_of_memory, result_too_large
from eddyline.repr.batch import Batch, concat_arrays
from eddyline.repr.rowerror import first_row_error
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.best_rows import BestRows
from eddyline.trace.duplicates import first_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import consolidate
from eddyline.trace.snapshot import Snapshot

__all__ = ["PeekTask", "PeekTiming", "canceled", "peek_error"]

_SLICE_ROWS = 65_536
#: a lookup of no more rows than these, with their history, is one step
_FEW_ROWS = 4096
_log = logging.getLogger("eddyline.compute")


def peek_error(uuid: str, error: DatabaseError) -> PeekResponse:
    return PeekResponse(uuid, error=(error.sqlstate, error.message, error.detail), hint=error.hint)


def canceled(uuid: str) -> PeekResponse:
    return PeekResponse(uuid, canceled=True)


class PeekTiming:
    """When a peek was sent, taken by its worker, ready, begun, and walked.  Each is set by whoever has the peek."""

    __slots__ = ("_begun", "_published", "_ready", "_runtime", "_sealed", "_sent", "_taken", "_walked", "clock")

    def __init__(self, runtime: str, clock: Callable[[], int], sent_ns: int | None = None) -> None:
        self._runtime = runtime
        self.clock = clock
        now = clock()
        self._taken = self._ready = self._published = self._sealed = self._walked = now
        self._sent = now if sent_ns is None else min(sent_ns, now)
        self._begun: int | None = None

    def ready(self, index: PeekSource) -> None:
        """``index`` has sealed the peek's time."""
        self._ready = max(self.clock(), self._taken)
        read = index.read
        published = index.published_ns if read is None else read.published_ns
        sealed = self._ready if read is None or read.sealed_ns is None else read.sealed_ns
        self._published = min(max(published, self._taken), self._ready)
        self._sealed = min(max(sealed, self._published), self._ready)

    def begin(self) -> None:
        """A slice has its turn."""
        if self._begun is None:
            self._begun = max(self.clock(), self._ready)

    def walked(self) -> None:
        """All slices are there."""
        self._walked = self.clock()

    def phases(self, lane: str, rows: int) -> PeekPhases:
        """The answer is made."""
        begun = self._ready if self._begun is None else self._begun
        walked = max(self._walked, begun)
        return PeekPhases(
            runtime=self._runtime,
            lane=lane,
            queue_ns=self._taken - self._sent + begun - self._ready,
            wait_publication_ns=self._published - self._taken,
            wait_seal_ns=self._sealed - self._published,
            dataflow_ns=self._ready - self._sealed,
            walk_ns=walked - begun,
            finish_ns=max(0, self.clock() - walked),
            rows=rows,
        )


class PeekTask:
    """One peek of an index that has sealed its time; ``step`` does a bounded piece and returns the response when it is
    done.  53200 or 54000 once what it has collected is past the peek's bounds.

    First errors of rows, of which one ends it; then rows, in slices, each through the map-filter-project at once.  A
    lookup of few rows is one step.
    """

    def __init__(
        self, peek: Peek, export: PeekSource, hasher: Hasher, timing: PeekTiming, *, lane: str = "lookup"
    ) -> None:
        self.peek = peek
        self._export = export
        self._hasher = hasher
        self._timing = timing
        self._lane = lane
        self._collected_bytes = 0
        self._result_bytes = 0  # as before, without times and multiplicities
        timing.ready(export)
        self._rows: list[Batch] = []
        self._count = 0  # of the rows, with multiplicities
        self._best: BestRows | None = None  # of those that come in large batches, if only the first are wanted
        self._failing: Batch | None = None
        self._started = False
        self._pace = Pace(_SLICE_ROWS, timing.clock)
        self._oks: Snapshot | None = None  # until they are read
        self._updates = 0  # in what is read at the moment
        #: what is read at the moment, errors of rows or rows
        self._errors: Iterator[Batch] | None = None
        self._slices: Iterator[Batch] = iter(())

    @property
    def walks(self) -> bool:
        """Whether it reads the whole index."""
        return self.peek.keys is None

    def go_on_in_slices(self) -> None:
        """It is in line with others from here on."""
        self._lane = "heavy"

    def begin(self) -> PeekResponse | None:
        """Takes the snapshots that the rest reads; the response if there is nothing more to do."""
        return self._guarded(self._begin)

    def step(self) -> PeekResponse | None:
        return self._guarded(self._step)

    def _guarded(self, part: Callable[[], PeekResponse | None]) -> PeekResponse | None:
        try:
            return part()
        except DatabaseError as error:
            return peek_error(self.peek.uuid, error)
        except Exception as error:  # noqa: BLE001 - a read changes nothing, so only the read fails
            _log.exception("peek of %s failed", self.peek.target)
            return peek_error(self.peek.uuid, make_error("XX000", f"{type(error).__name__}: {error}"))

    def _begin(self) -> None:
        if self._started:
            return
        self._started = True
        failure = None if self._export.read is None else self._export.read.failure()
        if failure is not None:
            raise failure
        arrangement = self._export.arrangement
        self._updates = arrangement.errs.rows
        if self._updates:
            self._errors = walk_at(arrangement.errs.snapshot(), Time(self.peek.time), self._pace, self._hasher)
        oks = arrangement.oks
        slices = oks.slices(self._pace) if self.walks and isinstance(oks, CollectedTrace) else None
        if slices is None:
            self._oks = oks.snapshot()
        else:
            self._slices = slices
            self._updates = self._updates or oks.rows

    def _step(self) -> PeekResponse | None:
        self._timing.begin()
        self._begin()
        # What comes in little pieces shares a step.
        left = min(_FEW_ROWS, self._pace.rows) // 2 + 1
        while left > 0:
            looked_at = self._slice()
            if looked_at is None:
                return self._finish()
            left -= looked_at
        return None

    def _slice(self) -> int | None:
        """Reads the next slice; how many updates it had at most, None if there is nothing more to read."""
        looked_at = min(self._pace.rows, self._updates)
        if self._errors is not None:
            self._pace.begin()
            errors = next(self._errors, None)
            if errors is None:
                self._errors = None
                self._updates = self._export.arrangement.oks.rows
                return 0
            self._failing = _positive(errors)
            self._pace.end()
            return None if self._failing is not None else looked_at
        if self._oks is not None:
            oks, self._oks = self._oks, None
            self._updates = oks.rows
            few = self._start(oks)
            if few is not None:
                self._take(few)
                return None
            if not self.walks and self.peek.keys:
                return _FEW_ROWS  # so many were counted
        self._pace.begin()
        batch = None if self._complete() else next(self._slices, None)
        if batch is None:
            return None
        self._take(batch)
        self._pace.end()
        return looked_at

    def _complete(self) -> bool:
        """Nothing that is still to come could change the answer."""
        limit = self.peek.limit
        enough = limit is not None and not self.peek.order and self._count >= limit
        return self._failing is not None or enough

    def _start(self, oks: Snapshot) -> Batch | None:
        """All that there is to look at, if it is few rows; else ``_slices`` will bring it."""
        keys, time = self.peek.keys, Time(self.peek.time)
        if keys is None:
            self._slices = walk_at(oks, time, self._pace, self._hasher)
            return None
        if not keys:
            return None
        types = self.peek.key_types
        columns = _key_columns(keys, types, self._hasher)
        rows = len(columns[0]) if columns else 1
        hashes = self._hasher.hash_rows(columns, types, rows)
        matches = oks.few(columns, types, hashes, below=Frontier(time + 1), most_rows=_FEW_ROWS)
        if matches is None:
            self._slices = walk_keys(oks, time, self._pace, self._hasher, columns=columns, types=types, hashes=hashes)
            return None
        times = np.full(len(matches), time, np.int64)
        found = Batch(self._export.types, tuple(matches.columns), times, matches.diffs)
        return found if _all_positive(found) else consolidate(found, self._hasher)

    def _take(self, batch: Batch) -> None:
        """Rows with their multiplicities at the peek's time, through the mfp."""
        if not len(batch):
            return
        if not _all_positive(batch):
            raise make_error("XX000", "a row with a negative multiplicity was read")
        rows, errors = apply_mfp(self.peek.mfp, batch)
        if errors is not None and len(errors):
            self._failing = errors
        if not len(rows):
            return
        limit = self.peek.limit
        if limit is not None and self.peek.order and (self._best is not None or len(rows) > limit):
            self._best = self._best or BestRows(rows.types, self.peek.order, limit)
            self._best.add(rows)
        else:
            self._rows.append(rows)
            self._count += int(rows.diffs.sum())
            size = rows.column_bytes
            self._collected_bytes += size + rows.times.nbytes + rows.diffs.nbytes
            self._result_bytes += size
        self._check_memory()
        bound = self.peek.bounds.result
        if bound is not None and self._result_bytes > bound:
            raise result_too_large(self._result_bytes, bound)

    def _check_memory(self) -> None:
        """What was collected, beside what the dataflow behind it holds, if there is one."""
        bound = self.peek.bounds.memory
        if bound is None:
            return
        account = None if self._export.read is None else self._export.read.memory
        held = self._collected_bytes + (0 if account is None else account.held())
        if self._best is not None:
            held += self._best.nbytes
        if held > bound:
            raise out_of_memory(held, bound)

    def _finish(self) -> PeekResponse:
        self._timing.walked()
        if self._failing is not None:
            return peek_error(self.peek.uuid, first_row_error(self._failing))
        if self._best is not None:
            first = self._best.chosen().rows
            self._rows.append(first)
            self._count += int(first.diffs.sum())
        rows = RowBatch.of(self.peek.mfp.types, self._rows)
        return PeekResponse(self.peek.uuid, rows=rows, phases=self._timing.phases(self._lane, self._count))


def _all_positive(batch: Batch) -> bool:
    # A reduction of one number costs more than the number.
    return int(batch.diffs[0] if len(batch) == 1 else batch.diffs.min(initial=1)) > 0


def _positive(errors: Batch) -> Batch | None:
    """The first error that counts, if one does."""
    found = np.flatnonzero(errors.diffs > 0)[:1]
    return errors.take(found) if len(found) else None


def _key_columns(
    keys: Sequence[tuple[LiteralValue, ...]], types: Sequence[SqlType], hasher: Hasher
) -> tuple[pa.Array, ...]:
    """The keys as columns, each SQL-distinct key once."""
    distinct = list(dict.fromkeys(keys)) if len(keys) > 1 else keys
    columns = tuple(concat_arrays([literal_array(key[i], t, 1) for key in distinct]) for i, t in enumerate(types))
    if len(distinct) == 1:
        return columns
    first = first_equal(columns, types, len(distinct), hasher)
    keep = np.flatnonzero(first == np.arange(len(first)))
    if len(keep) == len(first):
        return columns
    index = pa.array(keep)
    return tuple(c.take(index) for c in columns)
