"""The plan interpreter follows ``plan.relation`` word by word."""

from __future__ import annotations

from collections import Counter

import pytest

from eddyline.errors import DataError
from eddyline.expr.ir import AggregateCall, Call, Column, Literal, Parameter, SortKey
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    Let,
    LocalGet,
    Map,
    Negate,
    Reduce,
    Threshold,
    TopK,
    Union,
)
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, NUMERIC
from eddyline.testing.interpret import interpret

X = Column(0, INTEGER)
LEFT = Get("l", (INTEGER,))
RIGHT = Get("r", (INTEGER,))
TABLES = {"l": [(1,), (2,), (2,), (None,)], "r": [(2,), (3,), (None,)]}
SAME = Call("eq", (X, Column(1, INTEGER)), BOOLEAN)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (JoinKind.INNER, {(2, 2): 2}),
        (JoinKind.LEFT, {(2, 2): 2, (1, None): 1, (None, None): 1}),
        (JoinKind.RIGHT, {(2, 2): 2, (None, 3): 1, (None, None): 1}),
        (JoinKind.FULL, {(2, 2): 2, (1, None): 1, (None, None): 2, (None, 3): 1}),
        (JoinKind.SEMI, {(2,): 2}),
        (JoinKind.ANTI, {(1,): 1, (None,): 1}),
    ],
)
def test_join_kinds(kind: JoinKind, expected: dict[tuple[int | None, ...], int]) -> None:
    assert interpret(Join(kind, LEFT, RIGHT, (SAME,)), TABLES) == expected


def test_bag_operators_count_with_signs() -> None:
    difference = Union((LEFT, Negate(RIGHT)))
    assert interpret(difference, TABLES) == {(1,): 1, (2,): 1, (3,): -1}
    assert interpret(Threshold(difference), TABLES) == {(1,): 1, (2,): 1}
    assert interpret(Distinct(LEFT), TABLES) == {(1,): 1, (2,): 1, (None,): 1}


def test_let_is_computed_once_for_all_its_uses() -> None:
    local = LocalGet("w", (INTEGER,))
    assert interpret(Let("w", LEFT, Join(JoinKind.INNER, local, local, ())), TABLES).total() == 16


def test_global_reduce_has_a_row_over_nothing_and_a_keyed_one_has_none() -> None:
    empty = Constant((), (INTEGER,))
    calls = (AggregateCall("count", (), BIGINT), AggregateCall("sum", (X,), BIGINT))
    assert interpret(Reduce(empty, (), calls, global_row=True), {}) == {(0, None): 1}
    assert interpret(Reduce(empty, (X,), calls), {}) == {}


def test_groups_follow_sql_equality() -> None:
    rows = Constant((("1.0",), ("1.00",), (None,), (None,)), (NUMERIC,))
    counted = interpret(Reduce(rows, (Column(0, NUMERIC),), (AggregateCall("count", (), BIGINT),)), {})
    assert Counter(n for _, n in counted) == {2: 2}


def test_top_k_cuts_inside_multiplicities_and_puts_nulls_where_told() -> None:
    one = Literal(2, BIGINT)
    top = TopK(LEFT, (), (SortKey(0, desc=True, nulls_first=True),), one, Literal(0, BIGINT))
    assert interpret(top, TABLES) == {(None,): 1, (2,): 1}


def test_series_multiply_rows_and_parameters_are_bound() -> None:
    series = FlatMap(LEFT, "generate_series", (Literal(1, INTEGER), X), (INTEGER,))
    assert interpret(series, TABLES) == {(1, 1): 1, (2, 1): 2, (2, 2): 2}
    wanted = Filter(LEFT, (Call("eq", (X, Parameter(1, INTEGER)), BOOLEAN),))
    assert interpret(wanted, TABLES, {1: 2}) == {(2,): 2}


def test_row_errors_are_raised() -> None:
    division = Map(LEFT, (Call("int_div", (X, Literal(0, INTEGER)), INTEGER),))
    with pytest.raises(DataError, match="division by zero"):
        interpret(division, TABLES)
