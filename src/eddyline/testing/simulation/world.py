"""One simulated database: storage, controller, a replica without threads, and what its clients know of it."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.solo import Solo
from eddyline.controller.controller import Controller
from eddyline.controller.holds import ReadHolds
from eddyline.controller.instance import FIRST_REPLICA
from eddyline.expr.ir import LiteralValue
from eddyline.protocol.messages import Frontiers, PeekResponse, Response, Status
from eddyline.repr.batch import Batch
from eddyline.repr.time import MIN_TIME
from eddyline.storage.store import TableStore
from eddyline.testing.interpret import Row
from eddyline.testing.process_group import GroupSettings, Mover, ProcessGroup
from eddyline.testing.simulation.companion import SECOND_CLUSTER, Companion
from eddyline.testing.simulation.coverage import Coverage
from eddyline.testing.simulation.definitions import PAIR, Definition
from eddyline.testing.simulation.hesitation import Hesitation
from eddyline.testing.simulation.linearizability import Read, Write
from eddyline.testing.simulation.recompute import Answer, Recompute
from eddyline.trace.hasher import Hasher

__all__ = ["Index", "PendingRead", "SimulationError", "Unit", "World", "keyed", "rows_batch"]


class SimulationError(AssertionError):
    """Something that the simulated database did is wrong."""


@dataclass(slots=True, eq=False)
class Index:
    """``on``: the object whose rows it holds, which for an indexed view can be read through it alone."""

    id: str
    on: str
    key: tuple[int, ...]
    definition: Definition


@dataclass(slots=True, eq=False)
class PendingRead:
    """``over``: the collections read; ``transient``: the dataflow that lives for it; ``began``: a step."""

    uuid: str
    name: str
    definition: Definition
    time: int
    keys: tuple[tuple[int, ...], tuple[tuple[LiteralValue, ...], ...]] | None
    over: tuple[str, ...]
    kind: str
    began: int
    transient: str | None = None
    canceled: bool = False
    bounded: bool = False
    over_indexes: bool = False
    over_placeholder: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What one thread would drive: a worker or a lane.  ``ordinal``: of its process's; ``position``: in its runtime."""

    host: Pair | Solo
    runtime: Runtime
    position: int
    ordinal: int
    driven: Any

    @property
    def kind(self) -> str:
        if self.runtime.role is Role.INTERACTIVE:
            return "interactive" if isinstance(self.driven, InteractiveWorker) else "lane"
        return str(self.runtime.role.value)


class _Connection:
    """Checks what one connection delivers: frontiers rise, and no peek is answered twice."""

    def __init__(self) -> None:
        self._frontiers: dict[str, int] = {}
        self._answered: set[str] = set()

    def check(self, response: Response) -> None:
        if isinstance(response, Frontiers):
            before = self._frontiers.get(response.id, MIN_TIME)
            if response.upper <= before:
                raise SimulationError(f"the frontier of {response.id} goes from {before} to {response.upper}")
            self._frontiers[response.id] = response.upper
        elif isinstance(response, PeekResponse):
            if response.uuid in self._answered:
                raise SimulationError("a peek is answered twice")
            self._answered.add(response.uuid)


