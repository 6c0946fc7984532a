"""Predicates over few rows: the quick way and ``evaluate`` agree, wherever the quick way answers at all."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.expr.evaluate import evaluate_frame, true_rows
from eddyline.expr.frame import Frame
from eddyline.expr.ir import And, Call, Cast, Column, Expr, FilterStep, Literal, Mfp, Or
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.quick_filter import QUICK_ROWS, quick_truth
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    NUMERIC,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    numeric,
)
from eddyline.testing.columns import random_column

PLAIN = (SMALLINT, INTEGER, BIGINT, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, numeric(0), numeric(2))
LITERALS = {
    SMALLINT: (0, 1, -7, 32767),
    INTEGER: (0, -1, 5, -(2**31)),
    BIGINT: (0, 3, 2**63 - 1, -(2**63)),
    DATE: (0, 9131, -5000),
    TIME: (0, 43_200_000_000),
    TIMESTAMP: (0, 9131 * 86_400_000_000, -1),
    TIMESTAMPTZ: (0, 1),
    numeric(0): ("0", "7", "99999999999999999999999999"),
    numeric(2): ("0.00", "0.05", "-1.50"),
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def compared(rng: Random, at: int, sql_type: SqlType) -> Expr:
    """Of columns 2 * at and 2 * at + 1, which are of one type."""
    column, other = Column(2 * at, sql_type), Column(2 * at + 1, sql_type)
    literal = Literal(rng.choice(LITERALS[sql_type]), sql_type)
    pairs: list[tuple[Expr, Expr]] = [(column, other), (column, literal), (literal, column)]
    if sql_type is DATE:
        moment = Literal(rng.choice(LITERALS[TIMESTAMP]), TIMESTAMP)
        pairs += [(Cast(column, TIMESTAMP, False), moment), (moment, Cast(column, TIMESTAMP, False))]
    return Call(rng.choice(COMPARISONS), rng.choice(pairs), BOOLEAN)


def predicate(rng: Random, depth: int = 2) -> Expr:
    if depth and rng.random() < 0.5:
        args = tuple(predicate(rng, depth - 1) for _ in range(rng.randrange(2, 4)))
        return And(args) if rng.random() < 0.5 else Or(args)
    at = rng.randrange(len(PLAIN))
    return compared(rng, at, PLAIN[at])


def columns(rng: Random, rows: int, *, nulls: bool) -> list[pa.Array]:
    made = []
    for sql_type in PLAIN:
        for _ in range(2):
            whole = random_column(sql_type, 8 * rows + 40, rng)
            made.append(whole.slice(3, rows) if nulls else whole.drop_null().slice(1, rows))
    assert all(len(c) == rows for c in made)
    return made


@pytest.mark.parametrize("nulls", [False, True])
def test_the_quick_way_and_evaluation_agree(nulls: bool) -> None:
    answered = 0
    for seed in range(400):
        rng = Random(seed)
        rows = rng.choice((1, 2, 9))
        expr, frame = predicate(rng), Frame(columns(rng, rows, nulls=nulls), rows)
        truth = quick_truth(expr, frame)
        if truth is not None:
            answered += 1
            assert truth.dtype == np.bool_
            assert truth.tolist() == true_rows(evaluate_frame(expr, frame), rows).tolist(), (seed, expr)
    assert answered > (20 if nulls else 200)


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_ordinary_dates_and_amounts_are_answered(comparison: str) -> None:
    days, cents = pa.array([9130, 9131, 9132], pa.int32()).cast(pa.date32()), pa.array([4, 5, 6], pa.int64())
    amounts = pa.Array.from_buffers(
        pa.decimal128(38, 2), 3, [None, pa.py_buffer(np.column_stack((cents, np.zeros(3, np.int64))).tobytes())]
    )
    frame = Frame([days, amounts], 3)
    moment = Literal(9131 * 86_400_000_000, TIMESTAMP)
    for expr in (
        Call(comparison, (Column(0, DATE), Literal(9131, DATE)), BOOLEAN),
        Call(comparison, (Cast(Column(0, DATE), TIMESTAMP, False), moment), BOOLEAN),
        Call(comparison, (Column(1, numeric(2)), Literal("0.05", numeric(2))), BOOLEAN),
    ):
        truth = quick_truth(expr, frame)
        assert truth is not None
        assert truth.tolist() == true_rows(evaluate_frame(expr, frame), 3).tolist()


def test_what_is_not_plain_is_left_to_evaluation() -> None:
    ones = pa.array([1, 2], pa.int64())
    one = Literal(1, BIGINT)
    less = Call("lt", (Column(0, BIGINT), one), BOOLEAN)
    assert quick_truth(less, Frame([pa.array([1, None], pa.int64())], 2)) is None
    assert quick_truth(less, Frame([pa.array(np.arange(QUICK_ROWS + 1))], QUICK_ROWS + 1)) is None
    assert quick_truth(Call("lt", (one, one), BOOLEAN), Frame([ones], 2)) is None
    assert quick_truth(Call("lt", (Column(0, BIGINT), Literal(None, BIGINT)), BOOLEAN), Frame([ones], 2)) is None
    text = pa.array(["a", "b"], pa.large_string())
    assert quick_truth(Call("eq", (Column(0, TEXT), Literal("a", TEXT)), BOOLEAN), Frame([text], 2)) is None
    number = Call("eq", (Column(0, NUMERIC), Literal("1", NUMERIC)), BOOLEAN)
    assert quick_truth(number, Frame([pa.array([b"0" * 24] * 2, pa.binary(24))], 2)) is None
    infinite = pa.array([9131, 2**31 - 1], pa.int32()).cast(pa.date32())
    moment = Call("lt", (Cast(Column(0, DATE), TIMESTAMP, False), Literal(0, TIMESTAMP)), BOOLEAN)
    assert quick_truth(moment, Frame([infinite], 2)) is None


def test_filters_one_after_another_keep_the_rows_that_all_accept() -> None:
    rows = 40
    batch = Batch.at((BIGINT, BIGINT), (pa.array(np.arange(rows)), pa.array(np.arange(rows) % 3)), rows, Time(4))
    steps = (
        FilterStep(Call("ge", (Column(0, BIGINT), Literal(10, BIGINT)), BOOLEAN)),
        FilterStep(Call("eq", (Column(1, BIGINT), Literal(1, BIGINT)), BOOLEAN)),
        FilterStep(Call("lt", (Column(0, BIGINT), Literal(30, BIGINT)), BOOLEAN)),
    )
    kept, errors = apply_mfp(Mfp(steps, (0,), (BIGINT,)), batch)
    assert errors is None
    assert kept.columns[0].to_pylist() == [i for i in range(10, 30) if i % 3 == 1]
    assert len(kept.times) == len(kept.columns[0])
