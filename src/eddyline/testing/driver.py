"""Speaks the protocol straight to a replica without threads, of two runtimes or of one, whose steps the caller chooses.

There is no controller in between: the caller says what a controller would, and must keep its rules.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.compute.pair import Pair
from eddyline.compute.solo import Solo
from eddyline.expr.ir import LiteralValue, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ImportIndex,
    ImportSource,
    Operator,
)
from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    CreateInstance,
    Frontiers,
    Hello,
    InitializationComplete,
    Peek,
    PeekResponse,
    Response,
    Schedule,
)
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, SqlType
from eddyline.storage.store import TableStore
from eddyline.testing.interpret import Bag, Row
from eddyline.testing.process_group import GroupSettings, ProcessGroup
from eddyline.trace.hasher import Hasher

__all__ = ["PAIR", "ReplicaDriver", "index_on", "read_of", "reexport_of", "view_on"]

#: the row type of every collection here
PAIR: tuple[SqlType, ...] = (BIGINT, BIGINT)
_MOST_STEPS = 20_000


def index_on(id: str, source: str, as_of: int, *between: Operator, key: tuple[int, ...] = (0,)) -> DataflowDescription:
    """A stored collection, through ``between``, arranged and exported."""
    last = len(between)
    operators = (
        ImportSource(source, PAIR),
        *between,
        Arrange(last, key, PAIR),
        ExportIndex(id, source, last + 1, key, PAIR),
    )
    return DataflowDescription(id, operators, as_of, EMPTY)


def reexport_of(id: str, index: str, as_of: int, *, key: tuple[int, ...] = (0,)) -> DataflowDescription:
    """An index that is the arrangement of another one."""
    return DataflowDescription(id, (ImportIndex(index, PAIR, key), ExportIndex(id, index, 0, key, PAIR)), as_of, EMPTY)


def view_on(id: str, source: str, as_of: int, *between: Operator) -> DataflowDescription:
    """A stored collection, through ``between``, written to storage."""
    operators = (ImportSource(source, PAIR), *between, ExportMaterializedView(id, len(between), PAIR))
    return DataflowDescription(id, operators, as_of, EMPTY)


def read_of(id: str, index: str, at: int, *between: Operator, key: tuple[int, ...] = (0,)) -> DataflowDescription:
    """A one-shot read of ``index`` through ``between``, to be peeked as index ``id``."""
    last = len(between)
    operators = (
        ImportIndex(index, PAIR, key),
        *between,
        Arrange(last, (), PAIR),
        ExportIndex(id, id, last + 1, (), PAIR),
    )
    return DataflowDescription(id, operators, at, at + 1, DataflowClass.ONE_SHOT_READ)


class ReplicaDriver:
    """A store and a replica of it; nothing moves but what is told to.  The first connection is there from the start.

    ``processes``: how many processes' worth the replica is, with ``workers`` each.
    """

    def __init__(self, workers: int = 1, processes: int = 1, *, interactive: bool = True) -> None:
        hasher, ticks = Hasher(3), itertools.count(0, 1_000_000)
        self.store = TableStore(hasher, retention_us=1_000_000)
        self.workers = workers
        kind: type[Pair] | type[Solo] = Pair if interactive else Solo

        def clock() -> int:
            return next(ticks)

        self.replica: Pair | Solo | ProcessGroup
        if processes == 1:
            self.replica = kind(self.store, hasher, workers=workers, threads=False, clock=clock)
        else:
            settings = GroupSettings(workers, interactive, clock)
            self.replica = ProcessGroup(self.store, hasher, processes=processes, settings=settings)
        self.responses: list[Response] = []
        self.time = 0
        self._uuids = itertools.count(1)
        self._nonces = itertools.count(1)
        self.hello()
        self.send(CreateInstance(), InitializationComplete())

    # -- storage

    def table(self, id: str, rows: Sequence[Row]) -> int:
        """Created at the present time, with ``rows`` from the time on that is returned."""
        self.store.create_table(id, PAIR, key=None, names=("k", "v"), table=id, constraint="", at=Time(self.time))
        return self.write(id, rows)

    def write(self, id: str, rows: Sequence[Row], diffs: Sequence[int] | None = None) -> int:
        """Commits at the next time, which is returned."""
        self.time += 1
        columns = tuple(pa.array([r[i] for r in rows], pa.int64()) for i in range(len(PAIR)))
        signs = np.array(diffs if diffs is not None else [1] * len(rows), np.int64)
        self.store.append({id: Batch(PAIR, columns, np.zeros(len(rows), np.int64), signs)}, Time(self.time))
        return self.time

    def view(self, id: str, as_of: int) -> None:
        """A view without content, for a dataflow to write."""
        self.store.create_view(id, PAIR, names=(), view=id, as_of=Time(as_of))

    # -- commands

    def send(self, *commands: Command) -> None:
        for command in commands:
            self.replica.send(command)

    def hello(self) -> None:
        """A new connection; its history ends with ``InitializationComplete``."""
        if isinstance(self.replica, ProcessGroup):
            self.replica.deliver()
            self._receive()
            self.replica.connect()
        self.send(Hello(f"connection {next(self._nonces)}"))

    def create(self, *descriptions: DataflowDescription) -> None:
        """Each of them created, scheduled, and its views allowed to be written."""
        for description in descriptions:
            self.send(CreateDataflow(description), *(Schedule(e.id) for e in description.exports))
            self.send(*(AllowWrites(e.id) for e in description.exports if isinstance(e, ExportMaterializedView)))

    def compact(self, id: str, frontier: int) -> None:
        self.send(AllowCompaction(id, frontier))

    def drop(self, id: str) -> None:
        self.compact(id, EMPTY)

    def peek(self, target: str, time: int, *keys: tuple[LiteralValue, ...]) -> str:
        """The uuid; a walk without keys, which are of the first column."""
        uuid = f"peek {next(self._uuids)}"
        identity = Mfp((), tuple(range(len(PAIR))), PAIR)
        self.send(Peek(target, uuid, time, PAIR[:1] if keys else (), keys or None, identity))
        return uuid

    def cancel(self, uuid: str) -> None:
        self.send(CancelPeek(uuid))

    # -- steps

    @property
    def sides(self) -> dict[str, Callable[[], bool]]:
        """A step of each worker of a runtime, lanes included, by its role."""
        if isinstance(self.replica, ProcessGroup):
            return self.replica.sides()
        if isinstance(self.replica, Pair):
            return {"maintenance": self.replica.maintenance.step, "interactive": self.replica.interactive.step}
        return {"solo": self.replica.step}

    def rest(self, *roles: str) -> None:
        """Steps the runtimes of those roles in turn until none has anything to do; without roles everything."""
        sides = [self.sides[role] for role in roles if role in self.sides] or list(self.sides.values())
        steps = 0
        while sum(side() for side in sides):
            steps += 1
            if steps > _MOST_STEPS:
                raise AssertionError("no rest")

    # -- what came of it

    def answers(self, uuid: str) -> list[PeekResponse]:
        self._receive()
        return [r for r in self.responses if isinstance(r, PeekResponse) and r.uuid == uuid]

    def answer(self, uuid: str) -> PeekResponse:
        """The one answer."""
        answers = self.answers(uuid)
        if len(answers) != 1:
            raise AssertionError(f"{len(answers)} answers to {uuid}")
        return answers[0]

    def rows(self, uuid: str) -> Bag:
        """The rows of the one answer, with multiplicities."""
        answer = self.answer(uuid)
        if answer.rows is None:
            raise AssertionError(f"{uuid} is answered without rows: {answer}")
        batch, bag = answer.rows.batch(), Counter[Row]()
        for row, diff in zip(
            zip(*(c.to_pylist() for c in batch.columns), strict=True), batch.diffs.tolist(), strict=True
        ):
            bag[row] += diff
        return bag

    def frontiers(self, id: str) -> list[int]:
        """What was reported of the collection, over all connections."""
        self._receive()
        return [r.upper for r in self.responses if isinstance(r, Frontiers) and r.id == id]

    def at_rest(self) -> bool:
        """Whether nothing is left on the replica."""
        return self.replica.at_rest()

    def _receive(self) -> None:
        while (response := self.replica.receive(0)) is not None:
            self.responses.append(response)
