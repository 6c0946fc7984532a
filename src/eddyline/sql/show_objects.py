"""SHOW TABLES and its kin: the catalog as rows, at the version that the statement was bound to."""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error
from eddyline.expr.describe import describe
from eddyline.expr.ir import LiteralValue
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT
from eddyline.sql.ast import AstNode
from eddyline.sql.catalog_view import CatalogItem, CatalogView, ItemKind
from eddyline.sql.extensions import ShowObjectsSyntax
from eddyline.sql.named_objects import Locate, existing_relation
from eddyline.sql.shown_defaults import default_shown
from eddyline.sql.statements import ShowObjects

__all__ = ["BARE_LISTINGS", "bind_show_objects"]

Rows = tuple[tuple[LiteralValue, ...], ...]

#: ``SHOW name`` that is a listing although PostgreSQL's grammar reads it as a setting.
BARE_LISTINGS: Final = frozenset(["tables", "views", "indexes", "objects", "schemas", "clusters"])

_REPLICA_COLUMNS: Final = ("cluster", "replica", "workers", "processes")
_KINDS: Final = {
    "tables": (ItemKind.TABLE,),
    "views": (ItemKind.VIEW,),
    "materialized views": (ItemKind.MATERIALIZED_VIEW,),
    "objects": tuple(ItemKind),
}


def bind_show_objects(syntax: ShowObjectsSyntax, catalog: CatalogView, locate: Locate) -> ShowObjects:
    """Without FROM a listing covers the schemas of the search path."""
    match syntax.kind:
        case "schemas":
            return ShowObjects(("name",), (TEXT,), tuple((name,) for name in catalog.schema_names()))
        case "clusters":
            rows: Rows = tuple((c.name, ", ".join(r.name for r in c.replicas)) for c in catalog.clusters())
            return ShowObjects(("name", "replicas"), (TEXT,) * 2, rows)
        case "cluster replicas":
            rows = tuple((c.name, r.name, r.workers, r.processes) for c in catalog.clusters() for r in c.replicas)
            return ShowObjects(_REPLICA_COLUMNS, (TEXT, TEXT, BIGINT, BIGINT), rows)
        case "columns":
            return _columns(syntax, catalog, locate)
        case "indexes":
            return _indexes(syntax, catalog, locate)
        case kind:
            items = [i for i in _listed(syntax.relation, catalog, locate) if i.kind in _KINDS[kind]]
            rows = tuple((i.name, i.schema, i.kind.value) for i in items)
            return ShowObjects(("name", "schema", "type"), (TEXT,) * 3, rows)


def _listed(range_var: AstNode | None, catalog: CatalogView, locate: Locate) -> tuple[CatalogItem, ...]:
    if range_var is None:
        schemas = [s for s in dict.fromkeys(catalog.search_path) if catalog.has_schema(s)]
        return tuple(item for schema in schemas for item in catalog.items(schema))
    if not catalog.has_schema(range_var.relname):
        raise make_error("3F000", f'schema "{range_var.relname}" does not exist', position=locate(range_var.location))
    return catalog.items(range_var.relname)


def _columns(syntax: ShowObjectsSyntax, catalog: CatalogView, locate: Locate) -> ShowObjects:
    if syntax.relation is None:
        raise make_error("42601", "SHOW COLUMNS needs FROM and a relation")
    item = existing_relation(syntax.relation, catalog, locate)
    shown = [default_shown(c, catalog) for c in item.columns]
    rows = tuple((c.name, str(c.type), not c.not_null, d) for c, d in zip(item.columns, shown, strict=True))
    return ShowObjects(("name", "type", "nullable", "default"), (TEXT, TEXT, BOOLEAN, TEXT), rows)


def _indexes(syntax: ShowObjectsSyntax, catalog: CatalogView, locate: Locate) -> ShowObjects:
    """FROM a schema, or ON (or FROM) a relation."""
    range_var = syntax.relation
    if range_var is not None and (range_var.schemaname or not catalog.has_schema(range_var.relname)):
        indexes = catalog.indexes_on(existing_relation(range_var, catalog, locate).id)
    else:
        indexes = tuple(i for i in _listed(range_var, catalog, locate) if i.kind is ItemKind.INDEX)
    clusters = {c.id: c.name for c in catalog.clusters()}
    rows = tuple((i.name, i.schema, *_indexed(i, catalog), clusters.get(i.cluster)) for i in indexes)
    return ShowObjects(("name", "schema", "on", "key", "cluster"), (TEXT,) * 5, rows)


def _indexed(index: CatalogItem, catalog: CatalogView) -> tuple[str, str]:
    """(name of what is indexed, key as text)."""
    on = catalog.item(index.on or "")
    if on is None:
        return "", ""
    names = [c.name for c in on.columns]
    return on.name, ", ".join(describe(key, names) for key in index.keys)
