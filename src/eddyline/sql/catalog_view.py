"""What binding may ask of a catalog: one immutable version of it, seen through a search path.

The adapter's catalog snapshots implement ``CatalogView``; tests use small fakes.  Everything here is immutable, so a
view may be used from any thread for as long as the caller likes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from eddyline.errors import Error, make_error
from eddyline.expr.ir import Expr
from eddyline.plan.relation import Relation
from eddyline.repr.types import BIGINT, BOOLEAN, SqlType
from eddyline.sql.column_reads import Reads

__all__ = [
    "DEFAULT_CLUSTER",
    "DEFAULT_CLUSTER_ID",
    "DEFAULT_REPLICA",
    "DEFAULT_REPLICA_ID",
    "SEQUENCE_COLUMNS",
    "CatalogCluster",
    "CatalogItem",
    "CatalogReplica",
    "CatalogView",
    "ColumnDef",
    "ItemKind",
    "SequenceDef",
    "ShownSetting",
    "unknown_cluster",
    "unknown_replica",
]

#: The cluster that every database has, with the replica that it is opened with.
DEFAULT_CLUSTER: Final = "default"
DEFAULT_CLUSTER_ID: Final = "s1"
DEFAULT_REPLICA: Final = "r1"
DEFAULT_REPLICA_ID: Final = "s1"


class ItemKind(enum.Enum):
    """Values are PostgreSQL's words for the kinds, as its messages use them."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    INDEX = "index"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """One column of an item.  ``default`` is already cast to ``type``; None means NULL.

    ``default_text``: as it is shown but for the names of sequences, see ``sql.shown_defaults``.
    ``identity``: "a" for GENERATED ALWAYS, "d" for BY DEFAULT AS IDENTITY, whose ``default`` has no text.
    """

    name: str
    type: SqlType
    not_null: bool = False
    default: Expr | None = None
    default_text: str | None = None
    identity: str = ""


@dataclass(frozen=True, slots=True)
class SequenceDef:
    """How a sequence counts; where it stands is kept apart (``adapter.sequences``), under the key ``position``.

    A RESTART gives it another key, whose position begins at ``first`` (before it has been given out).
    ``owner``: the id of a table and the position of its column, with which it goes; ``identity``: it is what that
    column is made of.
    """

    type: SqlType
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycle: bool
    position: str
    first: int
    owner: tuple[str, int] | None = None
    identity: bool = False


#: what SELECT finds in a sequence
SEQUENCE_COLUMNS: Final = (
    ColumnDef("last_value", BIGINT, not_null=True),
    ColumnDef("log_cnt", BIGINT, not_null=True),
    ColumnDef("is_called", BOOLEAN, not_null=True),
)


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """A named object.  An index has no columns of its own: ``on`` is the id of what it indexes.

    ``primary_key``: positions in ``columns``, empty without one (tables only).
    ``relation``: a view's or materialized view's body (over ``Get`` of other items), None otherwise.
    ``keys``: an index's key expressions over the columns of ``on``.
    ``definition``: the text of the view's query, or None.
    ``depends_on``: ids of the items that it reads directly.
    ``cluster``: the id of the cluster that keeps an index or a materialized view fresh; says nothing of others.
    ``sequence``: of a sequence alone, whose ``relation`` is its one row.
    ``reads``: the columns that a view's query names; None: all of what it reads.
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
    cluster: str = DEFAULT_CLUSTER_ID
    sequence: SequenceDef | None = None
    reads: Reads | None = None

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(c.type for c in self.columns)

    @property
    def rights_kind(self) -> str:
        """What the rights on it are those of (``ALL_RIGHTS``)."""
        return "sequence" if self.kind is ItemKind.SEQUENCE else "table"


@dataclass(frozen=True, slots=True)
class CatalogReplica:
    """``workers`` in each of ``processes``; 0 processes: threads of this one.

    ``settings``: values of settings that are its own, as text; for the others the database's count.
    """

    id: str
    name: str
    workers: int = 1
    processes: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogCluster:
    """``replicas``: oldest first; their names differ."""

    id: str
    name: str
    replicas: tuple[CatalogReplica, ...] = ()

    def replica(self, name: str) -> CatalogReplica | None:
        return next((r for r in self.replicas if r.name == name), None)


def unknown_cluster(name: str, known: Iterable[str], *, position: int | None = None) -> Error:
    """42704, with the names that there are."""
    hint = f"Known: {', '.join(sorted(known))}."
    return make_error("42704", f'unknown cluster "{name}"', position=position, hint=hint)


def unknown_replica(cluster: CatalogCluster, name: str, *, position: int | None = None) -> Error:
    """42704, with the names that there are in the cluster."""
    known = ", ".join(r.name for r in cluster.replicas)
    hint = f'Known in "{cluster.name}": {known}.' if known else f'"{cluster.name}" has no replicas.'
    return make_error("42704", f'unknown cluster replica "{cluster.name}.{name}"', position=position, hint=hint)


class ShownSetting(NamedTuple):
    """A setting of the session or of the database.  ``value``: in force, as SHOW gives it; ``unit``: ms, B or None.

    ``boot``: the value where nobody has set it; ``reset``: what RESET goes back to.  ``context`` and ``source``: as in
    PostgreSQL's ``pg_settings``.
    """

    name: str
    value: str
    unit: str | None
    boot: str
    reset: str
    context: str
    source: str


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
    def settings(self) -> tuple[ShownSetting, ...]:
        """All of them, of the session and of the database, ordered by name."""

    @property
    def process(self) -> int:
        """The session's number, by which others cancel what it runs."""

    @property
    def cluster(self) -> str:
        """The session's setting: the name of the cluster where it reads, and keeps what it makes."""

    @property
    def cluster_id(self) -> str | None:
        """The id of that cluster; None if it is gone."""

    def clusters(self) -> tuple[CatalogCluster, ...]:
        """All clusters, ordered by name."""

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
