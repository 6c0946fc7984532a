"""Reads that come before maintenance: they wait for their index by themselves, and ask a runtime only after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import eddyline
from eddyline.adapter.clusters import FIRST_CLUSTER
from eddyline.compute.imports import ImportSourceOperator
from eddyline.compute.pair import Pair
from eddyline.compute.runtime import Runtime
from eddyline.compute.sharing import SharingRegistry, Slot
from eddyline.compute.stream import Arrangement
from eddyline.protocol.messages import Command, Peek
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, Frontier, Time
from eddyline.repr.types import BIGINT
from eddyline.trace.run import Layout
from eddyline.trace.trace import Trace

LAYOUT = Layout((BIGINT,), (0,))
LOOKUP = "SELECT n FROM counts WHERE k = $1"
WHOLE = "SELECT k, n FROM counts ORDER BY k"


def read(db: eddyline.Connection, text: str) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = db.execute(text, (1,) if text == LOOKUP else None).fetchall()
    return found


# -- the slot --------------------------------------------------------------------------------------------------------


class _Published:
    """An index that is sealed by hand."""

    def __init__(self, *, start: bool = True) -> None:
        self.demanded: list[str] = []
        registry = SharingRegistry()
        registry.connect_publisher(self.demanded.append, lambda _id, _time: None)
        errors = Layout(ERR_TYPES, tuple(range(len(ERR_TYPES))))
        self.arrangement = Arrangement(Trace(LAYOUT), Trace(errors))
        self.slot: Slot = registry.publish("i", 1, self.arrangement, Time(0), EMPTY)
        if start:
            self.slot.start()

    def seal(self, upper: int) -> None:
        for trace in (self.arrangement.oks, self.arrangement.errs):
            trace.advance_upper(Frontier(upper))
        self.slot.announce()


def test_a_caller_is_told_once_when_its_time_is_sealed() -> None:
    index = _Published()
    told: list[int] = []
    assert not index.slot.tell_sealed(Time(5), lambda: told.append(5))
    index.seal(5)
    assert told == [] and index.slot.awaited, "5 is not below 5"
    index.seal(6)
    index.seal(7)
    assert told == [5] and not index.slot.awaited
    assert index.slot.tell_sealed(Time(6), lambda: told.append(6)), "it is sealed already, and nobody is told"
    index.seal(8)
    assert told == [5]


def test_a_caller_that_has_gone_is_not_told() -> None:
    index = _Published()
    told: list[int] = []

    def tell() -> None:
        told.append(0)

    assert not index.slot.tell_sealed(Time(5), tell)
    index.slot.forget(tell)
    index.slot.forget(tell)
    assert not index.slot.awaited
    index.seal(6)
    assert told == []


def test_the_first_one_that_waits_has_the_publisher_catch_up() -> None:
    index = _Published()
    assert not index.slot.tell_sealed(Time(5), lambda: None)
    assert not index.slot.tell_sealed(Time(7), lambda: None)
    assert not index.slot.sealed_past(Time(6)), "the runtime's own reader asks too"
    assert index.demanded == ["i"], "the publisher keeps on until nobody waits"
    index.seal(8)
    assert not index.slot.tell_sealed(Time(8), lambda: None)
    assert index.demanded == ["i", "i"]


# -- statements ------------------------------------------------------------------------------------------------------


class _Maintenance:
    """Whether sources are read, and which peeks were sent."""

    def __init__(self) -> None:
        self.stopped = False
        self.peeks: list[Peek] = []
        self.asked = threading.Event()


@pytest.fixture
def maintenance(monkeypatch: pytest.MonkeyPatch) -> _Maintenance:
    found = _Maintenance()
    pending, send = ImportSourceOperator.pending, Runtime.send

    def sent(self: Runtime, command: Command) -> None:
        if isinstance(command, Peek):
            found.peeks.append(command)
            found.asked.set()
        send(self, command)

    monkeypatch.setattr(ImportSourceOperator, "pending", lambda self: not found.stopped and pending(self))
    monkeypatch.setattr(Runtime, "send", sent)
    return found


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def db(request: pytest.FixtureRequest, maintenance: _Maintenance) -> Iterator[eddyline.Connection]:
    with eddyline.connect(workers=request.param, interactive=True) as connection:
        connection.executescript(
            "CREATE TABLE t (k bigint);"
            "CREATE VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k;"
            "CREATE INDEX counts_k ON counts (k);"
        )
        connection.append("t", pa.table({"k": [1, 2]}))
        connection.wait_hydrated("counts_k", timeout=30)
        for _ in range(3):  # from the third time on a lookup is a quick one
            assert read(connection, LOOKUP) == [(1,)]
        try:
            yield connection
        finally:
            maintenance.stopped = False


def patience(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for module in ("read", "quick_lookup"):
        monkeypatch.setattr(f"eddyline.adapter.{module}.SEAL_WAIT_S", seconds)


def test_a_read_after_a_write_asks_no_runtime(
    db: eddyline.Connection, maintenance: _Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one whose time is sealed just between its look at the index and its wait: it finds nothing to wait for,
    and asks."""
    patience(monkeypatch, 60)
    maintenance.peeks.clear()
    for count in range(2, 12):
        db.append("t", pa.table({"k": [1]}))
        assert read(db, LOOKUP) == [(count,)]
        db.append("t", pa.table({"k": [2]}))
        assert read(db, WHOLE) == [(1, count), (2, count)]
    assert len(maintenance.peeks) < 10, "of twenty reads that come before maintenance"


