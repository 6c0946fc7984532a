"""Top-k and string_agg: operators that recompute changed groups, against sorting from scratch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from eddyline.compute.context import OperatorContext
from eddyline.compute.operators.basic_reduce import BasicReduceOperator
from eddyline.compute.operators.top_k import TopKOperator
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.ir import AggregateCall, Column, Literal, SortKey
from eddyline.plan.dataflow import Reduce, ReduceFunctions, TopK
from eddyline.repr.types import INTEGER, TEXT
from eddyline.trace.snapshot import OrderedRows, Snapshot
from tests.compute.operator_harness import AS_OF, Multiset, Update, at, check, drive, random_history

TYPES = (TEXT, INTEGER, TEXT)


def row(rng: random.Random) -> tuple[Any, ...]:
    return (rng.choice((None, *"abcdef")), rng.choice((None, *range(-4, 9))), rng.choice((None, "p", "q", "rr")))


def canonical(value: object) -> tuple[bool, object]:
    """NULL last."""
    return (value is None, 0 if value is None else value)


def expand(rows: Multiset) -> dict[Any, list[tuple[Any, ...]]]:
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for each, count in rows.items():
        groups.setdefault(each[0], []).extend([each] * count)
    return groups


def first_rows(rows: Multiset, desc: bool, nulls_first: bool, limit: int | None, offset: int) -> Multiset:
    result: Multiset = Counter()
    for members in expand(rows).values():
        members.sort(key=lambda r: [canonical(v) for v in r])

        def rank(r: tuple[Any, ...]) -> tuple[int, int]:
            value = r[1]
            if value is None:
                return (-1 if nulls_first else 1, 0)
            assert isinstance(value, int)
            return (0, -value if desc else value)

        members.sort(key=rank)
        result.update(members[offset : None if limit is None else offset + limit])
    return result


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize(
    ("desc", "nulls_first", "limit", "offset"),
    [(False, False, 1, 0), (True, False, 3, 0), (True, True, 2, 2), (False, True, None, 1), (False, False, 0, 0)],
)
@pytest.mark.parametrize("seed", range(2))
def test_the_first_rows_of_each_group_at_every_time(
    seed: int, desc: bool, nulls_first: bool, limit: int | None, offset: int, bits: int | None
) -> None:
    rng = random.Random(seed)
    history = random_history(rng, row, updates=250, times=12)
    node = TopK(0, (0,), (SortKey(1, desc, nulls_first),), limit, offset, TYPES)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [TopKOperator("t", inputs[0], node, output, context)]

    def oracle(rows: Multiset) -> Multiset:
        return first_rows(rows, desc, nulls_first, limit, offset)

    collector = drive(build, [(TYPES, history)], rng, bits=bits, budget_rows=rng.choice((16, 65_536)))
    check(collector, [history], oracle, TYPES)


@pytest.mark.parametrize("single", [False, True])
def test_a_limit_without_groups_or_order_follows_the_canonical_order(single: bool) -> None:
    rng = random.Random(3)
    history = random_history(rng, row, updates=120, times=8)
    node = TopK(0, (), (), 4, 1, TYPES)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [TopKOperator("t", inputs[0], node, output, context)]

    def oracle(rows: Multiset) -> Multiset:
        members = sorted(rows.elements(), key=lambda r: [canonical(v) for v in r])
        return Counter(members[1:5])

    collector = drive(build, [(TYPES, history)], rng, single=single)
    check(collector, [history], oracle, TYPES)


def agg(**more: object) -> AggregateCall:
    return AggregateCall("string_agg", (Column(2, TEXT), Literal("+", TEXT)), TEXT, **more)  # type: ignore[arg-type]  # passed on


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_string_agg_joins_in_order(seed: int, grouped: bool, bits: int | None) -> None:
    rng = random.Random(seed)
    history = random_history(rng, row, updates=150, times=10)
    ordered = agg(order_by=((Column(1, INTEGER), True, False),))
    plain_call = agg()
    key = (0,) if grouped else ()
    node = Reduce(
        0, key, (ordered, plain_call), ReduceFunctions.BASIC, (*((TEXT,) * grouped), TEXT, TEXT), global_row=not grouped
    )

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [BasicReduceOperator("s", inputs[0], node, output, context)]

    def oracle(rows: Multiset) -> Multiset:
        groups = expand(rows) if grouped else {None: list(rows.elements())}
        result: Multiset = Counter()
        for group, members in groups.items():
            values = [m for m in members if m[2] is not None]
            plain = sorted(str(m[2]) for m in values)
            values.sort(key=lambda m: str(m[2]))
            values.sort(key=lambda m: (m[1] is None, -m[1] if m[1] is not None else 0))
            texts = ["+".join(str(m[2]) for m in values) if values else None, "+".join(plain) if plain else None]
            result[(*([group] * grouped), *texts)] += 1
        return result

    collector = drive(build, [(TYPES, history)], rng, bits=bits, budget_rows=rng.choice((16, 65_536)))
    check(collector, [history], oracle, node.types)


def test_string_agg_takes_each_row_its_own_delimiter_and_an_absent_one_as_empty() -> None:
    call = AggregateCall(
        "string_agg", (Column(0, TEXT), Column(1, TEXT)), TEXT, order_by=((Column(2, INTEGER), False, False),)
    )
    node = Reduce(0, (), (call,), ReduceFunctions.BASIC, (TEXT,), global_row=True)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [BasicReduceOperator("s", inputs[0], node, output, context)]

    rows = [("a", "-", 1), ("b", "/", 2), ("c", None, 3), (None, "!", 4), ("d", "*", 5)]
    collector = drive(build, [((TEXT, TEXT, INTEGER), [(r, 10, 1) for r in rows])], random.Random(0))
    assert at(collector.updates, 10) == Counter({("a/bc*d",): 1})


@pytest.mark.parametrize("desc", [False, True])
def test_deleting_the_first_row_again_and_again_walks_no_row_that_is_gone(
    desc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: updates of dead rows passed.  Without a place to start, the n-th deletion passes about n of them."""
    dead = 0
    walk = Snapshot.ordered_group

    def counting(self: Snapshot, *args: Any, **kwargs: Any) -> OrderedRows:
        nonlocal dead
        found = walk(self, *args, **kwargs)
        dead += found.dead_rows
        return found

    monkeypatch.setattr(Snapshot, "ordered_group", counting)
    rows = 400
    node = TopK(0, (0,), (SortKey(1, desc, False),), 1, 0, TYPES)
    extremes = list(range(rows - 1, 0, -1)) if desc else list(range(rows - 1))
    history: list[Update] = [(("a", value, "x"), AS_OF, 1) for value in range(rows)]
    history += [(("a", value, "x"), AS_OF + 1 + number, -1) for number, value in enumerate(extremes)]

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [TopKOperator("t", inputs[0], node, output, context)]

    collector = drive(build, [(TYPES, history)], random.Random(1), single=True)
    check(collector, [history], lambda rows: first_rows(rows, desc, False, 1, 0), TYPES)
    assert dead <= 4 * len(extremes)


