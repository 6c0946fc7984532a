"""Sets of key hashes, and picks dealt by hash and taken back: kernels against twins, also with hashes of few bits."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.kernels.key_set import (
    TAKE_STATE,
    add_keys,
    add_keys_twin,
    deal_others,
    deal_others_twin,
    find_keys,
    find_keys_twin,
    take_picks,
    take_picks_twin,
)

_BUCKET_BITS = 4
_BUCKET_SHIFT = 64 - _BUCKET_BITS


def _hashes(rng: Random, count: int, bits: int) -> np.ndarray:
    return np.array([rng.getrandbits(64) & (1 << bits) - 1 for _ in range(count)], np.uint64)


def _set(rng: Random, keys: np.ndarray) -> tuple[int, np.ndarray]:
    bits = rng.choice((1, 2, 5))
    words = np.zeros(1 << bits, np.uint64)
    add_keys(keys, 64 - bits, words)
    return 64 - bits, words


@pytest.mark.parametrize("bits", [64, 4])
@pytest.mark.parametrize("seed", range(6))
def test_a_set_is_its_twin_and_says_yes_to_all_its_keys(seed: int, bits: int) -> None:
    rng = Random(seed)
    keys = _hashes(rng, rng.choice((0, 1, 9, 40)), bits)
    shift, words = _set(rng, keys)
    twin = [0] * len(words)
    add_keys_twin(keys, shift, twin)
    assert words.tolist() == twin
    asked = np.concatenate((keys, _hashes(rng, 200, bits)))
    found = np.full(len(asked), 7, np.uint8)
    counts = np.zeros(1 << _BUCKET_BITS, np.int64)
    total = find_keys(asked, shift, words, _BUCKET_SHIFT, counts, found)
    assert found.tolist() == find_keys_twin(asked, shift, words)
    assert total == found.sum()
    assert found[: len(keys)].all()
    others = (asked[found == 0] >> np.uint64(_BUCKET_SHIFT)).astype(np.int64)
    assert counts.tolist() == np.bincount(others, minlength=1 << _BUCKET_BITS).tolist()


def test_a_set_of_16_bits_a_key_says_yes_to_few_others() -> None:
    rng = Random(1)
    keys = _hashes(rng, 4096, 64)
    words = np.zeros(1024, np.uint64)
    add_keys(keys, 54, words)
    asked = _hashes(rng, 20_000, 64)
    found = np.empty(len(asked), np.uint8)
    assert find_keys(asked, 54, words, _BUCKET_SHIFT, np.zeros(16, np.int64), found) < 600


@pytest.mark.parametrize("bits", [64, 6])
@pytest.mark.parametrize("seed", range(6))
def test_what_was_dealt_is_given_back_once_to_who_asks_for_its_hash(seed: int, bits: int) -> None:
    rng = Random(seed)
    shift, words = _set(rng, _hashes(rng, 3, bits))
    batches = [_hashes(rng, rng.choice((0, 1, 60)), bits) for _ in range(4)]
    batches.append(np.concatenate(batches))  # the same hashes in several batches
    counts = np.zeros(1 << _BUCKET_BITS, np.int64)
    found = [np.empty(len(b), np.uint8) for b in batches]
    for batch, into in zip(batches, found, strict=True):
        find_keys(batch, shift, words, _BUCKET_SHIFT, counts, into)
    starts = np.concatenate(([0], np.cumsum(counts)))
    cursors = starts[:-1].copy()
    hashes, picks = np.empty(int(starts[-1]), np.uint64), np.empty(int(starts[-1]), np.int64)
    dealt = []
    for number, (batch, seen) in enumerate(zip(batches, found, strict=True)):
        deal_others(batch, seen, number, _BUCKET_SHIFT, cursors, hashes, picks)
        dealt.extend(deal_others_twin(batch, seen, number))
    assert cursors.tolist() == starts[1:].tolist()
    assert sorted(zip(hashes.tolist(), picks.tolist(), strict=True)) == sorted(dealt)
    while dealt:
        wanted = np.concatenate((rng.choice(batches)[:20], _hashes(rng, 3, bits)))
        if rng.random() < 0.5:
            wanted.sort()
        if rng.random() < 0.2:
            wanted = batches[-1]
        state, room = np.array((0, -1), np.int64), np.empty(rng.choice((1, 7, 500)), np.int64)
        assert len(state) == TAKE_STATE
        taken: list[int] = []
        while state[0] < len(wanted):
            count = take_picks(wanted, shift, words, starts, _BUCKET_SHIFT, hashes, picks, state, room)
            taken.extend(room[:count].tolist())
        assert sorted(taken) == sorted(take_picks_twin(wanted, shift, words, dealt))
