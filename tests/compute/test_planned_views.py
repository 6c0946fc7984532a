"""Random plans, optimized, lowered and maintained by the runtime, against what they mean at the end of each history."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from eddyline.plan.facts import NO_FACTS, CatalogFacts, IndexFacts
from eddyline.plan.lower import lower_index
from eddyline.plan.optimize import optimize
from eddyline.plan.relation import Get, Relation
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import arrow_type
from tests.plan import naive
from tests.plan.generate import KEYS, TABLES, Generator

from .runtime_harness import Harness, dataflow, identity

FACTS = CatalogFacts(
    (IndexFacts("r_0", "r", (0,), TABLES["r"]), IndexFacts("s_20", "s", (2, 0), TABLES["s"])),
    KEYS,
)
SEEDS = range(30)


def changed(rng: random.Random, name: str, bag: naive.Bag) -> Batch:
    """A few insertions and retractions of live rows, made in ``bag`` too; declared keys stay unique."""
    net: Counter[naive.Row] = Counter()
    for _ in range(rng.choice((1, 2, 4))):
        live = [row for row, count in bag.items() if count > 0]
        row = tuple(rng.choice((None, 0, 1, 1, 2, 3)) for _ in TABLES[name])
        diff = 1
        if live and rng.random() < 0.45:
            row, diff = rng.choice(live), -1
        elif name in KEYS and (row[0] is None or any(other[0] == row[0] for other in live)):
            continue
        net[row] += diff
        bag[row] += diff
        if not bag[row]:
            del bag[row]
    updates = [(row, diff) for row, diff in net.items() if diff]
    types = TABLES[name]
    columns = tuple(pa.array([row[i] for row, _ in updates], arrow_type(t)) for i, t in enumerate(types))
    diffs = np.array([diff for _, diff in updates], np.int64)
    return Batch(types, columns, np.zeros(len(updates), np.int64), diffs)


class Database:
    """Tables, two indexes, and the model of what the tables hold."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._db = Harness(rng.choice((1, 2)), hash_bits=rng.choice((64, 4)))
        self.tables: dict[str, naive.Bag] = {name: Counter() for name in TABLES}
        for name, types in TABLES.items():
            names = tuple("abc"[: len(types)])
            self._db.controller.create_table(
                name, types, key=None, names=names, table=name, constraint=name, at=Time(self._db.time)
            )
            self._db.commit({})
        for index in FACTS.indexes:
            self.maintain(index.id, Get(index.on, index.types), NO_FACTS, index.key, on=index.on)

    def maintain(
        self, name: str, plan: Relation, facts: CatalogFacts, key: tuple[int, ...] = (), *, on: str | None = None
    ) -> None:
        operators = lower_index(plan, name, on or name, key, facts.indexes, unique_keys=facts.unique_keys)
        self._db.controller.create_dataflow(dataflow(name, *operators))

    def run(self, commits: int) -> None:
        """Commits with some steps of the runtime between them, so that batches span several times."""
        for _ in range(commits):
            chosen = [name for name in TABLES if self._rng.random() < 0.5]
            self._db.commit({name: changed(self._rng, name, self.tables[name]) for name in chosen})
            for _ in range(self._rng.choice((0, 3, 20))):
                self._db.solo.step(0)

    def read(self, name: str, plan: Relation) -> naive.Bag:
        uuid = self._db.controller.peek(name, Time(self._db.time), identity(plan.types), key_types=(), keys=None)
        self._db.settle()
        (answer,) = self._db.answers(uuid)
        assert answer.error is None, answer.error
        assert answer.rows is not None
        batch = answer.rows.batch()
        columns = [column.to_pylist() for column in batch.columns]
        found: naive.Bag = Counter()
        for i, diff in enumerate(batch.diffs.tolist()):
            found[tuple(column[i] for column in columns)] += diff
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_maintained_plans_equal_their_meaning(seed: int) -> None:
    rng = random.Random(seed)
    db = Database(rng)
    db.run(2)
    facts = FACTS if rng.random() < 0.7 else NO_FACTS
    plans = {f"v{i}": Generator(rng, fallible=False).relation(rng.choice((2, 3, 4))) for i in range(4)}
    for name, plan in plans.items():
        db.maintain(name, optimize(plan, facts), facts)
    for _ in range(3):
        db.run(rng.choice((1, 3)))
        for name, plan in plans.items():
            assert db.read(name, plan) == naive.relation(plan, db.tables), name
