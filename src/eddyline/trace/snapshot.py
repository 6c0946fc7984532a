"""Reads of a trace as it stood at one moment; any thread, no locks.

A snapshot holds every update below ``upper``.  It answers exactly for times at or past ``since``: below that, times
have been advanced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.kernels.rows import OVERFLOW, pairs_equal, walk_groups
from eddyline.kernels.search import locate, probe, seek
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.columns import SHORT_ROWS, cell_kinds, describe, gather_columns
from eddyline.trace.merge import Merge, RunSet
from eddyline.trace.run import Layout, Run, Uint64s

__all__ = ["Matches", "OrderedRows", "Snapshot"]

_SLICE_ROWS: Final = 1 << 16
_FIRST_PIECE_ROWS: Final = 256
#: so many keys in all runs are a lookup, not a batch
_LOOKUP_ROWS: Final = 16
#: room for so many matches of each key at first
_MATCHES_PER_KEY: Final = 8
_LARGEST_PIECE_ROWS: Final = 1 << 20


class Matches(NamedTuple):
    """Updates of the trace whose key equals that of a probe; ``probe_rows`` ascends."""

    probe_rows: Int64s
    columns: tuple[pa.Array, ...]
    times: Int64s
    diffs: Int64s

    def __len__(self) -> int:  # the number of matches, not of fields
        return len(self.probe_rows)


class OrderedRows(NamedTuple):
    """The first rows of groups: ``groups`` ascends, rows of a group in ORDER BY order, multiplicities positive."""

    groups: Int64s
    columns: tuple[pa.Array, ...]
    multiplicities: Int64s
    #: updates passed that belong to rows no longer there; give them to ``Trace.add_debt``
    dead_rows: int


def _describe_keys(layout: Layout, columns: Sequence[pa.Array], types: Sequence[SqlType]) -> Int64s:
    """int64[1, key columns, WIDTH]; ValueError if the columns do not have the layout of the key's."""
    kinds = cell_kinds(types)
    wanted = [layout.types[c] for c in layout.key]
    if list(types) != wanted and (
        kinds != cell_kinds(wanted) or any(a.scale != b.scale for a, b in zip(types, wanted, strict=True))
    ):
        raise ValueError(f"key columns of types {tuple(map(str, types))} cannot match {tuple(map(str, wanted))}")
    return describe(columns, kinds)[None]


class _Probe:
    """The kernel's view of a probe batch."""

    def __init__(
        self,
        runs: RunSet,
        *,
        columns: Sequence[pa.Array],
        types: Sequence[SqlType],
        hashes: Uint64s,
        below: Frontier,
        null_safe: Sequence[bool],
    ) -> None:
        self.runs = runs
        self.columns = columns  # keeps the described buffers alive
        self.keys = _describe_keys(runs.layout, columns, types)
        self.hashes = np.ascontiguousarray(hashes, np.uint64)
        self.below = below
        self.null_safe = np.array(null_safe, np.uint8)
        self.cursors = np.zeros(len(runs.runs), np.int64)
        self.state = np.array((0, 0, -1), np.int64)
        self.done = False

    def candidates(self, capacity: int) -> Int64s:
        """int64[5, m], m <= capacity: probe row, run, row, time, diff of the next candidates."""
        out = np.empty((5, capacity), np.int64)
        runs = self.runs
        short = capacity <= _FIRST_PIECE_ROWS and len(self.hashes) <= _LOOKUP_ROWS
        count = (probe.short if short else probe)(
            runs.heads, self.keys, self.hashes, self.null_safe, self.below, self.cursors, self.state, *out
        )
        self.done = int(self.state[0]) == len(self.hashes)
        return out[:, :count]

    def verified(self, found: Int64s) -> Int64s:
        """Those candidates whose keys are equal indeed."""
        if not self.runs.layout.key or found.shape[1] == 0:
            return found
        equal = np.empty(found.shape[1], np.uint8)
        equals = pairs_equal.short if found.shape[1] <= SHORT_ROWS else pairs_equal
        equals(self.keys, found[0], self.runs.key_descs, found[1], found[2], self.null_safe, 0, equal)
        matching = equal.view(np.bool_)
        return found if matching.all() else found[:, matching]

    def matches(self, found: Int64s, picked: Sequence[int] | None = None) -> Matches:
        """With all columns, or those ``picked``."""
        layout = self.runs.layout
        found = np.ascontiguousarray(found)
        skip, types, descs = len(layout.order), layout.types, self.runs.descs
        if picked is not None and len(picked) < len(types):
            types = tuple(types[c] for c in picked)
            descs = descs.take([skip + c for c in picked], axis=1)
            skip = 0
        columns = gather_columns(types, cell_kinds(types), descs, skip, found[1], found[2])
        return Matches(found[0], columns, found[3], found[4])


