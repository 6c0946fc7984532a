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

from eddyline.compute.readable import PeekSource
from eddyline.compute.walk import walk_at
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
from eddyline.trace.snapshot import Matches

__all__ = ["PeekTask", "PeekTiming", "canceled", "peek_error"]

_SLICE_ROWS = 65_536
#: matches that a lookup takes in one step; most have fewer
_LOOKUP_ROWS = 16_384
_FIRST_ROWS = 256
_log = logging.getLogger("eddyline.compute")


def peek_error(uuid: str, error: DatabaseError) -> PeekResponse:
    return PeekResponse(uuid, error=(error.sqlstate, error.message, error.detail), hint=error.hint)


def canceled(uuid: str) -> PeekResponse:
    return PeekResponse(uuid, canceled=True)


class PeekTiming:
    """When a peek was sent, taken by its worker, ready, begun, and walked.  Each is set by whoever has the peek."""

    __slots__ = ("_begun", "_clock", "_published", "_ready", "_runtime", "_sealed", "_sent", "_taken", "_walked")

    def __init__(self, runtime: str, clock: Callable[[], int], sent_ns: int | None = None) -> None:
        self._runtime = runtime
        self._clock = clock
        now = clock()
        self._taken = self._ready = self._published = self._sealed = self._walked = now
        self._sent = now if sent_ns is None else min(sent_ns, now)
        self._begun: int | None = None

    def ready(self, index: PeekSource) -> None:
        """``index`` has sealed the peek's time."""
        self._ready = max(self._clock(), self._taken)
        read = index.read
        published = index.published_ns if read is None else read.published_ns
        sealed = self._ready if read is None or read.sealed_ns is None else read.sealed_ns
        self._published = min(max(published, self._taken), self._ready)
        self._sealed = min(max(sealed, self._published), self._ready)

    def begin(self) -> None:
        """A slice has its turn."""
        if self._begun is None:
            self._begun = max(self._clock(), self._ready)

    def walked(self) -> None:
        """All slices are there."""
        self._walked = self._clock()

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
            finish_ns=max(0, self._clock() - walked),
            rows=rows,
        )


class PeekTask:
    """One peek of an index that has sealed its time; ``step`` does a bounded piece and returns the response when it is
    done.  53200 or 54000 once what it has collected is past the peek's bounds.
    """

    def __init__(
        self, peek: Peek, export: PeekSource, hasher: Hasher, timing: PeekTiming, *, lane: str = "lookup"
    ) -> None:
        self.peek = peek
        self._export = export
        self._hasher = hasher
        self._timing = timing
        self._lane = lane
        self._matched_bytes = 0
        self._collected_bytes = 0
        self._result_bytes = 0  # as before, without times and multiplicities
        timing.ready(export)
        self._rows: list[Batch] = []
        self._count = 0  # of the rows, with multiplicities
        self._best: BestRows | None = None  # of those that come in large batches, if only the first are wanted
        self._failing: Batch | None = None
        self._walk: Iterator[Batch] | None = None
        self._lookup: Iterator[Matches] | None = None
        self._matches: list[Batch] = []
        self._started = False

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

    def _begin(self) -> PeekResponse | None:
        if self._started:
            return None
        self._started = True
        return self._start()

    def _step(self) -> PeekResponse | None:
        self._timing.begin()
        failed = self._begin()
        if failed is not None:
            return failed
        if self._walk is not None and not self._complete():
            batch = next(self._walk, None)
            if batch is not None:
                self._take(batch)
                return None
        if self._lookup is not None and self._look_up(self._lookup):
            return None
        return self._finish()

    def _complete(self) -> bool:
        """Nothing that is still to come could change the answer."""
        limit = self.peek.limit
        enough = limit is not None and not self.peek.order and self._count >= limit
        return self._failing is not None or enough

    def _start(self) -> PeekResponse | None:
        failure = None if self._export.read is None else self._export.read.failure()
        if failure is not None:
            raise failure
        arrangement = self._export.arrangement
        below = Frontier(self.peek.time + 1)
        if arrangement.errs.rows:
            failing = _positive(arrangement.errs.snapshot().read_at(Time(self.peek.time)))
            if len(failing):
                return self._row_error(failing)
        snapshot = arrangement.oks.snapshot()
        if self.peek.keys is None:
            self._walk = walk_at(snapshot, Time(self.peek.time), _SLICE_ROWS, self._hasher)
            return None
        if not self.peek.keys:
            return None
        columns = _key_columns(self.peek.keys, self.peek.key_types, self._hasher)
        rows = len(columns[0]) if columns else 1
        hashes = self._hasher.hash_rows(columns, self.peek.key_types, rows)
        self._lookup = snapshot.probe_pieces(
            columns,
            self.peek.key_types,
            hashes,
            below=below,
            null_safe=(False,) * len(columns),
            max_rows=_SLICE_ROWS,
            first_rows=max(_FIRST_ROWS, 2 * rows),
        )
        return None

    def _look_up(self, pieces: Iterator[Matches]) -> bool:
        """Takes the next matches; True if there may be more than this step's share."""
        rows = 0
        for matches in pieces:
            times = np.full(len(matches), self.peek.time, np.int64)
            self._matches.append(Batch(self._export.types, tuple(matches.columns), times, matches.diffs))
            rows += len(matches)
            if rows > len(matches):  # what comes in one piece is looked at when it is taken
                self._matched_bytes = sum(m.nbytes for m in self._matches)
                self._check_memory()
            if rows >= _LOOKUP_ROWS:
                return True
        found = Batch.concat(self._export.types, self._matches)
        self._matches, self._matched_bytes = [], 0
        self._take(found if _all_positive(found) else consolidate(found, self._hasher))
        return False

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
        held = self._collected_bytes + self._matched_bytes + (0 if account is None else account.held())
        if self._best is not None:
            held += self._best.nbytes
        if held > bound:
            raise out_of_memory(held, bound)

    def _finish(self) -> PeekResponse:
        self._timing.walked()
        if self._failing is not None:
            return self._row_error(self._failing)
        if self._best is not None:
            first = self._best.chosen().rows
            self._rows.append(first)
            self._count += int(first.diffs.sum())
        rows = Batch.concat(self.peek.mfp.types, self._rows)
        return PeekResponse(self.peek.uuid, rows=RowBatch(rows), phases=self._timing.phases(self._lane, self._count))

    def _row_error(self, failing: Batch) -> PeekResponse:
        return peek_error(self.peek.uuid, first_row_error(failing))


def _all_positive(batch: Batch) -> bool:
    # A reduction of one number costs more than the number.
    return int(batch.diffs[0] if len(batch) == 1 else batch.diffs.min(initial=1)) > 0


def _positive(batch: Batch) -> Batch:
    return batch.take(np.flatnonzero(batch.diffs > 0))


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
