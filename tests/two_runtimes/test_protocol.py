"""One test per rule of the protocol between the controller and a replica of two runtimes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from eddyline.compute.ledger import compatible_with
from eddyline.compute.log import ComputeLog
from eddyline.compute.process_settings import SWITCH_INTERVAL
from eddyline.compute.stream import Arrangement
from eddyline.plan.dataflow import Arrange, DataflowClass, DataflowDescription, ExportIndex
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.history import CommandHistory
from eddyline.protocol.logs import DATAFLOWS, EXPORTS, FRONTIERS, LOGS, Log
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
    UpdateConfiguration,
)
from eddyline.protocol.multiplexer import Multiplexer
from eddyline.repr.time import EMPTY, MIN_TIME
from eddyline.testing.driver import view_on
from tests.compute.runtime_harness import PAIR, identity
from tests.two_runtimes.driver import Driver, read_over
from tests.two_runtimes.test_invariants import ROWS, published

COMMANDS: list[Command] = [
    Hello("n"),
    CreateInstance(),
    UpdateConfiguration({"a": "b"}),
    CreateDataflow(read_over("t1", "i", 1)),
    Schedule("t1"),
    AllowWrites("v"),
    AllowCompaction("i", 3),
    InitializationComplete(),
]
PEEKS: list[Command] = [Peek("i", "u", 1, PAIR[:1], None, identity(PAIR)), CancelPeek("u")]


class Recorder(ResponseQueue):
    """One side of the endpoint: remembers commands, and answers what it is told to."""

    def __init__(self, log: list[tuple[Recorder, Command]]) -> None:
        super().__init__()
        self._log = log
        self.stopped = False

    def send(self, command: Command) -> None:
        self._log.append((self, command))

    def stop(self) -> None:
        self.stopped = True


class Endpoint:
    def __init__(self) -> None:
        self.log: list[tuple[Recorder, Command]] = []
        self.maintenance, self.interactive = Recorder(self.log), Recorder(self.log)
        self.client = Multiplexer(self.maintenance, self.interactive)

    def received(self) -> list[Response]:
        out: list[Response] = []
        while (response := self.client.receive(0)) is not None:
            out.append(response)
        return out


def test_p01_commands_reach_maintenance_then_interactive_in_order() -> None:
    e = Endpoint()
    for command in COMMANDS:
        e.client.send(command)
    assert e.log == [(side, c) for c in COMMANDS for side in (e.maintenance, e.interactive)]


def test_p02_peeks_and_their_cancellation_go_to_interactive_alone() -> None:
    e = Endpoint()
    for command in PEEKS:
        e.client.send(command)
    assert e.log == [(e.interactive, c) for c in PEEKS]


def test_p03_responses_are_merged_verbatim_each_stream_in_order() -> None:
    e = Endpoint()
    from_one: list[Response] = [Frontiers("i", n) for n in (3, 7, 7, EMPTY)]
    from_other: list[Response] = [Frontiers("t1", 2), PeekResponse("u", canceled=True), Status("note"), Status("note")]
    for one, other in zip(from_one, from_other, strict=True):
        e.maintenance.put(one)
        e.interactive.put(other)
    received = e.received()
    for stream in (from_one, from_other):
        ids = {id(r) for r in stream}
        assert [id(r) for r in received if id(r) in ids] == [id(r) for r in stream], "these very ones"
    assert len(received) == 8


class GivesUp(threading.Condition):
    """A waiter's time is over, or it is interrupted, at the moment when something comes."""

    def __init__(self, comes: Callable[[], None], interrupt: type[BaseException] | None) -> None:
        super().__init__()
        self._comes = comes
        self._interrupt = interrupt

    def wait(self, timeout: float | None = None) -> bool:
        self._comes()
        if self._interrupt is not None:
            raise self._interrupt
        return False


