"""Processes from their start: importing, connecting, first answer, with the kernel cache warm and fresh."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["child", "measure_startup"]

_ROOT = Path(__file__).parent.parent
_SCRIPT = """
import time; begun = time.perf_counter()
import eddyline; imported = time.perf_counter()
db = eddyline.connect(); connected = time.perf_counter()
db.execute("CREATE TABLE t (a int, b text)")
db.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x')")
db.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
db.execute("CREATE INDEX ON v (b)")
assert db.execute("SELECT n FROM v WHERE b = 'x'").fetchall() == [(2,)]
import json; print(json.dumps([imported - begun, connected - imported, time.perf_counter() - connected]))
"""


def child(arguments: list[str], **environment: str) -> str:
    """The output of this Python with ``arguments``, in the checkout; its standard error is shown only if it fails."""
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr}")
    return done.stdout


def measure_startup(*, repetitions: int, cold: bool) -> dict[str, tuple[float, float, float]]:
    """(import, connect, first answer) in seconds: medians with a warm cache; once with a fresh one."""
    figures = {}
    if cold:
        with tempfile.TemporaryDirectory() as cache:
            figures["kernel cache fresh"] = _once(NUMBA_CACHE_DIR=cache)
    _once()
    warm = [_once() for _ in range(repetitions)]
    figures["kernel cache warm"] = (
        statistics.median(w[0] for w in warm),
        statistics.median(w[1] for w in warm),
        statistics.median(w[2] for w in warm),
    )
    return figures


def _once(**environment: str) -> tuple[float, float, float]:
    imported, connected, answered = json.loads(child(["-c", _SCRIPT], **environment).splitlines()[-1])
    return imported, connected, answered
