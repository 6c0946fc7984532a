"""Arrays that grow: what is in them stays, and a step of a large one is small."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.compute.operators.growable import grown


@pytest.mark.parametrize("fill", [0, -1])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_growing_keeps_what_is_there_and_fills_the_rest(fill: int, shape: tuple[int, ...]) -> None:
    array = np.full((16, *shape), fill, np.int64)
    filled = 0
    while array.nbytes < 40_000_000:
        array[filled:] = np.arange(filled, len(array)).reshape(-1, *(1 for _ in shape))
        filled = len(array)
        array = grown(array, filled + 1, fill)
        assert (array[filled:] == fill).all()
        assert (array[filled - 1] == filled - 1).all()
    whole = array[:filled].reshape(filled, -1)
    assert (whole == np.arange(filled)[:, None]).all()


def test_a_large_array_grows_by_an_eighth_and_not_twofold() -> None:
    array = np.zeros(1 << 21, np.int64)
    larger = grown(array, len(array) + 1)
    assert len(larger) <= (1 << 21) * 9 // 8


def test_small_steps_are_few() -> None:
    array, steps = np.zeros(16, np.int64), 0
    for rows in range(17, 3_000_000, 1000):
        before = len(array)
        array = grown(array, rows)
        steps += len(array) > before
    assert steps < 40


def test_what_is_not_owned_is_copied() -> None:
    base = np.arange(1 << 20, dtype=np.int64)
    larger = grown(base[:], len(base) + 1)
    base[0] = 7
    assert (len(larger) > len(base), int(larger[0]), int(larger[-1])) == (True, 0, 0)
