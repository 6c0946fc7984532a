"""The first rows of each group in ORDER BY order; ties break by canonical row order.

The input is kept in ORDER BY order within each group.  A change behind the last row shown, while the window is full,
costs a look at what is shown.  Any other change walks the group from its start to the end of the window.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.recompute import GroupOutput, Groups, RecomputeOperator, UInt64s
from eddyline.compute.stream import Output, Stream
from eddyline.expr.ir import SortKey
from eddyline.plan.dataflow import TopK
from eddyline.repr.batch import Batch, Int64s, concat_arrays
from eddyline.repr.taking import take_values
from eddyline.trace.order import order_rows, sort_prefix
from eddyline.trace.run import Layout

__all__ = ["TopKOperator", "rows_in_window"]


def rows_in_window(groups: Int64s, multiplicities: Int64s, offset: int, stop: int | None) -> tuple[Int64s, Int64s]:
    """(positions of the rows, how often each) that have a place ``offset <= i < stop`` in their group.

    The rows stand by ascending group, in order inside; ``stop`` None: no end.
    """
    count = multiplicities if stop is None else np.minimum(multiplicities, stop)
    ends = np.cumsum(count)
    starts = ends - count
    first = np.searchsorted(groups, groups)  # the first row of the row's group
    base = starts[first]
    low = np.maximum(starts - base, offset)
    high = ends - base if stop is None else np.minimum(ends - base, stop)
    kept = np.flatnonzero(high > low)
    return kept, (high - low)[kept]


class TopKOperator(RecomputeOperator):
    """Rows ``offset <= i < offset + limit`` of each group, equal rows counted as often as they occur."""

    def __init__(self, name: str, input: Stream, node: TopK, output: Output, context: OperatorContext) -> None:
        # Without an ORDER BY the canonical row order decides: that of the columns, left to right.
        self._order = node.order or ((SortKey(0),) if node.types else ())
        layout = Layout(node.types, node.group, self._order)
        super().__init__(name, input, output, context, layout=layout, types=node.types, output_key=node.group)
        self._limit = node.limit
        self._offset = node.offset

    def compute(self, groups: Groups, starts: UInt64s | None) -> GroupOutput:
        stop = None if self._limit is None else self._offset + self._limit
        limits = None if stop is None else np.full(groups.count, stop, np.int64)
        found = self.state.first_rows(groups.keys, groups.hashes, limits, starts)
        kept, diffs = rows_in_window(found.groups, found.multiplicities, self._offset, stop)
        return GroupOutput(found.groups[kept], tuple(take_values(c, kept) for c in found.columns), diffs)

    def starts(self, groups: Groups, rows: Batch, of_row: Int64s, shown: GroupOutput) -> UInt64s | None:
        """The least prefix shown or changed: what stands before is gone, and need not be walked to find that out.

        Without an offset what was shown begins with the group's first row, and a group that showed nothing had none.
        """
        if self._offset or self._limit == 0 or not self._order:
            return None
        item = self._order[0]
        least = np.full(groups.count, np.iinfo(np.uint64).max, np.uint64)
        for numbers, column in ((of_row, rows.columns[item.column]), (shown.groups, shown.columns[item.column])):
            if not len(numbers):
                continue
            prefixes = sort_prefix(column, self.types[item.column], desc=item.desc, nulls_first=item.nulls_first)
            np.minimum.at(least, numbers, prefixes)
        return least

    def known(self, groups: Groups, rows: Batch, of_row: Int64s, numbers: Int64s) -> GroupOutput | None:
        """A row that comes, and stands before the one that its group showed, is the group's first."""
        alone = self._limit == 1 and not self._offset and len(rows) == groups.count
        if not alone or int(rows.diffs.min()) <= 0:
            return None
        row_of = np.empty(groups.count, np.int64)
        row_of[of_row] = np.arange(groups.count)
        picked = row_of[numbers]
        columns = tuple(take_values(c, picked) for c in rows.columns)
        return GroupOutput(np.arange(len(numbers)), columns, np.ones(len(numbers), np.int64))

    def affected(self, groups: Groups, rows: Batch, of_row: Int64s, shown: GroupOutput) -> npt.NDArray[np.bool_]:
        if self._limit is None:
            return np.ones(groups.count, np.bool_)
        if self._limit == 0:
            return np.zeros(groups.count, np.bool_)
        if not len(shown.groups):
            return np.ones(groups.count, np.bool_)
        full = np.bincount(shown.groups, weights=shown.diffs, minlength=groups.count) >= self._limit
        if not full.any():
            return ~full
        # Shown rows come last, so that an update equal to the last one shown stands before it.
        columns = [concat_arrays([a, b]) for a, b in zip(rows.columns, shown.columns, strict=True)]
        total = len(rows) + len(shown.groups)
        rank = np.empty(total, np.int64)
        rank[order_rows(columns, self.types, self._order, total)] = np.arange(total)
        last = np.full(groups.count, -1, np.int64)
        np.maximum.at(last, shown.groups, rank[len(rows) :])
        inside = rank[: len(rows)] < last[of_row]
        result = ~full
        result[of_row[inside]] = True
        return result
