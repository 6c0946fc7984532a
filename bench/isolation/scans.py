"""E1: lookups behind three clients that walk indexes in loops, with walks of stated costs."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from dataclasses import dataclass

import eddyline
from bench.isolation.arms import BIG_ROWS, HOT_ROWS, SENT
from bench.isolation.load import Stream, Window, beside, measured_rates, run_streams, settle
from bench.isolation.reads import HERE_STRICT, SENT_STRICT, STRICT, lookups
from bench.isolation.samples import Samples

__all__ = ["COSTS_MS", "ScanFigures", "Walk", "calibrated", "measure_scans"]

#: what a walk costs alone
COSTS_MS = (0, 23, 190, 2170)
_SCANNERS = 3
_CAPACITY_S = 1.0
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
    """``cost_ms``: of one walk alone; ``walks``: how many ended meanwhile; ``per_s``: lookups of each stream."""

    cost_ms: float
    samples: dict[str, Samples]
    walks: int
    per_s: dict[str, float]


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


def measure_scans(
    db: eddyline.Connection, walk: Walk | None, window: Window, rates: dict[str, float] | None
) -> ScanFigures:
    """Lookups sent to the replica and on the caller's thread, while scanners send walks to the replica.

    ``rates``: those of another arm, to be used here as well; None: ``LOAD`` of what lookups can do beside the scanners.
    """
    asked = [Stream(name, 0.0, functools.partial(lookups, STRICT)) for name in (SENT_STRICT, HERE_STRICT)]
    alone, lock, walks = 0.0 if walk is None else walk.cost_ms(db), threading.Lock(), 0
    settle()

    def scan(stop: threading.Event) -> None:
        nonlocal walks
        assert walk is not None
        with db.session() as session:
            while not stop.is_set():
                session.execute(walk.text).fetchall()
                with lock:
                    walks += 1

    with beside([scan] * (0 if walk is None else _SCANNERS), name=f"{SENT} scan"):
        rates = rates or measured_rates(db, asked, _CAPACITY_S)
        for stream in asked:
            stream.per_s = rates[stream.name]
        walks = 0
        samples = run_streams(db, asked, window.of(min(rates.values())))
    return ScanFigures(alone, samples, walks, rates)
