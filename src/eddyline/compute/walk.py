"""The content of a trace at one time, or that of some of its keys, in bounded slices of whole rows.

Runs are sorted by (key hash, value hash), and identical rows agree in both.  A range of that order is therefore cut
out of every run by binary search and netted by itself: the slices together are the content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.net import net_updates
from eddyline.trace.run import Run, Uint64s
from eddyline.trace.snapshot import Snapshot
from eddyline.trace.totals import MOST_ROWS, read_runs, settled

__all__ = ["Pace", "walk_at", "walk_keys"]

_FIRST_ROWS: Final = 4096
_LEAST_ROWS: Final = 1024
_SLICE_NS: Final = 5_000_000


class Pace:
    """How many updates the next slice has: as many as take about 5 ms, at most ``most_rows``, few at first.

    ``clock``: ns; without one slices grow as if they took no time.
    """

    __slots__ = ("_began", "_clock", "_most_rows", "rows")

    def __init__(self, most_rows: int, clock: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._most_rows = most_rows
        self._began = 0
        self.rows = min(_FIRST_ROWS, most_rows)

    def begin(self) -> None:
        """A slice of ``rows`` begins."""
        self._began = self._clock()

    def end(self) -> None:
        """It is done with: the next one is chosen by what it took."""
        taken_ns = max(1, self._clock() - self._began)
        wanted = min(4 * self.rows, self.rows * _SLICE_NS // taken_ns)
        # Never so few that a thread which was preempted in one slice crawls through the next ones.
        self.rows = min(max(wanted, _LEAST_ROWS), self._most_rows)


class _Range(NamedTuple):
    """Rows ``start <= i < stop`` of the snapshot's run with that number."""

    number: int
    run: Run
    start: int
    stop: int


class _Key(NamedTuple):
    """Row ``row`` of ``columns``, for the rows of other keys that have its hash."""

    snapshot: Snapshot
    columns: Sequence[pa.Array]
    types: Sequence[SqlType]
    row: int

    def equals(self, part: _Range) -> npt.NDArray[np.bool_]:
        return self.snapshot.keys_equal(self.columns, self.types, self.row, part.number, part.start, part.stop)


def walk_at(snapshot: Snapshot, time: Time, pace: Pace, hasher: Hasher) -> Iterator[Batch]:
    """The rows at ``time``, each in one slice only, in slices of about ``pace.rows`` updates.

    Requires since <= ``time``, and a layout without ORDER BY (unchecked).  Rows that are gone do not appear, negative
    multiplicities do; a row that was never retracted may come apart, its multiplicities add up.  A slice may be empty;
    it is longer only where more updates have equal hashes.
    Cost: per slice O(its updates, and runs × log(rows)); what fits into one slice, and has been read before, costs the
    updates that have come since.
    """
    readable = _readable(snapshot, time)
    if all(len(run) <= MOST_ROWS for _, run in readable) and any(run.retracted.all for _, run in readable):
        runs = [run for _, whole in readable if (run := settled(whole, time)) is not None]
        if sum(map(len, runs)) <= pace.rows:
            return read_runs(snapshot.layout, runs, time)
    ranges = [_Range(number, run, 0, len(run)) for number, run in readable]
    return _slices(snapshot, ranges, time, pace, hasher)


def walk_keys(
    snapshot: Snapshot,
    time: Time,
    pace: Pace,
    hasher: Hasher,
    *,
    columns: Sequence[pa.Array],
    types: Sequence[SqlType],
    hashes: Uint64s,
) -> Iterator[Batch]:
    """As ``walk_at``, those rows whose key equals one of ``columns``' rows, which are distinct and without NULLs.

    ``hashes``: of those.  Keys with few updates share slices, one with many has slices of its own.
    """
    runs = _readable(snapshot, time)
    order = np.argsort(hashes, kind="stable")
    sought = hashes[order]
    starts = [np.searchsorted(run.key_hashes, sought, "left") for _, run in runs]
    stops = [np.searchsorted(run.key_hashes, sought, "right") for _, run in runs]
    totals = sum((b - a for a, b in zip(starts, stops, strict=True)), np.zeros(len(sought), np.int64))
    ends = np.cumsum(totals)
    key = 0
    while key < len(sought):
        if totals[key] > pace.rows:
            ranges = [
                _Range(number, run, int(start[key]), int(stop[key]))
                for (number, run), start, stop in zip(runs, starts, stops, strict=True)
            ]
            wanted = _Key(snapshot, columns, types, int(order[key]))
            yield from _slices(snapshot, ranges, time, pace, hasher, wanted)
            key += 1
            continue
        before = int(ends[key] - totals[key])
        after = max(key + 1, int(np.searchsorted(ends, before + pace.rows, "right")))
        yield _few_of_each(snapshot, time, hasher, columns, types, hashes, order[key:after])
        key = after


