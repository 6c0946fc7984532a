"""SHOW CREATE: the statement that makes an object as it is now."""

from __future__ import annotations

import re

from postgast import pg_query_pb2

from eddyline.errors import make_error
from eddyline.expr.describe import describe
from eddyline.repr.types import TEXT
from eddyline.sql.ast import AstNode
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, CatalogItem, CatalogView, ColumnDef, ItemKind
from eddyline.sql.grammar import scan_tokens
from eddyline.sql.named_objects import ARTICLES, Locate, existing_relation
from eddyline.sql.statements import ShowObjects

__all__ = ["bind_show_create", "quoted"]

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_FREE = (pg_query_pb2.NO_KEYWORD, pg_query_pb2.UNRESERVED_KEYWORD)


def bind_show_create(kind: ItemKind, range_var: AstNode, catalog: CatalogView, locate: Locate) -> ShowObjects:
    """One row: the qualified name and the statement.  42P01 for an unknown name, 42809 for another kind of object.

    A view's query stands as it was written: objects that were renamed since have their old names in it.
    """
    item = existing_relation(range_var, catalog, locate)
    if item.kind is not kind:
        position = locate(range_var.location)
        raise make_error("42809", f'"{item.name}" is not {ARTICLES[kind]}', position=position)
    name = _qualified(item)
    return ShowObjects(("name", "create_sql"), (TEXT, TEXT), ((name, _statement(item, name, catalog)),))


def _statement(item: CatalogItem, name: str, catalog: CatalogView) -> str:
    match item.kind:
        case ItemKind.TABLE:
            return f"CREATE TABLE {name} ({', '.join(_table_parts(item))})"
        case ItemKind.INDEX:
            on = catalog.item(item.on or "")
            assert on is not None  # an index goes with what it is on
            keys = ", ".join(describe(key, [quoted(c.name) for c in on.columns]) for key in item.keys)
            return f"CREATE INDEX {quoted(item.name)}{_in_cluster(item, catalog)} ON {_qualified(on)} ({keys})"
        case _ if item.definition is None:
            raise make_error("42809", f'"{item.name}" is part of the system: no statement makes it')
        case _:
            columns = ", ".join(quoted(c.name) for c in item.columns)
            cluster = _in_cluster(item, catalog) if item.kind is ItemKind.MATERIALIZED_VIEW else ""
            return f"CREATE {item.kind.value.upper()} {name} ({columns}){cluster} AS {item.definition}"


def _in_cluster(item: CatalogItem, catalog: CatalogView) -> str:
    """Empty for the cluster where it would be without being told."""
    if item.cluster == DEFAULT_CLUSTER_ID:
        return ""
    return "".join(f" IN CLUSTER {quoted(c.name)}" for c in catalog.clusters() if c.id == item.cluster)


def _table_parts(item: CatalogItem) -> list[str]:
    key = f"PRIMARY KEY ({', '.join(quoted(item.columns[i].name) for i in item.primary_key)})"
    return [*map(_column, item.columns), *([key] if item.primary_key else [])]


def _column(column: ColumnDef) -> str:
    default = "" if column.default_text is None else f" DEFAULT {column.default_text}"
    return f"{quoted(column.name)} {column.type}{default}{' NOT NULL' if column.not_null else ''}"


def _qualified(item: CatalogItem) -> str:
    return f"{quoted(item.schema)}.{quoted(item.name)}"


def quoted(name: str) -> str:
    """The name as SQL text, in quotes where it needs them."""
    if _PLAIN.fullmatch(name) and all(t.keyword_kind in _FREE for t in scan_tokens(name)):
        return name
    return '"' + name.replace('"', '""') + '"'
