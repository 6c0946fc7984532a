"""Rows that no object is read for: VALUES, and SELECT without FROM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from eddyline.adapter.read_plan import ReadPlan, at_the_moment, plan_read
from eddyline.expr.ir import Call, Column, Expr, FilterStep, Literal, LiteralValue, MapStep, Mfp, Parameter, rewrite
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.text_io import literal_array, literal_scalar
from eddyline.plan.fast_path import ConstantPlan, substitute_in_mfp
from eddyline.repr.batch import Batch, concat_arrays
from eddyline.repr.rowerror import first_row_error
from eddyline.repr.time import Time
from eddyline.repr.types import Kind, SqlType, arrow_type
from eddyline.sql.catalog_view import CatalogView

__all__ = [
    "constant_rows",
    "constant_rows_of_each",
    "is_one_row_of_parameters",
    "literal_column",
    "raise_first",
    "rows_of_constants",
]

_SLICE_ROWS = 2000
#: kinds whose literals are the values of their Arrow arrays
_PLAIN = frozenset({Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.TEXT, Kind.VARCHAR})


def constant_rows(
    plan: ReadPlan, parameters: Sequence[Literal], moment: Callable[[Call], Literal], catalog: CatalogView
) -> Batch:
    """The rows of a constant plan; ``moment``: what the clock says, and its like.  Raises the first row's error."""
    if plan.clocked:
        plan = plan_read(at_the_moment(plan.relation, moment), catalog)
    assert isinstance(plan.fast, ConstantPlan)
    return rows_of_constants(plan.fast, parameters)


def rows_of_constants(fast: ConstantPlan, parameters: Sequence[Literal]) -> Batch:
    """As ``constant_rows``, without a clock."""
    values = _plain_row(fast, parameters)
    if values is not None:
        types = fast.mfp.types
        return Batch.at(types, tuple([literal_array(v, t, 1) for v, t in zip(values, types, strict=True)]), 1, Time(0))
    rows = len(fast.rows)
    if rows == 1:
        columns = tuple(literal_array(v, t, 1) for v, t in zip(fast.rows[0], fast.types, strict=True))
    else:
        columns = tuple(literal_column([r[i] for r in fast.rows], t) for i, t in enumerate(fast.types))
    mfp = substitute_in_mfp(fast.mfp, parameters)
    batch, errors = apply_mfp(mfp, Batch.at(fast.types, columns, rows, Time(0)))
    raise_first(errors)
    return batch


def _plain_row(fast: ConstantPlan, parameters: Sequence[Literal]) -> list[LiteralValue] | None:
    """The values of a single row of constants and parameters as they are; None if something is computed."""
    if len(fast.rows) != 1:
        return None
    values = list(fast.rows[0])
    for step in fast.mfp.steps:
        expr = step.expr if isinstance(step, MapStep) else None
        if isinstance(expr, Parameter) and 1 <= expr.index <= len(parameters):
            values.append(parameters[expr.index - 1].value)
        elif isinstance(expr, Literal):
            values.append(expr.value)
        else:
            return None
    return [values[column] for column in fast.mfp.projection]


def is_one_row_of_parameters(plan: ReadPlan) -> bool:
    """Whether the plan is one constant row that only parameters change."""
    return plan.parameterised and not plan.clocked and isinstance(plan.fast, ConstantPlan) and len(plan.fast.rows) == 1


def constant_rows_of_each(plan: ReadPlan, parameters: Sequence[Sequence[Literal]]) -> Batch:
    """What the plan gives for every row of ``parameters`` (at least one), at once.

    Requires ``is_one_row_of_parameters``.  The parameters become columns behind the constant row's own.
    """
    fast = plan.fast
    assert isinstance(fast, ConstantPlan)
    own, count = len(fast.types), len(parameters[0])
    types = (*fast.types, *(literal.type for literal in parameters[0]))

    def moved(index: int) -> int:
        return index if index < own else index + count

    def over_columns(expr: Expr) -> Expr:
        match expr:
            case Column():
                return Column(moved(expr.index), expr.type)
            case Parameter():
                return Column(own + expr.index - 1, expr.type)
            case _:
                return expr

    steps: list[MapStep | FilterStep] = []
    for step in fast.mfp.steps:
        match step:
            case MapStep():
                steps.append(MapStep(rewrite(step.expr, over_columns)))
            case FilterStep():
                steps.append(FilterStep(rewrite(step.predicate, over_columns)))
    # The types of the row go with the names, or there are none.
    names = (*fast.mfp.names, *(f"${i + 1}" for i in range(count))) if len(fast.mfp.names) == own else ()
    rows = len(parameters)
    columns = [literal_array(v, t, rows) for v, t in zip(fast.rows[0], fast.types, strict=True)]
    columns += [literal_column([row[i].value for row in parameters], types[own + i]) for i in range(count)]
    mfp = Mfp(tuple(steps), tuple(moved(i) for i in fast.mfp.projection), fast.mfp.types, names)
    batch, errors = apply_mfp(mfp, Batch.at(types, tuple(columns), rows, Time(0)))
    raise_first(errors)
    return batch


def literal_column(values: list[LiteralValue], sql_type: SqlType) -> pa.Array:
    """One array of literals, in slices so that no call holds the GIL for long."""
    if not values:
        return literal_array(None, sql_type, 0)
    layout = arrow_type(sql_type)
    slices = (values[i : i + _SLICE_ROWS] for i in range(0, len(values), _SLICE_ROWS))
    if sql_type.kind in _PLAIN:
        return concat_arrays([pa.array(part, layout) for part in slices])
    return concat_arrays([pa.array([literal_scalar(v, sql_type) for v in part], layout) for part in slices])


def raise_first(errors: Batch | None) -> None:
    """The first of a statement's row errors, if there are any."""
    if errors is not None and len(errors):
        raise first_row_error(errors)
