"""Reads while views over a large table are created, hydrated and dropped, beside the same reads without."""

from __future__ import annotations

from dataclasses import dataclass

import eddyline
from bench.isolation.load import beside, capacity, lower_to_share, run_streams
from bench.isolation.reads import churning, looking_inside, streams
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


def measure_hydration(db: eddyline.Connection, window: Window, rates: dict[str, float]) -> HydrationFigures:
    """``rates``: those of another arm, to be used here as well; if there are none yet, this arm's are noted there."""
    asked, inside = streams(), looking_inside()
    capacities = {stream.name: capacity(db, stream, window.for_s / 15) for stream in (*asked, inside)}
    if not rates:
        for share in (asked, [inside]):
            lower_to_share(share, [capacities[s.name] for s in share])
        rates.update({s.name: s.per_s for s in (*asked, inside)})
    for stream in (*asked, inside):
        stream.per_s = rates[stream.name]
    for_s, inside_s = window.of(min(s.per_s for s in asked if "lookups" in s.name)), window.of(inside.per_s)
    idle = run_streams(db, asked, for_s) | run_streams(db, [inside], window.for_s / 3)
    cycles: list[float] = []
    with beside(churning(db, cycles)):
        hydrating = run_streams(db, asked, for_s) | run_streams(db, [inside], inside_s)
    load = sum(s.per_s / capacities[s.name] for s in asked)
    return HydrationFigures(idle, hydrating, capacities, load, cycles)
