"""What planning must know of the catalog: indexes to read from, and columns that are unique."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eddyline.repr.types import SqlType

__all__ = ["NO_FACTS", "CatalogFacts", "IndexFacts"]


class IndexFacts(msgspec.Struct, frozen=True):
    """An index that the plan may use: ``key`` are columns of ``on``, in the arrangement's order; ``types`` is the row
    type of ``on``."""

    id: str
    on: str
    key: tuple[int, ...]
    types: tuple[SqlType, ...]


class CatalogFacts(msgspec.Struct, frozen=True):
    """``unique_keys``: per object id, sets of columns that are unique and not NULL (primary keys)."""

    indexes: tuple[IndexFacts, ...] = ()
    unique_keys: Mapping[str, tuple[tuple[int, ...], ...]] = {}

    def indexes_on(self, object_id: str) -> tuple[IndexFacts, ...]:
        return tuple(i for i in self.indexes if i.on == object_id)


NO_FACTS = CatalogFacts()
