"""Histories of one register: the state after n writes is n."""

from __future__ import annotations

import itertools
import random

import pytest

from eddyline.testing.simulation.linearizability import NotLinearizableError, Read, Write, check_linearizable


def read(began: int, ended: int, *values: int) -> Read:
    """Its answer is that of the states ``values``."""
    return Read(f"read [{began}, {ended}] of {values}", began, ended, lambda n: n in values)


WRITES = [Write(10, 20), Write(30, 40), Write(50, None)]


@pytest.mark.parametrize(
    "reads",
    [
        [read(0, 5, 0), read(21, 25, 1), read(41, 45, 2)],
        [read(12, 13, 0), read(14, 15, 1)],
        [read(12, 18, 1), read(15, 19, 0)],
        [read(51, 52, 3), read(53, 54, 3)],
        [read(51, 52, 2), read(53, 54, 3)],
        [read(0, 100, 2)],
        [read(21, 22, 0, 1)],
    ],
)
def test_what_could_have_happened_one_at_a_time_is_accepted(reads: list[Read]) -> None:
    check_linearizable(WRITES, reads)


@pytest.mark.parametrize(
    "reads",
    [
        [read(21, 25, 0)],  # an acknowledged write is missing
        [read(5, 9, 1)],  # a write that had not begun
        [read(12, 13, 1), read(14, 15, 0)],  # back in time
        [read(51, 52, 3), read(53, 54, 2)],
        [read(35, 36, 2), read(38, 60, 1)],
        [read(21, 100, 7)],
    ],
)
def test_what_could_not_is_refused(reads: list[Read]) -> None:
    with pytest.raises(NotLinearizableError):
        check_linearizable(WRITES, reads)


def test_writes_in_another_order_than_that_of_their_times_are_refused() -> None:
    with pytest.raises(NotLinearizableError):
        check_linearizable([Write(5, 6), Write(1, 2)], [])


def brute_force(writes: list[Write], reads: list[Read]) -> bool:
    """Every assignment of states, against the definition word by word."""
    for states in itertools.product(range(len(writes) + 1), repeat=len(reads)):
        seen = zip(states, reads, strict=True)
        if all(
            r.saw(n)
            and all(i < n for i, w in enumerate(writes) if w.ended is not None and w.ended < r.began)
            and all(i >= n for i, w in enumerate(writes) if w.began > r.ended)
            for n, r in seen
        ) and all(
            n <= m
            for (n, one), (m, other) in itertools.permutations(zip(states, reads, strict=True), 2)
            if one.ended < other.began
        ):
            return True
    return False


def test_it_decides_as_the_definition_does() -> None:
    rng = random.Random(1)
    accepted = 0
    for _ in range(1_500):
        begins = sorted(rng.sample(range(12), rng.randrange(4)))
        writes = [Write(b, b + rng.randrange(5)) for b in begins]
        reads = []
        for _ in range(rng.randrange(1, 4)):
            began = rng.randrange(12)
            values = rng.sample(range(len(writes) + 1), rng.choice((1, 1, min(2, len(writes) + 1))))
            reads.append(read(began, began + rng.randrange(5), *values))
        expected = brute_force(writes, reads)
        accepted += expected
        try:
            check_linearizable(writes, reads)
        except NotLinearizableError:
            assert not expected, (writes, [r.name for r in reads])
        else:
            assert expected, (writes, [r.name for r in reads])
    assert 300 < accepted < 1_200
