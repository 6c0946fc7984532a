"""Sums without carries: against their twins, and against Python's integers once a state has carried them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddyline.kernels import loose_sums
from eddyline.kernels.floatsum import add_floats_twin, digit_range
from eddyline.kernels.reduce import digits_value, running_sums

SEGMENTS = 9


def some_weights(rng: random.Random, rows: int) -> np.ndarray:
    return np.array([rng.choice((0, 1, 1, -1, 7, -(2**20), 2**20)) for _ in range(rows)])


@pytest.mark.parametrize("count", [1, SEGMENTS])
@pytest.mark.parametrize("seed", range(4))
def test_words_add_up_exactly(seed: int, count: int) -> None:
    rng = random.Random(seed)
    edges = (0, 1, -1, 2**63 - 1, -(2**63), 2**32, 2**32 - 1, -(2**32), -(2**32) - 1)
    values = np.array([rng.choice((*edges, rng.getrandbits(64) - 2**63)) for _ in range(700)])
    weights, segments = some_weights(rng, 700), np.array([rng.randrange(count) for _ in range(700)])
    assert int(np.abs(weights).sum()) <= loose_sums.MAX_WEIGHT
    fast, slow = np.zeros((count, 7), np.int64), np.zeros((count, 7), np.int64)
    loose_sums.add_word_digits(values, weights, segments, 1, fast)
    loose_sums.add_word_digits_twin(values, weights, segments, 1, slow)
    assert np.array_equal(fast, slow)
    state = np.zeros((count, 7), np.int64)
    before, after = np.empty_like(fast), np.empty_like(fast)
    slots, starts = np.arange(count), np.arange(count + 1)
    running_sums(state, slots, starts, fast, 1, np.array([1, 7]), before, after)
    for segment in range(count):
        mine = segments == segment
        expected = sum(v * w for v, w in zip(values[mine].tolist(), weights[mine].tolist(), strict=True))
        assert digits_value(state[segment, 1:]) == expected
        assert all(0 <= d < 2**32 for d in state[segment, 1:-1].tolist()), "equal sums have equal digits"


@pytest.mark.parametrize("seed", range(4))
def test_decimals_of_one_word_add_up_like_words_and_longer_ones_are_left_alone(seed: int) -> None:
    rng = random.Random(seed)
    edges = (0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32) - 1)
    values = [rng.choice((*edges, rng.getrandbits(64) - 2**63)) for _ in range(300)]
    weights, segments = some_weights(rng, 300), np.array([rng.randrange(SEGMENTS) for _ in range(300)])
    for long, weight, fits in ((0, 1, 1), (2**63, 1, 0), (-(2**63) - 1, -2, 0), (2**100, 3, 0), (2**100, 0, 1)):
        values[7], weights[7] = long, weight
        words = np.frombuffer(b"".join(v.to_bytes(16, "little", signed=True) for v in values), np.int64).reshape(-1, 2)
        fast, slow = np.zeros((SEGMENTS, 7), np.int64), np.zeros((SEGMENTS, 7), np.int64)
        assert loose_sums.add_decimal_digits(words, weights, segments, 1, fast) == fits
        assert loose_sums.add_decimal_digits_twin(words, weights, segments, 1, slow) == fits
        assert np.array_equal(fast, slow)
        assert fast.any() == bool(fits)


def test_the_greatest_weight_still_fits() -> None:
    weight = loose_sums.MAX_WEIGHT
    for value in (-1, 2**63 - 1, -(2**63)):
        out = np.zeros((1, 6), np.int64)
        loose_sums.add_word_digits(np.array([value]), np.array([weight]), np.zeros(1, np.int64), 0, out)
        state = np.full((1, 6), 2**32 - 1)
        state[0, -1] = 0
        start = digits_value(state[0])
        running_sums(state, np.zeros(1, np.int64), np.arange(2), out, 0, np.array([0, 6]), out.copy(), out.copy())
        assert digits_value(state[0]) == start + value * weight


@pytest.mark.parametrize("seed", range(4))
def test_doubles_add_up_like_the_carrying_sum(seed: int) -> None:
    rng = random.Random(seed)
    spread = rng.choice((1, 300))
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-spread, spread) for _ in range(400)]
    values += [0.0, -0.0, 5e-324, -5e-324, float("nan"), float("inf"), 2.2250738585072014e-308]
    bits = np.array(values).view(np.int64)
    weights, segments = some_weights(rng, len(bits)), np.array([rng.randrange(SEGMENTS) for _ in bits])
    low, high = digit_range(bits, weights, 0)
    width = high - low + 2
    fast, slow, exact = (np.zeros((SEGMENTS, width), np.int64) for _ in range(3))
    loose_sums.add_double_digits(bits, weights, segments, low, 0, fast)
    loose_sums.add_double_digits_twin(bits, weights, segments, low, 0, slow)
    assert np.array_equal(fast, slow)
    add_floats_twin(bits, weights, False, segments, low, 0, width, exact)
    state, scratch = np.zeros((SEGMENTS, width), np.int64), np.zeros((SEGMENTS, width), np.int64)
    slots, starts = np.arange(SEGMENTS), np.arange(SEGMENTS + 1)
    running_sums(state, slots, starts, fast, 0, np.array([0, width]), scratch, scratch.copy())
    assert np.array_equal(state, exact)
