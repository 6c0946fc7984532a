"""E1: lookups behind three clients that walk indexes in loops, with walks of stated costs."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from dataclasses import dataclass

import eddyline
from bench.isolation.arms import BIG_ROWS, HOT_ROWS, SENT
from bench.isolation.load import Stream, beside, run_streams
from bench.isolation.reads import HERE_STRICT, SENT_STRICT, STRICT, lookups
from bench.isolation.samples import Samples

__all__ = ["COSTS_MS", "ScanFigures", "Walk", "calibrated", "measure_scans"]

#: what a walk costs alone
COSTS_MS = (0, 23, 190, 2170)
_SCANNERS = 3
_PER_S = 50.0
_DIVISORS = (3, 5, 7, 11, 13, 17, 19, 23)


@dataclass(frozen=True)
class Walk:
    """A walk of the whole index on ``table`` with a predicate of ``terms`` terms that no row meets."""

    table: str
    terms: int

    @property
    def text(self) -> str:
        terms = itertools.islice(itertools.cycle(_DIVISORS), self.terms)
        return f"SELECT k FROM {self.table} WHERE {' + '.join(f'v % {d}' for d in terms)} < -1"

    def cost_ms(self, db: eddyline.Connection) -> float:
        """The least of three runs by the replica."""
        found: list[float] = []

        def run() -> None:
            with db.session() as session:
                for _ in range(3):
                    start = time.perf_counter()
                    session.execute(self.text).fetchall()
                    found.append(time.perf_counter() - start)

        thread = threading.Thread(target=run, name=f"{SENT} calibration")
        thread.start()
        thread.join()
        return min(found) * 1e3


@dataclass
class ScanFigures:
    cost_ms: float
    samples: dict[str, Samples]
    walks: int


def calibrated(db: eddyline.Connection) -> dict[int, Walk | None]:
    """A walk for each of ``COSTS_MS``; none for 0.  The price of a term is measured on the big table."""
    few, many = Walk("big", 1), Walk("big", 21)
    first = few.cost_ms(db)
    term = max((many.cost_ms(db) - first) / 20, 1e-3)
    found: dict[int, Walk | None] = {0: None}
    for cost in COSTS_MS[1:]:
        share = 1.0 if cost > first else HOT_ROWS / BIG_ROWS
        terms = 1 + max(0, round((cost - first * share) / (term * share)))
        found[cost] = Walk("big" if share == 1.0 else "hot", terms)
    return found


def measure_scans(db: eddyline.Connection, walk: Walk | None, for_s: float) -> ScanFigures:
    """Lookups sent to the replica and on the caller's thread, while scanners send walks to the replica."""
    asked = [Stream(name, _PER_S, functools.partial(lookups, STRICT)) for name in (SENT_STRICT, HERE_STRICT)]
    if walk is None:
        return ScanFigures(0.0, run_streams(db, asked, for_s), 0)
    alone, lock, walks = walk.cost_ms(db), threading.Lock(), 0

    def scan(stop: threading.Event) -> None:
        nonlocal walks
        with db.session() as session:
            while not stop.is_set():
                session.execute(walk.text).fetchall()
                with lock:
                    walks += 1

    with beside([scan] * _SCANNERS, name=f"{SENT} scan"):
        samples = run_streams(db, asked, for_s)
    return ScanFigures(alone, samples, walks)
