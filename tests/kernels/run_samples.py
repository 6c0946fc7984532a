"""Random sorted runs for kernel tests, built by the twins alone."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.kernels.rows import compact_rows_twin, sort_rows_twin
from eddyline.repr.types import SqlType
from eddyline.testing.columns import random_column
from eddyline.trace.columns import address_of, cell_kinds, describe

Described = Any


class SampleRuns:
    """Runs as kernels see them; keeps their buffers alive."""

    def __init__(self, types: tuple[SqlType, ...], sizes: list[int], rng: Random, *, distinct: int = 4) -> None:
        self.types = types
        self.kept: list[Any] = []
        heads, descs = [], []
        for size in sizes:
            head, described = self._run(size, rng, distinct)
            heads.append(head)
            descs.append(described)
        self.heads = np.array(heads, np.int64).reshape(len(sizes), 8)
        self.descs = np.array(descs, np.int64).reshape(len(sizes), len(types), 6)

    def _run(self, size: int, rng: Random, distinct: int) -> tuple[list[int], Described]:
        kinds = cell_kinds(self.types)
        columns = [random_column(t, size, rng) for t in self.types]
        described = describe(columns, kinds)
        # a pure function of the row that SQL equality respects is too much to ask here: one hash for all values
        hashes = np.full(size, rng.choice([3, 2**63]), np.uint64)
        words = np.zeros(size, np.uint64)
        times = np.array([rng.randrange(6) for _ in range(size)], np.int64)
        diffs = np.array([rng.choice([-1, 1, 1, 2]) for _ in range(size)], np.int64)
        order = sort_rows_twin(described[None], hashes, words, times)
        kept = compact_rows_twin(described[None], times, diffs, order)
        rows = pa.array([row for row, _, _ in kept], pa.int64())
        columns = [c.take(rows) for c in columns]
        described = describe(columns, kinds)
        arrays = [
            hashes[: len(kept)].copy(),
            words[: len(kept)].copy(),
            np.array([t for _, t, _ in kept], np.int64),
            np.array([d for _, _, d in kept], np.int64),
        ]
        self.kept.append((columns, arrays))
        head = [address_of(arrays[0]), len(kept)]
        for array in arrays[1:]:
            head += [address_of(array), 8]
        return head, described
