"""Roles of runtimes, and which dataflows each renders."""

from __future__ import annotations

import enum

from eddyline.plan.dataflow import DataflowClass

__all__ = ["Role"]


class Role(enum.Enum):
    """What a runtime of a replica does.  Its placement, the classes that it renders, is fixed when it is built."""

    SOLO = "solo"  # the only runtime: renders everything, publishes nothing
    MAINTENANCE = "maintenance"  # renders what is maintained and publishes its indexes
    INTERACTIVE = "interactive"  # renders one-shot reads and answers every peek

    @property
    def placement(self) -> frozenset[DataflowClass]:
        return _PLACEMENTS[self]

    def renders(self, dataflow_class: DataflowClass) -> bool:
        return dataflow_class in _PLACEMENTS[self]

    @property
    def thread_prefix(self) -> str:
        return _THREADS[self]


_PLACEMENTS = {
    Role.SOLO: frozenset(DataflowClass),
    Role.MAINTENANCE: frozenset({DataflowClass.MAINTAINED}),
    Role.INTERACTIVE: frozenset({DataflowClass.ONE_SHOT_READ}),
}
_THREADS = {Role.SOLO: "solo", Role.MAINTENANCE: "maint", Role.INTERACTIVE: "inter"}
