"""Process settings of a replica in processes of its own: the system says what reached them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import eddyline
from eddyline.adapter.process_parameters import PROCESS_SETTINGS
from eddyline.adapter.system_settings import INTERACTIVE_RUNTIME

GB = 1 << 30


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


def pids(db: eddyline.Connection) -> list[int]:
    processes = db._engine.replica_processes
    assert processes is not None
    return processes.pids


def limits(db: eddyline.Connection) -> list[str]:
    """The soft limits of the processes' data, as the system has them."""

    def limit(pid: int) -> str:
        try:
            lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        except OSError:
            return "gone"
        return next((line.split()[3] for line in lines if line.startswith("Max data size")), "gone")

    return [limit(pid) for pid in pids(db)]


def test_every_process_is_told_also_one_that_comes_later() -> None:
    with eddyline.connect(processes=2, process_settings={"process_memory_limit": "64GB"}) as db:
        engine = db._engine
        shown: dict[str, str] = dict(db.execute("SHOW ALL").fetchall())
        assert shown["process_memory_limit"] == "64GB"
        assert shown["gc_policy"] == "freeze"
        until(lambda: limits(db) == [str(64 * GB)] * 2)
        db.execute("ALTER SYSTEM SET process_memory_limit = '32GB'")
        until(lambda: limits(db) == [str(32 * GB)] * 2)
        for name in PROCESS_SETTINGS:
            db.execute(f"ALTER SYSTEM SET {name} = '{shown[name]}'")
        until(lambda: limits(db) == [str(64 * GB)] * 2)

        engine.override_setting("process_memory_limit", "48GB")
        until(lambda: limits(db) == [str(48 * GB)] * 2)
        db.execute("ALTER SYSTEM SET workload_class = 'batch'")
        assert 'eddyline_replica_info{processes="2",workers="1",workload_class="batch"} 1.0' in db.metrics()
        cursor = db.execute("ALTER SYSTEM SET process_memory_limit = '16GB'")
        assert any("value of its own" in notice for notice in cursor.notices)
        before = pids(db)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(pids(db)) == 2 and not set(pids(db)) & set(before))
        until(lambda: limits(db) == [str(48 * GB)] * 2)
        engine.override_setting("process_memory_limit", None)
        until(lambda: limits(db) == [str(16 * GB)] * 2)
        db.execute("ALTER SYSTEM RESET ALL")
        until(lambda: limits(db) == ["unlimited"] * 2)

        for name, value, sqlstate in (
            ("max_result_size", "1kB", "42704"),
            ("gc_policy", "never", "22023"),
            (INTERACTIVE_RUNTIME, "perhaps", "22023"),
        ):
            with pytest.raises(eddyline.DatabaseError) as refused:
                engine.override_setting(name, value)
            assert refused.value.sqlstate == sqlstate
