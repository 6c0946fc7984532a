"""Which columns of which tables and views a statement reads: what rights on columns are checked against.

As in PostgreSQL a column is read where it is named, by ``*`` too, whatever becomes of its values.  A table of FROM none
of whose columns is named is read as well: that takes a right on any of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["ColumnReads", "Reads", "StatementReads"]

Reads: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""(Item id, positions of its columns that are read) each, in the order in which they are mentioned first."""


@dataclass(eq=False, slots=True)
class StatementReads:
    """What was found so far, in all parts of one statement.

    ``columns``: by item id.  ``tables``: how often each stands in FROM, by item id.
    """

    columns: dict[str, set[int]] = field(default_factory=dict)
    tables: Counter[str] = field(default_factory=Counter)

    def not_read(self, item_id: str) -> None:
        """One mention of the item in FROM was the table that is written: nothing but its columns counts."""
        self.tables[item_id] -= 1

    def found(self) -> Reads:
        ids = (id for id in dict.fromkeys((*self.tables, *self.columns)) if self.tables[id] > 0 or id in self.columns)
        return tuple((id, tuple(sorted(self.columns.get(id, ())))) for id in ids)


@dataclass(eq=False, slots=True)
class ColumnReads:
    """Of one binding, whose column ids it knows."""

    statement: StatementReads = field(default_factory=StatementReads)
    _origins: dict[int, tuple[str, int]] = field(default_factory=dict)

    def bring(self, item_id: str, ids: Iterable[int]) -> None:
        """``ids``: of all of the item's columns, in order."""
        self._origins.update((id, (item_id, position)) for position, id in enumerate(ids))

    def mention(self, item_id: str, ids: Iterable[int]) -> None:
        """The item stands in FROM."""
        self.statement.tables[item_id] += 1
        self.bring(item_id, ids)

    def read(self, column: int) -> None:
        """The column is named; what is no item's own column is read already."""
        origin = self._origins.get(column)
        if origin is not None:
            self.statement.columns.setdefault(origin[0], set()).add(origin[1])
