"""Relations whose rows a version of the catalog gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from eddyline.adapter.access_rules import AccessRules
from eddyline.adapter.session_list import ActivitySeen
from eddyline.expr.ir import LiteralValue
from eddyline.plan.relation import Relation
from eddyline.repr.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    OID,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, ItemKind, ShownSetting

__all__ = [
    "INT2S",
    "INT2VECTOR",
    "NOBODY",
    "NO_SESSION",
    "OIDS",
    "OIDVECTOR",
    "TEXTS",
    "Contents",
    "Row",
    "SessionFacts",
    "SystemTable",
    "Viewer",
    "seen_table",
    "sorted_items",
    "system_table",
]

Row: TypeAlias = tuple[LiteralValue, ...]
OIDS: Final = SqlType(Kind.BIGINT_ARRAY, of_oids=True)
TEXTS: Final = SqlType(Kind.TEXT_ARRAY)
INT2S: Final = SqlType(Kind.SMALLINT_ARRAY)
INT2VECTOR: Final = SqlType(Kind.INT2VECTOR)
OIDVECTOR: Final = SqlType(Kind.OIDVECTOR)
#: the types of their columns
_LETTERS: Final = {
    "o": OID, "t": TEXT, "b": BOOLEAN, "i": INTEGER, "s": SMALLINT, "r": REAL, "d": DOUBLE, "z": TIMESTAMPTZ,
    "T": TEXTS, "S": INT2S, "O": OIDS, "V": INT2VECTOR, "W": OIDVECTOR,
}  # fmt: skip


class Contents(Protocol):
    """A version of the catalog."""

    @property
    def schemas(self) -> Mapping[str, Mapping[str, str]]: ...

    @property
    def by_id(self) -> Mapping[str, CatalogItem]: ...

    @property
    def access(self) -> AccessRules: ...

    @property
    def unbuilt(self) -> frozenset[str]: ...

    @property
    def clusters(self) -> Mapping[str, CatalogCluster]: ...


class Viewer(Protocol):
    """Who looks: what a session sees, and others see otherwise."""

    @property
    def settings(self) -> tuple[ShownSetting, ...]: ...

    @property
    def users(self) -> tuple[str, str]: ...

    @property
    def activity(self) -> tuple[ActivitySeen, ...]: ...


class _Nobody:
    settings: tuple[ShownSetting, ...] = ()
    users = ("postgres", "postgres")
    activity: tuple[ActivitySeen, ...] = ()


#: sees what a session without settings sees
NOBODY: Final[Viewer] = _Nobody()


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session knows that the catalog does not: its settings and the database's, what all sessions do, and its
    own process number."""

    settings: Callable[[], tuple[ShownSetting, ...]] = tuple
    activity: Callable[[], tuple[ActivitySeen, ...]] = tuple
    process: Callable[[], int] = int


NO_SESSION: Final = SessionFacts()


@dataclass(frozen=True, slots=True)
class SystemTable:
    """``rows``: physical scalars in the order of ``columns``.  ``body``: gives them instead, where not all are known
    from the catalog.

    ``seen``: the rows of relations that show each session something else, in place of ``rows``.  ``shows``: the members
    of a catalog view whose answers they are, but for its users, whom every plan is for.
    """

    schema: str
    name: str
    columns: tuple[tuple[str, SqlType], ...]
    rows: Callable[[Contents], Iterator[Row]]
    body: Callable[[Contents], Relation] | None = None
    seen: Callable[[Contents, Viewer], Iterator[Row]] | None = None
    shows: tuple[str, ...] = ()


def sorted_items(contents: Contents, *kinds: ItemKind) -> list[CatalogItem]:
    """Those of ``kinds`` (all without any), oldest first."""
    chosen = kinds or tuple(ItemKind)
    return sorted((i for i in contents.by_id.values() if i.kind in chosen), key=lambda i: int(i.id[1:]))


def _none(contents: Contents) -> Iterator[Row]:
    return iter(())


def system_table(
    schema: str,
    name: str,
    shape: str,
    rows: Callable[[Contents], Iterator[Row]] = _none,
    body: Callable[[Contents], Relation] | None = None,
) -> SystemTable:
    """``shape``: ``name:letter`` for each column; without a letter it is text."""
    return SystemTable(schema, name, _columns(shape), rows, body)


def seen_table(
    schema: str, name: str, shape: str, seen: Callable[[Contents, Viewer], Iterator[Row]], *shows: str
) -> SystemTable:
    """One that shows each session something else; see ``SystemTable``."""
    return SystemTable(schema, name, _columns(shape), _none, seen=seen, shows=shows)


def _columns(shape: str) -> tuple[tuple[str, SqlType], ...]:
    pairs = (word.partition(":") for word in shape.split())
    return tuple((name, _LETTERS[letter or "t"]) for name, _, letter in pairs)
