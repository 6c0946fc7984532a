"""A thread of one process fails: the process ends, its parent sees it, and another replica builds everything again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import eddyline
from eddyline.clusterd.host import FAILED, PEER_LOST
from eddyline.controller.processes import ReplicaProcesses

WAIT_SECONDS = 120.0

#: ``eddyline``, in which the next step of the thread that is named first raises once the file that is named next exists
PROGRAM = """
import pathlib, sys, threading
from eddyline.compute.interactive import InteractiveWorker
from eddyline.compute.worker import Worker
from eddyline.frontends.command_line import main

name, trigger = sys.argv[1], pathlib.Path(sys.argv[2])

def breakable(step):
    def stepped(self):
        if threading.current_thread().name == name and trigger.exists():
            trigger.unlink()
            raise RuntimeError("boom")
        return step(self)
    return stepped

for worker in (Worker, InteractiveWorker):
    worker.step = breakable(worker.step)
sys.argv = ["eddyline", *sys.argv[3:]]
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("thread", "processes"),
    [("maint:0", 1), ("inter:0", 1), ("inter:0:heavy", 1), ("inter:1", 2), ("inter:1:heavy", 2)],
)
def test_a_thread_that_fails_ends_the_replica_and_it_comes_back(
    thread: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trigger, popen = tmp_path / "fail", subprocess.Popen

    def breakable(command: list[str], **options: Any) -> Any:
        if command[1:4] != ["-m", "eddyline", "clusterd"]:
            return popen(command, **options)
        return popen([sys.executable, "-c", PROGRAM, thread, str(trigger), *command[3:]], **options)

    monkeypatch.setattr(subprocess, "Popen", breakable)
    with eddyline.connect(processes=processes, interactive=True) as db:
        db.execute("CREATE TABLE t (a int, b int)")
        db.execute("INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 1000) g")
        db.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        db.execute("CREATE INDEX vi ON v (b)")
        db.wait_hydrated("vi")
        replica = db._engine.first_replica.processes
        assert isinstance(replica, ReplicaProcesses)
        before, pids = list(replica._children), replica.pids
        trigger.touch()
        outcomes: list[str] = []
        deadline = time.monotonic() + WAIT_SECONDS
        rows = 1000
        while set(replica.pids) & set(pids) or outcomes[-1:] != ["answered"]:
            assert time.monotonic() < deadline, outcomes
            rows += 1
            db.execute(f"INSERT INTO t VALUES ({rows}, {rows % 10})")
            try:
                assert db.execute("SELECT sum(n) FROM v").fetchall() == [(rows,)]
                assert db.execute("SELECT count(*) FROM t x JOIN t y ON x.a = y.a").fetchall() == [(rows,)]
                outcomes.append("answered")
            except eddyline.OperationalError as error:
                outcomes.append(error.sqlstate)
        assert set(outcomes) <= {"answered", "58000"}
        failed = before[int(thread.split(":")[1])]
        assert failed.wait(WAIT_SECONDS) == FAILED
        # The others found the first one gone, or were asked to end by their parent before they did.
        assert {child.wait(WAIT_SECONDS) for child in before if child is not failed} <= {PEER_LOST, 0}
        assert f"{thread} failed" in caplog.text
        assert "boom" in caplog.text
        assert len(replica.pids) == processes
        db.wait_hydrated("vi")
        hydrated = "SELECT bool_and(hydrated) FROM mz_internal.mz_hydration_statuses"
        while db.execute(hydrated).fetchall() != [(True,)]:
            assert time.monotonic() < deadline
        assert db.execute("SELECT n FROM v WHERE b = 3").fetchall() == [(rows // 10 + (rows % 10 >= 3),)]
