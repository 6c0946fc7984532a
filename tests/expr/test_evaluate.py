"""Selections, three-valued logic, and where errors are raised and where not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import InternalError
from eddyline.expr.describe import describe
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import And, Call, Case, Cast, Coalesce, Column, Expr, Literal, Or, Parameter, Raise
from eddyline.expr.properties import can_fail
from eddyline.expr.text_io import literal_array, parse_literal
from eddyline.repr.types import BOOLEAN, BYTEA, DATE, INTEGER, INTERVAL, NUMERIC, TEXT, TIME, TIMESTAMPTZ, UUID, numeric

X, Y = Column(0, INTEGER), Column(1, INTEGER)
A, B, C = (Column(i, BOOLEAN) for i in range(3))
ZERO = Literal(0, INTEGER)
QUOTIENT = Call("int_div", (X, Y), INTEGER)
Y_NOT_ZERO = Call("ne", (Y, ZERO), BOOLEAN)
FAILS = Call("eq", (Call("int_div", (X, ZERO), INTEGER), ZERO), BOOLEAN)
LAYOUTS = [
    (BOOLEAN, "t"),
    (INTEGER, "7"),
    (numeric(2), "1.50"),
    (NUMERIC, "1.500"),
    (TEXT, "x"),
    (BYTEA, "\\x00"),
    (DATE, "2024-01-01"),
    (TIME, "10:00"),
    (TIMESTAMPTZ, "2024-01-01 00:00+00"),
    (INTERVAL, "1 day"),
    (UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
]
TERNARY = [True, False, None]


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def run(expr: Expr, *columns: pa.Array, rows: int | None = None) -> tuple[list[Any], list[int]]:
    """(values, failed rows)."""
    count = len(columns[0]) if rows is None else rows
    array, errors = evaluate(expr, columns, count)
    return array.to_pylist(), [] if errors is None else errors.rows.tolist()


def test_an_error_belongs_to_its_row_and_names_its_expression() -> None:
    array, errors = evaluate(QUOTIENT, [ints(6, 7, None, 8), ints(2, 0, 0, None)], 4)
    assert array.to_pylist() == [3, None, None, None]
    assert errors is not None
    assert errors.rows.tolist() == [1]
    assert (errors.sqlstates, errors.messages, errors.expressions) == (["22012"], ["division by zero"], ["(#0 / #1)"])


def test_a_branch_is_evaluated_only_for_the_rows_that_reach_it() -> None:
    guarded = Case(((Y_NOT_ZERO, QUOTIENT),), Literal(-1, INTEGER), INTEGER)
    assert run(guarded, ints(6, 7, 8), ints(2, 0, None)) == ([3, -1, -1], [])


def test_a_failing_condition_fails_its_row_and_no_branch_sees_it() -> None:
    expr = Case(((FAILS, Literal(1, INTEGER)),), Raise("22000", "reached", INTEGER), INTEGER)
    assert run(expr, ints(1, 2)) == ([None, None], [0, 1])
    _, errors = evaluate(expr, [ints(1, 2)], 2)
    assert errors is not None and set(errors.sqlstates) == {"22012"}


def test_case_takes_the_first_true_branch() -> None:
    expr = Case(((A, Literal("a", TEXT)), (B, Literal("b", TEXT))), Literal(None, TEXT), TEXT)
    rows = list(itertools.product(TERNARY, repeat=2))
    columns = [pa.array([r[i] for r in rows], pa.bool_()) for i in range(2)]
    assert run(expr, *columns)[0] == ["a" if a else "b" if b else None for a, b in rows]


def _and(values: tuple[bool | None, ...]) -> bool | None:
    return False if False in values else None if None in values else True


@pytest.mark.parametrize("node", [And, Or])
def test_connectives_follow_three_valued_logic(node: type[And] | type[Or]) -> None:
    rows = list(itertools.product(TERNARY, repeat=3))
    columns = [pa.array([r[i] for r in rows], pa.bool_()) for i in range(3)]
    if node is And:
        expected = [_and(r) for r in rows]
    else:
        inverted = [_and(tuple(None if v is None else not v for v in r)) for r in rows]
        expected = [None if v is None else not v for v in inverted]
    assert run(node((A, B, C)), *columns) == (expected, [])


def test_and_goes_left_to_right_and_stops_at_false() -> None:
    numbers = ints(1, 2, 3)
    flags = pa.array([True, False, None])
    flag = Column(1, BOOLEAN)
    assert run(And((flag, FAILS)), numbers, flags) == ([None, False, None], [0, 2])
    assert run(And((FAILS, flag)), numbers, flags)[1] == [0, 1, 2]
    assert run(Or((flag, FAILS)), numbers, flags) == ([True, None, None], [1, 2])


def test_coalesce_evaluates_an_argument_only_where_all_before_are_null() -> None:
    expr = Coalesce((X, QUOTIENT, Literal(9, INTEGER)), INTEGER)
    assert run(expr, ints(1, None, None), ints(0, 0, 1)) == ([1, 9, 9], [])
    eager = Coalesce((QUOTIENT, X), INTEGER)
    assert run(eager, ints(1, 4, None), ints(0, 2, 0)) == ([None, 2, None], [0])


def test_strict_functions_neither_see_nor_fail_on_null() -> None:
    assert run(QUOTIENT, ints(None, 1), ints(0, None)) == ([None, None], [])
    null = Literal(None, INTEGER)
    assert run(Call("int_div", (X, null), INTEGER), ints(1, 2)) == ([None, None], [])
    # a constant NULL makes a strict call NULL whatever becomes of its other arguments
    assert run(Call("int_add", (Call("int_div", (X, ZERO), INTEGER), null), INTEGER), ints(1, 2)) == ([None, None], [])


def test_an_argument_that_failed_fails_the_call_even_if_it_is_not_strict() -> None:
    assert run(Call("is_null", (QUOTIENT,), BOOLEAN), ints(1, 4), ints(0, 2)) == ([None, False], [0])


def test_of_two_failing_arguments_the_first_is_reported() -> None:
    first = Cast(Literal("x", TEXT), INTEGER)
    both = Call("int_add", (first, Call("int_div", (X, ZERO), INTEGER)), INTEGER)
    _, errors = evaluate(both, [ints(1)], 1)
    assert errors is not None and errors.sqlstates == ["22P02"]


def test_constants_are_the_same_on_every_row() -> None:
    expr = Call("int_add", (Literal(1, INTEGER), Literal(2, INTEGER)), INTEGER)
    assert run(expr, rows=3) == ([3, 3, 3], [])
    failing = Call("int_div", (Literal(1, INTEGER), ZERO), INTEGER)
    assert run(failing, rows=3) == ([None] * 3, [0, 1, 2])
    assert run(failing, rows=0) == ([], [])


def test_no_rows_give_an_empty_column_of_the_right_layout() -> None:
    for expr in (QUOTIENT, Case(((Y_NOT_ZERO, QUOTIENT),), X, INTEGER), Coalesce((X, Y), INTEGER)):
        array, errors = evaluate(expr, [ints(), ints()], 0)
        assert array.type == pa.int32() and len(array) == 0 and errors is None
    assert run(And((Y_NOT_ZERO, FAILS)), ints(), ints()) == ([], [])


def test_sliced_columns_are_read_at_their_offset() -> None:
    columns = [ints(9, 9, 6, None, 8).slice(2), ints(0, 0, 3, 1, 2).slice(2)]
    assert run(QUOTIENT, *columns) == ([2, None, 4], [])


@pytest.mark.parametrize("depth", [1_000, 5_000])
def test_depth_does_not_exhaust_the_stack(depth: int) -> None:
    total: Expr = X
    for _ in range(depth):
        total = Call("int_add", (total, Literal(1, INTEGER)), INTEGER)
    assert run(total, ints(1, None)) == ([1 + depth, None], [])
    assert can_fail(total)
    assert describe(total).count("+") == depth


def test_nested_guards_of_great_depth() -> None:
    expr: Expr = QUOTIENT
    for _ in range(1_000):
        expr = Case(((Y_NOT_ZERO, expr),), X, INTEGER)
    assert run(expr, ints(6, 7), ints(2, 0)) == ([3, 7], [])


def test_a_parameter_must_be_replaced_first() -> None:
    with pytest.raises(InternalError):
        evaluate(Parameter(1, INTEGER), [], 1)


def test_random_expressions_agree_with_a_row_interpreter() -> None:
    """AND, OR, CASE and COALESCE over columns and failing leaves, row by row."""
    rng = np.random.default_rng(5)
    rows = 40
    data = [[(True, False, None)[int(v)] for v in rng.integers(0, 3, rows)] for _ in range(3)]
    columns = [pa.array(values, pa.bool_()) for values in data]
    for _ in range(300):
        expr = _random_expr(rng, 4)
        array, errors = evaluate(expr, columns, rows)
        failed = set() if errors is None else set(errors.rows.tolist())
        for row, value in enumerate(array.to_pylist()):
            expected = _interpret(expr, [values[row] for values in data])
            assert (expected == "error") == (row in failed), describe(expr)
            if row not in failed:
                assert value == expected, describe(expr)


def _random_expr(rng: np.random.Generator, depth: int) -> Expr:
    choice = int(rng.integers(0, 7)) if depth else int(rng.integers(0, 2))
    if choice == 0:
        return Raise("22000", "x", BOOLEAN) if rng.random() < 0.4 else Literal(bool(rng.integers(0, 2)), BOOLEAN)
    if choice <= 2:
        return Column(int(rng.integers(0, 3)), BOOLEAN)
    parts = tuple(_random_expr(rng, depth - 1) for _ in range(3))
    if choice == 3:
        return And(parts)
    if choice == 4:
        return Or(parts)
    if choice == 5:
        return Coalesce(parts, BOOLEAN)
    return Case(((parts[0], parts[1]),), parts[2], BOOLEAN)


def _interpret(expr: Expr, row: list[bool | None]) -> bool | str | None:
    match expr:
        case Raise():
            return "error"
        case Literal():
            return expr.value  # type: ignore[return-value]  # only booleans here
        case Column():
            return row[expr.index]
        case And() | Or():
            absorbing = isinstance(expr, Or)
            unknown = False
            for arg in expr.args:
                value = _interpret(arg, row)
                if value == "error" or value is absorbing:
                    return value
                unknown = unknown or value is None
            return None if unknown else not absorbing
        case Coalesce():
            for arg in expr.args:
                value = _interpret(arg, row)
                if value is not None:
                    return value
            return None
        case Case():
            value = _interpret(expr.whens[0][0], row)
            if value == "error":
                return value
            return _interpret(expr.whens[0][1] if value is True else expr.otherwise, row)
    raise AssertionError(expr)


def test_case_over_plain_results_works_in_every_layout() -> None:
    condition = Column(0, BOOLEAN)
    flags = pa.array([True, False, None])
    for sql_type, text in LAYOUTS:
        values = literal_array(parse_literal(text, sql_type), sql_type, 3)
        null = Literal(None, sql_type)
        expr = Case(((condition, Column(1, sql_type)),), null, sql_type)
        array, errors = evaluate(expr, [flags, values], 3)
        array.validate()
        assert errors is None and array.type == values.type
        assert array.is_valid().to_pylist() == [True, False, False] and array[0] == values[0]
        kept = evaluate(Case(((condition, null),), Column(1, sql_type), sql_type), [flags, values], 3).array
        assert kept.is_valid().to_pylist() == [False, True, True] and kept[1] == values[1]
        mixed = evaluate(Coalesce((expr, Column(1, sql_type)), sql_type), [flags, values], 3).array
        assert mixed.equals(values)


def test_a_case_that_takes_one_branch_on_all_rows_is_no_constant() -> None:
    """What a row gives, value or error, does not depend on the rows beside it."""
    fails = Call("int_div", (X, ZERO), INTEGER)
    sometimes = Case(((Call("eq", (X, Literal(1, INTEGER)), BOOLEAN), Y),), Literal(None, INTEGER), INTEGER)
    total = Call("int_add", (sometimes, fails), INTEGER)
    assert run(total, ints(2, 3), ints(0, 0)) == ([None, None], [0, 1])
    assert run(total, ints(1, 2, 3), ints(0, 0, 0)) == ([None, None, None], [0, 1, 2])