@pytest.mark.parametrize("interrupt", [None, KeyboardInterrupt])
def test_p04_nothing_is_lost_when_both_sides_are_ready_or_the_caller_gives_up(
    interrupt: type[BaseException] | None,
) -> None:
    e = Endpoint()
    e.maintenance.put(Frontiers("i", 1))
    e.interactive.put(Frontiers("t1", 1))
    assert e.received() == [Frontiers("i", 1), Frontiers("t1", 1)], "both were ready"
    assert e.client.receive(0) is None, "nobody waits"
    arriving: list[Response] = [Frontiers("i", 2), Frontiers("t1", 2)]

    def come() -> None:
        e.maintenance.put(arriving[0])
        e.interactive.put(arriving[1])

    e.client._responses._changed = GivesUp(come, interrupt)
    received: list[Response | None] = []
    with suppress(KeyboardInterrupt):
        received.append(e.client.receive(1))
    received += e.received()
    assert [r for r in received if r is not None] == arriving, "the waiter got it, or the next one does"
    e.client._responses._changed = threading.Condition()
    e.maintenance.put(Frontiers("i", 3))
    e.interactive.put(Frontiers("t1", 3))
    seen: list[Response] = []
    e.client.listen(seen.append, lambda: None)
    e.maintenance.put(Frontiers("i", 4))
    assert seen == [Frontiers("i", 3), Frontiers("t1", 3), Frontiers("i", 4)], "what waits comes first"


@pytest.mark.parametrize("side", ["maintenance", "interactive"])
@pytest.mark.parametrize("last_words", [True, False])
def test_p05_either_end_ends_the_endpoint(side: str, last_words: bool) -> None:
    e = Endpoint()
    ends: Recorder = getattr(e, side)
    other = e.interactive if ends is e.maintenance else e.maintenance
    if last_words:
        ends.put(Status("boom", fatal=True))
    else:
        ends.close()
    assert e.maintenance.stopped
    assert e.interactive.stopped
    other.put(Frontiers("i", 9))
    other.put(Status("too", fatal=True))
    assert e.received() == ([Status("boom", fatal=True)] if last_words else [])
    told: list[bool] = []
    e.client.listen(lambda response: told.append(False), lambda: told.append(True))
    assert told == [True], "it is over, and nobody waits for ever"
    assert e.client.receive(None) is None


def test_p08_compatibility_ignores_class_name_and_as_of() -> None:
    good = read_over("t1", "i", 5)
    for same in ({"name": "x"}, {"as_of": 4}, {"dataflow_class": DataflowClass.MAINTAINED}):
        assert compatible_with(good, msgspec.structs.replace(good, **same)), same
        assert compatible_with(msgspec.structs.replace(good, **same), good), same
    for other in ({"until": 9}, {"memory_bytes": 1}, {"operators": good.operators[:-1]}):
        assert not compatible_with(good, msgspec.structs.replace(good, **other)), other
    assert not compatible_with(good, read_over("t1", "j", 5))
    assert not compatible_with(good, read_over("t2", "i", 5))


def test_p09_a_class_that_changes_across_a_reconnect_rebuilds_nothing() -> None:
    d = published()
    read = read_over("t1", "i", 1)
    d.create(read)
    d.settle()
    rendered = d.lane()._exporters["t1"]
    d.hello()
    d.create(d.index("i", "t", 1))
    d.create(msgspec.structs.replace(read, dataflow_class=DataflowClass.MAINTAINED))
    d.send(InitializationComplete())
    d.settle()
    assert d.lane()._exporters.get("t1") is rendered
    assert "t1" not in d.maintainer()._exporters
    assert d.rows_of_peek("t1", 1) == dict.fromkeys(ROWS, 1)


def test_p10_the_reduced_history_leads_to_the_same_state() -> None:
    settings: dict[str, list[Mapping[str, str]]] = {"long": [], "short": []}
    long, short = (Driver(configure=applied.append) for applied in settings.values())
    history = CommandHistory()
    for d in (long, short):
        d.table("t", ROWS)
        d.commit("t", [(4, 40)])
        d.view("v", 1)
        d.view("w", 1)
    twins = (*long.index("a", "t", 1).operators, Arrange(0, (1,), PAIR), ExportIndex("b", "t", 3, (1,), PAIR))
    waiting = [Peek("i", uuid, 4, PAIR[:1], None, identity(PAIR)) for uuid in ("asked", "canceled")]
    commands: list[Command] = [
        UpdateConfiguration({SWITCH_INTERVAL: "500"}),
        UpdateConfiguration({SWITCH_INTERVAL: "700"}),
        *(CreateDataflow(long.index(id, "t", 1)) for id in ("i", "unscheduled", "dropped")),
        CreateDataflow(DataflowDescription("twins", twins, 1, EMPTY)),
        CreateDataflow(read_over("t1", "i", 1)),
        *(CreateDataflow(view_on(id, "t", 1)) for id in ("v", "w")),
        *map(Schedule, ("i", "dropped", "a", "b", "t1", "v", "w")),
        AllowWrites("v"),
        *(AllowCompaction(id, EMPTY) for id in ("dropped", "t1")),
        AllowCompaction("i", 2),
        AllowCompaction("b", 2),
        *waiting,
        CancelPeek("canceled"),
        InitializationComplete(),
    ]
    for command in commands:
        history.push(command)
        long.send(command)
    reduced = history.reduced()
    assert len(reduced) < len(commands)
    short.hello()
    short.send(*reduced)
    for name, d in (("long", long), ("short", short)):
        d.settle()
        assert settings[name][-1:] == [{SWITCH_INTERVAL: "700"}]
        assert sorted(d.reader().traces) == sorted(d.maintainer()._indexes) == ["a", "b", "i", "unscheduled"], name
        assert not d.reader()._local
        assert [int(d.trace(id).since) for id in ("i", "a", "b")] == [2, 1, 2], name
        assert len(d.rows_of_peek("i", 2)) == len(d.rows_of_peek("a", 2)) == 4
        assert d.frontiers("unscheduled") == [1], name
        assert [int(d.store.upper(id)) for id in ("v", "w")] == [3, 0], name
        assert d.answers("asked") == [], name
        for _ in range(2):
            d.commit("t", [])
        d.settle()
        assert len(d.rows("asked")) == 4, name
        assert d.answer("canceled").canceled, name


