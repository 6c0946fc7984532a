"""Lookups where there are fewer cores than threads that want one."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from bench.isolation.arms import TWO, arm
from bench.isolation.load import Stream, beside, hogs, run_streams
from bench.isolation.reads import HERE_STRICT, SENT_STRICT, STRICT, churning, lookups
from bench.isolation.samples import Samples

__all__ = ["CoreFigures", "cores", "measure_beside_hogs", "measure_oversubscribed"]

_PER_S = 50.0
#: foreign processes that compute without end
_HOGS = 2


@dataclass
class CoreFigures:
    workers: int
    idle: dict[str, Samples]
    hydrating: dict[str, Samples]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure_oversubscribed(times: int, for_s: float) -> CoreFigures:
    """Maintenance has ``times`` workers for each core; all of them hydrate."""
    return _measure(cores() * times, for_s, foreign=0)


def measure_beside_hogs(for_s: float) -> CoreFigures:
    return _measure(1, for_s, foreign=_HOGS)


def _measure(workers: int, for_s: float, foreign: int) -> CoreFigures:
    with arm(TWO, workers=workers) as db:
        asked = [Stream(name, _PER_S, functools.partial(lookups, STRICT)) for name in (SENT_STRICT, HERE_STRICT)]
        run_streams(db, asked, 1.0)
        idle = run_streams(db, asked, for_s)
        with _foreign(foreign), beside(churning(db, [])):
            return CoreFigures(workers, idle, run_streams(db, asked, for_s))


@contextmanager
def _foreign(count: int) -> Iterator[None]:
    with hogs(count) if count else nullcontext():
        yield
