"""A map-filter-project of pairs, part of it done to one side's rows before they are paired, gives the same pairs."""

from __future__ import annotations

import random

import pyarrow as pa

from eddyline.expr.ir import And, Call, Column, Expr, FilterStep, Literal, MapStep, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.one_side import one_side
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, BOOLEAN

LEFT, RIGHT = 4, 3
WIDTH = LEFT + RIGHT


def _rows(rng: random.Random, width: int, rows: int) -> Batch:
    columns = tuple(pa.array([rng.choice((None, *range(5))) for _ in range(rows)], pa.int64()) for _ in range(width))
    return Batch.at((BIGINT,) * width, columns, rows, Time(3))


def _predicate(rng: random.Random, width: int) -> Expr:
    def compared() -> Expr:
        right: Expr = Literal(rng.randrange(5), BIGINT) if rng.random() < 0.5 else Column(rng.randrange(width), BIGINT)
        return Call(rng.choice(("lt", "eq", "gt")), (Column(rng.randrange(width), BIGINT), right), BOOLEAN)

    return compared() if rng.random() < 0.7 else And((compared(), compared()))


def _value(rng: random.Random, width: int) -> Expr:
    column = Column(rng.randrange(width), BIGINT)
    return column if rng.random() < 0.5 else Call("least", (column, Column(rng.randrange(width), BIGINT)), BIGINT)


def _mfp(rng: random.Random) -> Mfp:
    steps: list[MapStep | FilterStep] = []
    width = WIDTH
    for _ in range(rng.randrange(5)):
        if rng.random() < 0.5:
            steps.append(FilterStep(_predicate(rng, width)))
        else:
            steps.append(MapStep(_value(rng, width)))
            width += 1
    projection = tuple(rng.randrange(width) for _ in range(rng.randrange(4)))
    return Mfp(tuple(steps), projection, (BIGINT,) * len(projection))


def _pairs(left: Batch, right: Batch) -> Batch:
    """All of them; ``times`` are numbers of the pairs."""
    m, n = len(left), len(right)
    a = left.take(pa.array([i for i in range(m) for _ in range(n)], pa.int64()).to_numpy())
    b = right.take(pa.array([j for _ in range(m) for j in range(n)], pa.int64()).to_numpy())
    return Batch((*left.types, *right.types), (*a.columns, *b.columns), a.times, a.diffs)


def _picked(batch: Batch, columns: tuple[int, ...]) -> Batch:
    return Batch(
        tuple(batch.types[c] for c in columns), tuple(batch.columns[c] for c in columns), batch.times, batch.diffs
    )


def test_both_parts_give_the_rows_of_the_whole_in_their_order() -> None:
    moved = narrower = 0
    for seed in range(300):
        rng = random.Random(seed)
        mfp = _mfp(rng)
        left, right = _rows(rng, LEFT, rng.randrange(1, 8)), _rows(rng, RIGHT, rng.randrange(1, 8))
        whole, _ = apply_mfp(mfp, _pairs(left, right))
        for is_left in (True, False):
            split = one_side(mfp, left.types, right.types, is_left=is_left)
            own, _ = apply_mfp(split.own, left if is_left else right)
            others = _picked(right if is_left else left, split.other)
            part, errors = apply_mfp(split.rest, _pairs(own, others) if is_left else _pairs(others, own))
            assert errors is None
            assert whole.types == part.types
            assert [c.to_pylist() for c in whole.columns] == [c.to_pylist() for c in part.columns], seed
            assert len(whole) == len(part)
            moved += bool(split.own.steps)
            narrower += len(split.own.projection) < (LEFT if is_left else RIGHT)
    assert moved > 150
    assert narrower > 300


def _less(column: int, than: int) -> FilterStep:
    return FilterStep(Call("lt", (Column(column, BIGINT), Literal(than, BIGINT)), BOOLEAN))


def test_a_column_that_only_its_own_side_reads_is_gone_before_the_pairs() -> None:
    mfp = Mfp((_less(1, 3), _less(4, 2)), (0, 5), (BIGINT,) * 2)
    split = one_side(mfp, (BIGINT,) * LEFT, (BIGINT,) * RIGHT, is_left=True)
    assert split.own == Mfp((_less(1, 3),), (0,), (BIGINT,))
    assert split.other == (0, 1)
    assert split.rest == Mfp((_less(1, 2),), (0, 2), (BIGINT,) * 2)


def test_all_columns_stay_where_a_row_may_fail_since_its_error_shows_the_row() -> None:
    divided = Call("int_div", (Column(0, BIGINT), Column(4, BIGINT)), BIGINT)
    mfp = Mfp((_less(1, 3), MapStep(divided)), (2, 7), (BIGINT,) * 2, tuple("abcdxyz"), "v")
    for is_left, own, other in ((True, LEFT, RIGHT), (False, RIGHT, LEFT)):
        split = one_side(mfp, (BIGINT,) * LEFT, (BIGINT,) * RIGHT, is_left=is_left)
        assert split.rest == mfp
        assert split.own == Mfp((), tuple(range(own)), (BIGINT,) * own)
        assert split.other == tuple(range(other))
