"""Reads while views over a large table are created, hydrated and dropped, beside the same reads without."""

from __future__ import annotations

from dataclasses import dataclass

import eddyline
from bench.isolation.load import beside, capacity, lower_to_share, run_streams
from bench.isolation.reads import churning, streams
from bench.isolation.samples import Samples

__all__ = ["HydrationFigures", "Window", "measure_hydration"]

#: beyond it a stream with too few samples for a p99 goes without
_LONGEST_S = 60.0
_SAMPLES = 1000


@dataclass(frozen=True)
class Window:
    """Seconds of one measurement; ``stretch``: longer if a p99 needs it."""

    for_s: float
    stretch: bool

    def of(self, slowest_per_s: float) -> float:
        if not self.stretch:
            return self.for_s
        return min(_LONGEST_S, max(self.for_s, 1.02 * _SAMPLES / slowest_per_s))


@dataclass
class HydrationFigures:
    """Samples by stream; ``capacity_per_s``: of one client, idle; ``load``: what the streams ask for of it."""

    idle: dict[str, Samples]
    hydrating: dict[str, Samples]
    capacity_per_s: dict[str, float]
    load: float
    cycles: list[float]


def measure_hydration(db: eddyline.Connection, window: Window) -> HydrationFigures:
    asked = streams(db)
    capacities = [capacity(db, stream, window.for_s / 15) for stream in asked]
    load = lower_to_share(asked, capacities)
    for_s = window.of(min(s.per_s for s in asked if "lookups" in s.name))
    idle = run_streams(db, asked, for_s)
    cycles: list[float] = []
    with beside(churning(db, cycles)):
        hydrating = run_streams(db, asked, for_s)
    return HydrationFigures(idle, hydrating, {s.name: c for s, c in zip(asked, capacities, strict=True)}, load, cycles)
