"""What binding may ask of a catalog: one immutable version of it, seen through a search path.

The adapter's catalog snapshots implement ``CatalogView``; tests use small fakes.  Everything here is immutable, so a
view may be used from any thread for as long as the caller likes.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from eddyline.expr.ir import Expr
from eddyline.plan.relation import Relation
from eddyline.repr.types import SqlType

__all__ = ["CatalogItem", "CatalogView", "ColumnDef", "ItemKind"]


class ItemKind(enum.Enum):
    """Values are PostgreSQL's words for the kinds, as its messages use them."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """One column of an item.  ``default`` is already cast to ``type``; None means NULL."""

    name: str
    type: SqlType
    not_null: bool = False
    default: Expr | None = None
    default_text: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """A named object.  An index has no columns of its own: ``on`` is the id of what it indexes.

    ``primary_key``: positions in ``columns``, empty without one (tables only).
    ``relation``: a view's or materialized view's body (over ``Get`` of other items), None otherwise.
    ``keys``: an index's key expressions over the columns of ``on``.
    ``definition``: the text of the view's query, or None.
    ``depends_on``: ids of the items that it reads directly.
    """

    id: str
    schema: str
    name: str
    kind: ItemKind
    columns: tuple[ColumnDef, ...] = ()
    primary_key: tuple[int, ...] = ()
    relation: Relation | None = None
    on: str | None = None
    keys: tuple[Expr, ...] = ()
    definition: str | None = None
    depends_on: frozenset[str] = frozenset()

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(c.type for c in self.columns)


class CatalogView(Protocol):
    """One version of the catalog, read through a session's search path."""

    @property
    def version(self) -> int:
        """Grows by one with each catalog change."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """The schemas that unqualified names are looked up in, in order; those that don't exist are skipped."""

    @property
    def zone(self) -> str | None:
        """The session's TimeZone; None is UTC."""

    @property
    def users(self) -> tuple[str, str]:
        """The names of the current user and of the session's user."""

    @property
    def creation_schema(self) -> str | None:
        """The first existing schema of the search path, where unqualified names are created."""

    def has_schema(self, schema: str) -> bool: ...

    def schema_names(self) -> tuple[str, ...]:
        """All schemas, ordered by name."""

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        """The item of that name: in ``schema``, or in the first schema of the search path that has one.

        All kinds share one name space, indexes included.
        """

    def item(self, item_id: str) -> CatalogItem | None:
        """The item with that id."""

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        """All items (of one schema), ordered by schema and name."""

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        """The indexes of an item, oldest first."""

    def built(self, item_id: str) -> bool:
        """False for what the transaction creates itself: it has a meaning, but no rows outside of the transaction."""

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        """The items that read ``item_id`` directly, indexes included, oldest first."""
