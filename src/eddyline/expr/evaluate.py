"""Evaluation of expressions over columns.

Invariants:
I1  where a row has an error, the value handed to a parent is NULL;
I2  a guarded subexpression (a CASE branch, a later argument of AND, OR, COALESCE) is evaluated only for the rows that
    reach it, unless it cannot fail.
Every node is a task (a generator that asks for its children's values), and tasks stand on an explicit stack, so depth
is bounded by memory and not by Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import InternalError
from eddyline.expr.casts import cast_array
from eddyline.expr.describe import describe, written
from eddyline.expr.frame import Frame
from eddyline.expr.functions import implementation
from eddyline.expr.ir import And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or, Parameter, Raise
from eddyline.expr.literals import literal_scalar
from eddyline.expr.properties import Fallibility
from eddyline.expr.registry import Arguments, Evaluated, RowErrors, merge_errors
from eddyline.expr.timezone import UTC, Zone, zone_of
from eddyline.repr.types import SqlType, arrow_type

__all__ = ["Evaluated", "Frame", "RowErrors", "evaluate", "evaluate_frame", "true_rows"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

_DENSE_SHARE = 4  # an infallible argument is evaluated on all rows while at least 1/4 of them still need it


class Value(NamedTuple):
    """A column, or the scalar that all rows share.

    ``constant``: so the expression's text says, whatever the rows are.  A CASE that happens to take one branch on all
    rows of this batch gives a scalar too, and must mean the same on the next batch, where it takes several.
    """

    data: pa.Array | pa.Scalar
    errors: RowErrors | None
    constant: bool = False


Task: TypeAlias = Generator[tuple[Expr, Frame], Value, Value]


def evaluate(expr: Expr, columns: Sequence[pa.Array], rows: int) -> Evaluated:
    """``expr`` over ``rows`` rows: one contiguous array in the layout of ``expr.type``, and the failing rows.

    It is an error to call this with a ``Parameter`` left in the tree (InternalError).
    """
    return evaluate_frame(expr, Frame(columns, rows))


def evaluate_frame(expr: Expr, frame: Frame) -> Evaluated:
    """``evaluate`` over the rows of ``frame``, whose columns stay gathered for the next expression."""
    value = _run(expr, frame)
    return Evaluated(_column(value.data, frame.rows), value.errors)


def true_rows(value: Evaluated, rows: int) -> Bools:
    """bool[rows]: where a predicate is true, without error."""
    truth, errors = _truth(value.array, rows), value.errors
    if errors is not None:
        truth = truth.copy()
        truth[errors.rows] = False
    return truth


def _run(expr: Expr, frame: Frame) -> Value:
    leaf = _leaf(expr, frame)
    if leaf is not None:
        return leaf
    fallibility = Fallibility()
    stack = [_task(expr, frame, fallibility)]
    value: Value | None = None
    while stack:
        try:
            child, child_frame = stack[-1].send(value)  # type: ignore[arg-type]  # a task starts with None
        except StopIteration as done:
            stack.pop()
            value = done.value
            continue
        value = _leaf(child, child_frame)
        if value is None:
            stack.append(_task(child, child_frame, fallibility))
    if value is None:
        raise InternalError("an expression produced no value")
    return value


def _leaf(expr: Expr, frame: Frame) -> Value | None:
    match expr:
        case Column():
            return Value(frame.column(expr.index), None)
        case Literal():
            return Value(literal_scalar(expr.value, expr.type), None, constant=True)
        case Raise():
            rows = frame.rows
            texts = [_text(expr, frame.names)] * rows
            errors = RowErrors(np.arange(rows, dtype=np.int64), [expr.sqlstate] * rows, [expr.message] * rows, texts)
            return Value(_null(expr.type), errors if rows else None)
        case Parameter():
            raise InternalError(f"parameter ${expr.index} has no value")
    return None


def _task(expr: Expr, frame: Frame, fallibility: Fallibility) -> Task:
    match expr:
        case Call():
            return _call(expr, frame)
        case Cast():
            return _cast(expr, frame)
        case Case():
            return _case(expr, frame, fallibility)
        case And():
            return _connective(expr, frame, fallibility, absorbing=False)
        case Or():
            return _connective(expr, frame, fallibility, absorbing=True)
        case Coalesce():
            return _coalesce(expr, frame, fallibility)
    raise InternalError(f"no evaluation of {type(expr).__name__}")


# --- values -----------------------------------------------------------------------------------------------------


def _null(sql_type: SqlType) -> pa.Scalar:
    return pa.scalar(None, type=arrow_type(sql_type))


def _column(data: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    return pa.repeat(data, rows) if isinstance(data, pa.Scalar) else data


def _truth(data: pa.Array | pa.Scalar, rows: int) -> Bools:
    """bool[rows]: true and not NULL."""
    if isinstance(data, pa.Scalar):
        return np.full(rows, data.as_py() is True)
    if data.null_count:
        data = pc.fill_null(data, False)
    result: Bools = data.to_numpy(zero_copy_only=False)
    return result


def _nulls(data: pa.Array | pa.Scalar, rows: int) -> Bools:
    """bool[rows]: NULL."""
    if isinstance(data, pa.Scalar):
        return np.full(rows, not data.is_valid)
    if not data.null_count:
        return np.zeros(rows, np.bool_)
    result: Bools = data.is_null().to_numpy(zero_copy_only=False)
    return result


def _without_rows(data: pa.Array | pa.Scalar, gone: Bools, sql_type: SqlType) -> pa.Array:
    """``data`` with NULL on the rows of the mask ``gone``."""
    return pc.if_else(pa.array(gone), _null(sql_type), data)


def _checked(data: pa.Array | pa.Scalar, errors: RowErrors | None, sql_type: SqlType, rows: int) -> Value:
    """Keeps I1."""
    if errors is None:
        return Value(data, None)
    gone = np.zeros(rows, np.bool_)
    gone[errors.rows] = True
    return Value(_without_rows(data, gone, sql_type), errors)


def _text(expr: Expr, names: Sequence[str] | None) -> str:
    return describe(expr) if names is None else written(expr, names)


def _named(errors: RowErrors | None, expr: Expr, names: Sequence[str] | None) -> RowErrors | None:
    if errors is None:
        return None
    return errors._replace(expressions=[_text(expr, names)] * len(errors.rows))


def _spread(value: Value, rows: int) -> Value:
    """The value of one row for all ``rows`` of them."""
    data = value.data[0] if isinstance(value.data, pa.Array) else value.data
    errors = value.errors
    if errors is not None:
        errors = RowErrors(
            np.arange(rows, dtype=np.int64),
            errors.sqlstates * rows,
            errors.messages * rows,
            errors.expressions * rows,
        )
    return Value(data, errors if rows else None)


# --- calls and casts --------------------------------------------------------------------------------------------


def _call(node: Call, frame: Frame) -> Task:
    values: list[Value] = []
    for arg in node.args:
        leaf = _leaf(arg, frame)
        values.append(leaf if leaf is not None else (yield arg, frame))
    rows = frame.rows
    if all(isinstance(v.data, pa.Scalar) and v.errors is None for v in values):
        return _spread(_apply(node, values, 1, frame.names), rows)
    return _apply(node, values, rows, frame.names)


def _apply(node: Call, values: list[Value], rows: int, names: Sequence[str] | None) -> Value:
    """The implementation's result with NULLs and errors settled."""
    chosen = implementation(node.func)
    inherited = merge_errors(*(v.errors for v in values))
    nulls = [v for v in values if isinstance(v.data, pa.Scalar) and not v.data.is_valid]
    if chosen.strict and nulls:
        # A constant NULL settles the call, as in PostgreSQL's planner: the other arguments' failures do not matter.
        # A constant that failed is NULL as well (I1), and does not.
        settled = any(v.constant and v.errors is None for v in nulls)
        return Value(_null(node.type), None if settled else inherited, settled)
    args = Arguments([v.data for v in values], rows)
    made = chosen.function(args, [a.type for a in node.args], node.type, rows)
    data, errors = made if isinstance(made, Evaluated) else (made, None)
    if chosen.strict:
        data, errors = _strict(data, errors, [v.data for v in values], node.type, rows)
    return _checked(data, merge_errors(inherited, _named(errors, node, names)), node.type, rows)


