"""Replicas of one cluster that run in processes of their own: one is killed, and nobody notices."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import eddyline
from eddyline.adapter.clusters import FIRST_CLUSTER, FIRST_REPLICA, ReplicaSettings
from eddyline.adapter.replica import Replica
from eddyline.controller.remote import ReplicaConnection

WAIT_SECONDS = 120.0
SECOND = "u900"


def pid_of(replica: Replica) -> int:
    assert replica.processes is not None
    (pid,) = replica.processes.pids
    return pid


def built(db: eddyline.Connection, replica: str) -> None:
    engine = db._engine
    item = engine.catalog.snapshot().view().resolve(None, "n_g")
    assert item is not None
    assert engine.default.wait_for(lambda controller: controller.hydrated_on(item.id, replica), WAIT_SECONDS)


def test_reads_go_on_when_the_process_of_one_of_two_replicas_is_killed() -> None:
    with eddyline.connect(processes=1) as db:
        engine = db._engine
        db.executescript(
            """
            CREATE TABLE t (k int, g int);
            CREATE VIEW n AS SELECT g, count(*) AS n FROM t GROUP BY g;
            CREATE INDEX n_g ON n (g);
            INSERT INTO t SELECT g, g % 3 FROM generate_series(1, 300) g;
            """
        )
        db.execute(f"SET statement_timeout = '{WAIT_SECONDS}s'")
        engine.create_replica(FIRST_CLUSTER, ReplicaSettings(SECOND, "r2", processes=1))
        for each in (FIRST_REPLICA, SECOND):
            built(db, each)
        replica = engine.first_replica
        assert replica.processes is not None
        before, client = pid_of(replica), replica.client
        os.kill(before, signal.SIGKILL)
        reads = 0
        deadline = time.monotonic() + WAIT_SECONDS
        while replica.client is client or reads < 20:
            assert time.monotonic() < deadline, "it comes back"
            reads += 1
            db.execute("INSERT INTO t VALUES (0, 0)")
            assert db.execute("SELECT n FROM n WHERE g = 0").fetchall() == [(100 + reads,)]
            assert db.execute("SELECT count(*) FROM t x").fetchall() == [(300 + reads,)]
        assert pid_of(replica) != before
        assert replica.processes.starts == 2
        built(db, FIRST_REPLICA)
        engine.drop_replica(FIRST_CLUSTER, SECOND)
        assert db.execute("SELECT n FROM n WHERE g = 0").fetchall() == [(100 + reads,)]


def test_one_that_was_without_a_connection_while_another_one_went_on_is_told_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Storage keeps it, for longer than it keeps anything else: nothing is built anew."""
    with eddyline.connect(interactive=False) as db:
        engine = db._engine
        db.executescript(
            """
            CREATE TABLE t (k int, g int);
            CREATE VIEW n AS SELECT g, count(*) AS n FROM t GROUP BY g;
            CREATE INDEX n_g ON n (g);
            INSERT INTO t SELECT g, g % 3 FROM generate_series(1, 300) g;
            """
        )
        table = engine.catalog.snapshot().view().resolve(None, "t")
        assert table is not None
        engine.create_replica(FIRST_CLUSTER, ReplicaSettings(SECOND, "r2", processes=1))
        built(db, SECOND)
        replica = engine.default.replica(SECOND)
        assert replica.processes is not None
        assert isinstance(replica.client, ReplicaConnection)
        client, connect, again = replica.client, replica.processes.connect, threading.Event()
        monkeypatch.setattr(
            replica.processes, "connect", lambda listener: again.wait(WAIT_SECONDS) and connect(listener)
        )
        before = pid_of(replica)
        client._abandon()
        deadline = time.monotonic() + WAIT_SECONDS
        while engine.default.wait_for(lambda controller: SECOND in controller.replicas(), 0.0):
            assert time.monotonic() < deadline, "it is missed"
            time.sleep(0.01)
        kept = engine.store.since(table.id)
        for _ in range(3):
            db.execute("INSERT INTO t VALUES (0, 0)")
            time.sleep(0.6)
        assert engine.store.upper(table.id) > kept + 2_000_000, "it trails by a second otherwise"
        assert engine.store.since(table.id) == kept
        again.set()
        assert engine.default.wait_for(lambda _: replica.client is not client, WAIT_SECONDS)
        built(db, SECOND)
        db.execute("INSERT INTO t VALUES (0, 0)")
        assert (pid_of(replica), replica.processes.starts) == (before, 1)
        assert db.execute("SELECT n FROM n WHERE g = 0").fetchall() == [(104,)]
