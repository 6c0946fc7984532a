"""The incremental inner equijoin of two arranged inputs.

The join is bilinear: each sealed interval of one input is matched with what the *other* input has consumed so far.
Of a pair of updates, the one consumed later finds the other; the pair comes out once, at the later of the two times.

Invariants:
I1  a trace is read only below the frontier that this operator's own queue of that input has consumed: a shared index
    may run ahead, and reading ahead would count pairs twice;
I2  the trace of an input is held one time below what both inputs have consumed.  Compaction then never moves a
    consumed update to the consumed frontier or past it (so I1 can tell by time alone), nor past the times that the
    other input has yet to bring (so the later of two times is exact);
I3  an input that is complete has no more to probe with, so the hold on the other one's trace is dropped;
I4  rows that an input's arrangement has in reserve (``operators.partner``) have keys that the other one's first
    interval does not have: before a later interval is matched, the rows of its keys are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import FrozenHandle
from eddyline.compute.operators.join_changes import Changes, JoinChanges
from eddyline.compute.operators.mfp import send_through
from eddyline.compute.operators.partner import fetch
from eddyline.compute.stream import ArrangedStream, Arrangement, Output
from eddyline.expr.ir import Mfp
from eddyline.expr.one_side import one_side
from eddyline.plan.dataflow import Join
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.taking import take_values
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.duplicates import all_ascend
from eddyline.trace.run import Uint64s
from eddyline.trace.snapshot import Matches, Snapshot
from eddyline.trace.trace import TraceHandle

__all__ = ["JoinOperator"]


class _Side:
    """One input: its queue, what of it is consumed, and the hold on its trace (None once it is dropped)."""

    def __init__(
        self, stream: ArrangedStream, other: ArrangedStream, node: Join, context: OperatorContext, *, is_left: bool
    ) -> None:
        trace = stream.arrangement.oks
        own, theirs = trace.layout.types, other.arrangement.oks.layout.types
        split = one_side(node.mfp, *((own, theirs) if is_left else (theirs, own)), is_left=is_left)
        matched = tuple(theirs[c] for c in split.other)
        self.is_left = is_left
        self._context = context
        self.stream = stream
        #: None: a read's snapshot of an index, which has no reserve
        self._arrangement = stream.arrangement if isinstance(stream.arrangement, Arrangement) else None
        self.consumed: Frontier = Frontier(MIN_TIME)
        self.changes = JoinChanges(trace.layout, split.own, context)
        self.key_types: tuple[SqlType, ...] = tuple(trace.layout.types[k] for k in trace.layout.key)
        #: the other input's columns, and what is done to pairs, where a change of this one is matched
        self.others: tuple[int, ...] = split.other
        self.mfp: Mfp = split.rest
        self.pair_types: tuple[SqlType, ...] = (*split.own.types, *matched) if is_left else (*matched, *split.own.types)
        self.handle: TraceHandle | FrozenHandle | None = trace.handle(
            since=Frontier(context.as_of), through=Frontier(MIN_TIME)
        )

    def snapshot(self) -> Snapshot | None:
        return None if self.handle is None else self.handle.snapshot()

    def fetch(self, hashes: Uint64s) -> Iterator[int]:
        """Gets the rows with those key hashes from the arrangement's reserve into its trace."""
        arrangement = self._arrangement
        if arrangement is not None and arrangement.reserve is not None:
            yield from fetch(arrangement, arrangement.reserve, hashes, self._context)

    def close(self) -> None:
        if self.handle is not None:
            self.handle.close()
            self.handle = None
        if self._arrangement is not None:
            self._arrangement.reserve = None  # nobody will ask for it


def _first_rows(side: _Side) -> int:
    """Updates in the next interval of an input."""
    return sum(len(run) for run in side.stream.sealed[0].runs)