def test_p11_schedules_and_writes_of_peers_are_no_ops() -> None:
    d = published()
    d.create(read_over("t1", "i", 1))
    for id in ("i", "t1"):
        d.send(Schedule(id))
        d.send(AllowWrites(id))
    d.settle()
    assert not d.pair.failed
    assert d.maintainer()._peers == {"t1"}
    assert sorted(d.reader().traces) == ["i"]


def test_p12_a_peek_of_an_unknown_index_is_an_error_response() -> None:
    d = published()
    unknown = d.peek("nothing", 1)
    d.settle()
    assert d.error(unknown) == "XX000"


@pytest.mark.parametrize(
    "command", [Schedule("x"), AllowWrites("x"), AllowCompaction("x", 5), AllowCompaction("x", EMPTY)]
)
def test_p13_any_other_command_about_an_unknown_id_trips_a_soft_assertion(command: Command, tripped: list[str]) -> None:
    d = published()
    d.send(command)
    d.settle()
    assert len(tripped) == 2, "one of each runtime"
    assert not d.pair.failed


def test_p14_dropping_a_peer_answers_its_queued_peeks_with_an_error() -> None:
    d = published()
    uuid = d.peek("i", 99)
    d.serve()
    assert d.answers(uuid) == []
    d.drop("i")
    d.serve()
    assert d.error(uuid) == "XX000"
    assert "i" not in d.reader().traces


def test_p15_a_new_connection_gets_no_answers_of_the_old_one() -> None:
    d = published()
    old = d.peek("i", 2)
    walk = d.peek("i", 1)
    d.pair.interactive.step(0)
    d.hello()
    d.pair.interactive.step(1)  # the lane answers the walk: it has not heard of the new connection
    d.create(d.index("i", "t", 1))
    new = d.peek("i", 1)
    d.send(InitializationComplete())
    d.commit("t", [(4, 40)])
    d.settle()
    assert d.answers(old) == d.answers(walk) == []
    assert d.rows(new) == dict.fromkeys(ROWS, 1)
    assert d.frontiers("i")[-1] == d.time + 1, "what is retained reports again"
    assert d.reader().traces["i"].arrangement.incarnation == 1


def test_p16_a_read_over_an_unpublished_index_is_canceled_cleanly() -> None:
    d = Driver()
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.create(read_over("t1", "i", 1))
    uuid = d.peek("t1", 1)
    d.serve()
    d.cancel(uuid)
    d.drop("t1")
    d.serve()
    assert d.answers(uuid)[0].canceled
    assert not d.reader()._imports
    d.settle()
    assert d.slot("i").frontier() == 2
    assert len(d.answers(uuid)) == 1


