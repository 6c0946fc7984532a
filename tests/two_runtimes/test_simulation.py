"""Replicas of two runtimes stepped in random orders; see ``eddyline.testing.simulation``."""

from __future__ import annotations

from collections import Counter

import pytest

from eddyline.testing.simulation import Simulation

SEEDS = 40


def test_every_answer_is_exact_in_every_order() -> None:
    covered: Counter[str] = Counter()
    for seed in range(SEEDS):
        simulation = Simulation(seed, workers=(1, 1, 2)[seed % 3])
        try:
            simulation.run(200)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        covered += simulation.covered
    wanted = {
        "reads over placeholders": 20,
        "peeks over placeholders": 20,
        "cancels": 100,
        "answers: canceled": 20,
        "answers: rows": 500,
        "compactions that the reader has not seen": 50,
        "reconnects, maintenance first": 10,
        "reconnects, interactive first": 10,
        "crashes": 10,
        "re-exports": 10,
    }
    assert {what: covered[what] for what in wanted if covered[what] < wanted[what]} == {}


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, 5000, 100))
def test_every_answer_is_exact_in_many_more_orders(first: int) -> None:
    for seed in range(first, first + 100):
        Simulation(seed, workers=(1, 2, 4)[seed % 3]).run(300)
