"""A transaction: a fixed time to read at, writes to commit at one time, locks and holds until its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.engine import Engine
from eddyline.adapter.locks import Owner
from eddyline.adapter.pending_keys import PendingKeys
from eddyline.adapter.settings import SettingsState
from eddyline.controller.holds import StoredHold
from eddyline.errors import make_error
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier, Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import consolidate

__all__ = ["Defining", "Transaction"]


@dataclass(frozen=True, slots=True)
class Defining:
    """A definition that can be applied to any version of the catalog, with the id that it gives to what it creates."""

    tag: str
    id: str
    change: Callable[[CatalogSnapshot], Change]


@dataclass(slots=True)
class _Savepoint:
    name: str
    definitions: int
    catalog: CatalogSnapshot | None
    writes: dict[str, int]  # batches per table when it was set
    settings: SettingsState


@dataclass(slots=True, eq=False)
class Transaction:
    """``explicit``: between BEGIN and COMMIT; otherwise it is one statement's.

    ``newest``: T*, the newest commit visible when the first statement began; every read is at or before it.  Until
    then it is None.  ``writes``: batches per table, not yet committed (their times mean nothing).
    ``definitions``: what is created and dropped at its end, in order; ``catalog`` is a draft that shows it already.
    ``reads``: base tables that an explicit transaction has read at T*; one that writes is refused if they have changed.
    ``implicit``: an explicit one that no BEGIN began: the statements that a client sent together.
    ``failed``: a statement failed; only ROLLBACK is left.  ``settings``: as an explicit transaction found them; a
    rollback brings them back.  ``lock_timeout_s``: of the statement under way; None is no limit.
    """

    explicit: bool
    isolation: str
    read_only: bool = False
    newest: Time | None = None
    now_us: int = 0
    catalog: CatalogSnapshot | None = None
    writes: dict[str, list[Batch]] = field(default_factory=dict)
    definitions: list[Defining] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    owner: Owner = field(default_factory=Owner)
    hold: StoredHold | None = None
    savepoints: list[_Savepoint] = field(default_factory=list)
    failed: bool = False
    implicit: bool = False
    settings: SettingsState | None = None
    lock_timeout_s: float | None = None
    _unchecked: set[str] = field(default_factory=set)  # tables; what a savepoint takes back may be counted still
    pending_keys: dict[str, PendingKeys] = field(default_factory=dict)  # covers a prefix of the table's ``writes``
    #: per table: how many of its ``writes``, from the first, and what they come to, larger parts first
    _net: dict[str, tuple[int, list[Batch]]] = field(default_factory=dict)

    def begin_reading(self, engine: Engine) -> None:
        """Fixes T*, the catalog and the clock; an explicit transaction also keeps everything stored readable at T*."""
        if self.newest is not None:
            return
        # A definition publishes its catalog after its commit is visible, so in this order T* includes it.
        self.catalog = engine.catalog.snapshot()
        if self.explicit:
            # Held first, then chosen: otherwise compaction could pass T* before it is held.
            with engine.control() as controller:
                self.hold = controller.hold_stored()
                self.newest = engine.timeline.newest
                self.hold.downgrade(Frontier(self.newest))
        else:
            self.newest = engine.timeline.newest
        self.now_us = engine.timeline.now()

    def refresh(self, engine: Engine) -> None:
        """Moves T* of a single statement up to the present, once it holds the locks that keep others out."""
        if not self.explicit:
            self.newest = engine.timeline.newest

    def add(self, table: str, batch: Batch, *, checked: bool = False) -> None:
        """``checked``: with it the writes still keep the table's key unique, and take back only what is there, over
        what was committed at T*.
        """
        if self.read_only:
            raise make_error("25006", "cannot write in a read-only transaction")
        if len(batch):
            self.writes.setdefault(table, []).append(batch)
            if not checked:
                self._unchecked.add(table)

    def checked(self) -> dict[str, Time]:
        """The tables whose writes need no check at commit, unless somebody else has written there since that time."""
        newest = self.newest
        return {} if newest is None else {t: newest for t in self.writes if t not in self._unchecked}

    def define(self, definition: Defining, catalog: CatalogSnapshot) -> None:
        """``catalog``: as the definition leaves it."""
        self.definitions.append(definition)
        self.catalog = catalog

    @property
    def changed(self) -> bool:
        """Whether there is something to commit."""
        return bool(self.writes or self.definitions)

    def built(self, id: str) -> bool:
        """False for what the transaction itself creates."""
        return self.catalog is None or id not in self.catalog.unbuilt

    def check_reads(self, engine: Engine) -> None:
        """40001 if a table that the transaction has read was written since T*.  Needs the commit lock."""
        if self.newest is not None and engine.store.newest_prepared(self.reads) > self.newest:
            raise make_error(
                "40001",
                "could not serialize access due to read/write dependencies among transactions",
                hint="The transaction might succeed if retried.",
            )

    def pending(self, table: str) -> list[Batch]:
        return self.writes.get(table, [])

    def net_pending(self, table: str, hasher: Hasher) -> Batch:
        """The transaction's changes of the table, at time 0, most of what cancels taken out.

        Amortised O(log(changes)) for each change since it was asked last, and a copy of what is left.
        """
        batches = self.writes[table]
        done, parts = self._net.get(table, (0, []))
        for batch in batches[done:]:
            parts.append(Batch(batch.types, batch.columns, np.zeros(len(batch), np.int64), batch.diffs))
            # Each part is at least twice as large as the next, so that there are few and each change is merged rarely.
            while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):
                parts[-2:] = [consolidate(Batch.concat(batch.types, parts[-2:]), hasher)]
        self._net[table] = len(batches), parts
        return Batch.concat(batches[0].types, parts)

    def savepoint(self, name: str, settings: SettingsState) -> None:
        written = {t: len(b) for t, b in self.writes.items()}
        self.savepoints.append(_Savepoint(name, len(self.definitions), self.catalog, written, settings))

    def _find(self, name: str) -> int:
        for i in reversed(range(len(self.savepoints))):
            if self.savepoints[i].name == name:
                return i
        raise make_error("3B001", f'savepoint "{name}" does not exist')

    def release(self, name: str) -> None:
        del self.savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> SettingsState:
        """Forgets what was written and defined since; the savepoint stays, and a failed transaction is usable again.

        Returns the settings of then.
        """
        position = self._find(name)
        kept = self.savepoints[position].writes
        del self.definitions[self.savepoints[position].definitions :]
        if self.savepoints[position].catalog is not None:  # else nothing had been read, and what is fixed now stays
            self.catalog = self.savepoints[position].catalog
        self.writes = {t: b[: kept[t]] for t, b in self.writes.items() if kept.get(t)}
        self._net = {t: done for t, done in self._net.items() if done[0] <= kept.get(t, 0)}
        for table, keys in self.pending_keys.items():
            keys.truncate(kept.get(table, 0))
        del self.savepoints[position + 1 :]
        self.failed = False
        return self.savepoints[position].settings

    def end(self, engine: Engine) -> None:
        """Gives back hold and locks.  Twice is harmless."""
        if self.hold is not None:
            hold, self.hold = self.hold, None
            with engine.control_unchecked():
                hold.close()
        engine.locks.release(self.owner)