def _strict(
    data: pa.Array, errors: RowErrors | None, inputs: Sequence[pa.Array | pa.Scalar], sql_type: SqlType, rows: int
) -> tuple[pa.Array, RowErrors | None]:
    """NULL wherever an input is NULL, and no error there."""
    with_nulls = [d for d in inputs if isinstance(d, pa.Array) and d.null_count]
    if not with_nulls:
        return data, errors
    null = _nulls(with_nulls[0], rows)
    for other in with_nulls[1:]:
        null = null | _nulls(other, rows)
    if bool((null & ~_nulls(data, rows)).any()):
        data = _without_rows(data, null, sql_type)
    if errors is not None:
        errors = _keep(errors, ~null[errors.rows])
    return data, errors


def _keep(errors: RowErrors, mask: Bools) -> RowErrors | None:
    if mask.all():
        return errors
    positions = np.flatnonzero(mask).tolist()
    if not positions:
        return None
    return RowErrors(
        errors.rows[mask],
        [errors.sqlstates[i] for i in positions],
        [errors.messages[i] for i in positions],
        [errors.expressions[i] for i in positions] if errors.expressions else [],
    )


def _cast(node: Cast, frame: Frame) -> Task:
    value = yield node.input, frame
    if isinstance(value.data, pa.Scalar):
        if not value.data.is_valid:
            return Value(_null(node.type), value.errors, value.constant)
        return _spread(_cast_value(node, Value(pa.repeat(value.data, 1), None), 1, frame.names), frame.rows)
    return _cast_value(node, value, frame.rows, frame.names)


