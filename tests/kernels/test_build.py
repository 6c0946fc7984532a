"""Dealing rows of many batches into buckets and sorting those: kernels against twins, on columns of every type."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.kernels.build import (
    BUCKETS,
    SUM_OVERFLOW,
    count_buckets,
    count_buckets_twin,
    deal_rows,
    deal_rows_twin,
    sort_buckets,
    sort_buckets_twin,
)
from eddyline.repr.types import BIGINT, INTEGER, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import address_of, cell_kinds, describe

Arrays = list[np.ndarray]


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

    def dealt(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts of buckets, hashes, picks), by the twins."""
        rows = sum(map(len, self.hashes))
        counts = np.zeros(BUCKETS, np.int64)
        for hashes in self.hashes:
            count_buckets_twin(hashes, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        hashes, picks, cursors = np.zeros(rows, np.uint64), np.zeros(rows, np.int64), starts[:-1].copy()
        for number, own in enumerate(self.hashes):
            deal_rows_twin(own, number, cursors, hashes, picks)
        return starts, hashes, picks


def test_dealing_agrees_with_its_twin() -> None:
    made = _Dealt((BIGINT,), [50, 0, 300], 40, Random(1))
    starts, hashes, picks = made.dealt()
    counts = np.zeros(BUCKETS, np.int64)
    for own in made.hashes:
        count_buckets(own, counts)
    assert np.cumsum(counts).tolist() == starts[1:].tolist()
    out_hashes, out_picks, cursors = np.zeros_like(hashes), np.zeros_like(picks), starts[:-1].copy()
    for number, own in enumerate(made.hashes):
        deal_rows(own, number, cursors, out_hashes, out_picks)
    assert out_hashes.tolist() == hashes.tolist()
    assert out_picks.tolist() == picks.tolist()
    assert cursors.tolist() == starts[1:].tolist()


def _sorted(made: _Dealt, *, steps: int) -> list[tuple[int, int, int, int]] | int:
    starts, hashes, picks = made.dealt()
    largest = max(1, int(np.diff(starts).max()))
    words, diffs = np.zeros_like(hashes), np.zeros_like(picks)
    spare = np.zeros((2, largest), np.uint64), np.zeros((2, largest), np.int64)
    addresses = [np.array([address_of(a) for a in arrays], np.int64) for arrays in (made.words, made.diffs)]
    out: int = 0
    bounds = [BUCKETS * step // steps for step in range(steps + 1)]
    for first, stop in pairwise(bounds):
        out = sort_buckets(
            made.descs,
            *addresses,
            starts,
            first,
            stop,
            out,
            hashes,
            picks,
            words,
            diffs,
            *spare,
            np.zeros(256, np.int64),
        )
        if out == SUM_OVERFLOW:
            return SUM_OVERFLOW
    arrays = (hashes, picks, words, diffs)
    return list(zip(*(a[:out].tolist() for a in arrays), strict=True))


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_sorting_buckets_agrees_with_its_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    for sizes, distinct, steps in (([1], 1, 1), ([60, 3, 40], 30, 1), ([200, 200], 300, 3), ([90, 150], 2, 2)):
        made = _Dealt((INTEGER, kind), sizes, distinct, rng)
        _, hashes, picks = made.dealt()
        assert _sorted(made, steps=steps) == sort_buckets_twin(made.descs, hashes, picks, made.words, made.diffs)


def test_a_multiplicity_beyond_64_bits_is_told() -> None:
    made = _Dealt((BIGINT,), [5], 1, Random(2))
    made.diffs[0][:] = 2**62
    assert _sorted(made, steps=1) == SUM_OVERFLOW
