"""Dealing rows of many batches into buckets and sorting those: kernels against twins, on columns of every type."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.kernels.build import (
    BUCKET_BITS,
    BUCKETS,
    SUM_OVERFLOW,
    count_buckets,
    count_buckets_twin,
    deal_cells,
    deal_cells_twin,
    deal_rows,
    deal_rows_twin,
    sort_buckets,
    sort_buckets_twin,
)
from eddyline.kernels.cells import WIDTHS, cell
from eddyline.repr.types import BIGINT, INTEGER, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import address_of, cell_kinds, describe

Arrays = list[np.ndarray]
_SHIFT = 64 - BUCKET_BITS


class _Dealt:
    """Batches whose rows are dealt out; equal rows have equal hashes and words, for these follow the first column."""

    def __init__(self, types: tuple[SqlType, ...], sizes: list[int], distinct: int, rng: Random) -> None:
        pool = [random_column(t, max(distinct, 1), rng) for t in types]
        of_row = np.array([rng.getrandbits(64) for _ in range(max(distinct, 1))], np.uint64)
        self.kept: list[object] = []
        self.hashes: Arrays = []
        self.words: Arrays = []
        self.diffs: Arrays = []
        descs = []
        for size in sizes:
            picked = np.array([rng.randrange(distinct) for _ in range(size)], np.int64)
            columns = [c.take(pa.array(picked)) for c in pool]
            self.kept.append(columns)
            descs.append(describe(columns, cell_kinds(types)))
            # Some buckets hold several hashes, and some hashes several rows.
            self.hashes.append(of_row[picked] & np.uint64(0xE000_0000_0000_0007))
            self.words.append(of_row[picked] >> np.uint64(62))
            self.diffs.append(np.array([rng.choice([-1, 1, 2]) for _ in range(size)], np.int64))
        self.descs = np.stack(descs)

    def dealt(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """(starts of buckets; hashes, words, diffs and picks by place), by the twins."""
        counts = np.zeros(BUCKETS, np.int64)
        for hashes in self.hashes:
            count_buckets_twin(hashes, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        rows, cursors = int(starts[-1]), starts[:-1].copy()
        by_place = [np.zeros(rows, np.uint64), np.zeros(rows, np.uint64), np.zeros(rows, np.int64)]
        picks = np.zeros(rows, np.int64)
        for number, own in enumerate(self.hashes):
            for i, (place, pick) in enumerate(deal_rows_twin(own, number, _SHIFT, cursors)):
                picks[place] = pick
                for array, source in zip(by_place, (own, self.words[number], self.diffs[number]), strict=True):
                    array[place] = source[i]
        return starts, [*by_place, picks]


def test_dealing_agrees_with_its_twin() -> None:
    made = _Dealt((BIGINT,), [50, 0, 300], 40, Random(1))
    starts, wanted = made.dealt()
    counts = np.zeros(BUCKETS, np.int64)
    for own in made.hashes:
        count_buckets(own, counts)
    assert np.cumsum(counts).tolist() == starts[1:].tolist()
    found, cursors = [np.zeros_like(a) for a in wanted], starts[:-1].copy()
    for number, own in enumerate(made.hashes):
        places = np.zeros(len(own), np.int64)
        deal_rows(own, made.words[number], made.diffs[number], number, _SHIFT, cursors, places, *found)
        again = [np.zeros_like(found[0]), np.zeros_like(found[1]), np.zeros(0, np.int64), np.zeros_like(found[3])]
        there = cursors - np.bincount((own >> np.uint64(_SHIFT)).astype(np.int64), minlength=BUCKETS)
        deal_rows(own, made.words[number], made.diffs[number], number, _SHIFT, there, places, *again)
        assert [a[places].tolist() for a in again[:2]] == [a[places].tolist() for a in found[:2]]
        assert again[3][places].tolist() == found[3][places].tolist()
        assert found[3][places].tolist() == [number << 32 | i for i in range(len(own))]
    assert [a.tolist() for a in found] == [a.tolist() for a in wanted]
    assert cursors.tolist() == starts[1:].tolist()


_PLAIN = [t for t in ALL_TYPES if WIDTHS[cell_kinds((t,))[0]]]


@pytest.mark.parametrize("kind", _PLAIN, ids=str)
def test_dealing_cells_agrees_with_its_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    column = random_column(kind, 60, rng).drop_null().slice(3)
    kinds = cell_kinds((BIGINT, kind))
    columns = [random_column(BIGINT, len(column), rng), column]
    described = describe(columns, kinds)
    places = np.array(rng.sample(range(len(column)), len(column)), np.int64)
    cells = np.zeros(len(column) * WIDTHS[kinds[1]], np.uint8)
    picked = np.array([1], np.int64)
    deal_cells(described, picked, places, np.array([address_of(cells)], np.int64))
    out = np.array([kinds[1], address_of(cells), 0, 0, 0, 0], np.int64)
    (wanted,) = deal_cells_twin(described, picked, places)
    assert repr({place: cell(out, place) for place in sorted(wanted)}) == repr(dict(sorted(wanted.items())))


def _sorted(made: _Dealt, *, steps: int, once: bool = False) -> list[tuple[int, int, int, int]] | int:
    """``once``: all diffs are one, and none are dealt."""
    starts, (hashes, words, diffs, picks) = made.dealt()
    if once:
        diffs = diffs[:0]
    largest = 3 * int(np.diff(starts).max()) + 3
    found: list[tuple[int, int]] = []
    rows, spare = np.zeros(largest, np.int64), np.zeros(largest, np.int64)
    out: int = 0
    for first, stop in pairwise([BUCKETS * step // steps for step in range(steps + 1)]):
        before = out
        places, totals = (np.zeros(int(starts[stop] - starts[first]), np.int64) for _ in range(2))
        out = sort_buckets(
            made.descs, picks, diffs, starts, _SHIFT, first, stop, out, hashes, words, places, totals, rows, spare,
            np.zeros(256, np.int64),
        )  # fmt: skip
        if out == SUM_OVERFLOW:
            return SUM_OVERFLOW
        found += zip(places[: out - before].tolist(), totals[: out - before].tolist(), strict=True)
    keys = zip(hashes[:out].tolist(), words[:out].tolist(), strict=True)
    return [(*key, *row) for key, row in zip(keys, found, strict=True)]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_sorting_buckets_agrees_with_its_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    for sizes, distinct, steps in (([1], 1, 1), ([60, 3, 40], 30, 1), ([200, 200], 300, 3), ([90, 150], 2, 2)):
        made = _Dealt((INTEGER, kind), sizes, distinct, rng)
        _, by_place = made.dealt()
        assert _sorted(made, steps=steps) == sort_buckets_twin(made.descs, *by_place)
        by_place[2][:] = 1
        assert _sorted(made, steps=steps, once=True) == sort_buckets_twin(made.descs, *by_place)


def test_a_multiplicity_beyond_64_bits_is_told() -> None:
    made = _Dealt((BIGINT,), [5], 1, Random(2))
    made.diffs[0][:] = 2**62
    assert _sorted(made, steps=1) == SUM_OVERFLOW