@pytest.mark.parametrize("text", [LOOKUP, WHOLE])
def test_a_read_that_waits_can_be_cancelled(
    db: eddyline.Connection, maintenance: _Maintenance, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    patience(monkeypatch, 60)
    error = failure_of(db, maintenance, text, db.cancel)
    assert error.sqlstate == "57014" and "user request" in str(error)


@pytest.mark.parametrize("text", [LOOKUP, WHOLE])
def test_a_read_that_waits_ends_with_its_time(
    db: eddyline.Connection, maintenance: _Maintenance, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    patience(monkeypatch, 60)
    db.execute("SET statement_timeout = '500ms'")
    for _ in range(3):
        read(db, LOOKUP)
    error = failure_of(db, maintenance, text, lambda: None)
    assert error.sqlstate == "57014" and "timeout" in str(error)


def failure_of(
    db: eddyline.Connection, maintenance: _Maintenance, text: str, meanwhile: Callable[[], None]
) -> eddyline.Error:
    """What a read fails with that comes before maintenance, which never does its part."""
    maintenance.stopped = True
    with db.session() as other:
        other.append("t", pa.table({"k": [1]}))
    maintenance.peeks.clear()
    failures: list[eddyline.Error] = []

    def fail() -> None:
        try:
            read(db, text)
        except eddyline.Error as error:
            failures.append(error)

    reader = threading.Thread(target=fail)
    reader.start()
    while not waiting(db) and reader.is_alive():
        time.sleep(0.001)
    meanwhile()
    reader.join(30)
    assert not reader.is_alive()
    assert maintenance.peeks == [], "it did not get as far as to ask a runtime"
    return failures[0]


def waiting(db: eddyline.Connection) -> bool:
    """Whether a reader waits for an index."""
    [replica] = db._engine.clusters[FIRST_CLUSTER]._embedded
    assert isinstance(replica, Pair)
    return any(slot.awaited for registry in replica.registries for slot in registry._slots.values())


@pytest.mark.parametrize("text", [LOOKUP, WHOLE])
def test_a_read_that_has_waited_for_long_is_sent(
    db: eddyline.Connection, maintenance: _Maintenance, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    patience(monkeypatch, 0.01)
    found = answer_after_a_stop(db, maintenance, text, maintenance.asked.wait)
    assert found == ([(2,)] if text == LOOKUP else [(1, 2), (2, 1)])


@pytest.mark.parametrize("text", [LOOKUP, WHOLE])
def test_what_a_read_has_waited_is_a_phase_of_it(
    db: eddyline.Connection, maintenance: _Maintenance, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    patience(monkeypatch, 60)
    phase = db._engine.metrics.phases("interactive", "wait_seal")
    before = sum(phase.seen()[0])

    def until_it_waits(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not waiting(db) and time.monotonic() < deadline:
            time.sleep(0.001)
        return waiting(db)

    found = answer_after_a_stop(db, maintenance, text, until_it_waits)
    assert found == ([(2,)] if text == LOOKUP else [(1, 2), (2, 1)])
    assert sum(phase.seen()[0]) == before + 1


def answer_after_a_stop(
    db: eddyline.Connection, maintenance: _Maintenance, text: str, reached: Callable[[float], bool]
) -> list[tuple[int, ...]]:
    """The answer of a read that comes before maintenance, which goes on once it has got as far as ``reached``."""
    maintenance.stopped = True
    db.append("t", pa.table({"k": [1]}))
    maintenance.peeks.clear()
    maintenance.asked.clear()
    found: list[list[tuple[int, ...]]] = []
    reader = threading.Thread(target=lambda: found.append(read(db, text)))
    reader.start()
    assert reached(30)
    maintenance.stopped = False
    with db.session() as other:  # whose commit wakes maintenance
        other.append("t", pa.table({"k": [3]}))
    reader.join(30)
    return found[0]
