"""A whole replica of two runtimes, its controller and its clients, stepped in an order that one seed decides.

Every answer is compared with a recompute at its time; after every step the invariants that can be seen from outside are
checked.  Nothing sleeps and nothing is concurrent, so a seed replays exactly.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.pair import Pair
from eddyline.controller.controller import Controller
from eddyline.controller.events import PeekAnswered
from eddyline.errors import DatabaseError
from eddyline.expr.ir import LiteralValue, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ImportIndex,
    ImportSource,
    Join,
    Operator,
)
from eddyline.protocol.messages import AllowCompaction, PeekResponse, Status
from eddyline.repr.batch import Batch
from eddyline.repr.ids import transient_id
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, SqlType
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["Simulation"]

Row = tuple[object, ...]
Rows = Counter[Row]

_PAIR: tuple[SqlType, ...] = (BIGINT, BIGINT)
_TRIPLE: tuple[SqlType, ...] = (BIGINT, BIGINT, BIGINT)
_TABLES = ("a", "b")
_KEYS = 4


@dataclass(slots=True)
class _Expected:
    """A peek under way.  ``canceled``: the client has asked for that, so that either answer is right."""

    rows: Rows | None
    time: int
    transient: str | None = None
    canceled: bool = False
    of: tuple[str, str | None, LiteralValue | None] | None = None


@dataclass
class Simulation:
    """``run`` raises AssertionError where an answer or an invariant is wrong.  ``covered`` counts what happened."""

    seed: int
    workers: int = 1
    covered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.hasher = Hasher(self.seed)
        self.store = TableStore(self.hasher, retention_us=6)
        self.controller = Controller(self.store, retention_us=3)
        self.time = 0
        self.history: dict[str, list[tuple[int, Row, int]]] = {t: [] for t in _TABLES}
        self.indexes: dict[str, str] = {}
        self.numbers = itertools.count(1)
        self.peeks: dict[str, _Expected] = {}
        self.start()
        for table in _TABLES:
            self.controller.create_table(
                table, _PAIR, key=None, names=("k", "v"), table=table, constraint="", at=Time(0)
            )
        self.commit()

    def start(self) -> None:
        ticks = itertools.count(0, 1_000_000)
        self.pair = Pair(self.store, self.hasher, workers=self.workers, threads=False, clock=lambda: next(ticks))
        self.controller.attach_replica(self.pair)

    # -- driving --------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        moves = [
            (self.step_one, 60),
            (self.commit, 12),
            (self.create_index, 3),
            (self.drop_index, 2),
            (self.peek_index, 12),
            (self.read, 10),
            (self.cancel, 5),
            (self.take_responses, 12),
            (self.reconnect, 1),
            (self.crash, 1),
            (self.flip, 1),
        ]
        chosen = self.random.choices([m for m, _ in moves], [w for _, w in moves], k=steps)
        for move in chosen:
            move()
            self.check()
        self.finish()

    def step_one(self) -> None:
        """A burst of steps of one worker or lane, so that the others fall behind."""
        driven = self.random.randrange(3 * self.workers)
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.pair.step(driven)

    def commit(self) -> None:
        self.time += 1
        writes: dict[str, Batch] = {}
        for table in _TABLES:
            rows: list[tuple[Row, int]] = []
            for _ in range(self.random.randrange(4)):
                present = list(self.rows_of(table, self.time - 1).elements())
                if present and self.random.random() < 0.4:
                    row = self.random.choice(present)
                    if (row, -1) not in rows:
                        rows.append((row, -1))
                else:
                    rows.append(((self.random.randrange(_KEYS), self.random.randrange(3)), 1))
            if rows:
                columns = tuple(pa.array([r[i] for r, _ in rows], pa.int64()) for i in range(2))
                diffs = np.array([d for _, d in rows], np.int64)
                writes[table] = Batch(_PAIR, columns, np.zeros(len(rows), np.int64), diffs)
                self.history[table] += [(self.time, r, d) for r, d in rows]
        self.store.append(writes, Time(self.time))

    def create_index(self) -> None:
        if len(self.indexes) >= 4:
            return
        id, table = f"i{next(self.numbers)}", self.random.choice(_TABLES)
        if self.indexes and self.random.random() < 0.3:
            source = self.random.choice(list(self.indexes))
            operators: tuple[Operator, ...] = (
                ImportIndex(source, _PAIR, (0,)),
                ExportIndex(id, source, 0, (0,), _PAIR),
            )
            table = self.indexes[source]
            self.covered["re-exports"] += 1
        else:
            operators = (
                ImportSource(table, _PAIR),
                Arrange(0, (0,), _PAIR),
                ExportIndex(id, table, 1, (0,), _PAIR),
            )
        self.controller.create_dataflow(DataflowDescription(id, operators, 0, EMPTY))
        self.indexes[id] = table

    def drop_index(self) -> None:
        if self.indexes and self.random.random() < 0.5:
            id = self.random.choice(list(self.indexes))
            del self.indexes[id]
            self.controller.drop(id)

    def peek_index(self) -> None:
        if not self.indexes:
            return
        id = self.random.choice(list(self.indexes))
        time = self.random.randint(int(self.controller.since(id)), max(self.time + 1, int(self.controller.since(id))))
        key: LiteralValue | None = self.random.choice((None, *range(_KEYS)))
        keys = None if key is None else ((key,),)
        uuid = self.controller.peek(id, Time(time), _identity(_PAIR), key_types=_PAIR[:1], keys=keys)
        self.peeks[uuid] = _Expected(None, time, of=(self.indexes[id], None, key))
        if not self.published(id):
            self.covered["peeks over placeholders"] += 1

    def read(self) -> None:
        """A one-shot read: one index, two of them joined, or a table."""
        names = self.random.choices(list(self.indexes), k=2) if self.indexes else []
        id = transient_id(next(self.numbers))
        kind = self.random.choice(("table", "index", "join")) if names else "table"
        table, other = self.random.choice(_TABLES), None
        imported = [table]
        if kind == "table":
            operators: tuple[Operator, ...] = (ImportSource(table, _PAIR), Arrange(0, (), _PAIR))
            types = _PAIR
        elif kind == "index":
            imported, table, types = names[:1], self.indexes[names[0]], _PAIR
            operators = (ImportIndex(names[0], _PAIR, (0,)), Arrange(0, (1,), _PAIR))
        else:
            imported, table, other, types = names, self.indexes[names[0]], self.indexes[names[1]], _TRIPLE
            operators = (
                ImportIndex(names[0], _PAIR, (0,)),
                ImportIndex(names[1], _PAIR, (0,)),
                Join(0, 1, (False,), Mfp((), (0, 1, 3), _TRIPLE)),
                Arrange(2, (), _TRIPLE),
            )
        key = operators[-1].key  # type: ignore[union-attr]  # it is an Arrange
        operators = (*operators, ExportIndex(id, id, len(operators) - 1, key, types))
        since = max(int(self.controller.since(i)) for i in imported)
        at = Time(self.random.randint(since, max(since, self.time)))
        try:
            self.controller.create_dataflow(
                DataflowDescription(id, operators, at, at + 1, DataflowClass.ONE_SHOT_READ), as_of=at
            )
        except DatabaseError as error:
            assert error.sqlstate == "22023", error
            return
        uuid = self.controller.peek(id, at, _identity(types))
        self.peeks[uuid] = _Expected(None, at, id, of=(table, other, None))
        if kind != "table" and not all(self.published(i) for i in imported):
            self.covered["reads over placeholders"] += 1
        self.covered[f"reads of a {kind}"] += 1

    def cancel(self) -> None:
        if self.peeks:
            uuid = self.random.choice(list(self.peeks))
            expected = self.peeks[uuid]
            expected.canceled = True
            self.controller.cancel_peek(uuid)
            self.covered["cancels"] += 1
            if expected.transient is not None and self.random.random() < 0.5:
                self.controller.drop(expected.transient)

    def reconnect(self) -> None:
        """The controller comes back with a new connection; what the old one had not delivered is lost."""
        if self.random.random() < 0.5:
            self.take_responses()
        while self.pair.receive(0) is not None:
            continue
        self.controller.attach_replica(self.pair)
        self.covered["reconnects"] += 1
        first = self.random.random() < 0.5
        for side in (self.pair.maintenance, self.pair.interactive)[:: 1 if first else -1]:
            for _ in range(self.random.randrange(6)):
                side.step()
        self.covered[f"reconnects, {'maintenance' if first else 'interactive'} first"] += 1

    def crash(self) -> None:
        old = self.pair
        self.pair.stop()
        self.take(Status("crash", fatal=True))
        old.close()
        self.start()
        self.covered["crashes"] += 1

    def flip(self) -> None:
        self.controller.one_shot_reads = not self.controller.one_shot_reads
        self.covered["flips"] += 1

    # -- what comes of it -----------------------------------------------------------------------------------------

    def take_responses(self) -> None:
        while (response := self.pair.receive(0)) is not None:
            assert not (isinstance(response, Status) and response.fatal), response
            self.take(response)

    def take(self, response: object) -> None:
        for event in self.controller.process_response(response):  # type: ignore[arg-type]  # checked where it goes
            if isinstance(event, PeekAnswered):
                self.answered(event.response)

    def answered(self, response: PeekResponse) -> None:
        expected = self.peeks.pop(response.uuid)
        if expected.transient is not None:
            self.controller.drop(expected.transient)
        if response.canceled:
            assert expected.canceled, "nobody has canceled it"
            self.covered["answers: canceled"] += 1
        elif response.error is not None:
            assert response.error[0] == "58000", response.error
            self.covered["answers: lost"] += 1
        else:
            assert response.rows is not None
            assert isinstance(response.rows.payload, Batch)
            assert _counted(response.rows.payload) == self.recomputed(expected)
            self.covered["answers: rows"] += 1

    def recomputed(self, expected: _Expected) -> Rows:
        assert expected.of is not None
        table, other, key = expected.of
        rows = self.rows_of(table, expected.time)
        if other is None:
            return Counter({r: n for r, n in rows.items() if key is None or r[0] == key})
        out: Rows = Counter()
        for (left, m), (right, n) in itertools.product(rows.items(), self.rows_of(other, expected.time).items()):
            if left[0] == right[0]:
                out[*left, right[1]] += m * n
        return out

    def rows_of(self, table: str, time: int) -> Rows:
        rows: Rows = Counter()
        for at, row, diff in self.history[table]:
            if at <= time:
                rows[row] += diff
        return +rows

    # -- invariants -----------------------------------------------------------------------------------------------

    def published(self, id: str) -> bool:
        return all(
            any(key[0] == id and slot.oks.attached for key, slot in registry._slots.items())
            for registry in self.pair.registries
        )

    def readers(self) -> list[InteractiveWorker]:
        return [w for w in self.pair.interactive._commanded if isinstance(w, InteractiveWorker)]

    def check(self) -> None:
        assert not self.pair.failed
        for reader in self.readers():
            for waiting in reader._imports:
                assert waiting.slot.since <= waiting.time, "an import's time is gone"
            for peer in reader.traces.values():
                slot = peer.arrangement
                assert slot.since <= peer.since, "the trace has passed the reader's position"
                assert slot.oks.attached or slot.frontier() == 0
                ahead = any(isinstance(c, AllowCompaction) for c in reader.inbox._commands)
                self.covered["compactions that the reader has not seen"] += ahead
            assert not set(reader.traces) & set(reader.lane._exporters)

    def finish(self) -> None:
        """Everything is answered, and then everything can go without a trace."""
        for _ in range(100):
            if not self.peeks:
                break
            self.commit()
            self.settle()
        assert not self.peeks, "a peek was never answered"
        for id in list(self.indexes):
            self.controller.drop(id)
        self.settle()
        assert self.pair.at_rest()

    def settle(self) -> None:
        while self.pair.step():
            continue
        self.take_responses()
        while self.pair.step():
            continue
        assert not self.pair.failed


def _identity(types: tuple[SqlType, ...]) -> Mfp:
    return Mfp((), tuple(range(len(types))), types)


def _counted(batch: Batch) -> Rows:
    rows: Rows = Counter()
    for row, diff in zip(zip(*(c.to_pylist() for c in batch.columns), strict=True), batch.diffs.tolist(), strict=True):
        rows[row] += diff
    return +rows