class Snapshot:
    """An immutable set of runs with the frontiers it was taken at."""

    __slots__ = ("_set", "layout", "since", "upper")

    def __init__(self, layout: Layout, runs: RunSet, upper: Frontier, since: Frontier) -> None:
        self.layout = layout
        self._set = runs
        self.upper = upper
        self.since = since

    @property
    def runs(self) -> tuple[Run, ...]:
        """Oldest first; their intervals do not overlap."""
        return self._set.runs

    @property
    def stacked(self) -> RunSet:
        """The runs as kernels see them."""
        return self._set

    @property
    def rows(self) -> int:
        """Updates held."""
        return self._set.rows

    def probe(
        self,
        key_columns: Sequence[pa.Array],
        key_types: Sequence[SqlType],
        key_hashes: Uint64s,
        *,
        below: Frontier,
        null_safe: Sequence[bool],
    ) -> Matches:
        """Every update with time < ``below`` whose key equals (SQL) that of a probe row, all columns gathered.

        ``key_hashes``: the hasher's, of ``key_columns``; sorted ascending is quickest.  A NULL in a key that is not
        ``null_safe`` matches nothing.  ValueError if the key columns' layouts are not those of the arrangement's key.
        O(probes × runs + matches); the result is not bounded, see ``probe_pieces``.
        """
        search = _Probe(
            self._set,
            columns=key_columns,
            types=key_types,
            hashes=key_hashes,
            below=below,
            null_safe=null_safe,
        )
        capacity = max(_FIRST_PIECE_ROWS, 2 * len(key_hashes))
        pieces = [search.candidates(capacity)]
        while not search.done:
            capacity = min(2 * capacity, _LARGEST_PIECE_ROWS)
            pieces.append(search.candidates(capacity))
        found = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        return search.matches(search.verified(found))

    def probe_pieces(
        self,
        key_columns: Sequence[pa.Array],
        key_types: Sequence[SqlType],
        key_hashes: Uint64s,
        *,
        below: Frontier,
        null_safe: Sequence[bool],
        max_rows: int,
        picked: Sequence[int] | None = None,
    ) -> Iterator[Matches]:
        """The matches of ``probe`` in the same order, in pieces of at most ``max_rows``: a key with millions of matches
        comes in many.  A caller may drop the iterator, or keep it between its own activations.  The first piece is
        of a few matches a key, the next ones grow.  ``picked``: the columns that the matches are wanted with, by
        default all.
        """
        search = _Probe(
            self._set,
            columns=key_columns,
            types=key_types,
            hashes=key_hashes,
            below=below,
            null_safe=null_safe,
        )
        capacity = min(max(_FIRST_PIECE_ROWS, _MATCHES_PER_KEY * len(key_hashes)), max_rows)
        while not search.done:
            found = search.verified(search.candidates(capacity))
            capacity = min(4 * capacity, max_rows)
            if found.shape[1]:
                yield search.matches(found, picked)

    def few(
        self,
        key_columns: Sequence[pa.Array],
        key_types: Sequence[SqlType],
        key_hashes: Uint64s,
        *,
        below: Frontier,
        most_rows: int,
    ) -> Matches | None:
        """As ``probe`` for keys without NULLs; None if there are more than ``most_rows`` candidates, which is found out
        without a copy.
        """
        search = _Probe(
            self._set,
            columns=key_columns,
            types=key_types,
            hashes=key_hashes,
            below=below,
            null_safe=(False,) * len(key_columns),
        )
        found = search.candidates(min(max(_FIRST_PIECE_ROWS, 2 * len(key_hashes)), most_rows))
        if not search.done:
            more = search.candidates(most_rows - found.shape[1]) if most_rows > found.shape[1] else found[:, :0]
            if not search.done:
                return None
            found = np.concatenate((found, more), axis=1)
        return search.matches(search.verified(found))

    def keys_equal(
        self, key_columns: Sequence[pa.Array], key_types: Sequence[SqlType], row: int, run: int, start: int, stop: int
    ) -> npt.NDArray[np.bool_]:
        """bool[stop - start]: which rows of run number ``run`` have the key in ``row`` of ``key_columns``, no NULLs."""
        rows = stop - start
        if not self.layout.key:
            return np.ones(rows, np.bool_)
        keys = _describe_keys(self.layout, key_columns, key_types)
        equal = np.empty(rows, np.uint8)
        null_safe = np.zeros(len(key_columns), np.uint8)
        pairs_equal(
            keys,
            np.full(rows, row),
            self._set.key_descs,
            np.full(rows, run),
            np.arange(start, stop),
            null_safe,
            0,
            equal,
        )
        return equal.view(np.bool_)

    def ordered_group(
        self,
        key_columns: Sequence[pa.Array],
        key_types: Sequence[SqlType],
        key_hashes: Uint64s,
        *,
        below: Frontier,
        limits: Int64s | None,
        starts: Uint64s | None = None,
    ) -> OrderedRows:
        """The first rows of each group in the layout's ORDER BY (ties: canonical order), all groups in one call.

        ``limits``: int64[groups], counted in multiplicities (the last row of a group may exceed it), None: all rows.
        Multiplicities are sums of the diffs with time < ``below``; rows whose sum is not positive are passed over.
        NULL keys are equal.  ``starts``: uint64[groups], prefixes (``sort_prefix`` of the first ORDER BY item): rows
        with a smaller one are skipped by search.  A caller that knows a group's old first row starts there, or at the
        least changed row if that is smaller: what lay before is dead, so a deleted extreme costs no walk.
        O(groups × runs × log rows + rows walked × runs at worst).
        """
        groups = len(key_hashes)
        if limits is None:
            limits = np.full(groups, np.iinfo(np.int64).max)
        runs, layout = self._set, self.layout
        hashes = np.ascontiguousarray(key_hashes, np.uint64)
        keys = _describe_keys(layout, key_columns, key_types)
        positions = np.empty((groups, len(runs.runs)), np.int64)
        locate(runs.heads, hashes, positions)
        if starts is not None:
            seek(runs.heads, hashes, np.ascontiguousarray(starts, np.uint64), positions)
        order = np.empty(len(runs.runs), np.int64)
        state = np.zeros(3, np.int64)
        capacity = int(min(np.minimum(limits, 64).sum() + 64, _LARGEST_PIECE_ROWS))
        pieces = []
        while True:
            out = np.empty((4, capacity), np.int64)
            state[1] = 0
            status = walk_groups(
                runs.heads,
                runs.descs,
                runs.key_descs,
                keys,
                hashes,
                np.ascontiguousarray(limits, np.int64),
                below,
                positions.copy(),
                order,
                state,
                *out,
            )
            if status == OVERFLOW:
                raise make_error("22003", "row multiplicity out of range")
            pieces.append(out[:, : int(state[1])])
            if status == 1:
                break
            capacity *= 2
        found = np.ascontiguousarray(pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1))
        columns = gather_columns(
            layout.types, cell_kinds(layout.types), runs.descs, len(layout.order), found[1], found[2]
        )
        return OrderedRows(found[0], columns, found[3], int(state[2]))

    def scan(self, *, below: Frontier) -> Iterator[Batch]:
        """The updates with time < ``below`` in slices of at most 64 Ki rows, unordered, not consolidated."""
        for run in self.runs:
            if run.lower >= below:
                continue
            whole = run.batch()
            for start in range(0, len(run), _SLICE_ROWS):
                piece = whole.slice(start, min(start + _SLICE_ROWS, len(run)))
                # Bounds do not tell: rows of an open time may stand in the trace ahead of its upper.
                if int(piece.times.max()) >= below:
                    piece = piece.take(np.flatnonzero(piece.times < below))
                if len(piece):
                    yield piece

    def read_at(self, time: Time) -> Batch:
        """The collection at ``time``, consolidated: every row once, with its multiplicity.

        ValueError unless since <= ``time`` < upper.  O(rows).
        """
        if not self.since <= time < self.upper:
            raise ValueError(f"time {time} outside [{self.since}, {self.upper})")
        if not self.runs:
            return Batch.empty(self.layout.types)
        merge = Merge(self.layout, self.runs, Frontier(time), below=Frontier(time + 1), set_=self._set)
        merge.work(self.rows + 1)
        times, diffs = merge.updates()
        return Batch(self.layout.types, merge.columns(), times, diffs)
