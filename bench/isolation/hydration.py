"""Reads while views over a large table are created, hydrated and dropped, beside the same reads without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.isolation.load import Stream, Window, beside, capacity, lower_to_share, run_streams, settle
from bench.isolation.reads import churning, looking_inside, streams
from bench.isolation.samples import Samples
from bench.isolation.sessions import Database

__all__ = ["HydrationFigures", "measure_hydration"]


@dataclass
class HydrationFigures:
    """Samples by stream; ``capacity_per_s``: of one client, idle; ``load``: what the streams ask for of it."""

    idle: dict[str, Samples]
    hydrating: dict[str, Samples]
    capacity_per_s: dict[str, float]
    load: float
    cycles: list[float]


def measure_hydration(
    db: Database,
    window: Window,
    rates: dict[str, float],
    *,
    asked: Sequence[Stream] | None = None,
    inside: Stream | None = None,
    settle: Callable[[], None] = settle,
) -> HydrationFigures:
    """``rates``: those of another arm, to be used here as well; if there are none yet, this arm's are noted there.

    ``asked``: what is measured at once, ``inside``: after that, by itself; None: what an embedded database is asked.
    """
    asked = streams() if asked is None else asked
    inside = looking_inside() if inside is None else inside
    capacities = {stream.name: capacity(db, stream, window.for_s / 15) for stream in (*asked, inside)}
    if not rates:
        for share in (asked, [inside]):
            lower_to_share(share, [capacities[s.name] for s in share])
        rates.update({s.name: s.per_s for s in (*asked, inside)})
    for stream in (*asked, inside):
        stream.per_s = rates[stream.name]
    for_s, inside_s = window.of(min(s.per_s for s in asked if "lookups" in s.name)), window.of(inside.per_s)
    settle()
    idle = run_streams(db, asked, for_s) | run_streams(db, [inside], window.for_s / 3)
    cycles: list[float] = []
    with beside(churning(db, cycles)):
        hydrating = run_streams(db, asked, for_s) | run_streams(db, [inside], inside_s)
    load = sum(s.per_s / capacities[s.name] for s in asked)
    return HydrationFigures(idle, hydrating, capacities, load, cycles)
