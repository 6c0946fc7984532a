"""What the commands alone say: which dataflows are alive, how far they may compact, how often each id was rendered.

Both runtimes of a replica keep one per worker.  Nothing here depends on progress, so that at a reconnect both retain
the same dataflows and count the same incarnations.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from eddyline.plan.dataflow import (
    DataflowClass,
    DataflowDescription,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    ImportIndex,
    ImportSource,
)
from eddyline.protocol.messages import Command, CreateDataflow, Hello
from eddyline.repr.time import EMPTY, Frontier

__all__ = ["Ledger", "Reconciled", "compatible_with"]


#: what of a description does not matter
_NEUTRAL: Final[dict[str, Any]] = {"name": "", "as_of": 0, "dataflow_class": DataflowClass.MAINTAINED}


def compatible_with(old: DataflowDescription, new: DataflowDescription) -> bool:
    """Whether a runtime that renders ``old`` computes ``new`` already, as_of apart.  Name and class do not matter."""
    return bool(msgspec.structs.replace(old, **_NEUTRAL) == msgspec.structs.replace(new, **_NEUTRAL))


@dataclass(slots=True, eq=False)
class _Entry:
    """A dataflow that was created and not wholly dropped; ``since``: of each live export, as commanded."""

    description: DataflowDescription
    since: dict[str, Frontier] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """``dropped``: exports of dataflows to drop, without a word.  ``retained``: exports that go on, with their new
    as_of.  ``commands``: the new history without the dataflows that are retained.
    """

    dropped: tuple[str, ...]
    retained: dict[str, Frontier]
    commands: tuple[Command, ...]


class Ledger:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # by each live export
        self._renders: dict[str, int] = {}
        self.reconciliations = 0
        self._storage: str | None = None  # what views are written to
        self._renewed = False  # whether it is another one than before
        self._written: frozenset[str] = frozenset()  # then: the views, whose rows come again

    def hello(self, hello: Hello) -> None:
        """A connection begins."""
        self._renewed |= self._storage is not None and hello.storage != self._storage
        self._storage = hello.storage
        if self._renewed:
            exports = [e for entry in self._entries.values() for e in entry.description.exports]
            own = {e.id for e in exports if isinstance(e, ExportMaterializedView)}
            self._written = frozenset(own.union(hello.views))

    def create(self, description: DataflowDescription) -> None:
        entry = _Entry(description, {e.id: Frontier(description.as_of) for e in description.exports})
        for export in description.exports:
            self._entries[export.id] = entry
            if isinstance(export, ExportIndex) and description.dataflow_class is DataflowClass.MAINTAINED:
                self._renders[export.id] = self._renders.get(export.id, 0) + 1

    def allow_compaction(self, id: str, frontier: Frontier) -> None:
        entry = self._entries.get(id)
        if entry is None:
            return
        if frontier == EMPTY:
            del self._entries[id], entry.since[id]
        else:
            entry.since[id] = max(entry.since[id], frontier)

    def __contains__(self, id: str) -> bool:
        return id in self._entries

    def incarnation(self, id: str) -> int:
        """How many times index ``id`` has been rendered anew."""
        return self._renders[id]

    def digest(self) -> str:
        """Equal on two runtimes that were told the same."""
        lines = sorted(f"{id}:{n}" for id, n in self._renders.items() if id in self._entries)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def reconcile(self, commands: list[Command]) -> Reconciled:
        """What to do with a new history.  The ledger then holds what is retained; the rest comes with its commands."""
        self.reconciliations += 1
        retained: dict[str, Frontier] = {}
        rest: list[Command] = []
        kept: dict[str, _Entry] = {}
        for command in commands:
            if isinstance(command, CreateDataflow):
                entry = self._retainable(command.dataflow, retained)
                if entry is not None:
                    for export in command.dataflow.exports:
                        entry.since[export.id] = max(entry.since[export.id], Frontier(command.dataflow.as_of))
                        retained[export.id] = Frontier(command.dataflow.as_of)
                        kept[export.id] = entry
                    continue
            rest.append(command)
        dropped = tuple(id for id in self._entries if id not in retained)
        self._entries = kept
        self._renewed, self._written = False, frozenset()
        return Reconciled(dropped, retained, tuple(rest))

    def _retainable(self, new: DataflowDescription, retained: dict[str, Frontier]) -> _Entry | None:
        exports = [e.id for e in new.exports]
        entry = self._entries.get(exports[0]) if exports else None
        if entry is None or set(entry.since) != set(exports) or not compatible_with(entry.description, new):
            return None
        if any(isinstance(e, ExportSubscribe) for e in new.exports):
            return None  # responses of the old connection are lost
        if self._renewed and any(isinstance(e, ExportMaterializedView) for e in new.exports):
            return None  # what it has written is lost
        if any(isinstance(i, ImportSource) and i.id in self._written for i in new.imports):
            return None  # it comes again, from another time on
        if any(since > new.as_of for since in entry.since.values()):
            return None
        if any(isinstance(i, ImportIndex) and i.id not in retained for i in new.imports):
            return None  # it reads an arrangement that goes
        return entry
