"""What PostgreSQL's catalogs say of every object: its names and OIDs, and numbers for its types."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from eddyline.adapter.system_relations import Contents, sorted_items
from eddyline.repr.type_facts import TYPE_FACTS
from eddyline.repr.types import Kind, SqlType, element_type, is_array
from eddyline.sql.catalog_view import CatalogItem, ColumnDef, ItemKind
from eddyline.sql.system_functions import oid_of

__all__ = [
    "DATABASE_OID",
    "INFORMATION_SCHEMA",
    "KEY_OIDS",
    "NAMESPACES",
    "PG_CATALOG",
    "ROLE_OID",
    "TYPE_IDS",
    "columns_of_relations",
    "identifier",
    "key_columns",
    "key_name",
    "key_oid",
    "keyed",
    "names_of",
    "namespace",
    "owner_name",
    "quoted",
    "relations",
    "schemas",
    "type_modifier",
]

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
#: of the role that the database begins with
ROLE_OID: Final = 10
DATABASE_OID: Final = 5
NAMESPACES: Final = {PG_CATALOG: 11, INFORMATION_SCHEMA: 13_000, "public": 2200}
#: of primary keys' indexes and constraints, which have no item of their own: at least this
KEY_OIDS: Final = 1 << 30
_SCHEMA_OIDS: Final = 1 << 31
_HEADER: Final = 4
#: (OID, length) by kind
TYPE_IDS: Final = {kind: (known.oid, known.length) for kind, known in TYPE_FACTS.items()}


def type_modifier(sql_type: SqlType) -> int:
    """PostgreSQL's ``atttypmod``, of an array its elements'; -1 for none."""
    if is_array(sql_type):
        return type_modifier(element_type(sql_type))
    if sql_type.length is not None:
        return sql_type.length + _HEADER
    if sql_type.precision is None:
        return -1
    if sql_type.kind is Kind.NUMERIC:
        return ((sql_type.precision << 16) | ((sql_type.scale or 0) & 0x7FF)) + _HEADER
    return sql_type.precision


def namespace(schema: str) -> int:
    """The schema's OID."""
    return NAMESPACES.get(schema) or _SCHEMA_OIDS + (zlib.crc32(schema.encode()) >> 1)  # below 2^32


def schemas(contents: Contents) -> list[str]:
    """All names, the system's too."""
    return sorted({*contents.schemas, PG_CATALOG, INFORMATION_SCHEMA, "mz_catalog", "mz_internal", "mz_introspection"})


def relations(contents: Contents) -> list[CatalogItem]:
    """Tables and views, oldest first."""
    return [i for i in sorted_items(contents) if i.kind is not ItemKind.INDEX]


def columns_of_relations(contents: Contents) -> Iterator[tuple[CatalogItem, int, ColumnDef]]:
    """Each with its relation and its number, from 1."""
    for item in relations(contents):
        for number, column in enumerate(item.columns, 1):
            yield item, number, column


def owner_name(contents: Contents, key: str) -> str:
    """``key``: of the object, as in ``access_rules``."""
    return contents.access.named(contents.access.owner(key)).name


def keyed(contents: Contents) -> list[CatalogItem]:
    """Tables with a primary key, oldest first."""
    return [i for i in sorted_items(contents, ItemKind.TABLE) if i.primary_key]


def key_oid(table: CatalogItem) -> int:
    """Of its primary key's index, and of the constraint."""
    return KEY_OIDS + oid_of(table.id)


def key_name(table: CatalogItem) -> str:
    """Of its primary key's index, and of the constraint."""
    return f"{table.name}_pkey"


def key_columns(table: CatalogItem) -> str:
    """Of its primary key, as SQL lists them."""
    return ", ".join(identifier(table.columns[c].name) for c in table.primary_key)


def identifier(name: str) -> str:
    """As SQL has it: in quotes where it needs them."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()
    return name if plain else quoted(name)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def names_of(item: CatalogItem) -> tuple[str, str]:
    """Its name with its schema's, in quotes where they have to be, and all in quotes."""
    return f"{identifier(item.schema)}.{identifier(item.name)}", f"{quoted(item.schema)}.{quoted(item.name)}"
