"""SHOW CREATE: the statement that makes an object as it is now."""

from __future__ import annotations

import re

from postgast import pg_query_pb2

from eddyline.errors import make_error
from eddyline.expr.describe import describe
from eddyline.expr.ir import Call, Cast
from eddyline.repr.types import TEXT, Kind
from eddyline.sql.ast import AstNode
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, CatalogItem, CatalogView, ItemKind, SequenceDef
from eddyline.sql.grammar import scan_tokens
from eddyline.sql.named_objects import ARTICLES, Locate, existing_relation
from eddyline.sql.sequence_options import SequenceOptions, first_definition
from eddyline.sql.shown_defaults import default_shown, sequences_in
from eddyline.sql.statements import ShowObjects

__all__ = ["bind_show_create", "quoted"]

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_SERIAL = {Kind.SMALLINT: "smallserial", Kind.INTEGER: "serial", Kind.BIGINT: "bigserial"}
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
            return f"CREATE TABLE {name} ({', '.join(_table_parts(item, catalog))})"
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


def _table_parts(item: CatalogItem, catalog: CatalogView) -> list[str]:
    key = f"PRIMARY KEY ({', '.join(quoted(item.columns[i].name) for i in item.primary_key)})"
    columns = [_column(item, position, catalog) for position in range(len(item.columns))]
    return [*columns, *([key] if item.primary_key else [])]


def _column(item: CatalogItem, position: int, catalog: CatalogView) -> str:
    """``serial`` where that makes the same again, with a sequence of the column's own."""
    column = item.columns[position]
    not_null = " NOT NULL" if column.not_null else ""
    own = _own_sequence(item, position, catalog)
    if own is not None and column.identity:
        generated = "ALWAYS" if column.identity == "a" else "BY DEFAULT"
        return f"{quoted(column.name)} {column.type} GENERATED {generated} AS IDENTITY{_identity_options(own)}"
    if own is not None and column.not_null and not _said(own) and own.type == column.type:
        return f"{quoted(column.name)} {_SERIAL[column.type.kind]}"
    default = default_shown(column, catalog)
    return f"{quoted(column.name)} {column.type}{'' if default is None else f' DEFAULT {default}'}{not_null}"


def _own_sequence(item: CatalogItem, position: int, catalog: CatalogView) -> SequenceDef | None:
    """What the column's default is the next value of, if that goes with the column."""
    column = item.columns[position]
    value = column.default.input if isinstance(column.default, Cast) else column.default
    if not isinstance(value, Call) or value.func != "nextval":
        return None
    found = [sequence for id in sequences_in(value) if (sequence := catalog.item(id)) is not None]
    own = found[0].sequence if found else None
    return own if own is not None and own.owner == (item.id, position) else None


def _said(of: SequenceDef) -> list[str]:
    """The options that are not those that a sequence has by default."""
    usual = first_definition(SequenceOptions(type=of.type, increment=of.increment), "")
    said = {
        f"START {of.start}": of.start != usual.start,
        f"INCREMENT {of.increment}": of.increment != 1,
        f"MINVALUE {of.minimum}": of.minimum != usual.minimum,
        f"MAXVALUE {of.maximum}": of.maximum != usual.maximum,
        f"CACHE {of.cache}": of.cache != 1,
        "CYCLE": of.cycle,
    }
    return [words for words, differs in said.items() if differs]


def _identity_options(of: SequenceDef) -> str:
    said = _said(of)
    return f" ({' '.join(said)})" if said else ""


def _qualified(item: CatalogItem) -> str:
    return f"{quoted(item.schema)}.{quoted(item.name)}"


def quoted(name: str) -> str:
    """The name as SQL text, in quotes where it needs them."""
    if _PLAIN.fullmatch(name) and all(t.keyword_kind in _FREE for t in scan_tokens(name)):
        return name
    return '"' + name.replace('"', '""') + '"'
