"""A run built at once from many batches is the run that their concatenation gives."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DataError
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.repr.types import BIGINT, INTEGER, NUMERIC, TEXT, SqlType
from eddyline.testing.columns import ALL_TYPES
from eddyline.testing.row_keys import row_keys
from eddyline.trace.bulk import RunBuilder
from eddyline.trace.fresh import PIECE_BYTES
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, Run, build_run, count_retracted
from tests.trace.multiset import Item, multiset, random_batch

_AT = Time(3)
_LOWER, _UPPER = Frontier(3), Frontier(4)


def built(batches: list[Batch], layout: Layout, hasher: Hasher, *, fuel: int) -> Run | None:
    builder = RunBuilder(layout, hasher, _AT)
    for batch in batches:
        builder.add(batch)
    while builder.work(fuel):
        continue
    return builder.result(lower=_LOWER, upper=_UPPER, since=_LOWER)


def same(found: Run | None, wanted: Run) -> None:
    if found is None:
        assert len(wanted) == 0
        return
    for name in ("key_hashes", "value_hashes", "times", "diffs"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    assert found.retracted == wanted.retracted == count_retracted(wanted.times, wanted.diffs, wanted.since)
    types = found.types
    assert row_keys(found.columns, types, len(found)) == row_keys(wanted.columns, types, len(wanted))
    for column in found.columns:
        column.validate(full=True)


@pytest.mark.parametrize("bits", [64, 4])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_it_is_the_run_of_all_batches_together(kind: SqlType, bits: int) -> None:
    rng, hasher = Random(f"{kind}{bits}"), Hasher(9, bits=bits)
    for key in ((0,), (1,), (0, 1), ()):
        layout = Layout((kind, INTEGER), key)
        batches = [random_batch(layout.types, rows, range(3, 4), rng) for rows in (70, 0, 200, 1, 90)]
        whole = build_run(Batch.concat(layout.types, batches), layout, hasher, lower=_LOWER, upper=_UPPER, since=_LOWER)
        for fuel in (1, 64, 10_000):
            same(built(batches, layout, hasher, fuel=fuel), whole)


def test_slices_of_columns_are_read_where_they_lie() -> None:
    rng, hasher = Random(1), Hasher(2)
    layout = Layout((TEXT, NUMERIC, BIGINT), (2,))
    batch = random_batch(layout.types, 300, range(3, 4), rng)
    slices = [batch.slice(start, min(start + 37, 300)) for start in range(0, 300, 37)]
    same(
        built(slices, layout, hasher, fuel=50),
        build_run(batch, layout, hasher, lower=_LOWER, upper=_UPPER, since=_LOWER),
    )


def test_its_retractions_are_later_than_a_since_that_is_before_its_time() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(2)
    builder = RunBuilder(layout, hasher, _AT)
    builder.add(random_batch(layout.types, 50, range(3, 4), Random(3)).negated())
    while builder.work(8):
        continue
    for since in (Frontier(0), _LOWER):
        run = builder.result(lower=_LOWER, upper=_UPPER, since=since)
        assert run is not None and run.retracted.all > 0
        assert run.retracted == count_retracted(run.times, run.diffs, since)


@pytest.mark.parametrize("times", [1, 2])
def test_rows_that_come_once_are_built_like_others(times: int) -> None:
    rng, hasher = Random(times), Hasher(9, bits=4)
    layout = Layout((TEXT, INTEGER), (1,))
    batches = [random_batch(layout.types, rows, range(3, 4), rng) for rows in (70, 200, 90)]
    batches = [Batch(b.types, b.columns, b.times, np.ones(len(b), np.int64)) for b in batches] * times
    whole = build_run(Batch.concat(layout.types, batches), layout, hasher, lower=_LOWER, upper=_UPPER, since=_LOWER)
    same(built(batches, layout, hasher, fuel=64), whole)


def test_no_step_touches_more_fresh_memory_than_a_piece() -> None:
    layout, rows = Layout((BIGINT,), (0,)), 300_000
    builder = RunBuilder(layout, Hasher(2, bits=64), _AT)
    for start in range(0, rows, 50_000):
        builder.add(Batch.at((BIGINT,), (pa.array(np.arange(start, start + 50_000)),), 50_000, _AT))
    steps = 0
    while builder.work(10_000):
        steps += 1
    touched = 4 * -(-rows * 8 // PIECE_BYTES)  # hashes, words, picks and the column; the diffs are all one
    assert touched + 6 + 2 * 30 <= steps <= touched + 6 + 2 * 32


def test_what_cancels_leaves_nothing() -> None:
    layout, hasher = Layout((BIGINT,), (0,)), Hasher(2)
    batch = random_batch(layout.types, 50, range(3, 4), Random(3))
    assert built([batch, batch.negated()], layout, hasher, fuel=8) is None
    assert built([], layout, hasher, fuel=8) is None


def _alike(rows: int, distinct: int) -> Batch:
    column = pa.array(np.arange(rows) % distinct)
    return Batch.at((BIGINT,), (column,), rows, _AT)


def test_identical_rows_are_kept_once_while_they_wait() -> None:
    builder = RunBuilder(Layout((BIGINT,), (0,)), Hasher(2, bits=64), _AT)
    for _ in range(4):
        builder.add(_alike(20_000, 100))
    assert builder.rows == 400
    while builder.work(64):
        continue
    run = builder.result(lower=_LOWER, upper=_UPPER, since=_LOWER)
    assert run is not None
    assert dict(zip(run.columns[0].to_pylist(), run.diffs.tolist(), strict=True)) == dict.fromkeys(range(100), 800)


def test_steps_are_bounded_unless_hashes_are_skewed() -> None:
    layout = Layout((BIGINT,), (0,))
    spread = RunBuilder(layout, Hasher(2, bits=64), _AT)
    for start in range(0, 100_000, 25_000):
        spread.add(Batch.at((BIGINT,), (pa.array(np.arange(start, start + 25_000)),), 25_000, _AT))
    assert not spread.skewed
    steps = 0
    while spread.work(5_000):
        steps += 1
    assert 4 + 2 * 20 <= steps <= 4 + 2 * 22
    skewed = RunBuilder(Layout((BIGINT, BIGINT), (0,)), Hasher(2, bits=64), _AT)
    for start in range(0, 100_000, 50_000):
        columns = (pa.array(np.zeros(50_000, np.int64)), pa.array(np.arange(start, start + 50_000)))
        skewed.add(Batch.at((BIGINT, BIGINT), columns, 50_000, _AT))
    assert skewed.skewed


def test_pieces_are_what_was_added() -> None:
    layout, rng = Layout((BIGINT, TEXT), (0,)), Random(5)
    builder = RunBuilder(layout, Hasher(2), _AT)
    batches = [random_batch(layout.types, rows, range(3, 4), rng) for rows in (5, 130, 0, 7, 64)]
    for batch in batches:
        builder.add(batch)
    pieces = list(builder.pieces(50))
    assert all(0 < len(p) <= 50 for p in pieces)
    assert multiset(Batch.concat(layout.types, pieces)) == multiset(Batch.concat(layout.types, batches))


def test_a_multiplicity_beyond_64_bits_is_an_error_and_an_order_is_refused() -> None:
    layout = Layout((BIGINT,), (0,))
    batch = Batch((BIGINT,), (pa.array([1, 1]),), np.full(2, 3, np.int64), np.full(2, 2**62, np.int64))
    with pytest.raises(DataError, match="multiplicity"):
        built([batch], layout, Hasher(2), fuel=8)
    with pytest.raises(ValueError, match="ORDER BY"):
        RunBuilder(Layout((BIGINT,), (0,), (Item(0),)), Hasher(2), _AT)
