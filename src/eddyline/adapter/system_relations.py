"""Relations whose rows a version of the catalog gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from eddyline.adapter.access_rules import AccessRules
from eddyline.expr.ir import LiteralValue
from eddyline.plan.relation import Relation
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, ItemKind

__all__ = [
    "INT2S",
    "INT2VECTOR",
    "OIDS",
    "OIDVECTOR",
    "TEXTS",
    "Contents",
    "Row",
    "SystemTable",
    "sorted_items",
    "system_table",
]

Row: TypeAlias = tuple[LiteralValue, ...]
OIDS: Final = SqlType(Kind.BIGINT_ARRAY)
TEXTS: Final = SqlType(Kind.TEXT_ARRAY)
INT2S: Final = SqlType(Kind.SMALLINT_ARRAY)
INT2VECTOR: Final = SqlType(Kind.INT2VECTOR)
OIDVECTOR: Final = SqlType(Kind.OIDVECTOR)
#: the types of their columns
_LETTERS: Final = {
    "o": BIGINT, "t": TEXT, "b": BOOLEAN, "i": INTEGER, "s": SMALLINT, "r": REAL, "d": DOUBLE, "z": TIMESTAMPTZ,
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


@dataclass(frozen=True, slots=True)
class SystemTable:
    """``rows``: physical scalars in the order of ``columns``.  ``body``: gives them instead, where not all are known
    from the catalog."""

    schema: str
    name: str
    columns: tuple[tuple[str, SqlType], ...]
    rows: Callable[[Contents], Iterator[Row]]
    body: Callable[[Contents], Relation] | None = None


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
    pairs = (word.partition(":") for word in shape.split())
    return SystemTable(schema, name, tuple((n, _LETTERS[letter or "t"]) for n, _, letter in pairs), rows, body)
