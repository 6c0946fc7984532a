"""Which expressions can fail: they must stay behind their guards, the others may move."""

from __future__ import annotations

import pytest

from eddyline.expr.ir import And, Call, Case, Cast, Column, Expr, Literal, Raise
from eddyline.expr.properties import Fallibility, can_fail, is_constant
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, TEXT, numeric

X, B = Column(0, INTEGER), Column(1, BOOLEAN)
PRICE = Column(2, numeric(2, 12))
WIDE = Column(3, numeric(2, 37))


def lit(value: int) -> Literal:
    return Literal(value, INTEGER)


def product(left: Expr, right: Expr) -> Call:
    return Call("numeric_mul", (left, right), numeric((left.type.scale or 0) + (right.type.scale or 0)))


CASES: list[tuple[Expr, bool]] = [
    (X, False),
    (Raise("22000", "x", INTEGER), True),
    (Call("eq", (X, lit(1)), BOOLEAN), False),
    (Call("int_add", (X, lit(1)), INTEGER), True),
    (Call("int_div", (X, X), INTEGER), True),
    (Call("int_div", (X, lit(0)), INTEGER), True),
    (Call("int_div", (X, lit(-1)), INTEGER), True),
    (Call("int_div", (X, lit(10)), INTEGER), False),
    (Call("int_mod", (X, lit(10)), INTEGER), False),
    (Cast(X, BIGINT), False),
    (Cast(X, TEXT), False),
    (Cast(Column(0, TEXT), INTEGER), True),
    (Cast(X, numeric(0)), False),
    (Cast(X, numeric(2)), True),
    (Call("float_neg", (Column(0, DOUBLE),), DOUBLE), False),
    (product(PRICE, PRICE), False),
    (product(PRICE, Cast(X, numeric(0))), False),
    (product(PRICE, Literal("1.19", numeric(2))), False),
    (product(PRICE, Column(4, NUMERIC)), True),
    (product(WIDE, WIDE), True),
    (product(product(PRICE, PRICE), PRICE), True),
    (Call("numeric_add", (PRICE, PRICE), numeric(2)), False),
    (Call("numeric_sub", (WIDE, WIDE), numeric(2)), False),
    (Call("numeric_add", (WIDE, Column(4, numeric(8, 10))), numeric(8)), True),
    (Call("numeric_div", (PRICE, PRICE), NUMERIC), True),
    (And((B, Call("int_neg", (X,), INTEGER))), True),
    (Case(((B, X),), Cast(Literal("1", TEXT), INTEGER), INTEGER), True),
]


@pytest.mark.parametrize(("expr", "fails"), CASES, ids=range(len(CASES)))
def test_can_fail(expr: Expr, fails: bool) -> None:
    assert can_fail(expr) is fails
    memory = Fallibility()
    assert memory.can_fail(expr) is fails and memory.can_fail(expr) is fails


def test_a_constant_reads_no_row() -> None:
    assert is_constant(Call("int_add", (lit(1), lit(2)), INTEGER))
    assert not is_constant(Call("int_add", (lit(1), X), INTEGER))
