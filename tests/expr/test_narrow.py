"""A map-filter-project over the columns that it reads means what it means over all of them."""

from __future__ import annotations

import random

import pyarrow as pa

from eddyline.expr.ir import And, Call, Column, Expr, FilterStep, Literal, MapStep, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.expr.narrow import narrow
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, BOOLEAN

WIDTH = 6


def _batch(rng: random.Random) -> Batch:
    rows = rng.randrange(12)
    columns = tuple(pa.array([rng.choice((None, *range(5))) for _ in range(rows)], pa.int64()) for _ in range(WIDTH))
    return Batch.at((BIGINT,) * WIDTH, columns, rows, Time(3))


def _predicate(rng: random.Random, width: int) -> Expr:
    def compared() -> Expr:
        right: Expr = Literal(rng.randrange(5), BIGINT) if rng.random() < 0.5 else Column(rng.randrange(width), BIGINT)
        return Call(rng.choice(("lt", "eq", "gt")), (Column(rng.randrange(width), BIGINT), right), BOOLEAN)

    return compared() if rng.random() < 0.7 else And((compared(), compared()))


def _mfp(rng: random.Random) -> Mfp:
    steps: list[MapStep | FilterStep] = []
    width = WIDTH
    for _ in range(rng.randrange(4)):
        if rng.random() < 0.5:
            steps.append(FilterStep(_predicate(rng, width)))
        else:
            steps.append(MapStep(Column(rng.randrange(width), BIGINT)))
            width += 1
    projection = tuple(rng.randrange(width) for _ in range(rng.randrange(4)))
    return Mfp(tuple(steps), projection, (BIGINT,) * len(projection))


def test_the_narrow_one_gives_the_same_rows() -> None:
    narrower = 0
    for seed in range(300):
        rng = random.Random(seed)
        mfp, batch = _mfp(rng), _batch(rng)
        kept, narrowed = narrow(mfp, WIDTH)
        narrower += len(kept) < WIDTH
        some = Batch(
            tuple(batch.types[c] for c in kept), tuple(batch.columns[c] for c in kept), batch.times, batch.diffs
        )
        whole, part = apply_mfp(mfp, batch)[0], apply_mfp(narrowed, some)[0]
        assert whole.types == part.types
        assert [c.to_pylist() for c in whole.columns] == [c.to_pylist() for c in part.columns], seed
        assert whole.times.tolist() == part.times.tolist()
        assert whole.diffs.tolist() == part.diffs.tolist()
    assert narrower > 200


def test_all_columns_stay_where_a_row_may_fail_since_its_error_shows_the_row() -> None:
    divided = Call("int_div", (Column(0, BIGINT), Column(1, BIGINT)), BIGINT)
    mfp = Mfp((MapStep(divided),), (4,), (BIGINT,), ("a", "b", "c", "d"))
    assert narrow(mfp, 4) == ((0, 1, 2, 3), mfp)
