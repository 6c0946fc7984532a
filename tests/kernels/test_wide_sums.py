"""Wide integer sums against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddyline.kernels import reduce
from eddyline.kernels.reduce import Int64s


def words(values: list[int]) -> tuple[Int64s, Int64s]:
    image = b"".join(v.to_bytes(16, "little", signed=True) for v in values)
    pairs = np.frombuffer(image, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def integers(rng: random.Random, count: int, bits: int = 127) -> list[int]:
    edges = [0, 1, -1, 2**31, -(2**32), 2**63, -(2**63), 2**127 - 1, -(2**127)]
    values = [rng.randrange(-(2**bits), 2**bits) >> rng.randrange(bits) for _ in range(count)]
    return values + [e for e in edges if -(2**bits) <= e < 2**bits]


@pytest.mark.parametrize("squared", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_add_integers_is_exact(seed: int, squared: int) -> None:
    rng = random.Random(seed)
    low, high = words(integers(rng, 200))
    count = len(low)
    weights = np.array([rng.choice((0, 1, -1, rng.randrange(-(2**62), 2**62))) for _ in range(count)])
    powers = np.array([rng.choice((0, 0, 7, 63)) for _ in range(count)])
    segments = np.array([rng.randrange(7) for _ in range(count)])
    width = 26 if squared else 14
    fast = np.zeros((7, width + 1), np.int64)
    slow = fast.copy()
    reduce.add_integers(low, high, weights, powers, squared, segments, 1, width, fast)
    reduce.add_integers_twin(low, high, weights, powers, bool(squared), segments, 1, width, slow)
    assert np.array_equal(fast, slow)


def test_adding_and_taking_back_leaves_zero() -> None:
    low, high = words(integers(random.Random(9), 100))
    count = len(low)
    out = np.zeros((1, 6), np.int64)
    for sign in (1, -1):
        weights = np.full(count, sign, np.int64)
        zeros = np.zeros(count, np.int64)
        reduce.add_integers(low, high, weights, zeros, 0, zeros, 0, 6, out)
    assert not out.any()


@pytest.mark.parametrize("segments", [1, 5])
@pytest.mark.parametrize("greatest", [0, 1])
def test_extremes_are_those_of_its_twin(greatest: int, segments: int) -> None:
    rng = random.Random(segments)
    edges = (0, -1, 2**63 - 1, -(2**63))
    values = np.array([rng.choice((*edges, rng.getrandbits(64) - 2**63)) for _ in range(60)])
    weights = np.array([rng.choice((0, 0, 1, -3)) for _ in range(60)])
    of_row = np.array([rng.randrange(segments) for _ in range(60)])
    for first, stop in ((0, 0), (0, 3), (3, 60)):
        fast = (np.full(segments, 7), np.zeros(segments, np.int64))
        slow = (fast[0].copy(), fast[1].copy())
        reduce.extremes(values[first:stop], weights[first:stop], of_row[first:stop], greatest, *fast)
        reduce.extremes_twin(values[first:stop], weights[first:stop], of_row[first:stop], bool(greatest), *slow)
        assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))


def test_add_weights_counts() -> None:
    rng = np.random.default_rng(1)
    weights, segments = rng.integers(-9, 9, 300), rng.integers(0, 5, 300)
    fast, slow = np.zeros((5, 3), np.int64), np.zeros((5, 3), np.int64)
    reduce.add_weights(weights, segments, 2, fast)
    reduce.add_weights_twin(weights, segments, 2, slow)
    assert np.array_equal(fast, slow)


def test_running_sums_carry_from_segment_to_segment() -> None:
    rng = np.random.default_rng(2)
    chains = np.array([2, 5, 7])
    fast_state, slow_state = np.zeros((20, 7), np.int64), np.zeros((20, 7), np.int64)
    for _ in range(5):
        delta = rng.integers(0, 2**32, (40, 7))
        delta[:, (0, 1, 4, 6)] = rng.integers(-5, 6, (40, 4))
        slots, starts = rng.permutation(20)[:10].astype(np.int64), np.arange(0, 41, 4)
        fast = [np.zeros((40, 7), np.int64) for _ in range(2)]
        slow = [np.zeros((40, 7), np.int64) for _ in range(2)]
        untold = fast_state.copy()
        reduce.running_sums(fast_state, slots, starts, delta, 2, chains, *fast)
        reduce.running_sums_twin(slow_state, slots, starts, delta, 2, chains, *slow)
        assert np.array_equal(fast_state, slow_state)
        assert np.array_equal(fast, slow)
        reduce.running_sums(untold, slots, starts, delta, 2, chains, delta[:0], delta[:0])
        assert np.array_equal(untold, slow_state)


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6])
def test_digits_to_words_says_what_fits(width: int) -> None:
    values = integers(random.Random(width), 300, min(127, 32 * width + 28))
    if width >= 4:
        values += [2**127, -(2**127) - 1, 2**150, -(2**150)]
    digits = np.zeros((len(values), width), np.int64)
    for row, value in enumerate(values):
        part = [(value >> (32 * k)) & 0xFFFFFFFF for k in range(width - 1)]
        digits[row] = [*part, value >> (32 * (width - 1))]
        assert reduce.digits_value(digits[row]) == value
    fast = [np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)]
    slow = [np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)]
    fits, twin_fits = np.zeros(len(values), np.uint8), np.zeros(len(values), np.uint8)
    reduce.digits_to_words(digits, 0, width, *fast, fits)
    reduce.digits_to_words_twin(digits, 0, width, slow[0], slow[1], twin_fits)
    assert np.array_equal(fits, twin_fits)
    held = fits > 0
    assert all(np.array_equal(a[held], b[held]) for a, b in zip(fast, slow, strict=True))


def test_digits_unscaled_divides_by_powers_of_ten() -> None:
    rng = random.Random(4)
    values = [rng.randrange(-(2**440), 2**440) >> rng.randrange(440) for _ in range(200)]
    values += [v * 10**63 for v in (0, 1, -1, 10**38, -(10**38))]
    powers = np.array([rng.choice((0, 1, 9, 10, 63)) for _ in values])
    digits = np.zeros((len(values), 15), np.int64)
    for row, value in enumerate(values):
        digits[row, 1:14] = [*((value >> (32 * k)) & 0xFFFFFFFF for k in range(12)), value >> (32 * 12)]
    fast, slow = np.zeros((len(values), 13), np.int64), np.zeros((len(values), 13), np.int64)
    reduce.digits_unscaled(digits, 1, 13, powers, fast)
    reduce.digits_unscaled_twin(digits, 1, 13, powers, slow)
    assert np.array_equal(fast, slow)
