"""Rows of a snapshot are divided by the keys that are asked for; the others come back by key, and none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, INTEGER, TEXT, SqlType
from eddyline.testing.columns import ALL_TYPES
from eddyline.trace.columns import cell_kinds, describe
from eddyline.trace.hasher import Hasher
from eddyline.trace.reserve import KeySet, Reserve, divide
from eddyline.trace.run import Layout, Uint64s
from tests.trace.multiset import multiset, random_batch

_AT = Time(3)


def key_hashes(batch: Batch, layout: Layout, hasher: Hasher) -> Uint64s:
    kinds = cell_kinds(layout.types)
    key = list(layout.key)
    return hasher.hash_described(describe([batch.columns[c] for c in key], [kinds[c] for c in key]), len(batch))


def divided(
    layout: Layout, hasher: Hasher, keys: KeySet, batches: Sequence[Batch], *, keep: bool = True
) -> tuple[list[Batch], Reserve | None]:
    """What is asked for, and the reserve."""
    asked: list[Batch] = []
    steps = divide(layout, hasher, _AT, keys, batches, asked.append, keep=keep)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return asked, end.value


def summed(layout: Layout, batches: Sequence[Batch]) -> dict[tuple[bytes, int], int]:
    return multiset(Batch.concat(layout.types, batches))


@pytest.mark.parametrize("bits", [64, 4])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_no_row_is_lost_and_all_rows_of_a_key_are_together(kind: SqlType, bits: int) -> None:
    rng, hasher = Random(f"{kind}{bits}"), Hasher(9, bits=bits)
    for key in ((0,), (1,), (1, 0)):
        layout = Layout((kind, INTEGER, TEXT), key)
        batches = [random_batch(layout.types, rows, range(3, 4), rng) for rows in (70, 1, 0, 200, 90)]
        hashes = [key_hashes(b, layout, hasher) for b in batches]
        wanted = hashes[0][:2]
        asked, reserve = divided(layout, hasher, KeySet([wanted]), batches)
        if reserve is None:  # few would be left out
            assert summed(layout, asked) == summed(layout, batches)
            continue
        there = {h for b in asked for h in key_hashes(b, layout, hasher).tolist()}
        assert {*wanted.tolist()} <= there
        left: list[Batch] = []
        for some in (hashes[3][:5], np.sort(hashes[3]), hashes[3], np.concatenate(hashes)):
            for piece in reserve.take(some, rng.choice((1, 3, 1000))):
                left.append(piece)
                assert not there & set(key_hashes(piece, layout, hasher).tolist())
                assert piece.times.tolist() == [_AT] * len(piece)
        assert reserve.rows == 0
        assert summed(layout, [*asked, *left]) == summed(layout, batches)


def _numbers(count: int, *, first: int = 0) -> Batch:
    return Batch.at(
        (BIGINT, BIGINT), (pa.array(np.arange(first, first + count)), pa.array(np.arange(count))), count, _AT
    )


_LAYOUT = Layout((BIGINT, BIGINT), (0,))


def _set_of(keys: range, hasher: Hasher) -> KeySet:
    return KeySet([key_hashes(_numbers(len(keys), first=keys.start), _LAYOUT, hasher)])


def test_rows_that_nobody_asks_for_stay_where_they_are() -> None:
    hasher = Hasher(2, bits=64)
    batches = [_numbers(10_000, first=start) for start in range(0, 50_000, 10_000)]
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(100), hasher), batches)
    assert reserve is not None
    assert 100 <= sum(map(len, asked)) < 1_500  # one in a hundred or so of the others passes for a key
    assert reserve.rows == 50_000 - sum(map(len, asked))
    back = list(reserve.take(key_hashes(_numbers(3, first=20_000), _LAYOUT, hasher), 10))
    there = {k for b in (*asked, *back) for k in b.columns[0].to_pylist()}
    assert {20_000, 20_001, 20_002} <= there
    assert sum(map(len, back)) <= 3


def test_nothing_is_kept_where_nobody_can_ask_later() -> None:
    hasher = Hasher(2, bits=64)
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(10), hasher), [_numbers(5_000)], keep=False)
    assert reserve is None
    assert 10 <= sum(map(len, asked)) < 300


def test_batches_are_passed_on_where_most_keys_are_asked_for() -> None:
    hasher = Hasher(2, bits=64)
    batches = [_numbers(2_000, first=start) for start in range(0, 20_000, 2_000)]
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(16_000), hasher), batches)
    assert reserve is None
    assert all(a is b for a, b in zip(asked, batches, strict=True))


def test_batches_are_passed_on_where_many_rows_have_one_key() -> None:
    hasher = Hasher(2, bits=64)
    many = Batch.at((BIGINT, BIGINT), (pa.array(np.full(70_000, 5)), pa.array(np.arange(70_000))), 70_000, _AT)
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(100, 104), hasher), [_numbers(50), many])
    assert reserve is None
    assert [len(a) for a in asked] == [50, 70_000]


def test_multiplicities_come_back_as_they_were() -> None:
    hasher = Hasher(2, bits=64)
    rows = _numbers(300)
    batch = Batch(rows.types, rows.columns, rows.times, np.arange(300) - 150)
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(1000, 1003), hasher), [batch])
    assert reserve is not None
    back = [*asked, *reserve.take(key_hashes(batch, _LAYOUT, hasher), 64)]
    found = {k: d for b in back for k, d in zip(b.columns[0].to_pylist(), b.diffs.tolist(), strict=True)}
    assert found == {k: k - 150 for k in range(300)}


def test_what_is_left_of_a_reserve_goes_with_those_that_are_taken() -> None:
    hasher = Hasher(2, bits=64)
    asked, reserve = divided(_LAYOUT, hasher, _set_of(range(10), hasher), [_numbers(5_000)])
    assert reserve is not None
    assert reserve.drain(100) is None
    taken = list(reserve.take(key_hashes(_numbers(2_600), _LAYOUT, hasher), 10_000))
    assert 2 * reserve.rows < 5_000
    while reserve.rows:
        piece = reserve.drain(700)
        assert piece is None or len(piece) <= 700
        taken += [piece] if piece is not None else []
    assert sorted(k for b in (*asked, *taken) for k in b.columns[0].to_pylist()) == list(range(5_000))
