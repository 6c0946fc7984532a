"""Short names for building plans in tests."""

from __future__ import annotations

from eddyline.expr.ir import Call, Column, Expr, Literal
from eddyline.plan.relation import Get
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, SqlType

R = Get("r", (INTEGER, INTEGER))
S = Get("s", (INTEGER, INTEGER, INTEGER))
T = Get("t", (INTEGER,))


def col(index: int, sql_type: SqlType = INTEGER) -> Column:
    return Column(index, sql_type)


def lit(value: int | None) -> Literal:
    return Literal(value, INTEGER)


def count(value: int) -> Literal:
    return Literal(value, BIGINT)


def eq(left: Expr | int, right: Expr | int) -> Expr:
    """Equality; an int is a column."""
    return Call("eq", (_expr(left), _expr(right)), BOOLEAN)


def gt(left: Expr | int, right: Expr | int) -> Expr:
    return Call("gt", (_expr(left), _expr(right)), BOOLEAN)


def div(left: Expr | int, right: Expr | int) -> Expr:
    return Call("int_div", (_expr(left), _expr(right)), INTEGER)


def _expr(value: Expr | int) -> Expr:
    return col(value) if isinstance(value, int) else value
