"""GROUP BY with accumulable aggregates: a private table of accumulators.

Each piece of updates is cut into *segments*, one per (group, time).  The table's states before and after each segment
give the rows that go and the rows that come at its time.  Cost: proportional to the updates, whatever the groups hold.
A group is there while it has rows; a global group always is.  Where an aggregate has no value (overflow), the group
shows an error in place of its row, until a later state has one again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.accumulators import (
    Accumulator,
    BooleanAccumulator,
    CountAccumulator,
    IntegerSum,
)
from eddyline.compute.operators.bit_accumulators import BitAccumulator
from eddyline.compute.operators.float_accumulators import FloatDeviation, FloatSum
from eddyline.compute.operators.group_table import GroupTable, UInt64s
from eddyline.compute.operators.interval_accumulators import IntervalSum
from eddyline.compute.operators.key_order import KeyOrder
from eddyline.compute.operators.numeric_accumulators import DeviationAccumulator, ScaledSum
from eddyline.compute.operators.sealed import SealedOperator
from eddyline.compute.operators.segments import Segments, cut_segments
from eddyline.compute.operators.values import booleans_of
from eddyline.compute.state_size import StateSize
from eddyline.compute.stream import Output, Stream
from eddyline.errors import InternalError
from eddyline.expr.describe import describe, written
from eddyline.expr.ir import AggregateCall, Column, Expr, MapStep, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.text_io import sample_rows
from eddyline.plan.dataflow import Reduce
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.taking import take_values
from eddyline.repr.types import BIGINT, Kind, SqlType
from eddyline.trace.compare import rows_identical

__all__ = ["ArgumentColumns", "ReduceOperator", "accumulator_for"]

_SUMS = ("sum", "avg")
#: so many groups fit a cache, and rows may be of any of them; those of more are put in order first, many at once:
#: at least so many, and as many as there are groups, several times
_NEAR_GROUPS = 1 << 13
_LEAST_ORDERED = 1 << 20
_ROWS_A_GROUP = 4
#: about so many rows are taken at once
_ORDERED_PIECE = 1 << 15
_FLOATS = (Kind.REAL, Kind.DOUBLE)


def accumulator_for(call: AggregateCall) -> Accumulator:
    """InternalError for what is not accumulable."""
    if call.distinct:
        raise InternalError(f"aggregate {call.func} was not freed of DISTINCT")
    if call.func == "count":
        return CountAccumulator(call.type)
    argument = call.args[0].type
    if call.func in ("bool_and", "bool_or"):
        return BooleanAccumulator(call.type, call.func)
    if call.func in ("bit_and", "bit_or", "bit_xor"):
        return BitAccumulator(call.type, call.func)
    if call.func in _SUMS:
        if argument.kind in _FLOATS:
            return FloatSum(call.type, argument, call.func)
        if argument.kind is Kind.INTERVAL:
            return IntervalSum(call.type, call.func)
        if argument.kind is Kind.NUMERIC and argument.scale is None:
            return ScaledSum(call.type, argument, call.func)
        return IntegerSum(call.type, argument, call.func)
    if call.func in ("stddev_pop", "stddev_samp", "var_pop", "var_samp"):
        if argument.kind in _FLOATS:
            return FloatDeviation(call.type, argument, call.func)
        return DeviationAccumulator(call.type, argument, call.func)
    raise InternalError(f"aggregate {call.func} is not accumulable")


def _text(call: AggregateCall, names: Sequence[str]) -> str:
    texts = [written(arg, names) if names else describe(arg) for arg in call.args]
    return f"{call.func}({', '.join(texts) or '*'})"


class ArgumentColumns:
    """The columns that a Reduce reads: keys, then for each aggregate its arguments and its filter.

    Expressions are evaluated as an Mfp, so that a row that fails in one gives an error update and counts nowhere.
    """

    def __init__(
        self,
        key: Sequence[int],
        aggregates: Sequence[AggregateCall],
        key_types: Sequence[SqlType],
        names: tuple[str, ...] = (),
        view: str = "",
    ) -> None:
        self._names = names
        self._view = view
        self._key = tuple(key)
        self._key_types = tuple(key_types)
        self._exprs: list[Expr] = []
        #: made with the first batch
        self._mfp: Mfp | None = None
        #: positions, among all expressions, of each aggregate's arguments and filter
        self.places: list[tuple[tuple[int, ...], int | None]] = []
        for call in aggregates:
            args = tuple(self._place(arg) for arg in call.args)
            self.places.append((args, None if call.filter is None else self._place(call.filter)))

    def _place(self, expr: Expr) -> int:
        if expr in self._exprs:
            return self._exprs.index(expr)
        self._exprs.append(expr)
        return len(self._exprs) - 1

    def place(self, expr: Expr) -> int:
        """The position of a further expression.  To be called before the first ``evaluate``."""
        return self._place(expr)

    def evaluate(self, batch: Batch) -> tuple[Batch, Batch | None]:
        """(keys then expressions, errors) of a batch."""
        if self._mfp is None:
            self._mfp = self._planned(len(batch.types))
        return apply_mfp(self._mfp, batch)

    def _planned(self, width: int) -> Mfp:
        """What evaluates batches of ``width`` columns."""
        steps: list[MapStep] = []
        projection = list(self._key)
        for expr in self._exprs:
            if isinstance(expr, Column):
                projection.append(expr.index)
            else:
                projection.append(width + len(steps))
                steps.append(MapStep(expr))
        types = (*self._key_types, *(expr.type for expr in self._exprs))
        return Mfp(tuple(steps), tuple(projection), types, self._names, self._view)

    @property
    def keys(self) -> int:
        return len(self._key)

    @property
    def types(self) -> tuple[SqlType, ...]:
        return (*self._key_types, *(expr.type for expr in self._exprs))


class _States(NamedTuple):
    """Some groups' states as rows: what they show, whether the group is there, what is wrong with it (0: nothing).

    ``plain``: every one is there and shows a row; so it mostly is, and then nothing has to be picked out.
    """

    columns: tuple[pa.Array, ...]
    exists: npt.NDArray[np.bool_]
    error: Int64s
    plain: bool


class ReduceOperator(SealedOperator):
    """Output row: the key columns, then one column per aggregate of ``node``."""

    def __init__(self, name: str, input: Stream, node: Reduce, output: Output, context: OperatorContext) -> None:
        super().__init__(name, input, output, context)
        self._types = node.types
        self._key_types = node.types[: len(node.key)]
        self._arguments = ArgumentColumns(node.key, node.aggregates, self._key_types, node.names, node.view)
        self._table = GroupTable(self._key_types, context.hasher)
        self._counts = CountAccumulator(BIGINT)
        #: a count of all rows is the one that a group has anyway
        self.accumulators = [self._counts if _counts_rows(call) else self.accumulator(call) for call in node.aggregates]
        #: which accumulator keeps the states of each aggregate: sum and avg of one argument have the same ones
        self._keepers = _keepers(self.accumulators, self._arguments.places)
        self._texts = [_text(call, node.names) for call in node.aggregates]
        self._view = node.view
        self._key_names = tuple(node.names[k] for k in node.key) if node.names else ()
        #: (sqlstate, message, expression) by number; 0 is no error
        self._errors: list[tuple[str, str, str]] = [("", "", "")]
        #: while the snapshot comes: rows of many groups, and what takes those that came so far
        self._waiting = KeyOrder()
        self._absorbing: Iterator[int] | None = None
        self._global = False
        if node.global_row:
            self._global = context.owns_hash(int(context.hasher.hash_rows((), (), 1)[0]))
            if self._global:
                self._table.locate((), 1)

    def accumulator(self, call: AggregateCall) -> Accumulator:
        """What keeps the states of an aggregate."""
        return accumulator_for(call)

    def absorb(self, batch: Batch) -> None:
        rows, errors = self._arguments.evaluate(batch)
        if errors is not None:
            self.output.send_errors(errors.advanced(self.context.as_of))
        if self._table.size < _NEAR_GROUPS:
            if len(rows):
                self.take(rows)
            return
        keys = rows.columns[: self._arguments.keys]
        self._waiting.add(rows, self._table.hashes(keys, len(rows)))
        if self._absorbing is None and self._waiting.rows > max(_LEAST_ORDERED, _ROWS_A_GROUP * self._table.size):
            self._absorbing = self._in_order()

    def absorb_rest(self) -> int:
        if self._absorbing is None:
            return 0
        done = next(self._absorbing, None)
        if done is None:
            self._absorbing = None
            return 0
        return done

    def absorb_all(self) -> Iterator[None]:
        while self.absorb_rest():
            yield
        for _ in self._in_order():
            yield

    def _in_order(self) -> Iterator[int]:
        """Takes the rows that wait; yields the rows of each bounded piece."""
        for rows, hashes in self._waiting.pieces(_ORDERED_PIECE):
            self.take(rows, hashes)
            yield len(rows)

    def take(self, rows: Batch, hashes: UInt64s | None = None) -> None:
        """Adds evaluated rows, all of one time, to the states; ``hashes``: of their keys, if they are at hand."""
        groups, slots = self.located(rows, hashes)
        self.add(self._counts, (), rows.diffs, groups, slots)
        for accumulator, keeper, (args, condition) in self.aggregates():
            if accumulator is self._counts or accumulator is not keeper:
                continue
            self.add(accumulator, self.arguments_of(rows, args), self.weights_of(rows, condition), groups, slots)

    def located(self, rows: Batch, hashes: UInt64s | None = None) -> tuple[Int64s, Int64s]:
        """``GroupTable.locate`` of evaluated rows."""
        return self._table.locate(rows.columns[: self._arguments.keys], len(rows), hashes)

    def arguments_of(self, rows: Batch, places: Sequence[int]) -> list[pa.Array]:
        return [rows.columns[self._arguments.keys + place] for place in places]

    def add(
        self, accumulator: Accumulator, args: Sequence[pa.Array], weights: Int64s, groups: Int64s, slots: Int64s
    ) -> None:
        """Adds rows of one time: ``groups`` int64[n], the group of each; ``slots`` int64[g], the slot of each group."""
        delta = accumulator.delta(args, weights, groups, len(slots))
        accumulator.add(slots, delta)

    def weights_of(self, rows: Batch, condition: int | None) -> Int64s:
        """The diffs, 0 where the filter (an expression's place) says no."""
        if condition is None:
            return rows.diffs
        return np.where(booleans_of(rows.columns[self._arguments.keys + condition]), rows.diffs, 0)

    def publish(self) -> Iterator[None]:
        budget = self.context.budget_rows
        for start in range(0, self._table.size, budget):
            slots = np.arange(start, min(start + budget, self._table.size), dtype=np.int64)
            states = self._show(self._counts.states(slots), [a.states(slots) for a in self._keepers])
            rows = np.arange(len(slots))
            times = np.full(len(slots), self.context.as_of, np.int64)
            self._emit(states, rows, slots, times, np.ones(len(slots), np.int64))
            yield
        self._forget(np.arange(self._table.size))

    def apply(self, batch: Batch) -> Iterator[None]:
        accumulated = self._accumulate(batch)
        if accumulated is None:
            return iter(())
        segments, slots, parts = accumulated
        if len(segments) > len(slots):
            first = segments.starts[:-1]
            parts = [(before[first], after) for before, after in parts]
        counts, *values = map(np.concatenate, parts)
        states = self._show(counts, values)
        old, new = segments.previous()
        changed = self._differ(states, old, new)
        old, new, times = old[changed], new[changed], segments.times[changed]
        of_segment = slots[segments.group[changed]]
        diffs = np.concatenate((np.full(len(old), -1, np.int64), np.ones(len(new), np.int64)))
        self._emit(
            states,
            np.concatenate((old, new)),
            np.concatenate((of_segment, of_segment)),
            np.concatenate((times, times)),
            diffs,
        )
        if not states.plain:
            self._forget(slots)
        return iter(())

    def state_size(self) -> StateSize:
        return self._table.state_size(sum(a.nbytes for a in self._kept()) + self._waiting.nbytes)

    def _accumulate(self, batch: Batch) -> tuple[Segments, Int64s, list[tuple[Int64s, Int64s]]] | None:
        """Adds a piece; (segments, slot of each group, states before and after each segment by accumulator)."""
        rows, errors = self._arguments.evaluate(batch)
        self.output.send_errors(errors)
        if not len(rows):
            return None
        groups, slots = self.located(rows)
        segments = cut_segments(groups, len(slots), rows.times)
        count = len(segments)
        delta = self._counts.delta((), rows.diffs, segments.of_row, count)
        counted = self._counts.run(slots, segments.starts, delta)
        found: dict[Accumulator, tuple[Int64s, Int64s]] = {self._counts: counted}
        for accumulator, keeper, (args, condition) in self.aggregates():
            if keeper in found:
                continue
            weights = self.weights_of(rows, condition)
            delta = accumulator.delta(self.arguments_of(rows, args), weights, segments.of_row, count)
            found[accumulator] = accumulator.run(slots, segments.starts, delta)
        return segments, slots, [counted, *(found[keeper] for keeper in self._keepers)]

    def aggregates(self) -> Iterator[tuple[Accumulator, Accumulator, tuple[tuple[int, ...], int | None]]]:
        """(accumulator, the one that keeps its states, places of its arguments and filter) of each aggregate."""
        return zip(self.accumulators, self._keepers, self._arguments.places, strict=True)

    def _show(self, counts: Int64s, values: Sequence[Int64s]) -> _States:
        rows = len(counts)
        error = np.zeros(rows, np.int64)
        plain = True
        columns: list[pa.Array] = []
        for accumulator, text, states in zip(self.accumulators, self._texts, values, strict=True):
            shown = accumulator.show(states)
            columns.append(shown.array)
            for failure in shown.failures:
                if failure.rows.any():
                    plain = False
                    number = self._error_number(failure.sqlstate, failure.message, text)
                    error[failure.rows & (error == 0)] = number
        least = int(counts.min(initial=1))
        if least > 0 and plain:
            return _States(tuple(columns), np.ones(rows, np.bool_), error, plain=True)
        if least < 0:
            negative = counts[:, 0] < 0
            error[negative] = self._error_number("XX000", "group with a negative number of rows", "count(*)")
        exists = np.ones(rows, np.bool_) if self._global else counts[:, 0] != 0
        error[~exists] = 0
        return _States(tuple(columns), exists, error, plain=False)

    def _error_number(self, sqlstate: str, message: str, text: str) -> int:
        entry = (sqlstate, message, text)
        if entry not in self._errors:
            self._errors.append(entry)
        return self._errors.index(entry)

    def _differ(self, states: _States, old: Int64s, new: Int64s) -> Int64s:
        """The segments whose states before and after do not show the same."""
        types = self._types[len(self._key_types) :]
        if states.plain:
            if not states.columns:
                return np.empty(0, np.int64)
            return np.flatnonzero(~rows_identical(states.columns, types, old, states.columns, new))
        differ = (states.exists[old] != states.exists[new]) | (states.error[old] != states.error[new])
        both = np.flatnonzero(~differ & states.exists[new] & (states.error[new] == 0))
        if states.columns and len(both):
            differ[both] = ~rows_identical(states.columns, types, old[both], states.columns, new[both])
        return np.flatnonzero(differ)

    def _emit(self, states: _States, rows: Int64s, slots: Int64s, times: Int64s, diffs: Int64s) -> None:
        """State rows ``rows`` of the groups ``slots``, as rows or as errors; those of absent groups are left out."""
        if states.plain:
            if len(rows):
                columns = (*self._table.keys(slots), *[take_values(c, rows) for c in states.columns])
                self.output.send(Batch(self._types, columns, times, diffs))
            return
        exists = states.exists[rows]
        failed = states.error[rows] > 0
        good = np.flatnonzero(exists & ~failed)
        if len(good):
            picked = rows[good]
            columns = (*self._table.keys(slots[good]), *[take_values(c, picked) for c in states.columns])
            self.output.send(Batch(self._types, columns, times[good], diffs[good]))
        bad = np.flatnonzero(exists & failed)
        if len(bad):
            keys = self._table.keys(slots[bad])
            samples = sample_rows(keys, self._key_types, len(bad), names=self._key_names)
            entries = [self._errors[number] for number in states.error[rows[bad]].tolist()]
            texts = [[entry[i] for entry in entries] for i in range(3)]
            arrays = tuple(pa.array(text, pa.large_string()) for text in (*texts, samples, [self._view] * len(bad)))
            self.output.send_errors(Batch(ERR_TYPES, arrays, times[bad], diffs[bad]))

    def _forget(self, slots: Int64s) -> None:
        """Drops the groups among ``slots`` that have no rows left."""
        if self._global or not len(slots):
            return
        empty = (self._counts.states(slots)[:, 0] == 0) & self._table.alive[slots]
        self._table.release(slots[empty])
        kept = self._table.compact()
        if kept is not None:
            for accumulator in self._kept():
                accumulator.keep(kept)

    def _kept(self) -> list[Accumulator]:
        """The accumulators that keep states, each once."""
        return list(dict.fromkeys((self._counts, *self._keepers)))


def _keepers(accumulators: Sequence[Accumulator], places: Sequence[Hashable]) -> list[Accumulator]:
    """Of each accumulator the first that keeps its states; ``places``: of its arguments and filter."""
    first: dict[Hashable, Accumulator] = {}
    keepers = []
    for accumulator, place in zip(accumulators, places, strict=True):
        sharing = accumulator.sharing()
        keepers.append(accumulator if sharing is None else first.setdefault((sharing, place), accumulator))
    return keepers


def _counts_rows(call: AggregateCall) -> bool:
    return call.func == "count" and not call.args and not call.distinct and call.filter is None