class JoinOperator:
    """Emits left columns then right columns through ``node.mfp``; errors of either input pass unchanged.

    Cost: proportional to the updates that its result tells apart and their matches, however large the traces are.
    """

    def __init__(
        self,
        name: str,
        left: ArrangedStream,
        right: ArrangedStream,
        node: Join,
        output: Output,
        context: OperatorContext,
    ) -> None:
        self.name = name
        self._node = node
        self._output = output
        self._context = context
        self._left = _Side(left, right, node, context, is_left=True)
        self._right = _Side(right, left, node, context, is_left=False)
        #: the interval being joined, resumed at each activation
        self._work: Iterator[int] | None = None

    def step(self) -> bool:
        moved = False
        rows = 0
        while rows < self._context.budget_rows:
            if self._work is None:
                side = self._next_side()
                if side is None:
                    break
                self._work = self._join_interval(side)
            moved = True
            done = next(self._work, None)
            if done is None:
                self._work = None
            else:
                rows += done
        return moved

    def pending(self) -> bool:
        return self._work is not None or self._next_side() is not None

    def close(self) -> None:
        self._work = None
        self._left.close()
        self._right.close()

    def _next_side(self) -> _Side | None:
        """The input with an interval waiting whose consumed frontier is lower, so that neither runs far ahead.

        Of the two snapshots the larger one is first: it meets nothing, and the smaller one then probes it.
        """
        if not self._left.stream.sealed and not self._right.stream.sealed:
            return None
        ready = [s for s in (self._left, self._right) if s.stream.sealed]
        if max(self._left.consumed, self._right.consumed) == Frontier(MIN_TIME):
            return max(ready, key=_first_rows) if len(ready) == 2 else None
        return min(ready, key=lambda s: s.consumed, default=None)

    def _join_interval(self, side: _Side) -> Iterator[int]:
        """Joins the next interval of ``side``; yields the rows handled after each bounded piece."""
        sealed = side.stream.sealed.popleft()
        other = self._right if side is self._left else self._left
        if sealed.errors is not None:
            self._output.send_errors(sealed.errors.advanced(self._context.as_of))
        if sealed.runs and other.consumed > MIN_TIME and other.handle is not None:
            is_first = side.consumed == Frontier(MIN_TIME)
            for changes in side.changes.of(sealed):
                yield len(changes.batch)
                if not is_first:
                    yield from other.fetch(changes.hashes)
                snapshot = other.snapshot()
                if snapshot is not None:
                    yield from self._match(side, changes, snapshot, other.consumed)
        side.consumed = sealed.upper
        self._settle()

    def _settle(self) -> None:
        """Announces and releases what the consumed frontiers allow."""
        low = min(self._left.consumed, self._right.consumed)
        self._output.advance(low)
        for side, other in ((self._left, self._right), (self._right, self._left)):
            if side.handle is None:
                continue
            if other.consumed == EMPTY:
                side.close()
                continue
            held = max(self._context.as_of, low - 1)
            side.handle.move(Frontier(held), side.consumed)

    def _match(self, side: _Side, changes: Changes, snapshot: Snapshot, below: Frontier) -> Iterator[int]:
        if not len(changes.batch):
            return
        for matches in snapshot.probe_pieces(
            [changes.batch.columns[k] for k in side.changes.key],
            side.key_types,
            changes.hashes,
            below=below,
            null_safe=self._node.null_safe,
            max_rows=self._context.budget_rows,
            picked=side.others,
        ):
            self._emit(side, changes.batch, matches)
            yield len(matches)

    def _emit(self, side: _Side, changed: Batch, matches: Matches) -> None:
        mine = Batch(side.changes.types, changed.columns[: side.changes.picked], changed.times, changed.diffs)
        if not _each_once(matches.probe_rows, len(changed)):
            mine = mine.take(matches.probe_rows)
        columns = (*mine.columns, *matches.columns) if side.is_left else (*matches.columns, *mine.columns)
        times = np.maximum(mine.times, np.maximum(matches.times, self._context.as_of))
        self._send(side, columns, times, mine.diffs, matches.diffs)

    def _send(self, side: _Side, columns: tuple[pa.Array, ...], times: Int64s, left: Int64s, right: Int64s) -> None:
        fits = product_fits(left, right)
        diffs = left * right
        if fits is not None:
            bad = np.flatnonzero(~fits)
            self._output.send_errors(_multiplicity_errors(times[bad]))
            good = np.flatnonzero(fits)
            columns = tuple(take_values(c, good) for c in columns)
            times, diffs = times[good], diffs[good]
        if len(times):
            send_through(side.mfp, Batch(side.pair_types, columns, times, diffs), self._output)


def _each_once(probe_rows: Int64s, rows: int) -> bool:
    """Whether ascending ``probe_rows`` are 0 .. rows - 1."""
    return len(probe_rows) == rows and all_ascend(probe_rows)


def product_fits(left: Int64s, right: Int64s) -> npt.NDArray[np.bool_] | None:
    """None if every product is an int64; otherwise which are."""
    if len(left) == 0:
        return None
    if _extent(left) * _extent(right) < 2**63:
        return None
    # 2**62 leaves room for the rounding of the factors; products in between are refused as well.
    return np.asarray(np.abs(left.astype(np.float64) * right.astype(np.float64)) < 2.0**62)


def _extent(diffs: Int64s) -> int:
    return max(-int(diffs.min()), int(diffs.max()))


def _multiplicity_errors(times: Int64s) -> Batch:
    """One error per pair, for good: a product that cannot be stored cannot be taken back either."""
    rows = len(times)
    texts = ("22003", "multiplicity out of range", "join", "", "")
    columns = tuple(pa.array([text] * rows, pa.large_string()) for text in texts)
    return Batch(ERR_TYPES, columns, times, np.ones(rows, np.int64))
