"""A small database without SQL: a store, a controller and a stepped replica, of one runtime or of two."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.compute.pair import Pair
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.controller.events import Event, PeekAnswered, SubscriptionChanged
from eddyline.expr.ir import LiteralValue, Mfp, SortKey
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportSource,
    Operator,
)
from eddyline.protocol.messages import PeekResponse, SubscribeResponse
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, SqlType
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.layouts import interactive_by_default

PAIR: tuple[SqlType, ...] = (BIGINT, BIGINT)
Rows = dict[tuple[object, ...], int]


def pairs(rows: Sequence[tuple[int | None, int | None]], diffs: Sequence[int] | None = None) -> Batch:
    """An update batch of two bigint columns; its times are for the store to set."""
    columns = tuple(pa.array([r[i] for r in rows], pa.int64()) for i in range(2))
    signs = np.array(diffs if diffs is not None else [1] * len(rows), np.int64)
    return Batch(PAIR, columns, np.zeros(len(rows), np.int64), signs)


def collect(batches: Iterable[Batch]) -> Rows:
    found: Rows = {}
    for b in batches:
        for row, diff in zip(zip(*(c.to_pylist() for c in b.columns), strict=True), b.diffs.tolist(), strict=True):
            found[row] = found.get(row, 0) + diff
    return {r: d for r, d in found.items() if d}


def identity(types: tuple[SqlType, ...]) -> Mfp:
    return Mfp((), tuple(range(len(types))), types)


def indexed(id: str, source: str, key: tuple[int, ...] = (0,)) -> DataflowDescription:
    """A table's rows, arranged and exported."""
    return dataflow(id, ImportSource(source, PAIR), Arrange(0, key, PAIR), ExportIndex(id, source, 1, key, PAIR))


def dataflow(name: str, *operators: Operator) -> DataflowDescription:
    return DataflowDescription(name, operators, 0, EMPTY)


def one_shot(name: str, at: int, *operators: Operator) -> DataflowDescription:
    return DataflowDescription(name, operators, at, at + 1, DataflowClass.ONE_SHOT_READ)


@dataclass
class Harness:
    """``tick``: nanoseconds by which each look at the clock moves it, so that activations end deterministically."""

    workers: int = 1
    retention_us: int = 0
    hash_bits: int = 64
    tick: int = 1_000_000
    budget_rows: int = 65_536
    interactive: bool = field(default_factory=interactive_by_default)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hasher = Hasher(11, bits=self.hash_bits)
        self.store = TableStore(self.hasher, retention_us=self.retention_us)
        self.controller = Controller(self.store, retention_us=self.retention_us)
        self.time = 0
        self.start()

    def start(self) -> None:
        ticks = itertools.count(0, self.tick)
        kind = Pair if self.interactive else Solo
        self.solo: Pair | Solo = kind(
            self.store,
            self.hasher,
            workers=self.workers,
            threads=False,
            clock=lambda: next(ticks),
            budget_rows=self.budget_rows,
        )
        self.controller.attach_replica(self.solo)

    def table(self, id: str, key: tuple[int, ...] | None = None) -> None:
        self.controller.create_table(
            id, PAIR, key=key, names=("k", "v"), table=id, constraint=f"{id}_pkey", at=Time(self.time)
        )
        self.commit({})

    def commit(self, writes: dict[str, Batch]) -> int:
        self.time += 1
        self.store.append(writes, Time(self.time))
        return self.time

    def receive(self) -> None:
        while (response := self.solo.receive(0)) is not None:
            self.events += self.controller.process_response(response)

    def settle(self) -> None:
        while True:
            self.solo.settle()
            before = len(self.events)
            self.receive()
            if before == len(self.events) and not self.solo.step():
                return

    def answers(self, uuid: str) -> list[PeekResponse]:
        self.receive()
        return [e.response for e in self.events if isinstance(e, PeekAnswered) and e.response.uuid == uuid]

    def changes(self, id: str) -> list[SubscribeResponse]:
        self.receive()
        return [e.response for e in self.events if isinstance(e, SubscriptionChanged) and e.response.id == id]

    def peek(
        self,
        target: str,
        time: int,
        keys: tuple[tuple[LiteralValue, ...], ...] | None = None,
        *,
        mfp: Mfp | None = None,
        types: tuple[SqlType, ...] = PAIR,
        limit: int | None = None,
        order: tuple[SortKey, ...] = (),
    ) -> str:
        return self.controller.peek(
            target, Time(time), mfp or identity(types), key_types=types[:1], keys=keys, limit=limit, order=order
        )

    def read(
        self,
        target: str,
        time: int | None = None,
        keys: tuple[tuple[LiteralValue, ...], ...] | None = None,
        *,
        types: tuple[SqlType, ...] = PAIR,
    ) -> Rows:
        """The answer of a peek, once everything is at rest."""
        uuid = self.peek(target, self.time if time is None else time, keys, types=types)
        self.settle()
        (answer,) = self.answers(uuid)
        assert answer.error is None, answer.error
        return rows_of(answer)

    def step_until(self, condition: Callable[[], object], steps: int = 100_000) -> None:
        for _ in range(steps):
            if condition():
                return
            if not self.solo.step():
                break
        assert condition()


def rows_of(answer: PeekResponse | SubscribeResponse) -> Rows:
    assert answer.rows is not None
    return collect(answer.rows.pieces())
