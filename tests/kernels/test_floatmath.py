"""Float functions against Python's own, which are the C library's too."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest

from eddyline.kernels.floatmath import (
    EXP,
    LN,
    LOG10,
    float_function,
    float_function_twin,
    float_power,
    float_power_twin,
)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e308, -1e308, 5e-324, 710.0, -746.0, math.inf, -math.inf, math.nan]


def same(left: list[float], right: list[float]) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("function", [EXP, LN, LOG10])
def test_function_agrees_with_its_twin(function: int) -> None:
    rng = Random(function)
    values = [*SPECIAL, *(rng.uniform(-700, 700) for _ in range(1_000)), *(rng.random() for _ in range(1_000))]
    out = np.empty(len(values))
    float_function(np.array(values), function, out)
    assert same(out.tolist(), [float_function_twin(v, function) for v in values])


def test_power_agrees_with_its_twin() -> None:
    rng = Random(9)
    pairs = [*itertools.product(SPECIAL, repeat=2), *((rng.uniform(0, 99), rng.uniform(-50, 50)) for _ in range(2_000))]
    out = np.empty(len(pairs))
    float_power(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]), out)
    assert same(out.tolist(), [float_power_twin(a, b) for a, b in pairs])
