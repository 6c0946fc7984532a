"""Speaks commands straight to a replica of two runtimes, whose workers and lanes are stepped by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import cast

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.pair import Pair
from eddyline.compute.sharing import Slot
from eddyline.compute.worker import Worker
from eddyline.expr.ir import Cast, Column, Literal, LiteralValue, MapStep, Mfp
from eddyline.plan.dataflow import (
    Arrange,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ImportIndex,
    ImportSource,
    MapFilterProject,
    Operator,
    Union,
)
from eddyline.protocol.logs import Log
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
    Status,
)
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import TEXT
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from eddyline.trace.trace import Trace
from tests.compute.runtime_harness import PAIR, Rows, collect, identity, indexed, one_shot, pairs, rows_of

Pairs = list[tuple[int | None, int | None]]


class Driver:
    """A store and a replica; nothing moves but what is told to."""

    def __init__(
        self,
        workers: int = 1,
        *,
        logging: bool = False,
        configure: Callable[[Mapping[str, str]], None] | None = None,
        budget_rows: int = 65_536,
    ) -> None:
        self.hasher = Hasher(7)
        self.store = TableStore(self.hasher, retention_us=1_000_000)
        ticks = itertools.count(0, 1_000_000)
        self.pair = Pair(
            self.store,
            self.hasher,
            workers=workers,
            configure=configure,
            threads=False,
            clock=lambda: next(ticks),
            budget_rows=budget_rows,
        )
        self.responses: list[Response] = []
        self.uuids = itertools.count(1)
        self.connections = itertools.count(1)
        self.time = 0
        self.hello()
        self.send(CreateInstance(logging))
        self.send(InitializationComplete())

    # -- storage

    def table(self, id: str, rows: Pairs) -> None:
        """At the present time, with ``rows`` from the next time on."""
        self.store.create_table(id, PAIR, key=None, names=("k", "v"), table=id, constraint="", at=Time(self.time))
        self.commit(id, rows)

    def commit(self, id: str, rows: Pairs, diffs: list[int] | None = None) -> int:
        self.time += 1
        self.store.append({id: pairs(rows, diffs)}, Time(self.time))
        return self.time

    def view(self, id: str, as_of: int) -> None:
        """A view without content, for a dataflow to write."""
        self.store.create_view(id, PAIR, names=(), view=id, as_of=Time(as_of))

    def stored(self, id: str, time: int) -> Rows:
        """The rows of a stored collection at ``time``."""
        return collect(self.store.snapshot(id, Time(time)))

    # -- commands

    def hello(self) -> None:
        self.send(Hello(f"connection {next(self.connections)}"))

    def send(self, *commands: Command) -> None:
        for command in commands:
            self.pair.send(command)

    def create(self, description: DataflowDescription) -> None:
        self.send(CreateDataflow(description))
        for export in description.exports:
            self.send(Schedule(export.id))
            if isinstance(export, ExportMaterializedView):
                self.send(AllowWrites(export.id))

    def index(self, id: str, source: str, as_of: int, *, mfp: tuple[Operator, ...] = ()) -> DataflowDescription:
        description = indexed(id, source)
        if mfp:
            import_ = description.operators[0]
            last = len(mfp)
            operators = (import_, *mfp, Arrange(last, (0,), PAIR), ExportIndex(id, source, last + 1, (0,), PAIR))
            return DataflowDescription(id, operators, as_of, EMPTY)
        return DataflowDescription(id, description.operators, as_of, EMPTY)

    def compact(self, id: str, frontier: int) -> None:
        self.send(AllowCompaction(id, frontier))

    def drop(self, id: str) -> None:
        self.compact(id, EMPTY)

    def peek(self, target: str, time: int, key: LiteralValue | None = None) -> str:
        uuid = f"p{next(self.uuids)}"
        keys = None if key is None else ((key,),)
        self.send(Peek(target, uuid, time, PAIR[:1], keys, identity(PAIR)))
        return uuid

    def cancel(self, uuid: str) -> None:
        self.send(CancelPeek(uuid))

    # -- steps

    def maintain(self, limit: int = 2_000) -> None:
        """Maintenance until it rests, alone."""
        _until_rest(self.pair.maintenance.step, limit)

    def serve(self, limit: int = 2_000) -> None:
        """The interactive runtime until it rests, alone."""
        _until_rest(self.pair.interactive.step, limit)

    def settle(self) -> None:
        for _ in range(50):
            self.maintain()
            self.serve()
            if not self.pair.maintenance.step() and not self.pair.interactive.step():
                return
        raise AssertionError("the replica does not come to rest")

    # -- what came of it

    def receive(self) -> list[Response]:
        while (response := self.pair.receive(0)) is not None:
            self.responses.append(response)
        return self.responses

    def answers(self, uuid: str) -> list[PeekResponse]:
        return [r for r in self.receive() if isinstance(r, PeekResponse) and r.uuid == uuid]

    def answer(self, uuid: str) -> PeekResponse:
        answers = self.answers(uuid)
        assert len(answers) == 1
        return answers[0]

    def rows(self, uuid: str) -> Rows:
        answer = self.answer(uuid)
        assert answer.error is None, answer.error
        assert not answer.canceled
        return rows_of(answer)

    def rows_of_peek(self, target: str, time: int) -> Rows:
        uuid = self.peek(target, time)
        self.settle()
        return self.rows(uuid)

    def peek_log(self, log: Log) -> str:
        """A walk of a log."""
        uuid = f"p{next(self.uuids)}"
        self.send(Peek(log.id, uuid, 0, (), None, identity(log.types)))
        return uuid

    def read_logs(self, id: str, at: int, *logs: Log) -> None:
        """A one-shot read whose export ``id`` has the first two columns of each log, as texts."""
        texts = [project_two(log, position) for position, log in enumerate(logs)]
        imports = [ImportSource(log.id, log.types) for log in logs]
        count = len(logs)
        union = Union(tuple(range(count, 2 * count)), TWO_TEXTS)
        last = (Arrange(2 * count, (), TWO_TEXTS), ExportIndex(id, id, 2 * count + 1, (), TWO_TEXTS))
        self.create(one_shot(id, at, *imports, *texts, union, *last))

    def texts(self, uuid: str) -> list[tuple[str, ...]]:
        """The rows of the one answer, every value as text, in order."""
        answer = self.answer(uuid)
        assert answer.rows is not None, answer
        batch = answer.rows.batch()
        return sorted(tuple(map(str, row)) for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))

    def error(self, uuid: str) -> str:
        answer = self.answer(uuid)
        assert answer.error is not None
        return answer.error[0]

    def frontiers(self, id: str) -> list[int]:
        return [r.upper for r in self.receive() if isinstance(r, Frontiers) and r.id == id]

    def fatal(self) -> list[str]:
        return [r.message for r in self.receive() if isinstance(r, Status) and r.fatal]

    # -- insides, for assertions about mechanisms

    def maintainer(self, worker: int = 0) -> Worker:
        return cast(Worker, self.pair.maintenance._commanded[worker])

    def reader(self, worker: int = 0) -> InteractiveWorker:
        return cast(InteractiveWorker, self.pair.interactive._commanded[worker])

    def lane(self, worker: int = 0) -> Worker:
        return self.reader(worker).lane

    def slot(self, id: str, incarnation: int = 1) -> Slot:
        return self.pair.registries[0]._slots[id, incarnation]

    def trace(self, id: str, incarnation: int = 1) -> Trace:
        trace = self.slot(id, incarnation).oks._trace
        assert trace is not None
        return trace


#: the name of a log, and the id in its first column
TWO_TEXTS = (TEXT, TEXT)


def project_two(log: Log, input: int) -> MapFilterProject:
    """(name of the log, its first column as text)."""
    first = Column(0, log.types[0])
    steps = (MapStep(Literal(log.name, TEXT)), MapStep(Cast(first, TEXT, False)))
    width = len(log.types)
    return MapFilterProject(input, Mfp(steps, (width, width + 1), TWO_TEXTS))


def _until_rest(step: Callable[[], bool], limit: int) -> None:
    for _ in range(limit):
        if not step():
            return
    raise AssertionError("no rest")


def read_over(id: str, index: str, at: int) -> DataflowDescription:
    """A one-shot read of all rows of ``index``."""
    return one_shot(
        id, at, ImportIndex(index, PAIR, (0,)), Arrange(0, (1,), PAIR), ExportIndex(id, index, 1, (1,), PAIR)
    )


class Adversary:
    """A lock that does something when it is first released: what another thread may do at its worst."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._depth = 0
        self._acted = False

    def __enter__(self) -> Adversary:
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0 and not self._acted:
            self._acted = True
            self._act()
