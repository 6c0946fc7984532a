"""Lookups of one key against a model, while rows come, change and go."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.repr.batch import Batch
from eddyline.repr.types import BIGINT, TEXT, arrow_type
from eddyline.trace.hasher import Hasher
from eddyline.trace.point_probe import MOST_ROWS, PointProbe, point_probe
from eddyline.trace.run import Layout
from eddyline.trace.trace import Trace
from tests.trace.multiset import Item, build

TYPES = (TEXT, BIGINT, TEXT)
LAYOUTS = {"by hash": Layout(TYPES, (0,)), "in order": Layout(TYPES, (0,), (Item(1, desc=True),))}
Row = tuple[str, int, str | None]
Update = tuple[Row, int]


class Changed:
    """A trace, and the rows that it holds after each time."""

    def __init__(self, layout: Layout, hash_bits: int = 64) -> None:
        self.hasher = Hasher(7, bits=hash_bits)
        self.trace = Trace(layout)
        self.rows: list[Counter[Row]] = [Counter()]
        probe = point_probe((TEXT,), self.hasher)
        assert probe is not None
        self.probe: PointProbe = probe

    def insert(self, updates: list[Update]) -> None:
        """All at the next time."""
        time = len(self.rows) - 1
        columns = [pa.array([row[i] for row, _ in updates], arrow_type(t)) for i, t in enumerate(TYPES)]
        diffs = np.array([diff for _, diff in updates], np.int64)
        batch = Batch(TYPES, tuple(columns), np.full(len(updates), time, np.int64), diffs)
        self.trace.insert(build(batch, self.trace.layout, self.hasher, lower=time, upper=time + 1, since=0))
        now = Counter(self.rows[-1])
        for row, diff in updates:
            now[row] += diff
        self.rows.append(now)

    def found(self, key: str, below: int) -> Counter[Row] | None:
        assert self.probe.set_key((key,))
        found = self.probe.find(self.trace.snapshot(), below)
        if found is None:
            return None
        rows: Counter[Row] = Counter()
        for run, row, diff in found:
            assert diff > 0
            a, b, c = (column[row].as_py() for column in run.columns)
            assert (a, b, c) not in rows, "each row comes once"
            rows[a, b, c] = diff
        return rows


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("hash_bits", [64, 1])
def test_a_key_that_changes_is_found_at_every_time(name: str, hash_bits: int) -> None:
    rng = Random(f"{name}{hash_bits}")
    changed = Changed(LAYOUTS[name], hash_bits)
    keys = [f"k{i}" for i in range(5)]
    for step in range(60):
        now = changed.rows[-1]
        gone = [row for row in dict.fromkeys(now.elements()) if rng.random() < 0.3]
        come = [(rng.choice(keys), rng.randrange(3), rng.choice([None, "", "x"])) for _ in range(rng.randrange(1, 4))]
        changed.insert([(row, -1) for row in gone] + [(row, 1) for row in come])
        if step % 7 == 0:
            changed.trace.work(1 << 20)
        for below in {step + 1, rng.randrange(step + 2)}:
            for key in [*keys, "none"]:
                expected = Counter({row: n for row, n in changed.rows[below].items() if row[0] == key and n})
                assert changed.found(key, below) == expected


def test_one_row_that_has_changed_a_hundred_times_is_found() -> None:
    changed = Changed(LAYOUTS["by hash"])
    changed.insert([(("k", 0, None), 1)])
    for n in range(1, 101):
        changed.insert([(("k", n - 1, None), -1), (("k", n, None), 1)])
        assert changed.found("k", n + 1) == Counter({("k", n, None): 1})


def test_what_is_no_multiset_or_too_much_is_left_to_others() -> None:
    changed = Changed(LAYOUTS["by hash"])
    changed.insert([(("k", 0, None), -1)])
    assert changed.found("k", 1) is None
    changed.insert([(("k", 0, None), 2)])
    assert changed.found("k", 2) == Counter({("k", 0, None): 1})
    changed.insert([(("k", n, None), 1) for n in range(1, MOST_ROWS)])
    assert len(changed.found("k", 3) or ()) == MOST_ROWS
    changed.insert([(("k", MOST_ROWS, None), 1)])
    assert changed.found("k", 4) is None
    changed.insert([(("k", n, None), -1) for n in range(1, MOST_ROWS + 1)])
    assert changed.found("k", 5) == Counter({("k", 0, None): 1})
