"""What every operator of one dataflow on one worker is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from eddyline.compute.allowed import Allowed
from eddyline.repr.time import EMPTY, Frontier, Time

if TYPE_CHECKING:
    from eddyline.trace.hasher import Hasher

__all__ = ["BUDGET_ROWS", "OperatorContext"]

#: rows that one activation may take in or give out
BUDGET_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """``worker`` of ``workers`` owns the keys whose hash is ``worker`` modulo ``workers``."""

    hasher: Hasher
    as_of: Time
    until: Frontier = EMPTY
    worker: int = 0
    workers: int = 1
    budget_rows: int = BUDGET_ROWS
    #: shared with the dataflow
    allowed: Allowed = field(default_factory=Allowed)

    @property
    def single_time(self) -> bool:
        """Whether nothing past as_of is ever seen: the dataflow of one read."""
        return self.until == self.as_of + 1

    def owns_hash(self, key_hash: int) -> bool:
        """Whether rows with this key hash are this worker's."""
        return key_hash % self.workers == self.worker
