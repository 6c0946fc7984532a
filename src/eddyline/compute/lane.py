"""What an interactive worker hands to its heavy lane, beside commands."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.log_reads import LogPart
from eddyline.compute.peek import PeekTask, PeekTiming
from eddyline.protocol.messages import Command, CreateDataflow, Peek
from eddyline.repr.time import Frontier
from eddyline.trace.snapshot import Snapshot

__all__ = ["BindImport", "ContinuePeek", "Item", "PeekOfLog", "ReconcileReads", "RenderRead"]


@dataclass(frozen=True, slots=True)
class RenderRead:
    """Render a one-shot read; its imported indexes are bound later.  ``logs``: maintenance's part of those it reads."""

    command: CreateDataflow
    imports: dict[str, FrozenIndex]
    logs: dict[str, LogPart]


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
class PeekOfLog:
    """A peek of a log; ``part``: the other runtime's, if there is one."""

    peek: Peek
    timing: PeekTiming
    part: LogPart | None


@dataclass(frozen=True, slots=True)
class ReconcileReads:
    """A new connection: ``dropped`` exports go without a word, ``retained`` ones report again, from a new as_of."""

    dropped: tuple[str, ...]
    retained: dict[str, Frontier]


Item = Command | RenderRead | BindImport | ContinuePeek | PeekOfLog | ReconcileReads
