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
    from eddyline.controller.instance import Instance

__all__ = ["CollectionState", "DataflowState", "Role"]


_START = Frontier(MIN_TIME)


class Role(enum.Enum):
    """What a collection is, which decides who keeps it and how far it may compact."""

    TABLE = "table"  # in storage, written by commits
    VIEW = "view"  # materialized view: in storage, written by a dataflow
    INDEX = "index"  # an arrangement on the replica
    SUBSCRIPTION = "subscription"  # nothing is kept
    LOG = "log"  # an index that each replica keeps of its own doings, on a timeline of its own

    @property
    def stored(self) -> bool:
        return self in (Role.TABLE, Role.VIEW)


@dataclass(slots=True, eq=False)
class DataflowState:
    """A dataflow that replicas were told to run; ``imports`` hold its inputs at the least since of its exports.

    ``replica``: the only one of the instance that runs it; None: all of them do.
    """

    description: DataflowDescription
    exports: set[str]
    instance: Instance
    replica: str | None = None
    imports: list[ReadHold] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class CollectionState:
    """``since`` and ``upper`` of an index are here; those of a stored collection are storage's."""

    id: str
    role: Role
    as_of: Time
    dataflow: DataflowState | None = None
    #: what replicas may compact to
    since: Frontier = _START
    #: the highest frontier that any replica reported
    upper: Frontier = _START
    #: what each replica that is there and computes it has reported
    uppers: dict[str, Frontier] = field(default_factory=dict)
    #: of a view: another cluster has read it, and is not heard when it waits for the view to be sealed
    kept_sealed: bool = False
    #: from when on replicas that came after it compute it
    begun: dict[str, int] = field(default_factory=dict)
    #: of a subscription: all changes below it were passed on
    passed: Frontier = _START
    holds: dict[int, Frontier] = field(default_factory=dict)
    storage_holds: dict[int, StorageHold] = field(default_factory=dict)
    #: tables whose every commit moves it: it selects no rows of theirs
    moved_by: frozenset[str] = frozenset()
    dropped: bool = False
    #: the holds of everything stored that have lesser tokens are older than the drop
    dropped_at: int = 0

    def computed_by(self, instance: Instance, replica: str) -> bool:
        """Whether the replica of the instance is one of those that compute it."""
        dataflow = self.dataflow
        return dataflow is not None and dataflow.instance is instance and dataflow.replica in (None, replica)

    def attached(self, replica: str) -> None:
        """The replica is to compute it, from where it would be built anew."""
        self.uppers[replica] = _START
        if self.dataflow is not None:
            self.begun[replica] = self.since

    def lost(self, replica: str) -> None:
        self.uppers.pop(replica, None)
        self.begun.pop(replica, None)

    def reported(self, replica: str, upper: Frontier) -> bool:
        """Whether that makes the collection hydrated, which it was on none of them."""
        before = self.uppers.get(replica, _START)
        if upper <= before:
            return False
        first = before <= self.begun.get(replica, self.as_of) and not self.hydrated()
        self.uppers[replica] = upper
        return first and self.hydrated()

    def hydrated_on(self, replica: str) -> bool:
        """Whether the replica holds its first state."""
        return self.uppers.get(replica, _START) > self.begun.get(replica, self.as_of)

    def hydrated(self) -> bool:
        """Whether one of the replicas does."""
        return any(map(self.hydrated_on, self.uppers))

    def steady_upper(self) -> Frontier | None:
        """How far the replica has come that is ahead of those that hold its state; None without any."""
        return max((upper for replica, upper in self.uppers.items() if self.hydrated_on(replica)), default=None)

    def least_upper(self) -> Frontier:
        """How far the replica that is behind all others has come; the minimum without any."""
        return min(self.uppers.values(), default=_START)

    def compaction_target(self, retention_us: int) -> Frontier:
        """How far the collection may forget: behind the sealed times by the retention, and no hold asks for more."""
        held = () if self.role.stored else tuple(self.holds.values())
        # What a replica that is there has not reported, it may still have to build, from where since is now.
        upper = self.least_upper()
        if upper == EMPTY:
            return min((f for f in held), default=self.since)
        behind = 0 if self.role is Role.SUBSCRIPTION else retention_us
        return min((Frontier(upper - 1 - behind), *held))
