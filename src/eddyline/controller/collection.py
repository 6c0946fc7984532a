"""What the controller knows of one collection, and of the dataflow that computes it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eddyline.plan.dataflow import DataflowDescription
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.storage.store import StorageHold

if TYPE_CHECKING:
    from eddyline.controller.holds import ReadHold

__all__ = ["CollectionState", "DataflowState", "Role"]


_START = Frontier(MIN_TIME)


class Role(enum.Enum):
    """What a collection is, which decides who keeps it and how far it may compact."""

    TABLE = "table"  # in storage, written by commits
    VIEW = "view"  # materialized view: in storage, written by a dataflow
    INDEX = "index"  # an arrangement on the replica
    SUBSCRIPTION = "subscription"  # nothing is kept
    LOG = "log"  # an index that the replica keeps of its own doings, on a timeline of its own

    @property
    def stored(self) -> bool:
        return self in (Role.TABLE, Role.VIEW)


@dataclass(slots=True, eq=False)
class DataflowState:
    """A dataflow that the replica was told to run; ``imports`` hold its inputs at the least since of its exports."""

    description: DataflowDescription
    exports: set[str]
    imports: list[ReadHold] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class CollectionState:
    """``since`` and ``upper`` of an index are here; those of a stored collection are storage's."""

    id: str
    role: Role
    as_of: Time
    dataflow: DataflowState | None = None
    #: what the replica may compact to
    since: Frontier = _START
    #: the highest frontier that any replica reported
    upper: Frontier = _START
    #: what the present replica reported
    replica_upper: Frontier = _START
    holds: dict[int, Frontier] = field(default_factory=dict)
    storage_holds: dict[int, StorageHold] = field(default_factory=dict)
    dropped: bool = False
    #: the holds of everything stored that have lesser tokens are older than the drop
    dropped_at: int = 0

    def compaction_target(self, retention_us: int) -> Frontier:
        """How far the collection may forget: behind the sealed times by the retention, and no hold asks for more."""
        held = () if self.role.stored else tuple(self.holds.values())
        # What the present replica has not reported, it may still have to build, from where since is now.
        if self.replica_upper == EMPTY:
            return min((f for f in held), default=self.since)
        behind = 0 if self.role is Role.SUBSCRIPTION else retention_us
        return min((Frontier(self.replica_upper - 1 - behind), *held))
