"""Joins whose arrangements leave out what the other side does not ask for, against nested loops at every time."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.partner import Partner
from eddyline.compute.stream import ArrangedOutput, ArrangedStream, Operator, Output, Sealed, Stream
from eddyline.expr.ir import Mfp
from eddyline.plan.dataflow import Join
from eddyline.repr.time import EMPTY, Frontier
from eddyline.repr.types import INTEGER, TEXT
from eddyline.trace.hasher import HASH_BITS_VARIABLE
from eddyline.trace.run import Layout
from tests.compute.operator_harness import (
    AS_OF,
    Collector,
    Multiset,
    Update,
    at,
    batch_of,
    check,
    context,
    drive,
    random_history,
    settle,
)

LEFT = (INTEGER, TEXT)
RIGHT = (TEXT, INTEGER)
OUT = (*LEFT, *RIGHT)
_COUNTED = pytest.mark.skipif(
    HASH_BITS_VARIABLE in os.environ, reason="keys whose hashes collide are asked for together"
)


@pytest.fixture(autouse=True)
def _small_snapshots_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.compute.operators.partner._LEAST_SHARE", 1 << 20)
    monkeypatch.setattr("eddyline.trace.reserve._MOST_ASKED", 99)


class Joined:
    """A join with its arrangements, as they are rendered; ``build`` is for ``drive``."""

    def __init__(self, *, null_safe: bool = False) -> None:
        self._node = Join(0, 1, (null_safe,), Mfp((), tuple(range(4)), OUT))
        self.arranging: list[ArrangeOperator] = []
        self.edges: list[ArrangedOutput] = []
        #: rows that were in reserve at some time
        self.most_reserved = 0

    def build(self, inputs: Sequence[Stream], output: Output, ctx: OperatorContext) -> list[Operator]:
        layouts = (Layout(LEFT, (0,)), Layout(RIGHT, (1,)))
        self.edges = [ArrangedOutput(new_arrangement(layout, ctx)) for layout in layouts]
        self.arranging = [
            ArrangeOperator("a", stream, layout, edge, ctx)
            for stream, layout, edge in zip(inputs, layouts, self.edges, strict=True)
        ]
        streams = [edge.connect() for edge in self.edges]
        self.arranging[0].meet(Partner(streams[1], self.arranging[1], ctx, is_first=True))
        self.arranging[1].meet(Partner(streams[0], self.arranging[0], ctx, is_first=False))
        return [*self.arranging, JoinOperator("j", streams[0], streams[1], self._node, output, ctx), _Watch(self)]

    def reserved(self) -> int:
        reserves = [edge.arrangement.reserve for edge in self.edges]  # type: ignore[union-attr]  # own ones, never frozen
        return sum(r.rows for r in reserves if r is not None)


class _Watch:
    """Notes how much is in reserve."""

    name = "w"

    def __init__(self, joined: Joined) -> None:
        self._joined = joined

    def step(self) -> bool:
        self._joined.most_reserved = max(self._joined.most_reserved, self._joined.reserved())
        return False

    def pending(self) -> bool:
        return False

    def close(self) -> None:
        pass


def joined_rows(null_safe: bool):  # type: ignore[no-untyped-def]  # a function
    def join(left: Multiset, right: Multiset) -> Multiset:
        result: Multiset = Counter()
        for a, n in left.items():
            for b, m in right.items():
                if a[0] == b[1] and (null_safe or a[0] is not None):
                    result[(*a, *b)] += n * m
        return result

    return join


def _histories(rng: random.Random) -> tuple[list[Update], list[Update]]:
    """Many left rows of many keys at as_of, few right ones, and later changes that ask for others."""

    def left_row(rng: random.Random) -> tuple[Any, ...]:
        return (rng.choice((None, *range(60))), rng.choice("abc"))

    def right_row(rng: random.Random) -> tuple[Any, ...]:
        return (rng.choice(("x", None)), rng.choice((None, *range(60))))

    snapshot = [(left_row(rng), rng.choice((AS_OF, AS_OF - 1)), 1) for _ in range(120)]
    left = [*snapshot, *random_history(rng, left_row, updates=60, times=12, negative=True)]
    gone = [(row, AS_OF + rng.randrange(1, 12), -1) for row, _, _ in rng.sample(snapshot, 30)]
    right = random_history(rng, right_row, updates=rng.choice((3, 40)), times=12, negative=True)
    return sorted([*left, *gone], key=lambda u: u[1]), right


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("seed", range(12))
def test_the_join_is_right_at_every_time(seed: int, bits: int | None) -> None:
    rng = random.Random(seed)
    left, right = _histories(rng)
    budget = rng.choice((8, 65_536))
    joined = Joined(null_safe=seed % 2 == 0)
    flipped = seed % 3 == 0
    if flipped:  # the many are on the right
        left, right = _swapped(right), _swapped(left)
    collector = drive(joined.build, [(LEFT, left), (RIGHT, right)], rng, bits=bits, budget_rows=budget)
    check(collector, [left, right], joined_rows(seed % 2 == 0), OUT)


def _swapped(history: list[Update]) -> list[Update]:
    return [(row[::-1], when, diff) for row, when, diff in history]


class Stepped:
    """100 left rows of as many keys and one right row at as_of, settled."""

    def __init__(self, *, right: Sequence[Update] = ((("x", 3), AS_OF, 1),)) -> None:
        self.ends, self.output = [Output(), Output()], Output()
        self.collector = Collector(self.output)
        self.joined = Joined()
        self.operators = self.joined.build([end.connect() for end in self.ends], self.output, context())
        self.ends[0].send(batch_of(LEFT, [((n, f"a{n}"), AS_OF, 1) for n in range(100)]))
        self.ends[1].send(batch_of(RIGHT, list(right)))
        self.to(AS_OF + 1)

    def to(self, time: int) -> None:
        for end in self.ends:
            end.advance(Frontier(time))
        settle(self.operators, self.collector)

    def pairs(self, time: int) -> dict[str | None, int]:
        """The left text of each pair, and how often it is there."""
        return {row[1]: n for row, n in at(self.collector.updates, time).items()}

    @property
    def arranged(self) -> int:
        return self.joined.edges[0].arrangement.oks.rows


@_COUNTED
def test_rows_that_nobody_asks_for_are_not_arranged_until_somebody_does() -> None:
    stepped = Stepped()
    assert stepped.pairs(AS_OF) == {"a3": 1}
    assert 1 <= stepped.arranged < 20
    kept = stepped.joined.reserved()
    assert kept == 100 - stepped.arranged
    stepped.ends[1].send(batch_of(RIGHT, [(("y", n), AS_OF + 1, 1) for n in range(40, 50)]))
    stepped.to(AS_OF + 2)
    assert stepped.pairs(AS_OF) == {"a3": 1}
    assert stepped.pairs(AS_OF + 1) == {"a3": 1, **{f"a{n}": 1 for n in range(40, 50)}}
    assert kept - 10 <= stepped.joined.reserved() < kept
    for end in stepped.ends:
        end.advance(EMPTY)
    settle(stepped.operators, stepped.collector)
    assert stepped.joined.reserved() == 0  # nobody will ask


def test_a_retracted_row_of_the_reserve_is_gone_when_its_key_is_asked_for() -> None:
    stepped = Stepped()
    kept, arranged = stepped.joined.reserved(), stepped.arranged
    gone = [((n, f"a{n}"), AS_OF + 1, -1) for n in range(50, 60)]
    stepped.ends[0].send(batch_of(LEFT, gone))
    stepped.to(AS_OF + 2)
    assert (stepped.joined.reserved(), stepped.arranged) == (kept, arranged + 10)
    stepped.ends[1].send(batch_of(RIGHT, [(("y", n), AS_OF + 2, 1) for n in range(45, 55)]))
    stepped.to(AS_OF + 3)
    assert stepped.pairs(AS_OF + 2) == {"a3": 1, **{f"a{n}": 1 for n in range(45, 50)}}


def test_a_key_that_the_other_side_loses_and_has_again_is_still_there() -> None:
    stepped = Stepped()
    for time, key, diff in ((1, 3, -1), (2, 7, 1), (3, 7, -1), (4, 7, 1), (5, 3, 1)):
        stepped.ends[1].send(batch_of(RIGHT, [(("x", key), AS_OF + time, diff)]))
        stepped.to(AS_OF + time + 1)
    expected: list[dict[str | None, int]] = [{"a3": 1}, {}, {"a7": 1}, {}, {"a7": 1}, {"a7": 1, "a3": 1}]
    assert [stepped.pairs(AS_OF + t) for t in range(6)] == expected


def test_an_empty_other_side_leaves_everything_in_reserve() -> None:
    stepped = Stepped(right=())
    assert stepped.joined.reserved() == 100
    stepped.ends[1].send(batch_of(RIGHT, [(("x", 99), AS_OF + 1, 1)]))
    stepped.to(AS_OF + 2)
    assert stepped.pairs(AS_OF + 1) == {"a99": 1}


@_COUNTED
def test_memory_follows_what_is_live_where_everything_is_replaced() -> None:
    stepped = Stepped()
    for n in range(100):
        time = AS_OF + 1 + n
        stepped.ends[0].send(batch_of(LEFT, [((n, f"a{n}"), time, -1), ((n + 100, f"a{n}"), time, 1)]))
        stepped.to(time + 1)
    assert stepped.joined.edges[0].arrangement.reserve is None  # type: ignore[union-attr]  # its own, never frozen
    while stepped.joined.edges[0].arrangement.oks.work(1000):  # type: ignore[union-attr]  # its own, never frozen
        continue
    assert stepped.arranged < 150


class _Side:
    """A snapshot that comes in."""

    def __init__(self, rows: int, *, closed: bool) -> None:
        self.snapshot_rows = rows
        self.snapshot_closed = closed


def _stream(*, sealed: bool) -> ArrangedStream:
    edge = ArrangedOutput(new_arrangement(Layout(LEFT, (0,)), context()))
    stream = edge.connect()
    if sealed:
        edge.seal(Sealed((), None, Frontier(0), Frontier(AS_OF + 1)))
    return stream


def test_of_two_complete_snapshots_exactly_one_waits() -> None:
    for left, right in ((5, 5), (5, 6), (6, 5), (1, 1)):
        of_left = Partner(_stream(sealed=False), _Side(right, closed=True), context(), is_first=True)
        of_right = Partner(_stream(sealed=False), _Side(left, closed=True), context(), is_first=False)
        assert of_left.is_awaited(left) != of_right.is_awaited(right)


def test_a_snapshot_waits_while_the_other_may_be_smaller() -> None:
    assert Partner(_stream(sealed=False), _Side(4, closed=False), context(), is_first=True).is_awaited(5)
    assert Partner(_stream(sealed=False), _Side(5, closed=False), context(), is_first=True).is_awaited(5)
    assert not Partner(_stream(sealed=False), _Side(6, closed=False), context(), is_first=True).is_awaited(5)
    assert Partner(_stream(sealed=False), None, context(), is_first=True).is_awaited(5)  # an index
    assert not Partner(_stream(sealed=True), None, context(), is_first=True).is_awaited(5)
    assert not Partner(_stream(sealed=False), None, context(), is_first=True).is_awaited(0)
