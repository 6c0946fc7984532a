"""Constant folding: same values, no further errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.expr.evaluate import evaluate
from eddyline.expr.fold import fold
from eddyline.expr.ir import And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or
from eddyline.repr.types import BOOLEAN, DATE, INTEGER, NUMERIC, TEXT, TIMESTAMP

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


DAY_US = 86_400_000_000
D = Column(0, DATE)
AS_TIMESTAMP = Cast(D, TIMESTAMP, False)
#: dates around the constants below, the greatest that is a timestamp, infinities, NULL
DATES = [None, -(2**31), -2, -1, 0, 1, 2, 9, 10, 11, 106_751_983, 2**31 - 1]


def _compared(func: str, micros: int, *, turned: bool) -> Call:
    bound = Literal(micros, TIMESTAMP)
    return Call(func, (bound, AS_TIMESTAMP) if turned else (AS_TIMESTAMP, bound), BOOLEAN)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("func", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_dates_compare_with_a_constant_timestamp_as_they_do_with_a_date(func: str, turned: bool) -> None:
    dates = pa.array(DATES, pa.int32()).cast(pa.date32())
    for micros in (-DAY_US - 1, -DAY_US, -1, 0, 1, DAY_US - 1, DAY_US, 10 * DAY_US, 10 * DAY_US + 5):
        before = _compared(func, micros, turned=turned)
        after = fold(before)
        whole = micros % DAY_US == 0
        assert (after == before) == (func in ("eq", "ne") and not whole)
        assert evaluate(after, [dates], len(DATES)).array.to_pylist() == (
            evaluate(before, [dates], len(DATES)).array.to_pylist()
        )


def test_only_casts_that_a_comparison_asked_for_are_taken_away() -> None:
    for kept in (
        Call("lt", (Cast(D, TIMESTAMP, True), Literal(0, TIMESTAMP)), BOOLEAN),  # this one may fail, and is to
        _compared("lt", 2**63 - 1, turned=False),
        _compared("gt", -(2**63), turned=False),
        Call("lt", (AS_TIMESTAMP, Column(1, TIMESTAMP)), BOOLEAN),
    ):
        assert fold(kept) == kept
    beyond = pa.array([2**31 - 2], pa.int32()).cast(pa.date32())
    late = _compared("gt", 0, turned=False)
    assert evaluate(late, [beyond], 1).errors is not None
    assert evaluate(fold(late), [beyond], 1).array.to_pylist() == [True]
