"""What a session writes without a statement: many rows of a table at once, as the program has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from eddyline.adapter import ingest_rows, write
from eddyline.adapter.catalog import CatalogSnapshot, resolve_name
from eddyline.adapter.engine import Engine
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import ReadContext
from eddyline.adapter.session_role import SessionRole
from eddyline.adapter.short_memory import admitted
from eddyline.errors import make_error
from eddyline.repr.types import SqlType
from eddyline.sql import statements as st
from eddyline.sql.catalog_view import CatalogItem, ItemKind

__all__ = ["BulkWrites"]

#: runs its argument as a statement of the session would be, in its turn and in its transaction
_Run: TypeAlias = Callable[[Callable[[ReadContext], Outcome]], Outcome]


class BulkWrites:
    """``catalog``: as the session's transaction has it.

    Each write runs as a statement would, in the session's transaction or in one of its own, and gives the time of its
    commit (µs), or of the newest one where it is not committed yet.  ``timeout``: as in ``write.wait_capacity``, which
    raises 53300.  42P01, 42809, 42501, 25P02, and what rows are refused with.
    """

    def __init__(self, engine: Engine, role: SessionRole, catalog: Callable[[], CatalogSnapshot], run: _Run) -> None:
        self._engine = engine
        self._role = role
        self._catalog = catalog
        self._run = run

    def column_types(self, table: str) -> dict[str, SqlType]:
        """The columns of a table by name; 42P01, 42809, 42501 without any right on it."""
        item = self._table(table, self._catalog())
        self._role.check_any(item)
        return {c.name: c.type for c in item.columns}

    def append(self, name: str, data: ingest_rows.Incoming, *, timeout: float | None) -> int:
        def body(context: ReadContext, table: CatalogItem) -> None:
            write.insert_rows(context, table, ingest_rows.table_rows(context, table, data))

        return self._write(name, body, data, timeout, "INSERT")

    def upsert(self, name: str, data: ingest_rows.Incoming, *, timeout: float | None) -> int:
        def body(context: ReadContext, table: CatalogItem) -> None:
            write.upsert_rows(context, table, ingest_rows.table_rows(context, table, data))

        return self._write(name, body, data, timeout, "INSERT", "UPDATE", "SELECT")

    def delete(self, name: str, data: ingest_rows.Incoming, *, timeout: float | None) -> int:
        def body(context: ReadContext, table: CatalogItem) -> None:
            columns = ingest_rows.key_rows(context, table, data)
            write.delete_rows(context, table, columns, data.table.num_rows)

        return self._write(name, body, data, timeout, "DELETE", "SELECT")

    def _table(self, name: str, catalog: CatalogSnapshot) -> CatalogItem:
        _, item = resolve_name(name, catalog, self._role.search_path)
        if item is None:
            raise make_error("42P01", f'relation "{name}" does not exist')
        if item.kind is not ItemKind.TABLE:
            raise make_error("42809", f'"{name}" is not a table')
        return item

    def _write(
        self,
        name: str,
        body: Callable[[ReadContext, CatalogItem], None],
        data: ingest_rows.Incoming,
        timeout: float | None,
        *rights: str,
    ) -> int:
        def run(context: ReadContext) -> Outcome:
            table = self._table(name, context.transaction.catalog or self._catalog())
            self._role.check_bulk(table, rights, data.table.column_names)
            with admitted(context, st.Insert if "INSERT" in rights else st.Delete) as allowed:
                write.wait_capacity(allowed, {table.id}, timeout)
                body(allowed, table)
            return Outcome("")

        outcome = self._run(run)
        return outcome.time if outcome.time is not None else int(self._engine.timeline.newest)
