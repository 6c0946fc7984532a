"""Constant folding: same values, no further errors."""

from __future__ import annotations

import pytest

from eddyline.expr.fold import fold
from eddyline.expr.ir import And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or
from eddyline.repr.types import BOOLEAN, INTEGER, NUMERIC, TEXT

X = Column(0, INTEGER)
P = Column(1, BOOLEAN)
ONE, ZERO = Literal(1, INTEGER), Literal(0, INTEGER)
TRUE, FALSE, NULL = (Literal(v, BOOLEAN) for v in (True, False, None))
FAILS = Call("int_div", (ONE, ZERO), INTEGER)
FAILING_TEST = Call("eq", (FAILS, ONE), BOOLEAN)
MAY_FAIL = Call("eq", (Call("int_div", (ONE, X), INTEGER), ONE), BOOLEAN)

CASES: list[tuple[Expr, Expr]] = [
    (Call("int_add", (ONE, Call("int_add", (ONE, ONE), INTEGER)), INTEGER), Literal(3, INTEGER)),
    (Cast(Literal("1.50", TEXT), NUMERIC), Literal("1.50", NUMERIC)),
    (FAILS, FAILS),
    (Cast(Literal("x", TEXT), INTEGER), Cast(Literal("x", TEXT), INTEGER)),
    (Call("int_add", (X, Literal(None, INTEGER)), INTEGER), Literal(None, INTEGER)),
    (Call("is_null", (Literal(None, INTEGER),), BOOLEAN), TRUE),
    (Call("nullif", (X, Literal(None, INTEGER)), INTEGER), X),
    (Call("nullif", (Literal(None, INTEGER), FAILS), INTEGER), Literal(None, INTEGER)),
    (And((TRUE, P, TRUE)), P),
    (And((P, FALSE, MAY_FAIL)), FALSE),
    (And((MAY_FAIL, FALSE)), FALSE),
    (And((MAY_FAIL, TRUE)), MAY_FAIL),
    (And((FALSE, FAILING_TEST)), FALSE),
    (And((P, FAILING_TEST)), And((P, FAILING_TEST))),
    (And((P, NULL)), And((P, NULL))),
    (And((NULL, NULL)), NULL),
    (And((TRUE, TRUE)), TRUE),
    (Or((FALSE, P)), P),
    (Or((P, TRUE, FAILING_TEST)), TRUE),
    (Or(()), FALSE),
    (Case(((FALSE, FAILS), (P, ONE)), ZERO, INTEGER), Case(((P, ONE),), ZERO, INTEGER)),
    (Case(((P, FAILS), (TRUE, ONE)), FAILS, INTEGER), Case(((P, FAILS),), ONE, INTEGER)),
    (Case(((TRUE, X),), FAILS, INTEGER), X),
    (Coalesce((Literal(None, INTEGER), X, ONE, FAILS), INTEGER), Coalesce((X, ONE), INTEGER)),
    (Coalesce((ONE, FAILS), INTEGER), ONE),
]


@pytest.mark.parametrize(("before", "after"), CASES, ids=range(len(CASES)))
def test_folding(before: Expr, after: Expr) -> None:
    assert fold(before) == after
    assert fold(after) == after
