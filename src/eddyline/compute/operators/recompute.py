"""The frame of operators that recompute a group's output rows when the group changes: top-k, string_agg, array_agg.

The output shown for each group is kept (where there is no key it is one group's, as it was computed); when a group
changes at a time, its output is computed anew and the difference is emitted.  Where a piece holds several times, round
*r* takes every group's *r*-th distinct time, all groups at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.group_table import group_rows
from eddyline.compute.operators.keyed_state import KeyedState
from eddyline.compute.operators.sealed import SealedOperator
from eddyline.compute.operators.segments import cut_segments
from eddyline.compute.state_size import StateSize, size_of_traces
from eddyline.compute.stream import Output, Stream
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.taking import take_values
from eddyline.repr.types import SqlType
from eddyline.trace.run import Layout, consolidate

UInt64s = npt.NDArray[np.uint64]

__all__ = ["GroupOutput", "Groups", "RecomputeOperator"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Distinct keys, in the order of their numbers, and their hashes."""

    keys: tuple[pa.Array, ...]
    hashes: UInt64s

    @property
    def count(self) -> int:
        return len(self.hashes)

    def take(self, numbers: Int64s) -> Groups:
        return Groups(tuple(take_values(c, numbers) for c in self.keys), self.hashes[numbers])


class GroupOutput(NamedTuple):
    """Output rows: the group each belongs to, the columns, the multiplicities."""

    groups: Int64s
    columns: tuple[pa.Array, ...]
    diffs: Int64s


