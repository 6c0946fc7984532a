"""Expressions over rows that are at hand: defaults, RETURNING, ON CONFLICT … SET, and what is computed late.

Calls of sequences are made here, and nowhere else: once for each row that reaches them, one row after the other, and
in a row from the left to the right.  Where each sequence is called once in a row its values are taken for all rows at
once, which comes to the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.adapter.read import ReadContext
from eddyline.errors import make_error
from eddyline.expr.evaluate import evaluate, true_rows
from eddyline.expr.ir import (
    CLOCK,
    VOLATILE,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Expr,
    Literal,
    Or,
    children,
    rewrite,
    walk,
    with_children,
)
from eddyline.expr.registry import RowErrors
from eddyline.expr.text_io import literal_array
from eddyline.plan.late import Late, is_volatile
from eddyline.plan.parameters import bind_parameters
from eddyline.repr.batch import concat_arrays
from eddyline.repr.types import TIMESTAMPTZ

__all__ = ["evaluate_columns", "late_columns", "raise_evaluation", "without_clock"]

Bools: TypeAlias = npt.NDArray[np.bool_]


def evaluate_columns(
    exprs: Sequence[Expr], columns: Sequence[pa.Array], rows: int, parameters: Sequence[Literal], context: ReadContext
) -> tuple[pa.Array, ...]:
    """Each expression over the rows; the first row error is raised."""
    ready = [without_clock(expr, parameters, context) for expr in exprs]
    if any(map(is_volatile, ready)):
        return _called(ready, columns, rows, context, chained=False)
    return tuple(_evaluated(expr, columns, rows) for expr in ready)


def late_columns(
    late: Late, columns: Sequence[pa.Array], rows: int, parameters: Sequence[Literal], context: ReadContext
) -> tuple[pa.Array, ...]:
    """The columns of the statement, from those that were read, in the order of its rows."""
    ready = [without_clock(expr, parameters, context) for expr in late.exprs]
    found = (*columns, *_called(ready, columns, rows, context, chained=True))
    return tuple(found[column] for column in late.columns)


def _evaluated(expr: Expr, columns: Sequence[pa.Array], rows: int) -> pa.Array:
    if isinstance(expr, Literal):
        return literal_array(expr.value, expr.type, rows)
    done = evaluate(expr, columns, rows)
    raise_evaluation(done.errors)
    return done.array


def raise_evaluation(errors: RowErrors | None) -> None:
    if errors is not None:
        raise make_error(errors.sqlstates[0], errors.messages[0])


def without_clock(expr: Expr, parameters: Sequence[Literal], context: ReadContext) -> Expr:
    now = Literal(context.transaction.now_us, TIMESTAMPTZ)
    bound = bind_parameters(expr, parameters)
    return rewrite(bound, lambda e: now if isinstance(e, Call) and e.func == CLOCK else e)


# -- calls of sequences -----------------------------------------------------------------------------------------------


def _called(
    exprs: Sequence[Expr], columns: Sequence[pa.Array], rows: int, context: ReadContext, *, chained: bool
) -> tuple[pa.Array, ...]:
    """``chained``: an expression may read the results of those before it, behind ``columns``."""
    if rows > 1 and not _at_once(exprs):
        return _row_by_row(exprs, columns, rows, context, chained=chained)
    calls = _Calls(context, rows, exprs)
    known, results = list(columns), list[pa.Array]()
    for expr in exprs:
        results.append(calls.evaluated(expr, known))
        if chained:
            known.append(results[-1])
    return tuple(results)


def _row_by_row(
    exprs: Sequence[Expr], columns: Sequence[pa.Array], rows: int, context: ReadContext, *, chained: bool
) -> tuple[pa.Array, ...]:
    found: list[tuple[pa.Array, ...]] = []
    for row in range(rows):
        context.interrupt.check()
        found.append(_called(exprs, [c.slice(row, 1) for c in columns], 1, context, chained=chained))
    return tuple(concat_arrays(list(parts)) for parts in zip(*found, strict=True))


def _volatile_calls(expr: Expr) -> list[Call]:
    return [node for node in walk(expr) if isinstance(node, Call) and node.func in VOLATILE]


def _at_once(exprs: Sequence[Expr]) -> bool:
    """Whether all rows may take their values at once: ``nextval`` of sequences that are known, and one that is called
    several times is called for every row."""
    calls = [call for expr in exprs for call in _volatile_calls(expr)]
    if not all(call.func == "nextval" and isinstance(call.args[0], Literal) for call in calls):
        return False
    once = max(Counter(call.args[0] for call in calls).values(), default=1) == 1
    return once or not any(map(_is_guarded, exprs))


def _is_guarded(expr: Expr) -> bool:
    """Whether a call is made for some rows only."""
    guards = (node for node in walk(expr) if isinstance(node, (And, Case, Coalesce, Or)))
    return any(is_volatile(node) for node in guards)


class _Calls:
    """The calls of one statement over its rows."""

    def __init__(self, context: ReadContext, rows: int, exprs: Sequence[Expr]) -> None:
        self._context = context
        self._rows = rows
        counts = Counter(call.args[0] for expr in exprs for call in _volatile_calls(expr) if call.func == "nextval")
        #: of a sequence that is called several times in each row: a column of values for each of the calls
        self._ready: dict[Expr, list[pa.Array]] = {}
        if rows > 1:
            for which, count in counts.items():
                if count > 1 and isinstance(which, Literal):
                    self._ready[which] = self._several(which, count)

    def _several(self, which: Literal, count: int) -> list[pa.Array]:
        values = self._next(which, self._rows * count, of_identity=False)
        if values is None:
            return [pa.nulls(self._rows, pa.int64())] * count
        return [pa.array(column) for column in np.ascontiguousarray(values.reshape(self._rows, count).T)]

    def evaluated(self, expr: Expr, columns: Sequence[pa.Array]) -> pa.Array:
        if not is_volatile(expr):
            return _evaluated(expr, columns, self._rows)
        known = list(columns)
        ready = self._replaced(expr, known, np.ones(self._rows, np.bool_))
        return _evaluated(ready, known, self._rows)

    def _replaced(self, expr: Expr, known: list[pa.Array], wanted: Bools) -> Expr:
        """``expr`` with its calls as columns, which are added to ``known``.  ``wanted``: the rows that reach it."""
        if not is_volatile(expr):
            return expr
        match expr:
            case Call() if expr.func in VOLATILE:
                args = tuple(self._replaced(arg, known, wanted) for arg in expr.args)
                known.append(self._column(expr.func, args, known, wanted))
                return Column(len(known) - 1, expr.type)
            case Case():
                return self._case(expr, known, wanted)
            case Coalesce():
                parts = []
                for arg in expr.args:
                    parts.append(self._replaced(arg, known, wanted))
                    wanted = wanted & np.asarray(_evaluated(parts[-1], known, self._rows).is_null())
                return Coalesce(tuple(parts), expr.type)
            case _:
                return with_children(expr, tuple(self._replaced(part, known, wanted) for part in children(expr)))

    def _case(self, expr: Case, known: list[pa.Array], wanted: Bools) -> Expr:
        whens = []
        for condition, value in expr.whens:
            ready = self._replaced(condition, known, wanted)
            true = wanted & true_rows(evaluate(ready, known, self._rows), self._rows)
            whens.append((ready, self._replaced(value, known, true)))
            wanted = wanted & ~true
        return Case(tuple(whens), self._replaced(expr.otherwise, known, wanted), expr.type)

    def _column(self, func: str, args: Sequence[Expr], known: Sequence[pa.Array], wanted: Bools) -> pa.Array:
        """The results of a call in the rows that reach it, NULL in the others."""
        which = args[0] if args else None
        if isinstance(which, Literal) and func == "nextval":
            ready = self._ready.get(which)
            if ready:
                return ready.pop(0)
            values = self._next(which, int(np.count_nonzero(wanted)), of_identity=len(args) > 1)
            return pa.nulls(self._rows, pa.int64()) if values is None else _scattered(values, wanted)
        given = [_evaluated(arg, known, self._rows) for arg in args]
        found = np.zeros(self._rows, np.int64)
        valid = np.zeros(self._rows, np.bool_)
        for row in np.flatnonzero(wanted):
            result = self._one(func, [column[int(row)].as_py() for column in given])
            if result is not None:
                found[row], valid[row] = result, True
        return pa.array(found, mask=~valid)

    def _next(self, which: Literal, count: int, *, of_identity: bool) -> npt.NDArray[np.int64] | None:
        """None of NULL."""
        value, context = which.value, self._context
        if not isinstance(value, (int, str)):
            return None
        item = context.sequences.find(value, context.catalog)
        return context.sequences.next_values(context.transaction, item, count, of_identity=of_identity)

    def _one(self, func: str, args: list[int | str | bool | None]) -> int | None:
        """NULL of a NULL."""
        context, sequences = self._context, self._context.sequences
        if any(arg is None for arg in args):
            return None
        if func == "lastval":
            return sequences.last_value(context.catalog)
        which = args[0]
        assert isinstance(which, (int, str))
        item = sequences.find(which, context.catalog)
        if func == "nextval":
            return int(sequences.next_values(context.transaction, item, 1, of_identity=False)[0])
        if func == "currval":
            return sequences.current_value(item)
        value = args[1]
        assert isinstance(value, int)
        sequences.set_value(context.transaction, item, value, called=len(args) < 3 or bool(args[2]))
        return value


def _scattered(values: npt.NDArray[np.int64], wanted: Bools) -> pa.Array:
    if len(values) == len(wanted):
        return pa.array(values)
    found = np.zeros(len(wanted), np.int64)
    found[wanted] = values
    return pa.array(found, mask=~wanted)
