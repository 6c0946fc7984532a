"""What an interactive worker hands to its heavy lane, beside commands."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.peek import PeekTask
from eddyline.protocol.messages import Command, CreateDataflow
from eddyline.repr.time import Frontier
from eddyline.trace.snapshot import Snapshot

__all__ = ["BindImport", "ContinuePeek", "Item", "ReconcileReads", "RenderRead"]


@dataclass(frozen=True, slots=True)
class RenderRead:
    """Render a one-shot read; its imported indexes are bound later."""

    command: CreateDataflow
    imports: dict[str, FrozenIndex]


@dataclass(frozen=True, slots=True)
class BindImport:
    """``index``, imported by the dataflow that exports ``dataflow``, has sealed the time of the read."""

    dataflow: str
    index: FrozenIndex
    oks: Snapshot
    errs: Snapshot
    published_ns: int = 0


@dataclass(frozen=True, slots=True)
class ContinuePeek:
    """A peek that has begun, and reads snapshots from there on: a walk, or a lookup of many rows."""

    task: PeekTask


@dataclass(frozen=True, slots=True)
class ReconcileReads:
    """A new connection: ``dropped`` exports go without a word, ``retained`` ones report again, from a new as_of."""

    dropped: tuple[str, ...]
    retained: dict[str, Frontier]


Item = Command | RenderRead | BindImport | ContinuePeek | ReconcileReads
