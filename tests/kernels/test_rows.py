"""Sorting, compacting, merging, matching and walking: kernels against twins, on columns of every type."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.kernels.rows import (
    FEW_ALIKE,
    OVERFLOW,
    compact_rows,
    compact_rows_twin,
    merge_rows,
    merge_rows_twin,
    pairs_equal,
    pairs_equal_twin,
    sort_rows,
    sort_rows_twin,
    sum_identical,
    sum_identical_twin,
    walk_groups,
    walk_groups_twin,
)
from eddyline.repr.types import BIGINT, BOOLEAN, INTEGER, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import cell_kinds, describe
from eddyline.trace.hasher import Hasher
from tests.kernels.run_samples import SampleRuns


def spread_hashes(rows: int, rng: Random, bits: int) -> np.ndarray:
    return np.array([rng.getrandbits(bits) << (64 - bits) if bits else 0 for _ in range(rows)], np.uint64)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_sort_and_compact_agree_with_twins(kind: SqlType, flags: int) -> None:
    rng = Random(f"{kind}{flags}")
    for rows, bits, buckets in ((0, 0, 1), (1, 3, 1), (70, 0, 1), (90, 2, 8)):
        types = (kind, INTEGER)
        columns = [random_column(t, rows, rng) for t in types]
        described = describe(columns, cell_kinds(types))
        described[0, 5] = flags
        hashes = spread_hashes(rows, rng, bits)
        words = spread_hashes(rows, rng, 1)
        times = np.array([rng.randrange(2) for _ in range(rows)], np.int64)
        diffs = np.array([rng.choice([-1, 1]) for _ in range(rows)], np.int64)
        order = np.empty(rows, np.int64)
        sort_rows(described[None], hashes, words, times, np.empty(buckets + 1, np.int64), order, np.arange(rows))
        assert order.tolist() == sort_rows_twin(described[None], hashes, words, times)
        expected = [
            kept
            for group in _by_words(order.tolist(), hashes, words)
            for kept in compact_rows_twin(described[None], times, diffs, group)
        ]
        out = [np.empty(rows, np.uint64), np.empty(rows, np.uint64), np.empty(rows, np.int64), np.empty(rows, np.int64)]
        kept = compact_rows(described[None], hashes, words, times, diffs, order, *out)
        found = zip(order[:kept].tolist(), out[2][:kept].tolist(), out[3][:kept].tolist(), strict=True)
        assert list(found) == expected
        assert out[0][:kept].tolist() == hashes[order[:kept]].tolist()
        assert out[1][:kept].tolist() == words[order[:kept]].tolist()


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_adding_up_by_hash_agrees_with_its_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    for rows in (0, 1, 60):
        types = (kind, BOOLEAN)
        columns = [random_column(t, rows, rng) for t in types]
        picked = np.array([rng.randrange(rows) for _ in range(3 * rows)], np.int64)
        columns = [c.take(pa.array(picked)) for c in columns]
        described = describe(columns, cell_kinds(types))
        count = len(picked)
        hashes = picked.astype(np.uint64) % np.uint64(7) if rows % 2 else Hasher(1).hash_rows(columns, types, count)
        times = np.array([rng.randrange(2) for _ in range(count)], np.int64)
        diffs = np.array([rng.choice([-1, 1]) for _ in range(count)], np.int64)
        words = np.zeros(count, np.uint64)
        kept_rows, sums = np.empty(count, np.int64), np.empty(count, np.int64)
        table = np.full(1024, -1, np.int64)
        kept = sum_identical(described[None], hashes, words, times, diffs, count, table, kept_rows, sums)
        found = [(row, int(sums[row])) for row in kept_rows[:kept].tolist()]
        assert found == sum_identical_twin(described[None], times, diffs)


def test_adding_up_by_hash_gives_up_on_distinct_rows_and_on_one_hash() -> None:
    column = pa.array(np.arange(5000))
    described = describe((column,), cell_kinds((BIGINT,)))
    zeros, ones = np.zeros(5000, np.int64), np.ones(5000, np.int64)
    for hashes, trial in ((np.arange(5000).astype(np.uint64), 100), (np.zeros(5000, np.uint64), 5000)):
        table, kept_rows, sums = np.full(16384, -1, np.int64), np.empty(5000, np.int64), np.empty(5000, np.int64)
        words = np.zeros(5000, np.uint64)
        done = sum_identical(described[None], hashes, words, zeros, ones, trial, table, kept_rows, sums)
        assert done == FEW_ALIKE


def test_adding_up_by_hash_reports_overflow() -> None:
    column = pa.array([1, 1])
    described = describe((column,), cell_kinds((BIGINT,)))
    diffs = np.array((2**63 - 1, 1), np.int64)
    hashes, words, times = np.zeros(2, np.uint64), np.zeros(2, np.uint64), np.zeros(2, np.int64)
    scratch = np.full(4, -1, np.int64)
    rows, sums = np.empty(2, np.int64), np.empty(2, np.int64)
    assert sum_identical(described[None], hashes, words, times, diffs, 2, scratch, rows, sums) == OVERFLOW


def _by_words(order: list[int], hashes: np.ndarray, words: np.ndarray) -> list[list[int]]:
    groups: dict[tuple[int, int], list[int]] = {}
    for row in order:
        groups.setdefault((hashes[row], words[row]), []).append(row)
    return list(groups.values())


def merged_in_slices(runs: SampleRuns, since: int, below: int, fuel: int) -> list[tuple[int, int, int, int]]:
    total = int(runs.heads[:, 1].sum())
    cursors, order = np.zeros(len(runs.heads), np.int64), np.empty(len(runs.heads), np.int64)
    state = np.array((-1, 0, 0), np.int64)
    picks = np.empty((2, fuel + 1), np.int64)
    out = [np.empty(total, np.uint64), np.empty(total, np.uint64), np.empty(total, np.int64), np.empty(total, np.int64)]
    sources: list[tuple[int, int]] = []
    while True:
        done = merge_rows(runs.heads, runs.descs, since, below, fuel, cursors, order, state, picks[0], picks[1], *out)
        rows, final = int(state[1]), int(state[2])
        closed = rows if done else max(rows - 1, final)
        sources += [(int(picks[0, k]), int(picks[1, k])) for k in range(closed - final)]
        if done:
            break
        picks[:, 0] = picks[:, closed - final]
        state[2] = closed
    times, diffs = out[2].tolist(), out[3].tolist()
    return [(*sources[k], times[k], diffs[k]) for k in range(rows)]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_merge_in_slices_agrees_with_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    for sizes in ([0, 5], [30, 40], [1, 9, 3, 20, 1]):
        runs = SampleRuns((kind, INTEGER), sizes, rng)
        for since, below in ((0, 99), (3, 99), (4, 5)):
            expected = merge_rows_twin(runs.heads, runs.descs, since, below)
            for fuel in (1, 2, 7, 1000):
                assert merged_in_slices(runs, since, below, fuel) == expected


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_pair_equality_agrees_with_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    left = SampleRuns((kind, BIGINT), [25], rng)
    right = SampleRuns((kind, BIGINT), [25, 0, 30], rng)
    candidates = [(i, r, j) for i in range(left.heads[0, 1]) for r in (0, 2) for j in range(right.heads[r, 1])]
    pairs = np.array(rng.sample(candidates, min(len(candidates), 500)), np.int64).reshape(-1, 3)
    i, r, j = (np.ascontiguousarray(pairs[:, k]) for k in range(3))
    out = np.empty(len(pairs), np.uint8)
    for null_equal in ([0, 0], [1, 1], [0, 1]):
        for identical in (0, 1):
            flags = np.array(null_equal, np.uint8)
            pairs_equal(left.descs, i, right.descs, r, j, flags, identical, out)
            expected = pairs_equal_twin(left.descs, i, right.descs, r, j, flags, identical)
            assert out.astype(bool).tolist() == expected


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_walk_agrees_with_twin(kind: SqlType, limit: int) -> None:
    rng = Random(f"{kind}{limit}")
    runs = SampleRuns((kind, INTEGER), [30, 0, 20, 4], rng)
    groups = random_column(kind, 12, rng)
    keys = describe([groups], cell_kinds((kind,)))[None]
    run_keys = np.ascontiguousarray(runs.descs[:, :1])
    hashes = np.array([rng.choice([3, 2**63, 9]) for _ in range(12)], np.uint64)
    limits = np.full(12, limit, np.int64)
    starts = np.array([[0 if hashes[g] == _hash_of(runs, r) else 10**6 for r in range(4)] for g in range(12)])
    state = np.zeros(3, np.int64)
    found = []
    capacity = 1
    while True:
        out = np.empty((4, capacity), np.int64)
        state[1] = 0
        done = walk_groups(
            runs.heads, runs.descs, run_keys, keys, hashes, limits, 4, starts.copy(), np.empty(4, np.int64), state, *out
        )
        found += [tuple(row) for row in out[:, : int(state[1])].T.tolist()]
        if done:
            break
        capacity *= 2
    assert found == walk_groups_twin(runs.heads, runs.descs, run_keys, keys, hashes, limits, 4)


def _hash_of(runs: SampleRuns, run: int) -> int:
    hashes = runs.kept[run][1][0]
    return int(hashes[0]) if len(hashes) else -1


def test_multiplicities_beyond_int64_are_reported() -> None:
    column = random_column(BIGINT, 1, Random(1), nulls=0).take([0, 0])
    described = describe([column], cell_kinds((BIGINT,)))[None]
    same = np.zeros(2, np.uint64)
    diffs = np.array([2**63 - 1, 1], np.int64)
    out = np.empty((4, 2), np.int64)
    status = compact_rows(
        described, same, same, np.zeros(2, np.int64), diffs, np.arange(2), out[0].view(np.uint64),
        out[1].view(np.uint64), out[2], out[3],
    )  # fmt: skip
    assert status == OVERFLOW