def counted_walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many groups each walk looked at."""
    walks: list[int] = []
    walk = Snapshot.ordered_group

    def counting(self: Snapshot, *args: Any, **kwargs: Any) -> OrderedRows:
        walks.append(len(args[2]))
        return walk(self, *args, **kwargs)

    monkeypatch.setattr(Snapshot, "ordered_group", counting)
    return walks


@pytest.mark.parametrize("desc", [False, True])
def test_a_row_that_comes_is_compared_with_the_one_shown_and_walks_nothing(
    desc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(5)
    rows = [(rng.choice("abcde"), rng.choice((None, *range(50))), rng.choice("xyz")) for _ in range(150)]
    history: list[Update] = [(each, AS_OF + 1 + number, 1) for number, each in enumerate(rows)]
    node = TopK(0, (0,), (SortKey(1, desc, False),), 1, 0, TYPES)
    walks = counted_walks(monkeypatch)

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [TopKOperator("t", inputs[0], node, output, context)]

    collector = drive(build, [(TYPES, history)], rng, single=True)
    check(collector, [history], lambda rows: first_rows(rows, desc, False, 1, 0), TYPES)
    assert not walks


def test_a_row_whose_retraction_came_before_it_is_not_taken_for_the_first() -> None:
    """One time in pieces of one update: what the first of them retracts comes with the second."""
    node = TopK(0, (0,), (SortKey(1, True, False),), 1, 0, TYPES)
    history: list[Update] = [(("a", 3, "x"), AS_OF, 1), (("a", 5, "x"), AS_OF + 1, -1), (("a", 5, "x"), AS_OF + 1, 1)]

    def build(inputs: Sequence[Stream], output: Output, context: OperatorContext) -> list[Operator]:
        return [TopKOperator("t", inputs[0], node, output, context)]

    for seed in range(5):
        collector = drive(build, [(TYPES, history)], random.Random(seed), budget_rows=1, single=True)
        check(collector, [history], lambda rows: first_rows(rows, True, False, 1, 0), TYPES)
