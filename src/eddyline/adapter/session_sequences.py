"""What a session takes of sequences: ``nextval``, ``currval``, ``lastval`` and ``setval`` in its statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from eddyline.adapter.engine import Engine
from eddyline.adapter.sequences import Int64s
from eddyline.adapter.transaction import Transaction
from eddyline.errors import make_error
from eddyline.sql.catalog_view import CatalogItem, CatalogView, SequenceDef
from eddyline.sql.sequence_functions import named_sequence, sequence_of_oid

__all__ = ["SessionSequences"]


class ChecksRights(Protocol):
    """As whom a session's statements run."""

    def check_one_of(self, item: CatalogItem, rights: tuple[str, ...]) -> None:
        """42501 without any of the rights."""


class SessionSequences:
    """``role``: as whom its statements run.  Owner: the session's running statement."""

    def __init__(self, engine: Engine, role: Callable[[], ChecksRights]) -> None:
        self._engine = engine
        self._role = role
        self._given: dict[str, int] = {}  # by the sequence's id
        self._last: str | None = None  # the one that gave the last of them

    def clear(self) -> None:
        """DISCARD SEQUENCES."""
        self._given, self._last = {}, None

    def find(self, which: int | str, catalog: CatalogView) -> CatalogItem:
        """By its OID or its name.  42P01, 42809, 42602."""
        return sequence_of_oid(which, catalog) if isinstance(which, int) else named_sequence(which, catalog)

    def next_values(self, transaction: Transaction, item: CatalogItem, count: int, *, of_identity: bool) -> Int64s:
        """int64[count].  25006, 42501 (but for an identity's column), 2200H, and what keeps them from being safe."""
        if not count:
            return np.zeros(0, np.int64)
        self._check_writable(transaction, "nextval()")
        if not of_identity:
            self._role().check_one_of(item, ("USAGE", "UPDATE"))
        values: Int64s | None = None
        while values is None:  # until it does not begin anew meanwhile
            definition, kept = self._definition(transaction, item)
            values = self._engine.sequences.take(definition, item.name, count, kept=kept)
        self._given[item.id], self._last = int(values[-1]), item.id
        return values

    def current_value(self, item: CatalogItem) -> int:
        """55000 before it has given any."""
        self._role().check_one_of(item, ("USAGE", "SELECT"))
        if item.id not in self._given:
            raise make_error("55000", f'currval of sequence "{item.name}" is not yet defined in this session')
        return self._given[item.id]

    def last_value(self, catalog: CatalogView) -> int:
        """55000 before any has given one, and when that one was dropped."""
        item = None if self._last is None else catalog.item(self._last)
        if item is None:
            raise make_error("55000", "lastval is not yet defined in this session")
        self._role().check_one_of(item, ("USAGE", "SELECT"))
        return self._given[item.id]

    def set_value(self, transaction: Transaction, item: CatalogItem, value: int, *, called: bool) -> None:
        self._check_writable(transaction, "setval()")
        self._role().check_one_of(item, ("UPDATE",))
        done = False
        while not done:
            definition, kept = self._definition(transaction, item)
            done = self._engine.sequences.set(definition, item.name, value, called=called, kept=kept)
        if called:
            self._given[item.id] = value

    def _check_writable(self, transaction: Transaction, command: str) -> None:
        if transaction.read_only:
            raise make_error("25006", f"cannot execute {command} in a read-only transaction")

    def _definition(self, transaction: Transaction, item: CatalogItem) -> tuple[SequenceDef, bool]:
        """How it counts now, or will when the transaction has changed it; and whether a crash leaves it.  40001."""
        newest = self._engine.catalog.snapshot().by_id.get(item.id)
        there = None if newest is None else newest.sequence
        own = transaction.catalog
        mine = own.by_id[item.id].sequence if own is not None and own.draft and item.id in own.by_id else None
        if own is not None and mine is not None:
            restarted = {definition.id for definition in transaction.definitions}
            if item.id in own.unbuilt or mine.position.partition(".")[0] in restarted:
                return mine, False
            if there is not None and there.position == mine.position:
                return mine, True
        if there is None:
            gone = "a sequence of the statement was dropped meanwhile"
            raise make_error("40001", gone, hint="Retry the transaction.")
        return there, True
