"""Processes killed at random instants under write load, a hundred times."""

from __future__ import annotations

import json
import subprocess
import sys


def crash(*arguments: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-m", "eddyline.testing.crash", *arguments],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_what_killed_processes_had_acknowledged_is_there_and_nothing_by_halves() -> None:
    """The replica is in the program's own process; the next test has the hundred rounds."""
    found = crash("--rounds", "30", "--seed", "7")
    assert found["rounds"] == 30
    assert found["acknowledged"] >= 30
    assert found["definitions"] >= 6
    assert found["rows_files"] >= 6, "compaction took part"
    assert found["killed_early"] < 18


def test_nor_does_it_matter_which_processes_are_killed_at_which_instants() -> None:
    """The program, the replica's process, or both.  More rounds: ``make crash``."""
    found = crash("--rounds", "100", "--seed", "3", "--processes", "1")
    assert found["rounds"] == 100
    assert found["acknowledged"] >= 100
    assert found["definitions"] >= 20
    assert 20 <= found["replicas_killed"] <= 80
    assert found["left"] >= 40, "the program was killed alone, or had checked and did not close"
    assert found["takeovers"] >= 0.7 * found["left"], "nearly always in the midst of a write, and they went on"
    assert found["retained"] >= 10, "with what they had built"
