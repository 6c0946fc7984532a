"""Nothing runs before it is scheduled, and no view is written before that is allowed, in a simulated database.

Judged by what the replica has been told, and not by what it makes of it.
"""

from __future__ import annotations

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exports import MaterializedViewSink
from eddyline.compute.worker import Worker
from eddyline.testing.simulation.world import SimulationError, World

__all__ = ["Starts", "require"]


def require(condition: bool, invariant: str, text: str) -> None:
    """``SimulationError`` unless ``condition`` holds."""
    if not condition:
        raise SimulationError(f"{invariant}: {text}")


class Starts:
    """``after_step`` looks at one worker; situations are counted once for each dataflow and view."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: set[tuple[Dataflow, str]] = set()
        #: views whose dataflows ran before they might be written
        self._eager: set[str] = set()

    def after_step(self, driven: object) -> None:
        self._views()
        for dataflow in driven._agenda if isinstance(driven, Worker) else ():
            told = self._world.told
            exports = dataflow.exports.keys() - dataflow.dropped_exports
            if not exports <= told.scheduled:
                still = not any(dataflow.durations) and not any(dataflow.elapsed_ns)
                require(still, "p23", f"{dataflow.description.name} runs, of which {exports - told.scheduled} may not")
                self._count_unscheduled(dataflow, exports)
            for id, export in dataflow.exports.items():
                if isinstance(export, MaterializedViewSink) and id not in told.writable and any(dataflow.durations):
                    self._eager.add(id)
                    self._count(dataflow, "writes: not yet allowed")

    def _count_unscheduled(self, dataflow: Dataflow, exports: set[str]) -> None:
        world = self._world
        self._count(dataflow, "schedule: rendered before it")
        if world.now > dataflow.description.as_of:
            self._count(dataflow, "schedule: written before it")
        if any(r.transient in exports or exports.intersection(r.over) for r in world.reads.values()):
            self._count(dataflow, "schedule: read before it")

    def _count(self, dataflow: Dataflow, situation: str) -> None:
        self._world.coverage[situation] += (dataflow, situation) not in self._seen
        self._seen.add((dataflow, situation))

    def _views(self) -> None:
        world = self._world
        for id in world.views:
            upper, before = int(world.store.upper(id)), world.written[id]
            if id not in world.told.writable and not world.accompanied and id not in world.apart:
                require(upper == before, "p24", f"view {id} is written up to {upper}, and nobody allowed it")
            elif id in self._eager and upper > before:
                self._eager.discard(id)
                world.coverage["writes: allowed late"] += 1
