"""What the outermost query does to the rows that were read: ORDER BY, OFFSET, LIMIT, and hidden columns gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read import FirstRows
from eddyline.errors import make_error
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Expr, Literal
from eddyline.expr.text_io import to_python
from eddyline.plan.parameters import bind_parameters
from eddyline.protocol.read_costs import UNBOUNDED, ReadBounds, out_of_memory, result_too_large
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.time import Time
from eddyline.sql.query import BoundQuery
from eddyline.trace.order import order_rows

__all__ = ["Finishing", "constant_value", "finishing"]


@dataclass(frozen=True, slots=True)
class Finishing:
    """The finishing of ``query`` with its counts known."""

    query: BoundQuery
    limit: int | None
    offset: int

    @property
    def first(self) -> FirstRows | None:
        """The rows that are enough; None: all of them are needed."""
        return None if self.limit is None else FirstRows(self.offset + self.limit, self.query.order)

    def result(self, batch: Batch, at: Time, bounds: ReadBounds = UNBOUNDED) -> ResultSet:
        """Rows in result order, multiplicities expanded.  ``batch``: at least the rows that are enough.

        53200 or 54000 before anything is made that is past ``bounds``.
        """
        query, rows = self.query, len(batch)
        picked: np.ndarray | None = None
        if query.order and rows > 1:
            picked = order_rows(batch.columns, batch.types, query.order, rows)
        if rows and int(batch.diffs[0] if rows == 1 else batch.diffs.max()) > 1:
            base = np.arange(rows) if picked is None else picked
            times, base = _shown(batch.diffs, base, None if self.limit is None else self.offset + self.limit)
            rows = int(times.sum())
            _check_finished(batch, query, rows, bounds)
            picked = np.repeat(base, times)
        if self.offset or self.limit is not None:
            stop = rows if self.limit is None else min(rows, self.offset + self.limit)
            base = np.arange(rows) if picked is None else picked
            picked = base[self.offset : stop]
        columns = batch.columns[: len(query.types)]
        _check_finished(batch, query, rows if picked is None else len(picked), bounds)
        if picked is not None:
            index = pa.array(picked)
            columns = tuple(c.take(index) for c in columns)
            rows = len(picked)
        return ResultSet(query.names, query.types, columns, rows, at)


def _shown(diffs: Int64s, order: Int64s, most: int | None) -> tuple[Int64s, Int64s]:
    """How often each of the rows in ``order`` is shown, and which rows, if ``most`` are shown in all."""
    shown = diffs[order]
    if most is None:
        return shown, order
    before = np.cumsum(shown) - shown
    kept = int(np.searchsorted(before, most))
    return np.minimum(shown[:kept], most - before[:kept]), order[:kept]


def _check_finished(batch: Batch, query: BoundQuery, rows: int, bounds: ReadBounds) -> None:
    """Whether ``rows`` of the batch, of average size, may be a result, or be held beside it."""
    if not len(batch) or bounds == UNBOUNDED:
        return
    shown = len(query.types)
    sizes = [int(c.nbytes) for c in batch.columns]
    size = int(sum(sizes[:shown]) * (rows / len(batch)))
    if bounds.result is not None and size > bounds.result:
        raise result_too_large(size, bounds.result)
    held = sum(sizes) + batch.times.nbytes + batch.diffs.nbytes + (size if rows > len(batch) else 0)
    if bounds.memory is not None and held > bounds.memory:
        raise out_of_memory(held, bounds.memory)


def finishing(query: BoundQuery, parameters: Sequence[Literal]) -> Finishing:
    """2201W, 2201X for a negative LIMIT or OFFSET."""
    offset = _count(query.offset, parameters, "2201X", "OFFSET must not be negative") or 0
    return Finishing(query, _count(query.limit, parameters, "2201W", "LIMIT must not be negative"), offset)


def _count(expr: Expr | None, parameters: Sequence[Literal], sqlstate: str, message: str) -> int | None:
    if expr is None:
        return None
    value = constant_value(bind_parameters(expr, parameters))
    if value is None:
        return None
    assert isinstance(value, int)
    if value < 0:
        raise make_error(sqlstate, message)
    return value


def constant_value(expr: Expr) -> object:
    """The Python value of an expression without columns; raises its error."""
    done = evaluate(expr, (), 1)
    if done.errors is not None:
        raise make_error(done.errors.sqlstates[0], done.errors.messages[0])
    return to_python(done.array, expr.type)[0]
