"""What the controller tells its owner after a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eddyline.protocol.messages import PeekResponse, SubscribeResponse
from eddyline.repr.time import Frontier

__all__ = ["Event", "FrontierMoved", "Hydrated", "PeekAnswered", "ReplicaFailed", "SubscriptionChanged"]


@dataclass(frozen=True, slots=True)
class PeekAnswered:
    """The one answer of a peek."""

    response: PeekResponse


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    response: SubscribeResponse


@dataclass(frozen=True, slots=True)
class FrontierMoved:
    """Collection ``id`` has sealed every time below ``upper``."""

    id: str
    upper: Frontier


@dataclass(frozen=True, slots=True)
class Hydrated:
    """Collection ``id`` holds its first state."""

    id: str


@dataclass(frozen=True, slots=True)
class ReplicaFailed:
    """The replica is gone.  What waited for it alone has been answered with 58000; attach another one."""

    message: str
    replica: str
    cluster: str


Event: TypeAlias = PeekAnswered | SubscriptionChanged | FrontierMoved | Hydrated | ReplicaFailed
