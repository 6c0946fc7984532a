"""A worker's log: what it says after each seal is what a look at the worker says, and it costs what changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from eddyline.compute.log import MOST_DATAFLOWS, SHARE, ComputeLog
from eddyline.compute.log_reads import FrozenLog, LogPart
from eddyline.compute.log_rows import dataflow_rows
from eddyline.compute.peek_log import PeekLog
from eddyline.compute.placement import Role
from eddyline.compute.solo import Solo
from eddyline.compute.worker import Worker
from eddyline.expr.ir import Mfp
from eddyline.plan.dataflow import DataflowDescription
from eddyline.protocol import logs
from eddyline.protocol.logs import LOGS, Log
from eddyline.protocol.messages import (
    AllowCompaction,
    CreateDataflow,
    CreateInstance,
    Frontiers,
    Hello,
    InitializationComplete,
    Peek,
    PeekResponse,
    Schedule,
)
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.compute.runtime_harness import PAIR, identity, indexed, one_shot, pairs

_MS = 1_000_000
_Row = tuple[object, ...]


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.ns = 5_000 * _MS

    def __call__(self) -> int:
        return self.ns

    def go(self, ms: int) -> None:
        self.ns += ms * _MS


@dataclass
class World:
    """A solo worker without threads, and its log."""

    workers: int = 1
    clock: Clock = field(default_factory=Clock)
    time: int = 0

    def __post_init__(self) -> None:
        hasher = Hasher(11)
        self.store = TableStore(hasher)
        self.solo = Solo(self.store, hasher, workers=self.workers, threads=False, clock=self.clock)
        for command in (Hello("n"), CreateInstance(logging=True), InitializationComplete()):
            self.solo.send(command)
        self.solo.settle()
        self.store.create_table("t", PAIR, key=None, names=("k", "v"), table="t", constraint="", at=Time(0))
        self.commit([(0, 0)])

    @property
    def worker(self) -> Worker:
        worker = self.solo._commanded[0]
        assert isinstance(worker, Worker)
        return worker

    @property
    def log(self) -> ComputeLog:
        assert self.worker.log.log is not None
        return self.worker.log.log

    def commit(self, rows: list[tuple[int | None, int | None]]) -> None:
        self.time += 1
        self.store.append({"t": pairs(rows)}, Time(self.time))

    def create(self, id: str) -> None:
        self.send(DataflowDescription(id, indexed(id, "t").operators, self.time, EMPTY))

    def send(self, description: DataflowDescription) -> None:
        self.solo.send(CreateDataflow(description))
        for export in description.exports:
            self.solo.send(Schedule(export.id))

    def drop(self, id: str) -> None:
        self.solo.send(AllowCompaction(id, EMPTY))

    def run(self, ms: int = 0) -> None:
        self.clock.go(ms)
        self.solo.settle()

    def rows(self, log: Log) -> Counter[_Row]:
        return rows_of(self.log.part(log.id))

    def expected(self) -> dict[str, Counter[_Row]]:
        """From a look at the worker's dataflows, as they are."""
        found: dict[str, Counter[_Row]] = {log.id: Counter() for log in LOGS}
        for dataflow in self.worker._agenda:
            hydrated = self.log.hydrated_ns(dataflow)
            for id, its in dataflow_rows(dataflow, hydrated, 0, Role.SOLO).items():
                found[id].update(its)
        return found


def rows_of(part: LogPart) -> Counter[_Row]:
    batch = part.rows(Time(0))
    assert (batch.diffs == 1).all(), "every row of a log is there once"
    return Counter(zip(*(c.to_pylist() for c in batch.columns), strict=True)) if len(batch) else Counter()


def _read(id: str, at: int) -> DataflowDescription:
    return one_shot(id, at, *indexed(id, "t").operators)


_ABOUT_PEEKS = (logs.ACTIVE_PEEKS.id, logs.PEEK_DURATIONS.id)


