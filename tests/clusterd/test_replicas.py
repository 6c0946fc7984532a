"""Databases whose replica runs in processes of its own: answers, lost connections, killed processes."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, cast

import pytest

import eddyline
from eddyline.adapter.engine import Engine
from eddyline.controller.processes import ReplicaProcesses, ReplicaSpec
from eddyline.controller.remote import ReplicaConnection
from eddyline.controller.spawning import Child
from eddyline.errors import DatabaseError
from eddyline.protocol.storage_messages import Follow
from eddyline.storage.collection import CollectionKind
from eddyline.storage.feed import StorageFeed
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.waiting import wait_until

WAIT_SECONDS = 60.0
LAYOUTS = [(1, 1, True), (1, 2, False), (2, 2, True)]
NAMES = ["one process", "one runtime", "two processes"]


@pytest.fixture(scope="module", params=LAYOUTS, ids=NAMES)
def db(request: pytest.FixtureRequest) -> Iterator[eddyline.Connection]:
    processes, workers, interactive = request.param
    with eddyline.connect(processes=processes, workers=workers, interactive=interactive) as connection:
        yield connection


def engine(db: eddyline.Connection) -> Engine:
    return db._engine


def pids(db: eddyline.Connection) -> list[int]:
    processes = engine(db).first_replica.processes
    assert processes is not None
    return processes.pids


def rows(db: eddyline.Connection, query: str) -> list[tuple[object, ...]]:
    return cast(list[tuple[object, ...]], db.execute(query).fetchall())


def hydrate(db: eddyline.Connection) -> None:
    """Until the replica has built everything; before that, reads may be answered without it."""

    def whole() -> bool:
        with engine(db).control() as controller:
            return all(controller.hydrated(id) for id in controller._collections)

    wait_until(whole, "all are back")


def shop(db: eddyline.Connection) -> None:
    db.executescript(
        """
        CREATE TABLE item (id int PRIMARY KEY, price numeric(8, 2));
        CREATE TABLE sale (item int, amount int);
        INSERT INTO item SELECT g, g * 1.5 FROM generate_series(1, 50) g;
        INSERT INTO sale SELECT g % 50 + 1, g % 7 FROM generate_series(1, 5000) g;
        CREATE VIEW turnover AS
            SELECT i.id, sum(s.amount * i.price) AS total, count(*) AS sales
            FROM sale s JOIN item i ON s.item = i.id GROUP BY i.id;
        CREATE INDEX turnover_id ON turnover (id);
        CREATE MATERIALIZED VIEW best AS SELECT id, total FROM turnover ORDER BY total DESC, id LIMIT 3;
        """
    )


def same_by_hand(db: eddyline.Connection) -> None:
    """The views, against the same computed here from the tables."""
    prices: dict[int, Decimal] = dict(cast(Any, rows(db, "SELECT id, price FROM item")))
    totals: dict[int, tuple[Decimal, int]] = {}
    for item, amount in cast(list[tuple[int, int]], rows(db, "SELECT item, amount FROM sale")):
        if item in prices:
            total, sales = totals.get(item, (Decimal(0), 0))
            totals[item] = total + amount * prices[item], sales + 1
    expected = sorted((id, *t) for id, t in totals.items())
    assert rows(db, "SELECT id, total, sales FROM turnover ORDER BY id") == expected
    best = sorted(((total, id) for id, total, _ in expected), key=lambda r: (-r[0], r[1]))[:3]
    assert rows(db, "SELECT total, id FROM best ORDER BY total DESC, id") == best
    assert rows(db, "SELECT id, total, sales FROM turnover WHERE id = 7") == [e for e in expected if e[0] == 7]


@pytest.fixture
def sold(db: eddyline.Connection) -> Iterator[eddyline.Connection]:
    shop(db)
    hydrate(db)
    yield db
    db.executescript("DROP MATERIALIZED VIEW best; DROP VIEW turnover; DROP TABLE sale; DROP TABLE item;")


def test_views_and_reads_are_right_while_the_tables_change(sold: eddyline.Connection) -> None:
    db = sold
    same_by_hand(db)
    for n in range(4):
        db.execute(f"INSERT INTO sale SELECT g % 60, g % 11 FROM generate_series({n * 100}, {n * 100 + 70}) g")
        db.execute(f"DELETE FROM sale WHERE item = {n + 3}")
        db.execute(f"UPDATE item SET price = price + 1 WHERE id = {n + 10}")
        same_by_hand(db)


def test_row_errors_subscriptions_and_transactions_come_through(sold: eddyline.Connection) -> None:
    db = sold
    db.execute("CREATE VIEW share AS SELECT id, 100 / (sales - 1) AS share FROM turnover")
    db.execute("INSERT INTO item VALUES (99, 1)")
    db.execute("INSERT INTO sale VALUES (99, 1)")
    with pytest.raises(eddyline.DataError) as division:
        db.execute("SELECT * FROM share")
    assert division.value.sqlstate == "22012"
    db.execute("DELETE FROM item WHERE id = 99")
    assert len(rows(db, "SELECT * FROM share")) == 50
    db.execute("DROP VIEW share")
    with db.session() as reader, db.session() as writer, reader.subscribe("SELECT count(*) FROM sale") as changes:
        first = changes.next(WAIT_SECONDS)
        assert first is not None
        assert first.updates["count"].to_pylist() == [5001]
        writer.execute("BEGIN")
        writer.execute("INSERT INTO sale VALUES (1, 1)")
        assert rows(writer, "SELECT count(*) FROM sale") == [(5002,)]
        writer.execute("COMMIT")
        change = changes.next(WAIT_SECONDS)
        assert change is not None
        assert sorted(zip(*(change.updates[c].to_pylist() for c in ("mz_diff", "count")), strict=True)) == [
            (-1, 5001),
            (1, 5002),
        ]


def test_a_lost_connection_goes_on_with_what_is_there(
    sold: eddyline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, before = sold, pids(sold)
    same_by_hand(db)
    follows: list[Follow] = []
    original = StorageFeed._follow

    def follow(self: StorageFeed, request: Follow) -> None:
        follows.append(request)
        original(self, request)

    monkeypatch.setattr(StorageFeed, "_follow", follow)
    replica = engine(db).first_replica.client
    assert isinstance(replica, ReplicaConnection)
    replica._processes[0].commands.abandon()
    wait_until(lambda: engine(db).first_replica.client is not replica, "another one is there")
    hydrate(db)
    db.execute("INSERT INTO sale VALUES (7, 100)")
    same_by_hand(db)
    assert pids(db) == before, "no process was started"
    # In each process, both tables go on from where they were; views that were read once may have been given up.
    store = engine(db).store
    tables = [f for f in follows if f.id in store and store.kind(f.id) is CollectionKind.TABLE]
    assert len(tables) >= 2 * len(before)
    assert all(f.resume is not None for f in tables)


def test_a_killed_process_is_replaced_and_later_reads_are_right(sold: eddyline.Connection) -> None:
    db, before = sold, pids(sold)
    same_by_hand(db)
    outcomes: list[str] = []
    stop = threading.Event()

    def read() -> None:
        with db.session() as session:
            while not stop.is_set():
                try:
                    session.execute("SELECT sum(total) FROM turnover t, generate_series(1, 200) g").fetchall()
                    outcomes.append("answered")
                except eddyline.OperationalError as error:
                    outcomes.append(error.sqlstate)

    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: "answered" in outcomes, "somebody was answered")
    os.kill(before[-1], signal.SIGKILL)
    wait_until(lambda: len(pids(db)) == len(before) and not set(pids(db)) & set(before), "all processes are others")
    db.execute("INSERT INTO sale VALUES (7, 100)")
    same_by_hand(db)
    seen = len(outcomes)
    wait_until(lambda: len(outcomes) > seen, "it goes on")
    stop.set()
    reader.join()
    assert set(outcomes) <= {"answered", "58000"}
    assert outcomes[-1] == "answered"


def test_closing_ends_the_processes_and_removes_their_sockets() -> None:
    with eddyline.connect(processes=1) as db:
        processes = engine(db).first_replica.processes
        assert processes is not None
        directory, (pid,) = processes._directory, processes.pids
        assert directory.exists()
        db.execute("CREATE TABLE t (a int)")
        db.execute("INSERT INTO t VALUES (1)")
        assert rows(db, "SELECT a FROM t") == [(1,)]
    assert not directory.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_closing_while_a_killed_process_is_replaced_leaves_nothing_behind() -> None:
    db = eddyline.connect(processes=1)
    processes = engine(db).first_replica.processes
    assert processes is not None
    (killed,) = processes.pids
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: processes.starts == 2, "it is started again")
    (new,) = processes.pids
    db.close()
    wait_until(lambda: not any(t.name == "eddyline-rebuild" for t in threading.enumerate()), "nobody rebuilds any more")
    with pytest.raises(ProcessLookupError):
        os.kill(new, 0)
    assert not processes._directory.exists()
    assert processes.pids == []


@pytest.mark.parametrize(
    ("where", "what", "error"),
    [
        (os, "pipe", OSError(errno.EMFILE, "too many open files")),
        (subprocess, "Popen", OSError(errno.EAGAIN, "no more processes")),
        (threading.Thread, "start", RuntimeError("can't start new thread")),
    ],
)
def test_a_process_that_the_system_refuses_is_an_error_and_leaves_nothing_open(
    where: Any, what: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_args: object, **_kwargs: object) -> None:
        raise error

    hasher = Hasher()
    processes = ReplicaProcesses(ReplicaSpec, TableStore(hasher), hasher)
    before = set(os.listdir("/proc/self/fd"))
    try:
        with monkeypatch.context() as patched, pytest.raises(DatabaseError) as failed:
            patched.setattr(where, what, refused)
            processes.connect(lambda _: None)
        assert failed.value.sqlstate == "58000"
        assert str(error) in failed.value.message
        assert failed.value.hint
        assert processes.pids == []
        gc.collect()
        assert set(os.listdir("/proc/self/fd")) <= before
    finally:
        processes.close()


def test_a_process_that_ends_while_others_start_ends_the_start() -> None:
    """It had said that it listens, and the first one would wait for it for as long as it may take."""
    scripts = ["exec sleep 600", "printf x >&{fd}", "exec sleep 600"]

    def spawn(arguments: Sequence[str], writing: int, log: int) -> Child:
        script = scripts[int(next(a for a in arguments if a.startswith("--process=")).partition("=")[2])]
        return subprocess.Popen(["sh", "-c", script.format(fd=writing)], stderr=log, pass_fds=[writing])

    hasher = Hasher(1)
    processes = ReplicaProcesses(lambda: ReplicaSpec(processes=3), TableStore(hasher), hasher, spawn=spawn)
    started = time.monotonic()
    try:
        with pytest.raises(eddyline.Error, match="process 1 of the replica does not come up") as caught:
            processes.connect(lambda response: None)
        assert caught.value.sqlstate == "58000"
        assert time.monotonic() - started < 60
        assert processes.pids == [], "the others are ended too"
    finally:
        processes.close()
