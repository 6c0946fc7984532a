"""Interpolation search and probing: kernels against twins."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from eddyline.kernels.search import locate, locate_twin, probe, probe_twin, seek, seek_twin
from eddyline.repr.types import INTEGER
from eddyline.testing.columns import random_column
from eddyline.trace.columns import address_of, cell_kinds, describe

SHAPES: dict[str, Callable[[Random], int]] = {
    "uniform": lambda rng: rng.getrandbits(64),
    "four bits": lambda rng: rng.getrandbits(4),
    "skewed": lambda rng: 2**64 - 1 if rng.random() < 0.2 else rng.getrandbits(rng.choice([8, 16, 63])),
    "extremes": lambda rng: rng.choice([0, 2**64 - 1, 2**63, 2**63 - 1]),
}


class HashRuns:
    def __init__(self, sizes: list[int], shape: str, rng: Random) -> None:
        self.hashes = [np.sort(np.array([SHAPES[shape](rng) for _ in range(n)], np.uint64)) for n in sizes]
        self.times = [np.array([rng.randrange(4) for _ in range(n)], np.int64) for n in sizes]
        self.heads = np.array(
            [
                [address_of(h), len(h), address_of(h), 8, address_of(t), 8, address_of(t), 8]
                for h, t in zip(self.hashes, self.times, strict=True)
            ],
            np.int64,
        ).reshape(len(sizes), 8)


@pytest.mark.parametrize("shape", SHAPES)
def test_locate_agrees_with_twin(shape: str) -> None:
    rng = Random(shape)
    runs = HashRuns([0, 1, 17, 40, 400, 3000], shape, rng)
    hashes = [SHAPES[shape](rng) for _ in range(40)] + [0, 2**64 - 1]
    hashes += [int(rng.choice(runs.hashes[5])) + d for d in (0, 0, 0) for _ in range(5)]
    for batch in (hashes, sorted(hashes), sorted(hashes, reverse=True)):
        out = np.empty((len(batch), 6), np.int64)
        locate(runs.heads, np.array(batch, np.uint64), out)
        assert out.tolist() == locate_twin(runs.heads, batch)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("capacity", [1, 3, 10_000])
def test_probe_in_pieces_agrees_with_twin(shape: str, capacity: int) -> None:
    rng = Random(shape)
    runs = HashRuns([0, 1, 17, 40], shape, rng)
    rows = 20
    hashes = np.array([rng.choice(runs.hashes[rng.choice([2, 3])]) for _ in range(rows)], np.uint64)
    column = random_column(INTEGER, rows, rng)
    keys = describe([column], cell_kinds((INTEGER,)))[None]
    for batch in (hashes, np.sort(hashes)):
        for safe in (0, 1):
            null_safe = np.array([safe], np.uint8)
            cursors, state = np.zeros(4, np.int64), np.array((0, 0, -1), np.int64)
            found: list[tuple[int, ...]] = []
            while int(state[0]) < rows:
                out = np.empty((5, capacity), np.int64)
                count = probe(runs.heads, keys, batch, null_safe, 3, cursors, state, *out)
                found += [tuple(r) for r in out[:, :count].T.tolist()]
            assert [f[:3] for f in found] == probe_twin(runs.heads, keys, batch, null_safe, 3)
            assert all(f[3] == f[4] == runs.times[f[1]][f[2]] for f in found)


def test_seek_agrees_with_twin() -> None:
    rng = Random(2)
    for shape in ("four bits", "extremes"):
        runs = HashRuns([0, 1, 30, 300], shape, rng)
        words = [np.empty(len(h), np.uint64) for h in runs.hashes]
        for run, (hashes, column) in enumerate(zip(runs.hashes, words, strict=True)):
            pairs = sorted((h, rng.getrandbits(4)) for h in hashes.tolist())
            column[:] = [w for _, w in pairs]
            runs.heads[run, 2] = address_of(column)
        targets = np.array([rng.choice(runs.hashes[3]) for _ in range(60)], np.uint64)
        starts = np.array([rng.getrandbits(4) for _ in range(60)], np.uint64)
        positions = np.empty((60, 4), np.int64)
        locate(runs.heads, targets, positions)
        expected = seek_twin(runs.heads, targets, starts, positions)
        seek(runs.heads, targets, starts, positions)
        assert positions.tolist() == expected
