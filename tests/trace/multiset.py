"""The oracle: a trace as a plain list of (row, time, diff), and rows as dictionaries."""

from __future__ import annotations

from collections import Counter
from functools import cmp_to_key
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.kernels.cells import compare_rows_twin
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier
from eddyline.repr.types import SqlType
from eddyline.testing.columns import random_column
from eddyline.testing.row_keys import row_keys
from eddyline.trace.columns import cell_kinds, describe, order_descriptors
from eddyline.trace.compare import rows_equal
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout, Run, build_run


class Item(NamedTuple):
    column: int
    desc: bool = False
    nulls_first: bool = False


def random_batch(types: tuple[SqlType, ...], rows: int, times: range, rng: Random) -> Batch:
    columns = tuple(random_column(t, rows, rng) for t in types)
    return Batch(
        types,
        columns,
        np.array([rng.choice(times) for _ in range(rows)], np.int64),
        np.array([rng.choice([-1, 1, 1, 2]) for _ in range(rows)], np.int64),
    )


def build(batch: Batch, layout: Layout, hasher: Hasher, *, lower: int, upper: int, since: int) -> Run:
    return build_run(batch, layout, hasher, lower=Frontier(lower), upper=Frontier(upper), since=Frontier(since))


def multiset(batch: Batch) -> dict[tuple[bytes, int], int]:
    """(encoded row, time) -> diff, zeros dropped."""
    return summed(row_keys(batch.columns, batch.types, len(batch)), batch)


def summed(keys: list[bytes], batch: Batch) -> dict[tuple[bytes, int], int]:
    """``multiset`` of a batch whose rows have been encoded."""
    out: Counter[tuple[bytes, int]] = Counter()
    for key, time, diff in zip(keys, batch.times.tolist(), batch.diffs.tolist(), strict=True):
        out[key, time] += diff
    return {entry: diff for entry, diff in out.items() if diff}


class Oracle:
    """Every update ever inserted."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.all = Batch.empty(layout.types)
        self.encoded: list[bytes] = []  # of the rows of ``all``

    def add(self, batch: Batch) -> None:
        self.all = Batch.concat(self.layout.types, [self.all, batch])
        self.encoded += row_keys(batch.columns, batch.types, len(batch))

    def at(self, time: int) -> dict[bytes, int]:
        out: Counter[bytes] = Counter()
        for (key, when), diff in summed(self.encoded, self.all).items():
            if when <= time:
                out[key] += diff
        return {key: diff for key, diff in out.items() if diff}

    def matches(self, keys: tuple[pa.Array, ...], time: int, null_safe: bool) -> dict[tuple[int, bytes], int]:
        """(probe row, encoded row) -> multiplicity at ``time``."""
        layout, rows, probes = self.layout, len(self.all), len(keys[0]) if keys else 1
        left = np.repeat(np.arange(probes), rows)
        right = np.tile(np.arange(rows), probes)
        types = [layout.types[c] for c in layout.key]
        equal = rows_equal(
            keys, types, left, [self.all.columns[c] for c in layout.key], right, null_equal=[null_safe] * len(types)
        )
        out: Counter[tuple[int, bytes]] = Counter()
        for i, j in zip(left[equal].tolist(), right[equal].tolist(), strict=True):
            if self.all.times[j] <= time:
                out[i, self.encoded[j]] += int(self.all.diffs[j])
        return {entry: diff for entry, diff in out.items() if diff}

    def ordered(self, keys: tuple[pa.Array, ...], time: int, limit: int) -> list[tuple[int, bytes, int]]:
        """(group, encoded row, multiplicity) of the first rows of each group."""
        layout = self.layout
        described = describe(self.all.columns, cell_kinds(layout.types))
        items = np.concatenate((order_descriptors(described, layout.order), described))[None]
        first = {key: row for row, key in reversed(list(enumerate(self.encoded)))}
        members = self.matches(keys, time, True)

        def compare(i: int, j: int) -> int:
            return compare_rows_twin(items, 0, i, items, 0, j)

        out = []
        for group in range(len(keys[0]) if keys else 1):
            rows = [first[key] for g, key in members if g == group and members[g, key] > 0]
            rows.sort(key=cmp_to_key(compare))
            live = 0
            for row in rows:
                if live >= limit:
                    break
                count = members[group, self.encoded[row]]
                out.append((group, self.encoded[row], count))
                live += count
        return out
