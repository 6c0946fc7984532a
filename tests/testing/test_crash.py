"""A hundred processes killed at random instants under write load."""

from __future__ import annotations

import json
import subprocess
import sys


def test_what_killed_processes_had_acknowledged_is_there_and_nothing_by_halves() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eddyline.testing.crash", "--rounds", "100", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rounds"] == 100
    assert found["acknowledged"] >= 100
    assert found["definitions"] >= 20
    assert found["rows_files"] >= 20, "compaction took part"
    assert found["killed_early"] < 60