@pytest.mark.parametrize("reader_first", [True, False])
def test_p17_logs_are_published_and_recorded_as_peers_at_the_minimum_time(reader_first: bool) -> None:
    d = Driver(logging=True)
    for run in (d.serve, d.maintain) if reader_first else (d.maintain, d.serve):
        run()
    for log in LOGS:
        peer, slot = d.reader().traces[log.id], d.slot(log.id)
        assert peer.arrangement is slot
        assert int(peer.since) == int(slot.since) == MIN_TIME
        assert d.trace(log.id) is logs_of(d)[log.id].oks
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.maintain()
    sealed = d.slot(DATAFLOWS.id).frontier()
    assert sealed > MIN_TIME
    d.compact(DATAFLOWS.id, sealed - 1)
    d.maintain()
    assert int(d.trace(DATAFLOWS.id).since) == MIN_TIME, "the reader's command stream stands before that"
    assert d.fatal() == []


def logs_of(d: Driver) -> dict[str, Arrangement]:
    log = d.maintainer().log.log
    assert log is not None
    return log.arrangements


def test_p18_compaction_of_a_log_moves_the_holds_of_both_runtimes() -> None:
    d = Driver(logging=True)
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.settle()
    reported = d.frontiers(FRONTIERS.id)
    assert reported and reported[-1] <= d.slot(FRONTIERS.id).frontier()
    d.compact(FRONTIERS.id, reported[-1] - 1)
    d.settle()
    assert int(d.reader().traces[FRONTIERS.id].since) == reported[-1] - 1
    assert d.trace(FRONTIERS.id).since == reported[-1] - 1
    assert int(d.trace(DATAFLOWS.id).since) == MIN_TIME


def test_p19_a_read_of_logs_waits_for_nothing_and_sees_both_runtimes() -> None:
    d = Driver(logging=True)
    early = d.peek_log(DATAFLOWS)
    d.serve()
    assert d.texts(early) == [], "maintenance has not begun"
    d.maintain()
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.maintain()
    d.create(d.index("later", "t", 1))
    d.read_logs("t1", 1, DATAFLOWS)
    read, peeked = d.peek("t1", 1), d.peek_log(EXPORTS)
    d.serve()
    both = [(DATAFLOWS.name, "2"), (DATAFLOWS.name, "3")]
    assert d.answer(read).rows is not None, "without a step of maintenance"
    assert d.texts(read) == both
    assert d.texts(peeked) == [("i", "0", "2", "maintenance"), ("t1", "0", "3", "interactive")]
    d.drop("t1")
    d.maintain()
    after = d.peek_log(EXPORTS)
    d.serve()
    assert d.texts(after) == [("i", "0", "2", "maintenance"), ("later", "0", "4", "maintenance")]


def test_p20_logs_of_one_read_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    d = Driver(logging=True)
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.settle()
    original, reads = ComputeLog._insert, itertools.count(1)

    def insert(self: ComputeLog, log: Log, *rest: Any) -> None:
        """Before each log of maintenance moves, a read of two of them, which have one row per index."""
        if self is d.maintainer().log.log:
            id = f"t{next(reads)}"
            d.read_logs(id, 1, DATAFLOWS, EXPORTS)
            uuid = d.peek(id, 1)
            d.serve()
            seen.append([name for name, _ in d.texts(uuid)])
            d.drop(id)
        original(self, log, *rest)

    seen: list[list[str]] = []
    with monkeypatch.context() as patch:
        patch.setattr(ComputeLog, "_insert", insert)
        d.create(d.index("j", "t", 1))
        d.maintain()
    assert len(seen) >= len(LOGS)
    for names in seen:
        assert names.count(DATAFLOWS.name) == names.count(EXPORTS.name)


def test_p21_logs_outlive_connections() -> None:
    d = Driver(logging=True)
    d.table("t", ROWS)
    d.create(d.index("i", "t", 1))
    d.settle()
    peers = {log.id: d.reader().traces[log.id] for log in LOGS}
    d.hello()
    d.send(CreateInstance(logging=True))
    d.send(InitializationComplete())
    d.settle()
    assert {id: d.reader().traces[id] for id in peers} == peers
    for _ in range(100):
        d.pair.maintenance.step()  # time passes
    peeked = d.peek_log(EXPORTS)
    d.settle()
    assert d.texts(peeked) == [], "what the old connection made is gone, and the logs say so"


def test_the_log_of_the_interactive_runtime_forgets_as_it_is_read() -> None:
    d = Driver(logging=True)
    d.table("t", ROWS)
    d.settle()
    for n in range(100):
        d.read_logs(f"t{n}", 1, DATAFLOWS)
        d.serve()
        d.drop(f"t{n}")
        d.serve()
    log = d.lane().log.log
    assert log is not None
    assert log.arrangements[DATAFLOWS.id].oks.rows < 60, "of nearly 200 that were written"