def _zone(node: Cast) -> Zone:
    return UTC if node.zone is None else zone_of(node.zone)


def _cast_value(node: Cast, value: Value, rows: int, names: Sequence[str] | None) -> Value:
    source = node.input.type
    data, errors = cast_array(value.data, source, node.type, explicit=node.explicit, zone=_zone(node))
    data, errors = _strict(data, errors, [value.data], node.type, rows)
    return _checked(data, merge_errors(value.errors, _named(errors, node, names)), node.type, rows)


# --- selections -------------------------------------------------------------------------------------------------


class _Pieces:
    """A result put together from the values of disjoint selections of one frame's rows."""

    def __init__(self, sql_type: SqlType, rows: int) -> None:
        self._type = sql_type
        self._rows = rows
        self._parts: list[tuple[Int64s | None, pa.Array | pa.Scalar]] = []
        self._errors: list[RowErrors] = []

    def add(self, index: Int64s | None, value: Value) -> None:
        """The value of the rows at ``index`` (None: all)."""
        self.fail(index, value.errors)
        self._parts.append((index, value.data))

    def fail(self, index: Int64s | None, errors: RowErrors | None) -> None:
        """Errors whose row numbers count within ``index``."""
        if errors is not None:
            self._errors.append(errors if index is None else errors._replace(rows=index[errors.rows]))

    def finish(self) -> Value:
        errors = merge_errors(*self._errors)
        if not self._parts:
            return Value(_null(self._type), errors)
        first, data = self._parts[0]
        whole = first is None or len(first) == self._rows
        if not (whole and len(self._parts) == 1):
            data = self._scatter()
        return _checked(data, errors, self._type, self._rows)

    def _scatter(self) -> pa.Array:
        """Rows that no part covers (failed conditions) read the NULL at position 0."""
        position = np.zeros(self._rows, np.int64)
        arrays = [pa.nulls(1, arrow_type(self._type))]
        start = 1
        for index, data in self._parts:
            count = self._rows if index is None else len(index)
            scalar = isinstance(data, pa.Scalar)
            arrays.append(pa.repeat(data, 1) if scalar else data)
            where = slice(None) if index is None else index
            position[where] = start if scalar else np.arange(start, start + count)
            start += 1 if scalar else count
        return pa.concat_arrays(arrays).take(pa.array(position))


def _narrow(frame: Frame, index: Int64s | None) -> Frame:
    return frame if index is None else frame.select(index)


def _plain_case(node: Case, fallibility: Fallibility) -> bool:
    """Whether evaluating everything on all rows costs no more than selecting, and shows no error."""
    results = (*(result for _, result in node.whens), node.otherwise)
    plain = all(isinstance(r, Column | Literal) for r in results)
    return plain and not any(fallibility.can_fail(condition) for condition, _ in node.whens)


def _whole_case(node: Case, frame: Frame) -> Task:
    conditions: list[Bools] = []
    for condition, _ in node.whens:
        value = yield condition, frame
        conditions.append(_truth(value.data, frame.rows))
    chosen = _column((yield node.otherwise, frame).data, frame.rows)
    for truth, (_, result) in zip(reversed(conditions), reversed(node.whens), strict=True):
        value = yield result, frame
        chosen = pc.if_else(pa.array(truth), value.data, chosen)
    return Value(chosen, None)


