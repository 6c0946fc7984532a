"""Replicas of one cluster that run in processes of their own: one is killed, and nobody notices."""

from __future__ import annotations

import os
import signal
import time

import eddyline
from eddyline.adapter.clusters import FIRST_CLUSTER, FIRST_REPLICA, ReplicaSettings
from eddyline.adapter.replica import Replica

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