def _few_of_each(
    snapshot: Snapshot,
    time: Time,
    hasher: Hasher,
    columns: Sequence[pa.Array],
    types: Sequence[SqlType],
    hashes: Uint64s,
    keys: Int64s,
) -> Batch:
    index = pa.array(keys)
    matches = snapshot.probe(
        tuple(c.take(index) for c in columns),
        types,
        hashes[keys],
        below=Frontier(time + 1),
        null_safe=(False,) * len(columns),
    )
    held = snapshot.layout.types
    found = Batch(held, tuple(matches.columns), np.full(len(matches), time, np.int64), matches.diffs)
    return _netted(held, [found], hasher)


def _readable(snapshot: Snapshot, time: Time) -> list[tuple[int, Run]]:
    """The runs that have anything at ``time``, with their numbers."""
    return [(n, r) for n, r in enumerate(snapshot.runs) if len(r) and r.lower <= time]


def _slices(
    snapshot: Snapshot, ranges: Sequence[_Range], time: Time, pace: Pace, hasher: Hasher, key: _Key | None = None
) -> Iterator[Batch]:
    """The rows in ``ranges``, which lie between the same hashes in all runs; with ``key`` only those that have it."""
    if not ranges:
        return
    guide = max(ranges, key=lambda r: r.stop - r.start)
    share, whole = guide.stop - guide.start, sum(r.stop - r.start for r in ranges)
    starts = [r.start for r in ranges]
    position = guide.start
    while any(start < r.stop for start, r in zip(starts, ranges, strict=True)):
        position = min(guide.stop, _next_hash(guide.run, position + max(1, pace.rows * share // whole)))
        last = position == guide.stop
        stops = [r.stop if last else _first_at(r.run, guide.run, position) for r in ranges]
        parts = [r._replace(start=a, stop=b) for r, a, b in zip(ranges, starts, stops, strict=True) if b > a]
        pieces = [_updates(part, time, key) for part in parts]
        starts = stops
        yield _netted(snapshot.layout.types, [p for p in pieces if len(p)], hasher)


def _netted(types: tuple[SqlType, ...], pieces: list[Batch], hasher: Hasher) -> Batch:
    if any(int(p.diffs.min(initial=1)) < 0 for p in pieces):
        pieces = list(net_updates(types, pieces, hasher))
    return Batch.concat(types, pieces)


def _next_hash(run: Run, position: int) -> int:
    """The first row at or past ``position`` whose hashes differ from those of the row before it."""
    if position >= len(run):
        return len(run)
    key, value = run.key_hashes[position - 1], run.value_hashes[position - 1]
    end = position + int(np.searchsorted(run.key_hashes[position:], key, "right"))
    return position + int(np.searchsorted(run.value_hashes[position:end], value, "right"))


def _first_at(run: Run, guide: Run, position: int) -> int:
    """The first row of ``run`` that is not below the guide's row at ``position``."""
    if run is guide:
        return position
    key, value = guide.key_hashes[position], guide.value_hashes[position]
    low = int(np.searchsorted(run.key_hashes, key, "left"))
    high = low + int(np.searchsorted(run.key_hashes[low:], key, "right"))
    return low + int(np.searchsorted(run.value_hashes[low:high], value, "left"))


def _updates(part: _Range, time: Time, key: _Key | None) -> Batch:
    piece = part.run.batch().slice(part.start, part.stop)
    wanted = None if int(piece.times.max()) <= time else piece.times <= time
    if key is not None:
        equal = key.equals(part)
        wanted = equal if wanted is None else equal & wanted
    if wanted is not None and not wanted.all():
        piece = piece.take(np.flatnonzero(wanted))
    return Batch(piece.types, piece.columns, np.full(len(piece), time, np.int64), piece.diffs)
