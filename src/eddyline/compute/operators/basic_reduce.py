"""GROUP BY with aggregates that are recomputed from the group's rows: string_agg, array_agg."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.recompute import GroupOutput, Groups, RecomputeOperator, UInt64s
from eddyline.compute.operators.reduce import ArgumentColumns
from eddyline.compute.operators.values import booleans_of, valid_of
from eddyline.compute.stream import Output, Stream
from eddyline.errors import InternalError
from eddyline.expr.array_layout import arrays_of
from eddyline.expr.ir import AggregateCall, SortKey
from eddyline.plan.dataflow import Reduce
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT, arrow_type
from eddyline.trace.order import order_rows
from eddyline.trace.run import Layout, consolidate

__all__ = ["BasicReduceOperator"]


class _Listing(NamedTuple):
    """Positions among the columns kept: value, delimiter (of string_agg), filter, then the ORDER BY items."""

    call: AggregateCall
    value: int
    delimiter: int | None
    condition: int | None
    order: tuple[int, ...]


class BasicReduceOperator(RecomputeOperator):
    """Output row: the key columns, then one column per aggregate of ``node``.

    Rows of equal ORDER BY values follow each other in canonical order of what the aggregate reads.
    Cost: proportional to the groups that change.
    """

    def __init__(self, name: str, input: Stream, node: Reduce, output: Output, context: OperatorContext) -> None:
        keys = len(node.key)
        self._arguments = ArgumentColumns(node.key, node.aggregates, node.types[:keys], node.names, node.view)
        self._aggregates: list[_Listing] = []
        for call, (args, condition) in zip(node.aggregates, self._arguments.places, strict=True):
            if call.func not in ("string_agg", "array_agg"):
                raise InternalError(f"aggregate {call.func} is not recomputed")
            order = tuple(keys + self._arguments.place(expr) for expr, _, _ in call.order_by)
            second = keys + args[1] if len(args) > 1 else None
            where = None if condition is None else keys + condition
            if call.func == "array_agg":  # whose second argument is a condition too
                self._aggregates.append(_Listing(call, keys + args[0], None, second if where is None else where, order))
            else:
                self._aggregates.append(_Listing(call, keys + args[0], second, where, order))
        self._global = False
        if node.global_row:
            self._global = context.owns_hash(int(context.hasher.hash_rows((), (), 1)[0]))
        key = tuple(range(keys))
        layout = Layout(self._arguments.types, key)
        super().__init__(name, input, output, context, layout=layout, types=node.types, output_key=key)

    def arguments(self, batch: Batch) -> Batch:
        rows, errors = self._arguments.evaluate(batch)
        self.output.send_errors(errors)
        return rows

    def compute(self, groups: Groups, starts: UInt64s | None) -> GroupOutput:
        found = self.state.rows_of(groups.keys, groups.hashes)
        # The group number stands where the time would: rows cancel within their group.
        rows = consolidate(Batch(self.state.types, found.columns, found.probe_rows, found.diffs), self.context.hasher)
        counts = np.zeros(groups.count, np.int64)
        np.add.at(counts, rows.times, rows.diffs)
        there = np.flatnonzero(counts > 0) if not self._global else np.arange(groups.count)
        index = pa.array(there)
        columns = [c.take(index) for c in groups.keys]
        columns += [self._listed(aggregate, rows, groups.count).take(index) for aggregate in self._aggregates]
        return GroupOutput(there, tuple(columns), np.ones(len(there), np.int64))

    def _listed(self, aggregate: _Listing, rows: Batch, groups: int) -> pa.Array:
        """One value per group."""
        used = (
            rows.diffs > 0
            if aggregate.delimiter is None
            else valid_of(rows.columns[aggregate.value]) & (rows.diffs > 0)
        )
        if aggregate.condition is not None:
            used &= booleans_of(rows.columns[aggregate.condition])
        part = rows.take(np.flatnonzero(used))
        order = self._order(aggregate, part)
        order = np.repeat(order, part.diffs[order])
        starts = np.searchsorted(part.times[order], np.arange(groups + 1))
        values = part.columns[aggregate.value].take(pa.array(order))
        if aggregate.delimiter is None:
            return arrays_of(values, starts, part.types[aggregate.value], starts[:-1] < starts[1:])
        delimiters = part.columns[aggregate.delimiter].take(pa.array(order))
        return _joined(values, delimiters, starts, arrow_type(aggregate.call.type))

    def _order(self, aggregate: _Listing, rows: Batch) -> Int64s:
        """The rows by group, then ORDER BY, then canonical order of what the aggregate reads."""
        last = () if aggregate.delimiter is None else (aggregate.delimiter,)
        positions = (*aggregate.order, aggregate.value, *last)
        columns = [pa.array(rows.times), *(rows.columns[p] for p in positions)]
        types = [BIGINT, *(rows.types[p] for p in positions)]
        items = [SortKey(1 + i, desc, first) for i, (_, desc, first) in enumerate(aggregate.call.order_by)]
        return order_rows(columns, types, [SortKey(0), *items], len(rows))


def _joined(values: pa.Array, delimiters: pa.Array, starts: Int64s, layout: pa.DataType) -> pa.Array:
    """The values of each group with their delimiters between them; the first one's is not used."""
    opens = np.zeros(len(values), np.bool_)
    opens[starts[:-1][starts[:-1] < starts[1:]]] = True
    empty = pa.scalar(b"" if pa.types.is_large_binary(layout) else "", layout)
    between = pc.if_else(pa.array(opens), empty, delimiters.fill_null(empty))
    return _concatenated(pc.binary_join_element_wise(between, values, empty), starts, layout)


def _concatenated(pieces: pa.Array, starts: Int64s, layout: pa.DataType) -> pa.Array:
    """Pieces ``starts[g] <= i < starts[g + 1]`` as one value for each group, NULL for none.  Shares the bytes."""
    groups = len(starts) - 1
    if not len(pieces):
        return pa.nulls(groups, layout)
    _, offsets_buffer, data = pieces.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, count=len(pieces) + 1, offset=pieces.offset * 8)
    bounds = np.ascontiguousarray(offsets[starts])
    present = pa.array(starts[:-1] < starts[1:])
    return pa.Array.from_buffers(layout, groups, [present.buffers()[1], pa.py_buffer(bounds), data])
