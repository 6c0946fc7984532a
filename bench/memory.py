"""How fast an index comes to be, what it delays, and what a row of it weighs."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import eddyline
from bench.changes import load
from bench.timing import Latency

__all__ = ["HydrationFigures", "measure_hydration"]


@dataclass(frozen=True)
class HydrationFigures:
    """``beside``: one-row changes of another, small view while the index hydrates.  Bytes are resident ones."""

    rows: int
    load_s: float
    index_s: float
    grouped_s: float
    beside: Latency
    table_bytes_per_row: float
    index_bytes_per_row: float


def measure_hydration(rows: int) -> HydrationFigures:
    """CREATE INDEX on the table, then on a grouped view, over ``rows`` facts of three bigints."""
    before = _resident_bytes()
    begun = time.perf_counter()
    with load(rows) as db:
        load_s = time.perf_counter() - begun
        loaded = _resident_bytes()
        db.executescript(
            "CREATE TABLE ticks (k int); CREATE VIEW counted AS SELECT k, count(*) AS n FROM ticks GROUP BY k;"
            "CREATE INDEX counted_k ON counted (k)"
        )
        db.wait_hydrated("counted_k")
        taken: list[float] = []
        done = threading.Event()
        other = threading.Thread(target=_ticking, args=(db.session(), done, taken))
        other.start()
        begun = time.perf_counter()
        db.execute("CREATE INDEX facts_id ON facts (id)")
        db.wait_hydrated("facts_id")
        index_s = time.perf_counter() - begun
        done.set()
        other.join()
        indexed = _resident_bytes()
        begun = time.perf_counter()
        db.execute("CREATE VIEW g AS SELECT grp, count(*) AS n, sum(val) AS s FROM facts GROUP BY grp")
        db.execute("CREATE INDEX g_grp ON g (grp)")
        db.wait_hydrated("g_grp")
        grouped_s = time.perf_counter() - begun
    milliseconds = np.array(taken) * 1e3
    beside = Latency(float(np.median(milliseconds)), float(np.quantile(milliseconds, 0.99)), len(taken))
    return HydrationFigures(
        rows, load_s, index_s, grouped_s, beside, (loaded - before) / rows, (indexed - loaded) / rows
    )


def _ticking(session: eddyline.Connection, done: threading.Event, taken: list[float]) -> None:
    i = 0
    while not done.is_set() or not taken:
        begun = time.perf_counter()
        session.append("ticks", pa.table({"k": [i % 10]}))
        session.execute("SELECT n FROM counted WHERE k = $1", (i % 10,)).fetchall()
        taken.append(time.perf_counter() - begun)
        i += 1


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