class RecomputeOperator(SealedOperator):
    """``output_key``: where the columns of ``layout.key`` stand in the output row."""

    PIECE_ROWS = 16_384  # sorting and merging them costs several times as much as adding them up

    def __init__(
        self,
        name: str,
        input: Stream,
        output: Output,
        context: OperatorContext,
        *,
        layout: Layout,
        types: tuple[SqlType, ...],
        output_key: tuple[int, ...],
    ) -> None:
        super().__init__(name, input, output, context)
        self.state = KeyedState(layout, context.hasher)
        self._shown = KeyedState(Layout(types, output_key), context.hasher) if output_key else None
        #: what the only group shows, where there is no key
        self._last = GroupOutput(np.empty(0, np.int64), Batch.empty(types).columns, np.empty(0, np.int64))
        self.types = types
        #: the last time of the pieces so far
        self._reached = -1
        #: whether no earlier piece had updates of a time of this one: what ``state`` holds is somebody's input
        self._whole = True
        self._key = layout.key
        self._key_types = tuple(layout.types[k] for k in layout.key)

    @abstractmethod
    def compute(self, groups: Groups, starts: UInt64s | None) -> GroupOutput:
        """The output rows of the groups, from ``state``.  ``starts``: as ``starts`` gave them."""

    def starts(self, groups: Groups, rows: Batch, of_row: Int64s, shown: GroupOutput) -> UInt64s | None:
        """uint64[groups]: prefixes of the ``state``'s order before which no group has a row after ``rows``, given what
        was ``shown`` before; None: unknown, unless overridden."""
        return None

    def arguments(self, batch: Batch) -> Batch:
        """The rows that ``state`` keeps for a batch of input."""
        return batch

    def affected(self, groups: Groups, rows: Batch, of_row: Int64s, shown: GroupOutput) -> npt.NDArray[np.bool_]:
        """bool[groups]: which of them may show something else after ``rows``; always all, unless overridden."""
        return np.ones(groups.count, np.bool_)

    def known(self, groups: Groups, rows: Batch, of_row: Int64s, numbers: Int64s) -> GroupOutput | None:
        """The output rows of the affected groups ``numbers``, counted from 0, where ``rows`` alone say what they are;
        None, unless overridden: ``state`` is to be asked.  Asked only where no row stands negative in ``state``."""
        return None

    def absorb(self, batch: Batch) -> None:
        self.state.insert(self.arguments(batch))

    def publish(self) -> Iterator[None]:
        for keys in self.state.key_ranges(self._piece_rows) if self._key else [()]:
            groups, _ = self._groups(keys, len(keys[0]) if keys else 1)
            result = self.compute(groups, None)
            self._emit(result, np.full(groups.count, self.context.as_of, np.int64), None)
            yield

    def apply(self, batch: Batch) -> Iterator[None]:
        rows = self.arguments(batch)
        if not len(rows):
            return
        first, last = int(rows.times.min()), int(rows.times.max())
        self._whole, self._reached = first > self._reached, last
        groups, of_row = self._groups([rows.columns[k] for k in self._key], len(rows))
        if first == last:
            self._round(groups, rows, of_row, np.full(groups.count, first))
            yield
            return
        segments = cut_segments(of_row, groups.count, rows.times)
        rank = np.arange(len(segments)) - segments.starts[segments.group]
        rounds = int(rank.max()) + 1
        by_rank = rank[segments.of_row]
        order = np.argsort(by_rank, kind="stable")
        bounds = np.searchsorted(by_rank[order], np.arange(rounds + 1))
        for number in range(rounds):
            chosen = order[bounds[number] : bounds[number + 1]]
            in_round = np.flatnonzero(rank == number)
            part = groups if rounds == 1 else groups.take(segments.group[in_round])
            local = np.empty(groups.count, np.int64)
            local[segments.group[in_round]] = np.arange(len(in_round))
            piece = rows if rounds == 1 else rows.take(chosen)
            self._round(part, piece, local[of_row[chosen]] if rounds > 1 else of_row, segments.times[in_round])
            yield

    @property
    def states(self) -> tuple[KeyedState, ...]:
        """Those that merge."""
        return (self.state,) if self._shown is None else (self.state, self._shown)

    def state_size(self) -> StateSize:
        kept = size_of_traces(state.trace for state in self.states)
        size = sum(int(c.nbytes) for c in self._last.columns) + self._last.diffs.nbytes
        return StateSize(kept.records + len(self._last.diffs), kept.batches, kept.size + size, kept.capacity + size)

    def close(self) -> None:
        super().close()
        for state in self.states:
            state.close()

    def _groups(self, keys: Sequence[pa.Array], rows: int) -> tuple[Groups, Int64s]:
        hashes = self.state.hashes(keys, rows)
        of_row, leaders = group_rows(keys, self._key_types, hashes)
        groups = Groups(tuple(keys), hashes)
        return (groups if len(leaders) == len(hashes) else groups.take(leaders)), of_row

    def _round(self, groups: Groups, rows: Batch, of_row: Int64s, times: Int64s) -> None:
        """``times[g]``: the time at which group *g* takes its rows."""
        before = self._shown_of(groups)
        self.state.insert(rows)
        numbers = np.flatnonzero(self.affected(groups, rows, of_row, before))
        if not len(numbers):
            return
        known = self.known(groups, rows, of_row, numbers) if self._whole else None
        starts = None if known is not None else self.starts(groups, rows, of_row, before)
        if len(numbers) < groups.count:
            place = np.full(groups.count, -1, np.int64)
            place[numbers] = np.arange(len(numbers))
            kept = place[before.groups] >= 0
            picked = np.flatnonzero(kept)
            before = GroupOutput(
                place[before.groups[kept]], tuple(take_values(c, picked) for c in before.columns), before.diffs[kept]
            )
            groups, times = groups.take(numbers), times[numbers]
            starts = None if starts is None else starts[numbers]
        self._emit(self.compute(groups, starts) if known is None else known, times, before)

    def _shown_of(self, groups: Groups) -> GroupOutput:
        """What the groups show, each row once, by ascending group."""
        if self._shown is None:
            return self._last
        found = self._shown.rows_of(groups.keys, groups.hashes)
        if len(found) <= 1:  # nothing to cancel, nor to sort
            return GroupOutput(found.probe_rows, found.columns, found.diffs)
        # The group number stands where the time would: rows cancel within their group.
        rows = consolidate(Batch(self.types, found.columns, found.probe_rows, found.diffs), self.context.hasher)
        rows = rows.take(np.argsort(rows.times, kind="stable"))
        return GroupOutput(rows.times, rows.columns, rows.diffs)

    def _emit(self, after: GroupOutput, times: Int64s, before: GroupOutput | None) -> None:
        changes = Batch(self.types, after.columns, times[after.groups], after.diffs)
        if before is not None and len(before.groups):
            old = Batch(self.types, before.columns, times[before.groups], -before.diffs)
            changes = consolidate(Batch.concat(self.types, [old, changes]), self.context.hasher)
        if self._shown is None:
            self._last = after
        else:
            self._shown.insert(changes)
        self.output.send(changes)
