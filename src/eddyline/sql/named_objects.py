"""Names of statements' targets: the item that a RangeVar means, and where a new one goes.

Errors carry PostgreSQL's messages: 42P01 undefined relation, 3F000 undefined schema, 42809 wrong kind of relation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.sql.ast import AstNode
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind

__all__ = ["ARTICLES", "existing_relation", "new_name", "no_such_relation", "shown_name", "writable_table"]

Locate = Callable[[int], int | None]

_LISTINGS: Final = "There are SHOW TABLES, SHOW VIEWS, SHOW INDEXES, SHOW COLUMNS FROM name and SHOW CREATE VIEW name."

_SYSTEM: Final = "SHOW VIEWS FROM mz_introspection and FROM mz_internal list what is there; qualify the name."

ARTICLES = {
    ItemKind.TABLE: "a table",
    ItemKind.VIEW: "a view",
    ItemKind.MATERIALIZED_VIEW: "a materialized view",
    ItemKind.INDEX: "an index",
    ItemKind.SEQUENCE: "a sequence",
}


def shown_name(range_var: AstNode) -> str:
    """The name as written, with its schema."""
    if range_var.schemaname:
        return f"{range_var.schemaname}.{range_var.relname}"
    return str(range_var.relname)


def existing_relation(range_var: AstNode, catalog: CatalogView, locate: Locate) -> CatalogItem:
    """The item of that name, of whatever kind; 42P01 without one."""
    position = locate(range_var.location)
    refuse_other_database(range_var, position)
    item = catalog.resolve(range_var.schemaname or None, range_var.relname)
    if item is None:
        raise no_such_relation(range_var, position)
    return item


def no_such_relation(range_var: AstNode, position: int | None) -> DatabaseError:
    """42P01, not raised; for what PostgreSQL's clients look up in its catalogs, with the statements that tell it."""
    schema, name = range_var.schemaname, range_var.relname
    if not schema and name.startswith("mz_"):
        return make_error("42P01", f'relation "{name}" does not exist', position=position, hint=_SYSTEM)
    catalog = schema in ("information_schema", "pg_catalog") or (not schema and name.startswith("pg_"))
    return make_error(
        "42P01",
        f'relation "{shown_name(range_var)}" does not exist',
        position=position,
        hint=_LISTINGS if catalog else None,
    )


def writable_table(range_var: AstNode, catalog: CatalogView, locate: Locate, verb: str) -> CatalogItem:
    """The table that INSERT, UPDATE … writes; ``verb`` as in "cannot {verb} view"."""
    item = existing_relation(range_var, catalog, locate)
    match item.kind:
        case ItemKind.TABLE:
            return item
        case ItemKind.VIEW:
            raise make_error("55000", f'cannot {verb} view "{item.name}"', hint="Write to its tables instead.")
        case ItemKind.MATERIALIZED_VIEW:
            raise make_error("42809", f'cannot change materialized view "{item.name}"')
        case ItemKind.INDEX:
            raise make_error("42809", f'"{item.name}" is an index', position=locate(range_var.location))
        case ItemKind.SEQUENCE:
            raise make_error("42809", f'cannot change sequence "{item.name}"')


def new_name(range_var: AstNode, catalog: CatalogView, locate: Locate) -> tuple[str, str]:
    """(schema, name) of something to create; 3F000 when there is no schema for it."""
    position = locate(range_var.location)
    refuse_other_database(range_var, position)
    if range_var.relpersistence == "t":
        raise unsupported("a temporary relation", position=position)
    if range_var.relpersistence == "u":
        raise unsupported("an unlogged table", position=position)
    if range_var.schemaname:
        if not catalog.has_schema(range_var.schemaname):
            raise make_error("3F000", f'schema "{range_var.schemaname}" does not exist', position=position)
        return range_var.schemaname, range_var.relname
    schema = catalog.creation_schema
    if schema is None:
        raise make_error("3F000", "no schema has been selected to create in", position=position)
    return schema, range_var.relname


def refuse_other_database(range_var: AstNode, position: int | None) -> None:
    if range_var.catalogname:
        name = f"{range_var.catalogname}.{range_var.schemaname}.{range_var.relname}"
        raise make_error("0A000", f'cross-database references are not implemented: "{name}"', position=position)
