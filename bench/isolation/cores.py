"""Lookups where there are fewer cores than threads that want one."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from bench.isolation.arms import TWO, arm
from bench.isolation.load import Stream, Window, beside, hogs, measured_rates, run_streams, settle
from bench.isolation.reads import HERE_STRICT, SENT_STRICT, STRICT, churning, lookups
from bench.isolation.samples import Samples

__all__ = ["CoreFigures", "cores", "measure_beside_hogs", "measure_oversubscribed"]

_CAPACITY_S = 1.0
#: foreign processes that compute without end
_HOGS = 2


@dataclass
class CoreFigures:
    """Samples by stream; ``per_s``: lookups of each, at ``LOAD`` of what they can do beside the hydration."""

    workers: int
    idle: dict[str, Samples]
    hydrating: dict[str, Samples]
    per_s: dict[str, float]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure_oversubscribed(times: int, window: Window) -> CoreFigures:
    """Maintenance has ``times`` workers for each core; all of them hydrate."""
    return _measure(cores() * times, window, foreign=0)


def measure_beside_hogs(window: Window) -> CoreFigures:
    return _measure(1, window, foreign=_HOGS)


def _measure(workers: int, window: Window, foreign: int) -> CoreFigures:
    with arm(TWO, workers=workers) as db:
        asked = [Stream(name, 0.0, functools.partial(lookups, STRICT)) for name in (SENT_STRICT, HERE_STRICT)]
        with _foreign(foreign), beside(churning(db, [])):
            rates = measured_rates(db, asked, _CAPACITY_S)
            for stream in asked:
                stream.per_s = rates[stream.name]
            hydrating = run_streams(db, asked, window.of(min(rates.values())))
        settle()
        return CoreFigures(workers, run_streams(db, asked, window.for_s), hydrating, rates)


@contextmanager
def _foreign(count: int) -> Iterator[None]:
    with hogs(count) if count else nullcontext():
        yield
