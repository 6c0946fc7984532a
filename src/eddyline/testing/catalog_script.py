"""Definitions without an engine: statements are parsed, bound, and applied to a catalog; nothing runs.

For tests of binding and planning, which need tables and views but no data.
"""

from __future__ import annotations

from eddyline.adapter.catalog import Catalog, SearchPathView
from eddyline.adapter.catalog_changes import (
    Change,
    alter_rename,
    create_index,
    create_materialized_view,
    create_schema,
    create_table,
    create_view,
    drop,
    drop_schema,
)
from eddyline.repr.types import SqlType
from eddyline.sql.bind_statement import bind_statement
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.parse import parse
from eddyline.sql.statements import (
    AlterRename,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    DropSchema,
    Statement,
)

__all__ = ["CatalogScript"]


class CatalogScript:
    """A catalog that ``run`` changes.  ``search_path`` may be assigned."""

    def __init__(self, *texts: str) -> None:
        self.catalog = Catalog()
        self.search_path: tuple[str, ...] = ("public",)
        self.notices: list[str] = []
        for text in texts:
            self.run(text)

    @property
    def view(self) -> SearchPathView:
        return self.catalog.snapshot().view(self.search_path)

    def item(self, name: str) -> CatalogItem:
        """The item of that name; LookupError without one."""
        found = self.view.resolve(None, name)
        if found is None:
            raise LookupError(name)
        return found

    def bind(self, text: str, param_types: dict[int, SqlType] | None = None) -> Statement:
        """The one statement in ``text``, bound and not applied."""
        (parsed,) = parse(text)
        return bind_statement(parsed, self.view, param_types)

    def run(self, text: str) -> list[Statement]:
        """All statements of ``text``, each bound after those before it were applied; definitions change the catalog."""
        done = []
        for parsed in parse(text):
            statement = bind_statement(parsed, self.view)
            base = self.catalog.snapshot()
            change = self._change(statement)
            if change is not None:
                self.notices.extend(change.notices)
                self.catalog.publish(base, change.snapshot)
            done.append(statement)
        return done

    def _change(self, statement: Statement) -> Change | None:
        base = self.catalog.snapshot()
        match statement:
            case CreateTable() | CreateTableAs():
                count = len(statement.sequences) if isinstance(statement, CreateTable) else 0
                own = [self.catalog.allocate_id() for _ in range(count)]
                return create_table(base, self.catalog.allocate_id(), statement, own)
            case CreateView():
                return create_view(base, self.catalog.allocate_id(), statement)
            case CreateMaterializedView():
                return create_materialized_view(base, self.catalog.allocate_id(), statement)
            case CreateIndex():
                return create_index(base, self.catalog.allocate_id(), statement)
            case CreateSchema():
                return create_schema(base, statement)
            case Drop():
                return drop(base, self.search_path, statement)
            case DropSchema():
                return drop_schema(base, self.search_path, statement)
            case AlterRename():
                return alter_rename(base, self.search_path, statement)
            case _:
                return None