def test_after_a_seal_the_logs_say_what_a_look_at_the_worker_says() -> None:
    world = World()
    for step in range(12):
        if step in (0, 3, 5):
            world.create(f"i{step}")
        if step == 7:
            world.drop("i3")
        world.commit([(step, step * 2), (step % 3, 5)])
        world.run(1_000)
        world.run(1_000)
        expected = world.expected()
        assert {log.id: world.rows(log) for log in LOGS if log.id not in _ABOUT_PEEKS} == {
            id: rows for id, rows in expected.items() if id not in _ABOUT_PEEKS
        }
    assert {row[2] for row in world.rows(logs.DATAFLOWS)} == {"i0", "i5"}
    sizes = {row[0]: row for row in world.rows(logs.ARRANGEMENT_SIZES)}
    assert max(int(str(row[2])) for row in sizes.values()) == 25, "the records of an index over all rows"


def test_nothing_is_sealed_before_it_is_due_and_the_worker_then_rests() -> None:
    world = World()
    world.create("i")
    world.run()
    world.run(2_000)
    upper = world.log.upper
    world.commit([(1, 1)])
    world.run(300)
    assert world.log.upper == upper, "within the second"
    world.run(1_000)
    assert world.log.upper > upper
    sealed = world.log.upper
    world.run(60_000)
    assert world.log.upper == sealed, "nothing happened"
    assert world.log.due_in_s() is None


def test_a_new_dataflow_is_in_the_log_before_it_does_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create("i")
    world.run()
    world.create("j")
    monkeypatch.setattr(Worker, "_activate", lambda self: False)
    world.solo.step()
    assert {row[2] for row in world.rows(logs.DATAFLOWS)} == {"i", "j"}
    assert {(row[0], row[2] is None) for row in world.rows(logs.HYDRATION_TIMES)} == {("i", False), ("j", True)}


def test_what_comes_and_goes_between_two_seals_leaves_nothing() -> None:
    world = World()
    world.commit([(1, 1)])
    world.run(2_000)
    for n in range(50):
        world.send(_read(f"t{n}", world.time))
        world.run()
        world.drop(f"t{n}")
        world.run()
    assert len(world.log._marked) <= 1, "only the first was ever in the log"
    world.run(2_000)
    assert not world.log._marked and not world.log._rows.keys() - {-1} and not world.log._born
    assert world.rows(logs.DATAFLOWS) == Counter()


def test_a_seal_takes_in_so_many_dataflows_and_the_rest_follows() -> None:
    world = World()
    for n in range(MOST_DATAFLOWS + 6):
        world.create(f"i{n}")
    world.solo.step()
    assert len(world.rows(logs.DATAFLOWS)) == MOST_DATAFLOWS
    world.run()
    assert len(world.rows(logs.DATAFLOWS)) == MOST_DATAFLOWS + 6


def test_seals_take_a_bounded_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create("i")
    world.run()
    world.run(5_000)
    original = ComputeLog._insert

    def insert(self: ComputeLog, log: Log, changes: object, upper: Frontier) -> None:
        world.clock.go(10)  # so slow is this machine
        original(self, log, changes, upper)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(ComputeLog, "_insert", insert)
    seals = 0
    for _ in range(200):
        before = world.log.upper
        world.commit([(1, 1)])
        world.run(100)
        seals += world.log.upper > before
    cost_ms = 10 * len(LOGS) * seals
    assert seals >= 1
    assert cost_ms <= 10 * len(LOGS) + (200 * 100 + cost_ms) / SHARE


def test_history_goes_as_far_as_compaction_says_and_no_further() -> None:
    world = World()
    world.create("i")
    world.run(2_000)
    uppers = [world.log.upper]
    for n in range(8):
        world.commit([(n, n)])
        world.run(1_000)
        uppers.append(world.log.upper)
    trace = world.log.arrangements[logs.FRONTIERS.id].oks
    assert int(trace.since) == MIN_TIME
    frontiers = {
        at: [row[2] for row in rows_of(LogPart(trace.snapshot(), Time(uppers[at] - 1)))] for at in range(len(uppers))
    }
    assert [times for _, times in sorted(frontiers.items())] == [[n + 2] for n in range(9)]
    world.solo.send(AllowCompaction(logs.FRONTIERS.id, uppers[4]))
    world.run()
    assert int(trace.since) == int(uppers[4])
    world.solo.send(AllowCompaction(logs.FRONTIERS.id, uppers[2]))
    world.run()
    assert int(trace.since) == int(uppers[4]), "a new connection begins low, and nothing comes back"
    for n in range(40):
        world.commit([(n, n)])
        world.run(1_000)
        world.solo.send(AllowCompaction(logs.FRONTIERS.id, world.log.upper - 1))
    assert trace.rows < 40, "what has been replaced merges away"


