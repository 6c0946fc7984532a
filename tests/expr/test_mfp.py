"""Map, filter, project: projection, dropped rows, errs with their row's time and diff."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.expr.ir import Call, Cast, Column, FilterStep, Literal, MapStep, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import Time
from eddyline.repr.types import BOOLEAN, INTEGER, TEXT

TYPES = (INTEGER, TEXT)
N = Column(0, INTEGER)
TENTH = Call("int_div", (Literal(10, INTEGER), N), INTEGER)


def batch(*rows: tuple[int | None, str | None, int, int]) -> Batch:
    return Batch(
        TYPES,
        (pa.array([r[0] for r in rows], pa.int32()), pa.array([r[1] for r in rows], pa.large_string())),
        np.array([r[2] for r in rows], np.int64),
        np.array([r[3] for r in rows], np.int64),
    )


def updates(result: Batch) -> list[tuple[object, ...]]:
    columns = [c.to_pylist() for c in result.columns]
    return list(zip(*columns, result.times.tolist(), result.diffs.tolist(), strict=True))


def positive(index: int) -> FilterStep:
    return FilterStep(Call("gt", (Column(index, INTEGER), Literal(1, INTEGER)), BOOLEAN))


def test_identity_shares_the_columns() -> None:
    source = batch((1, "a", 5, 1), (2, None, 6, -1))
    out, errs = apply_mfp(Mfp((), (0, 1), TYPES), source)
    assert errs is None
    assert out.columns[0] is source.columns[0] and out.times is source.times


def test_only_true_passes_a_filter() -> None:
    out, errs = apply_mfp(
        Mfp((positive(0),), (1, 0), (TEXT, INTEGER)), batch((2, "a", 1, 3), (1, "b", 2, 1), (None, "c", 3, 1))
    )
    assert errs is None
    assert updates(out) == [("a", 2, 1, 3)]


def test_a_failed_row_becomes_an_errs_update_and_no_output() -> None:
    mfp = Mfp((MapStep(TENTH), positive(2)), (2,), (INTEGER,))
    out, errs = apply_mfp(mfp, batch((5, "x", 1, 1), (0, "it's", 2, -2), (100, "y", 3, 1), (None, "z", 4, 1)))
    assert updates(out) == [(2, 1, 1)]
    assert errs is not None and errs.types == ERR_TYPES
    assert updates(errs) == [("22012", "division by zero", "(10 / #0)", "(0, 'it''s')", "", 2, -2)]


def test_later_steps_do_not_see_dropped_or_failed_rows() -> None:
    number = Cast(Column(1, TEXT), INTEGER)
    mfp = Mfp(
        (positive(0), MapStep(number), MapStep(Call("int_div", (N, Column(2, INTEGER)), INTEGER))), (3,), (INTEGER,)
    )
    out, errs = apply_mfp(mfp, batch((0, "bad", 1, 1), (9, "3", 1, 1), (8, "no", 2, 1), (7, "0", 3, 5)))
    assert updates(out) == [(3, 1, 1)]
    assert errs is not None
    assert [(e[0], e[3], e[5], e[6]) for e in updates(errs)] == [
        ("22P02", "(8, 'no')", 2, 1),
        ("22012", "(7, '0')", 3, 5),
    ]


def test_equal_failing_rows_have_identical_errs() -> None:
    """So that the retraction of the row cancels its error."""
    mfp = Mfp((MapStep(TENTH),), (2,), (INTEGER,))
    _, first = apply_mfp(mfp, batch((0, "a", 1, 1)))
    _, second = apply_mfp(mfp, batch((7, "b", 3, 1), (0, "a", 3, -1)))
    assert first is not None and second is not None
    assert [c.to_pylist() for c in first.columns] == [c.to_pylist() for c in second.columns]


def test_long_samples_are_cut() -> None:
    _, errs = apply_mfp(Mfp((MapStep(TENTH),), (2,), (INTEGER,)), batch((0, "x" * 1_000_000, 1, 1)))
    assert errs is not None
    sample = errs.columns[3][0].as_py()
    assert len(sample) == 200 and sample.endswith("…")


def test_a_row_without_columns_can_fail() -> None:
    quotient = Call("int_div", (Literal(1, INTEGER), Literal(0, INTEGER)), INTEGER)
    out, errs = apply_mfp(Mfp((MapStep(quotient),), (0,), (INTEGER,)), Batch.at((), (), 2, Time(5)))
    assert len(out) == 0 and errs is not None
    assert updates(errs) == [("22012", "division by zero", "1 / 0", "()", "", 5, 1)] * 2


def test_an_empty_batch_stays_empty() -> None:
    out, errs = apply_mfp(Mfp((MapStep(TENTH), positive(2)), (2, 0), (INTEGER, INTEGER)), Batch.empty(TYPES))
    assert len(out) == 0 and errs is None and out.columns[0].type == pa.int32()