def _case(node: Case, frame: Frame, fallibility: Fallibility) -> Task:
    if _plain_case(node, fallibility):
        return (yield from _whole_case(node, frame))
    pieces = _Pieces(node.type, frame.rows)
    remaining: Int64s | None = None  # rows no condition was true for yet, None: all
    for condition, result in node.whens:
        rest = _narrow(frame, remaining)
        value = yield condition, rest
        pieces.fail(remaining, value.errors)
        truth = _truth(value.data, rest.rows)
        left = ~truth
        if value.errors is not None:
            left[value.errors.rows] = False
            truth = truth & ~_mask(value.errors.rows, rest.rows)
        if truth.any():
            chosen = _pick(remaining, truth)
            pieces.add(chosen, (yield result, _narrow(frame, chosen)))
        remaining = _pick(remaining, left)
        if remaining is not None and not len(remaining):
            break
    else:
        pieces.add(remaining, (yield node.otherwise, _narrow(frame, remaining)))
    return pieces.finish()


def _mask(rows: Int64s, count: int) -> Bools:
    result = np.zeros(count, np.bool_)
    result[rows] = True
    return result


def _pick(index: Int64s | None, mask: Bools) -> Int64s | None:
    """The rows of ``index`` where ``mask``; None for all rows of the frame."""
    if index is None:
        return None if mask.all() else np.flatnonzero(mask)
    return index if mask.all() else index[mask]


def _coalesce(node: Coalesce, frame: Frame, fallibility: Fallibility) -> Task:
    pieces = _Pieces(node.type, frame.rows)
    remaining: Int64s | None = None
    for arg in node.args:
        rest = _narrow(frame, remaining)
        value = yield arg, rest
        null = _nulls(value.data, rest.rows)
        if not null.any():
            pieces.add(remaining, value)
            return pieces.finish()
        if value.errors is not None:
            # I1 made failed rows NULL: they are settled all the same.
            pieces.fail(remaining, value.errors)
            null[value.errors.rows] = False
        keep = _nulls(value.data, rest.rows)
        np.logical_not(keep, out=keep)
        if keep.any():
            chosen = _pick(remaining, keep)
            data = value.data if isinstance(value.data, pa.Scalar) else value.data.filter(pa.array(keep))
            pieces.add(chosen, Value(data, None))
        remaining = _pick(remaining, null)
        if remaining is not None and not len(remaining):
            break
    return pieces.finish()


def _whole_connective(node: And | Or, frame: Frame, *, absorbing: bool) -> Task:
    """The same over arguments that cannot fail: in which order and on which rows they are evaluated does not show."""
    combine = pc.or_kleene if absorbing else pc.and_kleene
    result: pa.Array | pa.Scalar = pa.scalar(not absorbing)
    for arg in node.args:
        value = yield arg, frame
        result = combine(result, value.data)
    return Value(result, None)


def _connective(node: And | Or, frame: Frame, fallibility: Fallibility, *, absorbing: bool) -> Task:
    """AND (absorbed by false) and OR (absorbed by true)."""
    rows = frame.rows
    if not any(fallibility.can_fail(arg) for arg in node.args):
        return (yield from _whole_connective(node, frame, absorbing=absorbing))
    decided = np.zeros(rows, np.bool_)  # absorbed: later arguments do not matter
    unknown = np.zeros(rows, np.bool_)
    failed = np.zeros(rows, np.bool_)
    pieces = _Pieces(node.type, rows)
    for arg in node.args:
        open_rows = ~(decided | failed)
        count = int(np.count_nonzero(open_rows))
        if not count and rows:
            break
        dense = count == rows or (count * _DENSE_SHARE >= rows and not fallibility.can_fail(arg))
        index = None if dense else np.flatnonzero(open_rows)
        value = yield arg, _narrow(frame, index)
        reached = rows if index is None else len(index)
        truth, null = _truth(value.data, reached), _nulls(value.data, reached)
        absorbed = truth if absorbing else ~(truth | null)
        where = slice(None) if index is None else index
        if value.errors is not None:
            pieces.fail(index, value.errors)
            bad = _mask(value.errors.rows, reached)
            absorbed, null = absorbed & ~bad, null & ~bad
            failed[where] |= bad
        decided[where] |= absorbed
        unknown[where] |= null
    outcome = decided if absorbing else ~decided
    pieces.add(None, Value(pa.array(outcome, mask=unknown & ~decided), None))
    return pieces.finish()