def test_frontiers_of_the_logs_are_reported_and_rise_together() -> None:
    world = World()
    world.create("i")
    world.run(2_000)
    for n in range(3):
        world.commit([(n, n)])
        world.run(1_000)
    reported: dict[str, list[int]] = {log.id: [] for log in LOGS}
    while (response := world.solo.receive(0)) is not None:
        if isinstance(response, Frontiers) and response.id in reported:
            reported[response.id].append(response.upper)
    assert len({tuple(uppers) for uppers in reported.values()}) == 1
    uppers = reported[LOGS[0].id]
    assert len(uppers) >= 3
    assert uppers == sorted(set(uppers))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_peek_of_a_log_is_the_union_of_all_workers(workers: int) -> None:
    world = World(workers)
    world.create("i")
    world.run()
    types = logs.EXPORTS.types
    world.solo.send(Peek(logs.EXPORTS.id, "u", 3, (), None, Mfp((), tuple(range(len(types))), types)))
    world.run()
    answers = []
    while (response := world.solo.receive(0)) is not None:
        if isinstance(response, PeekResponse):
            answers.append(response)
    [answer] = answers
    assert answer.rows is not None
    batch = answer.rows.batch()
    assert sorted(zip(*(c.to_pylist() for c in batch.columns), strict=True)) == [
        ("i", worker, 2, "solo") for worker in range(workers)
    ]


def test_without_logging_a_log_is_no_index_of_the_replica() -> None:
    store = TableStore(Hasher(3))
    solo = Solo(store, Hasher(3), threads=False)
    for command in (Hello("n"), CreateInstance(), InitializationComplete()):
        solo.send(command)
    solo.send(Peek(logs.EXPORTS.id, "u", 3, (), None, identity(PAIR)))
    solo.settle()
    response = solo.receive(0)
    assert isinstance(response, PeekResponse) and response.error is not None and response.error[0] == "XX000"


def test_a_part_that_has_sealed_nothing_is_empty() -> None:
    hasher = Hasher(2)
    log = ComputeLog(0, Role.MAINTENANCE, hasher=hasher, peeks=PeekLog(), clock=Clock())
    part = log.part(logs.DATAFLOWS.id)
    assert part.time is None
    assert len(part.rows(Time(7))) == 0
    frozen = FrozenLog(logs.DATAFLOWS, [part], Time(7), hasher)
    assert frozen.frontier() == Frontier(8) and frozen.arrangement.oks.rows == 0


def test_peeks_are_active_until_they_are_answered_and_then_counted() -> None:
    peeks = PeekLog()
    peek = Peek("i", "u", 4, (), None, identity(PAIR))
    before = peeks.version
    peeks.begin(peek)
    peeks.begin(peek)
    _, active, counts = peeks.rows()
    assert active == [("u", "i", "index", 4)] and not counts
    peeks.end("u")
    peeks.end("u")
    peeks.took(1_000)
    peeks.took(1_024)
    version, active, counts = peeks.rows()
    assert not active and version > before
    assert sum(count for _, _, count in counts) == 3
    assert ("index", 1_024, 2) in counts, "the least power of two that is not below"
    peeks.begin(peek)
    peeks.forget()
    assert peeks.rows()[1] == []


def test_a_read_of_one_class_is_not_urgent() -> None:
    world = World()
    world.commit([(1, 1)])
    world.run(2_000)
    world.send(_read("t1", world.time))
    world.solo.step()
    assert not world.log.urgent
    assert world.log.due_in_s() is not None


def test_readers_that_come_more_often_than_seals_are_due_pile_nothing_up() -> None:
    world = World()
    world.create("i")
    trace = world.log.arrangements[logs.FRONTIERS.id].oks
    types = logs.FRONTIERS.types
    for n in range(200):
        world.commit([(n, n)])
        world.solo.send(Peek(logs.FRONTIERS.id, f"u{n}", 3, (), None, identity(types)))
        world.run(100)
        while (response := world.solo.receive(0)) is not None:
            if isinstance(response, Frontiers) and response.id == logs.FRONTIERS.id:
                world.solo.send(AllowCompaction(response.id, response.upper - 1))
    assert trace.rows < 100, "of 400 that were written"
