"""What the catalog calls objects and their columns, for the texts of row errors."""

from __future__ import annotations

from eddyline.plan.column_names import ObjectNames, ObjectOf
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.show_create import quoted

__all__ = ["object_names"]


def object_names(catalog: CatalogView) -> ObjectOf:
    """The names in ``catalog``; an index goes by what it is on."""

    def names_of(id: str) -> ObjectNames | None:
        item = catalog.item(id)
        if item is not None and item.on is not None:
            item = catalog.item(item.on)
        if item is None:
            return None
        return ObjectNames(quoted(item.name), tuple(quoted(c.name) for c in item.columns))

    return names_of
