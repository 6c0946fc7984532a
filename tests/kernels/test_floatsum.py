"""Exact float sums against math.fsum and Python's integers."""

from __future__ import annotations

import math
import random

import numpy as np
import numpy.typing as npt
import pytest

from eddyline.kernels import floatsum
from eddyline.kernels.floatsum import SQUARE_UNIT, VALUE_UNIT, Floats

EDGES = (5e-324, -5e-324, 1e-310, 0.0, -0.0, 1.7976931348623157e308, 2.2250738585072014e-308, math.nan, math.inf)


def any_doubles(rng: random.Random, count: int) -> Floats:
    patterns = np.array([rng.getrandbits(64) for _ in range(count)], np.uint64)
    return np.concatenate((patterns.view(np.float64), np.array(EDGES)))


@pytest.mark.parametrize("squared", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_sums_of_any_doubles_match_the_twins(seed: int, squared: int) -> None:
    rng = random.Random(seed)
    bits = any_doubles(rng, 800).view(np.int64)
    weights = np.array([rng.choice((0, 1, -1, 3, rng.randrange(-(2**40), 2**40))) for _ in bits])
    segments = np.array([rng.randrange(30) for _ in bits])
    low, high = floatsum.digit_range(bits, weights, squared)
    assert (low, high) == floatsum.digit_range_twin(bits, weights, bool(squared))
    width = high - low + 2
    fast, slow = np.zeros((30, width + 1), np.int64), np.zeros((30, width + 1), np.int64)
    floatsum.add_floats(bits, weights, squared, segments, low, 1, width, fast)
    floatsum.add_floats_twin(bits, weights, bool(squared), segments, low, 1, width, slow)
    assert np.array_equal(fast, slow)
    exponent = 32 * low + (SQUARE_UNIT if squared else VALUE_UNIT)
    for precision, least in ((53, -1074), (24, -149)):
        rounded, twin = np.zeros(30), np.zeros(30)
        floatsum.round_digits(fast, 1, width, exponent, precision, least, rounded)
        floatsum.round_digits_twin(fast, 1, width, exponent, precision, least, twin)
        assert np.array_equal(rounded, twin)


def total(values: npt.NDArray[np.float64], weights: npt.NDArray[np.int64]) -> float:
    bits = values.view(np.int64)
    low, high = floatsum.digit_range(bits, weights, 0)
    width = high - low + 2
    out, rounded = np.zeros((1, width), np.int64), np.zeros(1)
    floatsum.add_floats(bits, weights, 0, np.zeros(len(bits), np.int64), low, 0, width, out)
    floatsum.round_digits(out, 0, width, 32 * low + VALUE_UNIT, 53, VALUE_UNIT, rounded)
    return float(rounded[0])


@pytest.mark.parametrize("seed", range(200))
def test_a_sum_is_fsum_with_cancellation_and_subnormals(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-320, 300) for _ in range(rng.randrange(1, 9))]
    if rng.random() < 0.5:
        values += [-v * (1 + 2.0**-52 * rng.randrange(2)) for v in values]
    array = np.array(values)
    assert total(array, np.ones(len(array), np.int64)) == math.fsum(values)


def test_what_is_taken_back_leaves_no_trace() -> None:
    rng = random.Random(1)
    kept = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300) for _ in range(20)]
    gone = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300) for _ in range(200)]
    values = np.array([*kept, *gone, *gone])
    weights = np.array([1] * 20 + [1] * 200 + [-1] * 200)
    assert total(values, weights) == math.fsum(kept)
