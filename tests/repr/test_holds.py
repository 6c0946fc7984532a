"""The least of many holds, against a plain dictionary."""

from __future__ import annotations

import random

import pytest

from eddyline.repr.holds import Holds
from eddyline.repr.time import Frontier


@pytest.mark.parametrize("seed", range(10))
def test_the_least_hold_is_that_of_a_dictionary(seed: int) -> None:
    rng, holds, plain = random.Random(seed), Holds(), dict[int, Frontier]()
    for _ in range(500):
        token = rng.randrange(20)
        if rng.random() < 0.3:
            holds.discard(token)
            plain.pop(token, None)
        else:
            since = Frontier(plain.get(token, 0) + rng.randrange(4))
            holds.put(token, since)
            plain[token] = since
        assert holds.least() == min(plain.values(), default=None)
        assert (len(holds), token in holds) == (len(plain), token in plain)


def test_holds_that_rise_for_ever_take_the_room_of_those_that_are_open() -> None:
    holds = Holds()
    holds.put(0, Frontier(0))
    for since in range(1000):
        holds.put(1, Frontier(since))
    assert holds.least() == 0
    assert len(holds._heap) < 50
