"""Relations whose rows a version of the catalog gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from eddyline.adapter.access_rules import AccessRules
from eddyline.expr.ir import LiteralValue
from eddyline.repr.types import SqlType
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, ItemKind

__all__ = ["Contents", "Row", "SystemTable", "sorted_items"]

Row: TypeAlias = tuple[LiteralValue, ...]


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
    """``rows``: physical scalars in the order of ``columns``."""

    schema: str
    name: str
    columns: tuple[tuple[str, SqlType], ...]
    rows: Callable[[Contents], Iterator[Row]]


def sorted_items(contents: Contents, *kinds: ItemKind) -> list[CatalogItem]:
    """Those of ``kinds`` (all without any), oldest first."""
    chosen = kinds or tuple(ItemKind)
    return sorted((i for i in contents.by_id.values() if i.kind in chosen), key=lambda i: int(i.id[1:]))
