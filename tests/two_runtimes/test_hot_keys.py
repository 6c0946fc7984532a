"""A key with very many rows, and an index with very many errors: read in slices, and no other lookup waits behind it.

By steps, not by clocks: ``lookup`` is a step of the worker that answers lookups, ``heavy`` one of its lane.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from eddyline.compute import peek as peek_module
from eddyline.compute.pair import Pair
from eddyline.compute.walk import Pace, walk_at
from eddyline.expr.ir import Call, Column, Literal, MapStep, Mfp
from eddyline.expr.mfp import apply_mfp
from eddyline.plan.dataflow import MapFilterProject
from eddyline.protocol.messages import Peek
from eddyline.protocol.read_costs import UNBOUNDED, ReadBounds
from eddyline.repr.batch import Batch
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT
from eddyline.testing.driver import PAIR, ReplicaDriver, index_on
from eddyline.trace.hasher import Hasher
from eddyline.trace.snapshot import Snapshot

HOT_ROWS = 150_000
SLICE_ROWS = 65_536
FEW_ROWS = 4096
IDENTITY = Mfp((), (0, 1), PAIR)


class Hot:
    """Index ``i`` on a table in which key 0 has very many values and 1 to 99 one each."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.driver = d = ReplicaDriver()
        assert isinstance(d.replica, Pair)
        self.replica: Pair = d.replica
        self.at = d.table("t", [(0, n) for n in range(HOT_ROWS)] + [(n, n) for n in range(1, 100)])
        d.create(index_on("i", "t", self.at))
        d.rest()

    def lookup(self) -> bool:
        return self.replica.interactive.step(0)

    def heavy(self) -> bool:
        return self.replica.interactive.step(1)

    def send(self, *, limit: int | None = None, bounds: ReadBounds = UNBOUNDED) -> str:
        uuid = f"hot {next(self._numbers)}"
        self.driver.send(Peek("i", uuid, self.at, PAIR[:1], ((0,),), IDENTITY, limit, (), bounds))
        return uuid

    def until_answered(self, uuid: str) -> int:
        """Steps of the lane."""
        for steps in range(10_000):
            if self.driver.answers(uuid):
                return steps
            self.heavy()
        raise AssertionError("it is not answered")


class Looked:
    """How many rows each step put through map-filter-project."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []

        def apply(mfp: Mfp, batch: Batch) -> tuple[Batch, Batch | None]:
            self.rows.append(len(batch))
            return apply_mfp(mfp, batch)

        patch.setattr(peek_module, "apply_mfp", apply)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Looked]:
    yield Looked(monkeypatch)


@pytest.fixture(scope="module")
def hot() -> Hot:
    return Hot()


def test_no_lookup_waits_behind_that_of_a_hot_key(hot: Hot, looked: Looked) -> None:
    d = hot.driver
    uuid = hot.send()
    hot.lookup()
    assert looked.rows == [], "the worker that answers lookups has not read a row of it"
    slices = 0
    for n in range(1, 100):
        other = d.peek("i", hot.at, (n,))
        hot.lookup()
        assert d.rows(other) == {(n, n): 1}, "answered in the worker's next step, whatever the lane is at"
        looked.rows.pop()
        if not d.answers(uuid):
            hot.heavy()
            slices += 1
            assert sum(looked.rows) < 1.1 * SLICE_ROWS
            looked.rows.clear()
    assert d.rows(uuid) == Counter({(0, n): 1 for n in range(HOT_ROWS)})
    assert slices > HOT_ROWS // SLICE_ROWS


def test_a_limit_ends_the_walk_of_a_hot_key(hot: Hot, looked: Looked) -> None:
    uuid = hot.send(limit=10)
    hot.lookup()
    hot.until_answered(uuid)
    assert sum(hot.driver.rows(uuid).values()) >= 10
    assert sum(looked.rows) <= 2 * FEW_ROWS


def test_the_memory_bound_stops_the_walk_of_a_hot_key_part_way(hot: Hot, looked: Looked) -> None:
    uuid = hot.send(bounds=ReadBounds(memory=1 << 18))
    hot.lookup()
    hot.until_answered(uuid)
    error = hot.driver.answer(uuid).error
    assert error is not None and error[0] == "53200"
    assert 0 < sum(looked.rows) < HOT_ROWS // 4


def test_a_hot_keys_walk_is_cancelled_between_slices(hot: Hot, looked: Looked) -> None:
    uuid = hot.send()
    hot.lookup()
    hot.heavy()
    hot.driver.cancel(uuid)
    hot.lookup()
    looked.rows.clear()
    hot.heavy()
    assert hot.driver.answer(uuid).canceled
    assert sum(looked.rows) == 0


def test_a_hot_key_is_read_at_its_time_through_retractions() -> None:
    """Rows that came, went and came again, in several runs."""
    d = ReplicaDriver()
    at = d.table("t", [(n % 2, n) for n in range(20_000)])
    d.create(index_on("i", "t", at))
    d.rest()
    for n in range(4):
        d.write("t", [(0, 2 * m) for m in range(n, 10_000, 4)], [-1] * len(range(n, 10_000, 4)))
        if n % 2:
            d.write("t", [(0, 2 * m) for m in range(0, 10_000, 8)])
        d.rest()
    content = Counter({(0, 2 * m): n for m in range(0, 10_000, 8) for n in [2]})
    found = d.peek("i", d.time, (0,), (7,))
    earlier = d.peek("i", at, (0,))
    d.rest()
    assert d.rows(found) == content
    assert d.rows(earlier) == Counter({(0, n): 1 for n in range(0, 20_000, 2)})


class Failing:
    """Index ``i`` over 1 / v, where very many v are 0; ``errors`` says how many are left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver = d = ReplicaDriver()
        assert isinstance(d.replica, Pair)
        self.replica: Pair = d.replica
        quotient = Call("int_div", (Literal(1, BIGINT), Column(1, BIGINT)), BIGINT)
        divide = MapFilterProject(0, Mfp((MapStep(quotient),), (0, 2), PAIR))
        self.at = d.table("t", [(n, 0) for n in range(40_000)] + [(-1, 1)])
        d.create(index_on("i", "t", self.at, divide))
        d.rest()
        self.read: list[int] = []

        def walk(snapshot: Snapshot, time: Time, pace: Pace, hasher: Hasher) -> Iterator[Batch]:
            for batch in walk_at(snapshot, time, pace, hasher):
                self.read.append(len(batch))
                yield batch

        monkeypatch.setattr(peek_module, "walk_at", walk)


def test_the_first_of_many_errors_is_found_in_one_small_step(monkeypatch: pytest.MonkeyPatch) -> None:
    f = Failing(monkeypatch)
    uuid = f.driver.peek("i", f.at, (-1,))
    f.replica.interactive.step(0)
    error = f.driver.answer(uuid).error
    assert error is not None and error[0] == "22012"
    assert sum(f.read) <= FEW_ROWS + 100


def test_many_errors_that_are_gone_are_looked_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    f = Failing(monkeypatch)
    d = f.driver
    now = d.write("t", [(n, 0) for n in range(40_000)], [-1] * 40_000)
    d.rest()
    d.create(index_on("j", "t", now))
    d.rest()
    hard = d.peek("i", now, (-1,))
    f.replica.interactive.step(0)
    for _ in range(2):
        easy = d.peek("j", now, (-1,))
        f.replica.interactive.step(0)
        assert d.rows(easy) == {(-1, 1): 1}
        assert not d.answers(hard)
        f.replica.interactive.step(1)
    d.rest()
    assert d.rows(hard) == {(-1, 1): 1}