@dataclass(eq=False)
class World:
    """State only; ``actions`` change it, ``invariants`` check it."""

    rng: random.Random
    #: of each process
    workers: int
    interactive: bool
    coverage: Coverage
    processes: int = 1
    #: whether there is a second replica, which comes and goes
    accompanied: bool = False
    #: whether there is a second cluster, whose replica comes and goes
    neighboured: bool = False
    step: int = 0
    #: the newest commit
    now: int = 0
    tables: dict[str, Definition] = field(default_factory=dict)
    #: materialized views
    views: dict[str, Definition] = field(default_factory=dict)
    #: those of the second cluster
    apart: set[str] = field(default_factory=set)
    indexes: dict[str, Index] = field(default_factory=dict)
    #: exports of one dataflow with more than one
    siblings: dict[str, str] = field(default_factory=dict)
    reads: dict[str, PendingRead] = field(default_factory=dict)
    held: list[ReadHolds] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    write_times: list[int] = field(default_factory=list)
    strict_reads: list[Read] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.rng
        self.hasher = Hasher(rng.randrange(1 << 16), bits=rng.choice((64, 64, 3)))
        self.retention_us = rng.choice((0, 0, 2, 6))
        #: nanoseconds by which each look at the clock moves it, which ends activations early or not at all
        self.tick = rng.choice((0, 2_000_000, 10_000_000))
        self.budget_rows = rng.choice((2, 65_536, 65_536))
        #: the share of schedules and permissions to write that the replica hears late
        self.hesitates = rng.choice((0, 0.2, 0.6))
        self.store = TableStore(self.hasher, retention_us=self.retention_us)
        # Worlds without retention are those without logs, so that both kinds meet everything else.
        self.controller = Controller(self.store, retention_us=self.retention_us, logging=self.retention_us > 0)
        self.recompute = Recompute()
        self.numbers = itertools.count(1)
        self.attached = False
        #: seconds, for mirrors that nobody reads
        self.idle_s = 0.0
        self.failed_on_purpose: Pair | Solo | ProcessGroup | None = None
        self.start_replica()
        self.companion = Companion(self._beside, self.controller, rng) if self.accompanied else None
        if self.companion is not None:
            self.companion.come()
        self.neighbour: Companion | None = None
        if self.neighboured:
            self.controller.create_cluster(SECOND_CLUSTER)
            self.neighbour = Companion(self._beside, self.controller, rng, FIRST_REPLICA, SECOND_CLUSTER)
            self.neighbour.come()

    # -- the replica

    @property
    def beside(self) -> list[Companion]:
        """The replicas beside the one that the invariants are looked at on."""
        return [each for each in (self.companion, self.neighbour) if each is not None]

    def _beside(self, clock: Callable[[], int]) -> Pair | Solo:
        """A replica of one process."""
        kind: type[Pair] | type[Solo] = Pair if self.interactive else Solo
        return kind(
            self.store, self.hasher, workers=self.workers, threads=False, clock=clock, budget_rows=self.budget_rows
        )

    @property
    def answered_for(self) -> bool:
        """Whether there is a replica that answers."""
        return self.attached or (self.companion is not None and self.companion.there)

    def start_replica(self) -> None:
        ticks = itertools.count(0, self.tick)
        self.replica: Pair | Solo | ProcessGroup = self._built(lambda: next(ticks))
        self.hosts = (
            [p.replica for p in self.replica.processes] if isinstance(self.replica, ProcessGroup) else [self.replica]
        )
        self.units = [
            Unit(host, runtime, n, n % self.workers, driven)
            for host in self.hosts
            for runtime in host.runtimes
            for n, (_, driven) in enumerate(runtime._driven)
        ]
        #: those that rest until they are woken
        self.parked: set[int] = set()
        self.told = Hesitation(self.replica, self.rng, self.hesitates, self.coverage)
        #: how far the views had been written when this replica began
        self.written = {id: int(self.store.upper(id)) for id in self.views}
        self.connect()

    def _built(self, clock: Callable[[], int]) -> Pair | Solo | ProcessGroup:
        if self.processes == 1:
            return self._beside(clock)
        settings = GroupSettings(
            self.workers,
            self.interactive,
            clock,
            budget_rows=self.budget_rows,
            retention_us=self.retention_us,
            room=self.rng.choice((2, 32)),
            idle_clock=lambda: self.idle_s,
            kept=lambda waiting: self.rng.randint(0, waiting),
        )
        return ProcessGroup(self.store, self.hasher, processes=self.processes, settings=settings)

    @property
    def group(self) -> ProcessGroup | None:
        """The replica, where it is of several processes."""
        return self.replica if isinstance(self.replica, ProcessGroup) else None

    @property
    def pairs(self) -> list[Pair]:
        """Of each process, where there are two runtimes."""
        return [host for host in self.hosts if isinstance(host, Pair)]

    def connect(self) -> None:
        """What the old connection has not delivered is lost."""
        while self.replica.receive(0) is not None:
            pass
        self.connection = _Connection()
        #: what delivers messages, beside the units
        self.movers: list[Mover] = []
        if isinstance(self.replica, ProcessGroup):
            self.replica.connect()
            self.movers = self.replica.movers()
        self.controller.attach_replica(self.told)
        self.attached = True

    def drive(self, driven: int) -> bool:
        """One step of the worker or lane ``driven``, unless it rests and nobody has woken it; True if it did anything.

        As its thread would: a wake-up that is lost leaves it resting.  Numbers past the units are movers'.
        """
        if driven >= len(self.units):
            moved = self.movers[driven - len(self.units)].move()
        else:
            unit = self.units[driven]
            if driven in self.parked and not unit.driven.inbox._awake:
                return False
            moved = unit.runtime.step(unit.position)
            (self.parked.discard if moved else self.parked.add)(driven)
        if isinstance(self.replica, ProcessGroup):
            self.replica.notice()
        return moved

    def fail(self, driven: int) -> None:
        """The worker or lane raises in the middle of a step."""
        unit = self.units[driven]

        def explode() -> bool:
            raise RuntimeError("an injected failure")

        unit.driven.step = explode
        self.failed_on_purpose = self.replica
        with _unlogged():
            unit.runtime.step(unit.position)
        if not all(each.runtime._stop.is_set() for each in self.units if each.host is unit.host):
            raise SimulationError("i21: half a replica goes on")
        if isinstance(self.replica, ProcessGroup):
            self.replica.notice()

    def last_words(self) -> str:
        """Of a replica that failed."""
        found = [r.message for r in self.responses(10_000) if isinstance(r, Status)]
        return ", ".join(found)

    def responses(self, most: int) -> Iterator[Response]:
        for _ in range(most):
            response = self.replica.receive(0)
            if response is None:
                return
            self.connection.check(response)
            yield response

    # -- what the clients know

    def fresh(self) -> str:
        return f"u{next(self.numbers)}"

    def objects(self) -> dict[str, Definition]:
        """What a definition may name."""
        viewed = {i.on: i.definition for i in self.indexes.values()}
        return {**self.tables, **self.views, **viewed}

    def expected(self, read: PendingRead) -> Answer:
        answer = self.recompute.answer(read.definition, read.time)
        return answer if isinstance(answer, str) else keyed(answer, read)

    def last_write(self, tables: tuple[str, ...]) -> int:
        return max(self.store.last_write(t) for t in tables)

    def note(self, text: str) -> None:
        """Tells what happens; equal for equal seeds."""
        self.log.append(f"{self.step}: {text}")


def keyed(answer: Answer, read: PendingRead) -> Answer:
    """The rows that a lookup finds."""
    if isinstance(answer, str) or read.keys is None:
        return answer
    columns, keys = read.keys
    wanted = set(keys)
    return type(answer)({row: n for row, n in answer.items() if tuple(row[c] for c in columns) in wanted})


def rows_batch(rows: list[Row], diffs: list[int]) -> Batch:
    columns = tuple(pa.array([r[i] for r in rows], pa.int64()) for i in range(2))
    return Batch(PAIR, columns, np.zeros(len(rows), np.int64), np.array(diffs, np.int64))


@contextmanager
def _unlogged() -> Iterator[None]:
    """An injected failure is not news."""
    logger = logging.getLogger("eddyline.compute")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
