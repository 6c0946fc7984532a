"""Drives one operator with a random schedule and compares what it says at every readable time with an oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.stream import Operator, Output, Stream
from eddyline.expr.text_io import format_column, from_python
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher

__all__ = ["AS_OF", "Collector", "Multiset", "Update", "at", "batch_of", "check", "context", "drive", "random_history"]

AS_OF = 10

Row = tuple[Any, ...]
Update = tuple[Row, int, int]
Multiset = Counter[Row]


def context(*, budget_rows: int = 65_536, bits: int | None = None, as_of: int = AS_OF) -> OperatorContext:
    hasher = Hasher(7) if bits is None else Hasher(7, bits=bits)
    return OperatorContext(hasher, Time(as_of), budget_rows=budget_rows)


def batch_of(types: Sequence[SqlType], updates: Sequence[Update]) -> Batch:
    columns = tuple(from_python([row[i] for row, _, _ in updates], t) for i, t in enumerate(types))
    times = np.array([time for _, time, _ in updates], np.int64)
    return Batch(tuple(types), columns, times, np.array([diff for _, _, diff in updates], np.int64))


def texts(batch: Batch) -> list[tuple[str | None, ...]]:
    """The rows as PostgreSQL prints them."""
    columns: list[pa.Array] = [format_column(c, t) for c, t in zip(batch.columns, batch.types, strict=True)]
    lists = [c.to_pylist() for c in columns]
    return list(zip(*lists, strict=True)) if lists else [()] * len(batch)


class Collector:
    """A consumer that remembers everything and insists that no update comes below the frontier it was told."""

    def __init__(self, output: Output) -> None:
        self._stream = output.connect()
        self._known = Frontier(0)
        self.updates: list[tuple[tuple[str | None, ...], int, int]] = []
        self.errors: list[tuple[tuple[str | None, ...], int, int]] = []

    def drain(self) -> None:
        stream = self._stream
        for queue, types, into in ((stream.updates, None, self.updates), (stream.errors, ERR_TYPES, self.errors)):
            while queue:
                batch = queue.popleft()
                assert types is None or batch.types == types
                assert all(
                    c.type == d.type for c, d in zip(batch.columns, Batch.empty(batch.types).columns, strict=True)
                )
                assert int(batch.times.min()) >= self._known
                into.extend(zip(texts(batch), batch.times.tolist(), batch.diffs.tolist(), strict=True))
        self._known = stream.frontier

    @property
    def frontier(self) -> Frontier:
        return self._known


def at(updates: Sequence[tuple[Row, int, int]], time: int) -> Multiset:
    """The multiset at ``time``: rows with a multiplicity other than 0."""
    total: Counter[Row] = Counter()
    for row, when, diff in updates:
        if when <= time:
            total[row] += diff
    return Counter({row: n for row, n in total.items() if n})


def random_history(
    rng: random.Random, row: Callable[[random.Random], Row], *, updates: int, times: int, negative: bool = False
) -> list[Update]:
    """Insertions, duplicates and retractions of what is there, at as_of and ``times`` later times; by time."""
    live: list[Row] = []
    history: list[Update] = []
    for when in sorted(AS_OF + max(0, rng.randrange(-times, times)) for _ in range(updates)):
        if live and rng.random() < 0.45:
            victim = live.pop(rng.randrange(len(live)))
            history.append((victim, when, -1))
        else:
            fresh = rng.choice(live) if live and rng.random() < 0.2 else row(rng)
            copies = rng.choice((1, 1, 1, 2, 3))
            live.extend([fresh] * copies)
            history.append((fresh, when, copies))
        if negative and rng.random() < 0.2:
            history.append((row(rng), when, -1))
    return history


def settle(operators: Sequence[Operator], collector: Collector) -> None:
    """Steps until nothing is pending."""
    steps = 0
    while any(o.pending() for o in operators):
        for operator in operators:
            operator.step()
            collector.drain()
        steps += 1
        assert steps < 100_000, "does not come to rest"
    for operator in operators:
        assert not operator.step()
    collector.drain()


def drive(
    build: Callable[[Sequence[Stream], Output, OperatorContext], Sequence[Operator]],
    inputs: Sequence[tuple[Sequence[SqlType], Sequence[Update]]],
    rng: random.Random,
    *,
    budget_rows: int = 65_536,
    bits: int | None = None,
    single: bool = False,
) -> Collector:
    """Feeds each input's updates in batches of random size that may span times and overtake each other within what
    the frontier leaves open; frontiers jump, one input at a time.  ``single``: one update a batch, one time a frontier.
    """
    ends = [Output() for _ in inputs]
    output = Output()
    collector = Collector(output)
    operators = build([end.connect() for end in ends], output, context(budget_rows=budget_rows, bits=bits))
    left = [list(history) for _, history in inputs]
    while any(end.frontier != EMPTY for end in ends):
        number = rng.choice([i for i, end in enumerate(ends) if end.frontier != EMPTY])
        end, history, types = ends[number], left[number], inputs[number][0]
        horizon = max((time for _, time, _ in history), default=0)
        jump = 1 if single else rng.choice((1, 1, 2, 5, 20))
        frontier = Frontier(max(end.frontier, AS_OF) + jump) if history else EMPTY
        goes = [u[1] < frontier or (not single and rng.random() < 0.2) for u in history]
        early = [u for u, go in zip(history, goes, strict=True) if go]
        left[number] = [u for u, go in zip(history, goes, strict=True) if not go]
        if not single:
            rng.shuffle(early)
        while early:
            size = 1 if single else rng.randrange(1, 40)
            end.send(batch_of(types, early[:size]))
            early = early[size:]
            if rng.random() < 0.3:
                for operator in operators:
                    operator.step()
                collector.drain()
        end.advance(EMPTY if not left[number] and horizon and rng.random() < 0.3 else frontier)
        if rng.random() < 0.7:
            settle(operators, collector)
    settle(operators, collector)
    assert collector.frontier == EMPTY
    for operator in operators:
        operator.close()
    return collector


def text_rows(types: Sequence[SqlType], rows: Multiset) -> Multiset:
    """The oracle's Python rows as texts."""
    if not rows:
        return Counter()
    items = list(rows.items())
    batch = batch_of(types, [(row, 0, n) for row, n in items])
    total: Counter[Row] = Counter()
    for text, (_, n) in zip(texts(batch), items, strict=True):
        total[text] += n
    return total


def check(
    collector: Collector,
    inputs: Sequence[Sequence[Update]],
    oracle: Callable[..., Multiset],
    types: Sequence[SqlType],
) -> None:
    """At every time that occurs, the output is the oracle's answer over the inputs at that time."""
    times = {AS_OF, *(time for history in inputs for _, time, _ in history)}
    for time in sorted(times):
        expected = text_rows(types, oracle(*(at(history, time) for history in inputs)))
        assert at(collector.updates, time) == expected, f"at {time}"
