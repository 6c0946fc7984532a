"""``pg_catalog`` and ``information_schema``: what exists, as PostgreSQL's tools ask for it.

OIDs are bigint, names and one-letter codes text, access rights too, and lists arrays of such.  There is one database;
what cannot exist here is an empty relation.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from eddyline.adapter.access_rules import DATABASE_KEY, schema_key
from eddyline.adapter.settings_relation import SETTINGS_NAME, SETTINGS_SHAPE
from eddyline.adapter.system_relations import Contents, Row, SystemTable, sorted_items
from eddyline.expr.array_layout import literal_from_values
from eddyline.expr.describe import describe
from eddyline.expr.ir import Column
from eddyline.repr.type_facts import TYPE_FACTS, TypeFacts
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    element_type,
    is_array,
)
from eddyline.sql.catalog_view import CatalogItem, ColumnDef, ItemKind
from eddyline.sql.role_statements import ALL_RIGHTS
from eddyline.sql.system_functions import DATABASE, oid_of

__all__ = ["INFORMATION_SCHEMA", "OF_SUPERUSERS", "PG_CATALOG", "PG_TABLES", "TYPE_IDS", "type_modifier"]

#: relations of ``pg_catalog`` that only superusers read: they have what is kept of passwords
OF_SUPERUSERS: Final = frozenset(("pg_authid", "pg_shadow"))
_HIDDEN: Final = "********"

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
_INTERNAL: Final = "mz_internal"
_ROLE_OID: Final = 10
_DATABASE_OID: Final = 5
_NAMESPACES: Final = {PG_CATALOG: 11, INFORMATION_SCHEMA: 13_000, "public": 2200}
_KEY_OIDS: Final = 1 << 30  # of primary keys' indexes and constraints, which have no item of their own
_SCHEMA_OIDS: Final = 1 << 31
_HEADER: Final = 4
_OIDS: Final = SqlType(Kind.BIGINT_ARRAY)
_TEXTS: Final = SqlType(Kind.TEXT_ARRAY)
_INT2S: Final = SqlType(Kind.SMALLINT_ARRAY)
_INT2VECTOR: Final = SqlType(Kind.INT2VECTOR)
_OIDVECTOR: Final = SqlType(Kind.OIDVECTOR)
_HEAP, _BTREE = 2, 403


#: (OID, length) by kind
TYPE_IDS: Final = {kind: (known.oid, known.length) for kind, known in TYPE_FACTS.items()}
_RELKINDS: Final = {
    ItemKind.TABLE: "r",
    ItemKind.VIEW: "v",
    ItemKind.MATERIALIZED_VIEW: "m",
    ItemKind.INDEX: "i",
}
_COLLATED: Final = (
    Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.TEXT_ARRAY, Kind.VARCHAR_ARRAY, Kind.BPCHAR_ARRAY,
)  # fmt: skip
_DEFAULT_COLLATION: Final = 100
_DEFAULT_TABLESPACE: Final = 1663


def _storage(known: TypeFacts) -> str:
    """PostgreSQL's default for the type: plain, or main or extended where values have many lengths."""
    if known.length != -1:
        return "p"
    return "m" if known.name == "numeric" else "p" if known.name.endswith("vector") else "x"


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


def _namespace(schema: str) -> int:
    return _NAMESPACES.get(schema) or _SCHEMA_OIDS + zlib.crc32(schema.encode())


def _schemas(contents: Contents) -> list[str]:
    return sorted({*contents.schemas, PG_CATALOG, INFORMATION_SCHEMA, "mz_catalog", "mz_internal", "mz_introspection"})


def _relations(contents: Contents) -> list[CatalogItem]:
    return [i for i in sorted_items(contents) if i.kind is not ItemKind.INDEX]


def _keyed(contents: Contents) -> list[CatalogItem]:
    return [i for i in sorted_items(contents, ItemKind.TABLE) if i.primary_key]


def _key_oid(table: CatalogItem) -> int:
    return _KEY_OIDS + oid_of(table.id)


def _key_name(table: CatalogItem) -> str:
    return f"{table.name}_pkey"


def _key_columns(table: CatalogItem) -> str:
    return ", ".join(_identifier(table.columns[c].name) for c in table.primary_key)


def _identifier(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _index_columns(index: CatalogItem, on: CatalogItem) -> list[str]:
    names = [_identifier(c.name) for c in on.columns]
    return [describe(key, names) for key in index.keys]


# -- rows of pg_catalog -----------------------------------------------------------------------------------------------


def _acl(contents: Contents, key: str, kind: str) -> str | None:
    items = contents.access.acl(key, kind)
    return None if items is None else literal_from_values(items, _TEXTS)


def _pg_namespace(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for name in _schemas(contents):
        key = schema_key(name)
        yield _namespace(name), name, rules.owner(key), _acl(contents, key, "schema")


def _class_row(
    oid: int, item: tuple[str, str], kind: str, columns: int, owner: int, acl: str | None, *, indexed: bool = False
) -> Row:
    """``item``: schema and name."""
    schema, name = item
    am = _HEAP if kind in "rm" else _BTREE if kind == "i" else 0
    return (
        oid, name, _namespace(schema), 0, 0, owner, am, oid, 0, 0, -1.0, 0, 0, indexed, False, "p", kind, columns,
        0, False, False, False, False, False, True, "d" if kind in "rm" else "n", False, acl, None, None,
    )  # fmt: skip


def _pg_class(contents: Contents) -> Iterator[Row]:
    indexed, rules = {i.on for i in sorted_items(contents, ItemKind.INDEX)}, contents.access
    for item in sorted_items(contents):
        width = len(item.keys) if item.kind is ItemKind.INDEX else len(item.columns)
        has_index = item.id in indexed or bool(item.primary_key)
        owner, acl = rules.owner(item.on or item.id), _acl(contents, item.id, "table")
        named = (item.schema, item.name)
        yield _class_row(oid_of(item.id), named, _RELKINDS[item.kind], width, owner, acl, indexed=has_index)
    for table in _keyed(contents):
        named = (table.schema, _key_name(table))
        yield _class_row(_key_oid(table), named, "i", len(table.primary_key), rules.owner(table.id), None)


def _attribute_row(relation: int, number: int, column: ColumnDef, *, stored: bool) -> Row:
    """``stored``: it is the relation's own column, not an index's."""
    known = TYPE_FACTS[column.type.kind]
    return (
        relation, column.name, known.oid, -1, known.length, number, int(is_array(column.type)),
        type_modifier(column.type),
        known.length in (1, 2, 4, 8), stored and column.not_null, stored and column.default_text is not None, "", "",
        False, True, 0, _DEFAULT_COLLATION if column.type.kind in _COLLATED else 0, None, None,
        _storage(known), "",
    )  # fmt: skip


def _pg_attribute(contents: Contents) -> Iterator[Row]:
    for item, number, column in _columns(contents):
        yield _attribute_row(oid_of(item.id), number, column, stored=True)
    for on, _, oid, _, names in _index_texts(contents):
        by_name = {_identifier(c.name): c for c in on.columns}
        for number, name in enumerate(names, 1):
            if name in by_name:
                yield _attribute_row(oid, number, by_name[name], stored=False)


def _pg_attrdef(contents: Contents) -> Iterator[Row]:
    for item, number, column in _columns(contents):
        if column.default_text is not None:
            yield oid_of(item.id) * 2000 + number, oid_of(item.id), number, column.default_text


def _pg_type(contents: Contents) -> Iterator[Row]:
    for kind, t in TYPE_FACTS.items():
        collation = _DEFAULT_COLLATION if kind in _COLLATED else 0
        stem = "array_" if t.name.startswith("_") else t.name
        yield (
            t.oid, t.name, _NAMESPACES[PG_CATALOG], _ROLE_OID, t.length, t.length in (1, 2, 4, 8), "b", t.category,
            t.preferred, True, ",", 0, t.element, t.array, f"{stem}in", f"{stem}out", f"{stem}recv", f"{stem}send",
            False, 0, -1, 0, collation, None, None,
            _storage(t),
        )  # fmt: skip


def _index_row(oid: int, on: CatalogItem, positions: list[int], *, primary: bool, valid: bool = True) -> Row:
    types = [on.columns[p - 1].type if p else None for p in positions]
    collations = [_DEFAULT_COLLATION if t is not None and t.kind in _COLLATED else 0 for t in types]
    classes = [_OPERATOR_CLASSES[t.kind].oid if t is not None and t.kind in _OPERATOR_CLASSES else 0 for t in types]
    return (
        oid, oid_of(on.id), len(positions), len(positions), primary, primary, False, True, False, valid, False, True,
        False, True, False, literal_from_values(positions, _INT2VECTOR), literal_from_values(collations, _OIDVECTOR),
        literal_from_values(classes, _OIDVECTOR), literal_from_values([0] * len(positions), _INT2VECTOR), None, None,
    )  # fmt: skip


def _pg_index(contents: Contents) -> Iterator[Row]:
    for index in sorted_items(contents, ItemKind.INDEX):
        on = contents.by_id.get(index.on or "")
        if on is not None:
            positions = [key.index + 1 if isinstance(key, Column) else 0 for key in index.keys]
            valid = index.id not in contents.unbuilt
            yield _index_row(oid_of(index.id), on, positions, primary=False, valid=valid)
    for table in _keyed(contents):
        yield _index_row(_key_oid(table), table, [c + 1 for c in table.primary_key], primary=True)


def _pg_constraint(contents: Contents) -> Iterator[Row]:
    for table in _keyed(contents):
        keys = literal_from_values([c + 1 for c in table.primary_key], _INT2S)
        yield (
            _key_oid(table), _key_name(table), _namespace(table.schema), "p", False, False, True, oid_of(table.id), 0,
            _key_oid(table), 0, "", "", "", keys, None,
        )  # fmt: skip


class _OperatorClass(NamedTuple):
    oid: int
    name: str


#: the ones that btree indexes have unless another is named
_OPERATOR_CLASSES: Final = {
    Kind.BOOLEAN: _OperatorClass(424, "bool_ops"),
    Kind.BYTEA: _OperatorClass(428, "bytea_ops"),
    Kind.BIGINT: _OperatorClass(3124, "int8_ops"),
    Kind.SMALLINT: _OperatorClass(1979, "int2_ops"),
    Kind.INTEGER: _OperatorClass(1978, "int4_ops"),
    Kind.TEXT: _OperatorClass(3126, "text_ops"),
    Kind.VARCHAR: _OperatorClass(3126, "text_ops"),
    Kind.BPCHAR: _OperatorClass(426, "bpchar_ops"),
    Kind.DATE: _OperatorClass(3122, "date_ops"),
    Kind.NUMERIC: _OperatorClass(3125, "numeric_ops"),
    Kind.TIMESTAMPTZ: _OperatorClass(3127, "timestamptz_ops"),
    Kind.TIMESTAMP: _OperatorClass(3128, "timestamp_ops"),
    Kind.TIME: _OperatorClass(10050, "time_ops"),
    Kind.REAL: _OperatorClass(10022, "float4_ops"),
    Kind.DOUBLE: _OperatorClass(3123, "float8_ops"),
    Kind.INTERVAL: _OperatorClass(10035, "interval_ops"),
    Kind.UUID: _OperatorClass(10061, "uuid_ops"),
}


def _pg_opclass(contents: Contents) -> Iterator[Row]:
    for kind, (oid, name) in _OPERATOR_CLASSES.items():
        if kind is not Kind.VARCHAR:
            yield oid, _BTREE, name, _NAMESPACES[PG_CATALOG], _ROLE_OID, 0, TYPE_FACTS[kind].oid, True, 0


def _pg_database(contents: Contents) -> Iterator[Row]:
    acl = _acl(contents, DATABASE_KEY, "database")
    yield _DATABASE_OID, DATABASE, _ROLE_OID, 6, "c", False, True, -1, "C", "C", None, _DEFAULT_TABLESPACE, acl


def _pg_roles(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        yield (
            r.id, r.name, r.superuser, r.inherit, r.createrole, r.createdb, r.login, False, r.connection_limit,
            _HIDDEN, r.valid_until, False, _config(contents.access.settings_of(r.id, in_database=False)),
        )  # fmt: skip


def _config(values: Mapping[str, str]) -> str | None:
    return literal_from_values([f"{n}={v}" for n, v in values.items()], _TEXTS) if values else None


def _pg_db_role_setting(contents: Contents) -> Iterator[Row]:
    for found in contents.access.settings:
        yield _DATABASE_OID if found.in_database else 0, found.role, _config(found.values)


def _pg_default_acl(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for number, found in enumerate(rules.defaults, 1):
        where = 0 if found.schema is None else _namespace(found.schema)
        acl = literal_from_values(rules.default_acl(found), _TEXTS)
        yield number, found.owner, where, "r" if found.kind == "table" else "n", acl


def _pg_authid(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        yield (
            r.id, r.name, r.superuser, r.inherit, r.createrole, r.createdb, r.login, False, False, r.connection_limit,
            r.password, r.valid_until,
        )  # fmt: skip


def _pg_shadow(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        if r.login:
            yield r.name, r.id, r.createdb, r.superuser, False, False, r.password, r.valid_until, None


def _pg_user(contents: Contents) -> Iterator[Row]:
    yield from ((*row[:6], _HIDDEN, *row[7:]) for row in _pg_shadow(contents))


def _pg_group(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for r in sorted(rules.roles.values(), key=lambda role: role.id):
        if not r.login:
            members = [m.member for m in rules.memberships if m.role == r.id]
            yield r.name, r.id, literal_from_values(members, _OIDS)


def _pg_auth_members(contents: Contents) -> Iterator[Row]:
    yield from ((m.role, m.member, m.grantor, m.admin) for m in contents.access.memberships)


def _owner_name(contents: Contents, key: str) -> str:
    return contents.access.named(contents.access.owner(key)).name


def _pg_am(contents: Contents) -> Iterator[Row]:
    yield _HEAP, "heap", "t"
    yield _BTREE, "btree", "i"


def _pg_tablespace(contents: Contents) -> Iterator[Row]:
    yield _DEFAULT_TABLESPACE, "pg_default", _ROLE_OID, None, None
    yield _DEFAULT_TABLESPACE + 1, "pg_global", _ROLE_OID, None, None


def _pg_collation(contents: Contents) -> Iterator[Row]:
    yield _DEFAULT_COLLATION, "default", _NAMESPACES[PG_CATALOG], _ROLE_OID, "d", True, -1, None, None, None, None


def _pg_tables(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.TABLE):
        yield item.schema, item.name, _owner_name(contents, item.id), None, bool(item.primary_key), False, False, False


def _pg_views(contents: Contents) -> Iterator[Row]:
    yield from (
        (i.schema, i.name, _owner_name(contents, i.id), i.definition) for i in sorted_items(contents, ItemKind.VIEW)
    )


def _pg_matviews(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.MATERIALIZED_VIEW):
        yield item.schema, item.name, _owner_name(contents, item.id), None, False, True, item.definition


def _index_texts(contents: Contents) -> Iterator[tuple[CatalogItem, str, int, str, list[str]]]:
    """What is indexed, the index's name and OID, its definition, its columns."""
    for index in sorted_items(contents, ItemKind.INDEX):
        on = contents.by_id.get(index.on or "")
        if on is None:
            continue
        columns = _index_columns(index, on)
        where = f"{_identifier(on.schema)}.{_identifier(on.name)}"
        text = f"CREATE INDEX {_identifier(index.name)} ON {where} USING btree ({', '.join(columns)})"
        yield on, index.name, oid_of(index.id), text, columns
    for table in _keyed(contents):
        where = f"{_identifier(table.schema)}.{_identifier(table.name)}"
        name = _identifier(_key_name(table))
        text = f"CREATE UNIQUE INDEX {name} ON {where} USING btree ({_key_columns(table)})"
        columns = [_identifier(table.columns[c].name) for c in table.primary_key]
        yield table, _key_name(table), _key_oid(table), text, columns


def _pg_indexes(contents: Contents) -> Iterator[Row]:
    for on, name, _, text, _ in _index_texts(contents):
        yield on.schema, on.name, name, None, text


def _catalog_texts(contents: Contents) -> Iterator[Row]:
    """What functions say of objects: (which function, OID, modifier, text)."""
    for role in contents.access.roles.values():
        yield "role", role.id, 0, _identifier(role.name)
    for schema in _schemas(contents):
        yield "namespace", _namespace(schema), 0, _identifier(schema)
    for item in sorted_items(contents):
        yield "name", oid_of(item.id), 0, _identifier(item.name)
        yield "schema", oid_of(item.id), 0, item.schema
        yield "relation", oid_of(item.id), 0, f"{item.schema}.{item.name}"
        if item.definition is not None:
            yield "view", oid_of(item.id), 0, f" {item.definition};"
    for on, name, oid, text, columns in _index_texts(contents):
        if oid >= _KEY_OIDS:
            yield "name", oid, 0, _identifier(name)
            yield "schema", oid, 0, on.schema
        yield "index", oid, 0, text
        yield from (("index column", oid, number, column) for number, column in enumerate(columns, 1))
    for table in _keyed(contents):
        yield "constraint", _key_oid(table), 0, f"PRIMARY KEY ({_key_columns(table)})"
    bare = [SqlType(kind) for kind in TYPE_FACTS]
    shown = {
        (TYPE_FACTS[t.kind].oid, type_modifier(t)): str(t) for t in (*bare, *(c.type for _, _, c in _columns(contents)))
    }
    shown.update({(TYPE_FACTS[t.kind].oid, -1): t.kind.value for t in bare})
    yield from (("type", oid, modifier, text) for (oid, modifier), text in shown.items())
    yield from (("type name", known.oid, -1, known.name) for known in TYPE_FACTS.values())


def _role_rights(contents: Contents) -> Iterator[Row]:
    """What each role may do: O(roles * objects)."""
    rules = contents.access
    objects = [("database", DATABASE_KEY, DATABASE, DATABASE, _DATABASE_OID)]
    objects += [("schema", schema_key(name), name, name, _namespace(name)) for name in _schemas(contents)]
    objects += [
        ("table", i.id, _identifier(i.name), f"{_identifier(i.schema)}.{_identifier(i.name)}", oid_of(i.id))
        for i in _relations(contents)
    ]
    for role in rules.roles.values():
        for kind, key, name, qualified, oid in objects:
            own_system = kind == "schema" and name not in contents.schemas
            for right in ALL_RIGHTS[kind]:
                if rules.allows(role, key, right) or (own_system and right == "USAGE"):
                    yield role.name, str(role.id), kind, name, qualified, str(oid), right


# -- rows of information_schema ------------------------------------------------------------


def _columns(contents: Contents) -> Iterator[tuple[CatalogItem, int, ColumnDef]]:
    for item in _relations(contents):
        for number, column in enumerate(item.columns, 1):
            yield item, number, column


def _is_schemata(contents: Contents) -> Iterator[Row]:
    yield from ((DATABASE, name, _owner_name(contents, schema_key(name))) for name in _schemas(contents))


def _is_tables(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.TABLE, ItemKind.VIEW):
        table = item.kind is ItemKind.TABLE
        yield DATABASE, item.schema, item.name, "BASE TABLE" if table else "VIEW", "YES" if table else "NO"


def _is_views(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.VIEW):
        yield DATABASE, item.schema, item.name, item.definition, "NONE", "NO", "NO"


_INTEGER_BITS: Final = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_BITS: Final = {Kind.REAL: 24, Kind.DOUBLE: 53}
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)


def _is_columns(contents: Contents) -> Iterator[Row]:
    for item, number, column in _columns(contents):
        if item.kind is ItemKind.MATERIALIZED_VIEW:
            continue
        kind, array = column.type.kind, is_array(column.type)
        bits = {**_INTEGER_BITS, **_FLOAT_BITS}.get(kind)
        numeric = kind is Kind.NUMERIC and column.type.precision is not None
        digits = 6 if column.type.precision is None else column.type.precision
        yield (
            DATABASE, item.schema, item.name, column.name, number, column.default_text,
            "NO" if column.not_null else "YES", "ARRAY" if array else kind.value,
            None if array else column.type.length,
            column.type.precision if numeric else bits,
            10 if kind is Kind.NUMERIC else 2 if bits else None,
            (column.type.scale or 0) if numeric else 0 if kind in _INTEGER_BITS else None,
            digits if kind in _TIMES else 0 if kind is Kind.DATE else None,
            DATABASE, PG_CATALOG, TYPE_FACTS[kind].name, "NO", "NEVER",
            "YES" if item.kind is ItemKind.TABLE else "NO",
        )  # fmt: skip


def _is_table_constraints(contents: Contents) -> Iterator[Row]:
    for table in _keyed(contents):
        yield (
            DATABASE, table.schema, _key_name(table), DATABASE, table.schema, table.name, "PRIMARY KEY", "NO", "NO",
            "YES",
        )  # fmt: skip


def _is_key_column_usage(contents: Contents) -> Iterator[Row]:
    for table in _keyed(contents):
        for number, position in enumerate(table.primary_key, 1):
            names = (DATABASE, table.schema, _key_name(table), DATABASE, table.schema, table.name)
            yield *names, table.columns[position].name, number, None


# -- all of them ------------------------------------------------------------

_LETTERS: Final = {
    "o": BIGINT, "t": TEXT, "b": BOOLEAN, "i": INTEGER, "s": SMALLINT, "r": REAL, "d": DOUBLE, "z": TIMESTAMPTZ,
    "T": _TEXTS, "S": _INT2S, "O": _OIDS, "V": _INT2VECTOR, "W": _OIDVECTOR,
}  # fmt: skip


def _shape(text: str) -> tuple[tuple[str, SqlType], ...]:
    """``name:letter`` each; without a letter it is text."""
    pairs = (word.partition(":") for word in text.split())
    return tuple((name, _LETTERS[letter or "t"]) for name, _, letter in pairs)


def _none(contents: Contents) -> Iterator[Row]:
    return iter(())


def _table(schema: str, name: str, shape: str, rows: Callable[[Contents], Iterator[Row]] = _none) -> SystemTable:
    return SystemTable(schema, name, _shape(shape), rows)


PG_TABLES: Final[tuple[SystemTable, ...]] = (
    _table(PG_CATALOG, "pg_namespace", "oid:o nspname nspowner:o nspacl:T", _pg_namespace),
    _table(
        PG_CATALOG,
        "pg_class",
        "oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o "
        "relpages:i reltuples:r relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence "
        "relkind relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b "
        "relforcerowsecurity:b relispopulated:b relreplident relispartition:b relacl:T reloptions:T relpartbound",
        _pg_class,
    ),
    _table(
        PG_CATALOG,
        "pg_attribute",
        "attrelid:o attname atttypid:o attstattarget:i attlen:s attnum:s attndims:i atttypmod:i attbyval:b "
        "attnotnull:b atthasdef:b attidentity attgenerated attisdropped:b attislocal:b attinhcount:i "
        "attcollation:o attacl:T attoptions:T attstorage attcompression",
        _pg_attribute,
    ),
    _table(PG_CATALOG, SETTINGS_NAME, SETTINGS_SHAPE),  # a session gives its rows
    _table(PG_CATALOG, "pg_attrdef", "oid:o adrelid:o adnum:s adbin", _pg_attrdef),
    _table(
        PG_CATALOG,
        "pg_type",
        "oid:o typname typnamespace:o typowner:o typlen:s typbyval:b typtype typcategory typispreferred:b "
        "typisdefined:b typdelim typrelid:o typelem:o typarray:o typinput typoutput typreceive typsend "
        "typnotnull:b typbasetype:o typtypmod:i typndims:i typcollation:o typdefault typacl:T typstorage",
        _pg_type,
    ),
    _table(
        PG_CATALOG,
        "pg_index",
        "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indisprimary:b indisexclusion:b "
        "indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indnullsnotdistinct:b indislive:b "
        "indisreplident:b indkey:V indcollation:W indclass:W indoption:V indexprs indpred",
        _pg_index,
    ),
    _table(
        PG_CATALOG,
        "pg_constraint",
        "oid:o conname connamespace:o contype condeferrable:b condeferred:b convalidated:b conrelid:o "
        "contypid:o conindid:o confrelid:o confupdtype confdeltype confmatchtype conkey:S confkey:S",
        _pg_constraint,
    ),
    _table(
        PG_CATALOG,
        "pg_database",
        "oid:o datname datdba:o encoding:i datlocprovider datistemplate:b datallowconn:b datconnlimit:i "
        "datcollate datctype daticulocale dattablespace:o datacl:T",
        _pg_database,
    ),
    _table(
        PG_CATALOG,
        "pg_roles",
        "oid:o rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b "
        "rolconnlimit:i rolpassword rolvaliduntil:z rolbypassrls:b rolconfig:T",
        _pg_roles,
    ),
    _table(
        PG_CATALOG,
        "pg_authid",
        "oid:o rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b "
        "rolbypassrls:b rolconnlimit:i rolpassword rolvaliduntil:z",
        _pg_authid,
    ),
    _table(
        PG_CATALOG,
        "pg_shadow",
        "usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:T",
        _pg_shadow,
    ),
    _table(
        PG_CATALOG,
        "pg_user",
        "usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:T",
        _pg_user,
    ),
    _table(PG_CATALOG, "pg_group", "groname grosysid:o grolist:O", _pg_group),
    _table(PG_CATALOG, "pg_am", "oid:o amname amtype", _pg_am),
    _table(
        PG_CATALOG,
        "pg_collation",
        "oid:o collname collnamespace:o collowner:o collprovider collisdeterministic:b collencoding:i collcollate "
        "collctype colliculocale collversion",
        _pg_collation,
    ),
    _table(
        PG_CATALOG,
        "pg_tables",
        "schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b",
        _pg_tables,
    ),
    _table(PG_CATALOG, "pg_views", "schemaname viewname viewowner definition", _pg_views),
    _table(
        PG_CATALOG,
        "pg_matviews",
        "schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition",
        _pg_matviews,
    ),
    _table(PG_CATALOG, "pg_indexes", "schemaname tablename indexname tablespace indexdef", _pg_indexes),
    _table(
        PG_CATALOG,
        "pg_proc",
        "oid:o proname pronamespace:o proowner:o prolang:o prokind prosecdef:b proleakproof:b proisstrict:b "
        "proretset:b provolatile proparallel pronargs:s prorettype:o proargtypes:W prosrc proacl:T",
    ),
    _table(PG_CATALOG, "pg_description", "objoid:o classoid:o objsubid:i description"),
    _table(PG_CATALOG, "pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    _table(PG_CATALOG, "pg_enum", "oid:o enumtypid:o enumsortorder:r enumlabel"),
    _table(PG_CATALOG, "pg_range", "rngtypid:o rngsubtype:o rngmultitypid:o"),
    _table(PG_CATALOG, "pg_trigger", "oid:o tgrelid:o tgname tgisinternal:b tgenabled"),
    _table(PG_CATALOG, "pg_extension", "oid:o extname extowner:o extnamespace:o extrelocatable:b extversion"),
    _table(PG_CATALOG, "pg_auth_members", "roleid:o member:o grantor:o admin_option:b", _pg_auth_members),
    _table(PG_CATALOG, "pg_partitioned_table", "partrelid:o partstrat partnatts:s"),
    _table(
        PG_CATALOG,
        "pg_sequence",
        "seqrelid:o seqtypid:o seqstart:o seqincrement:o seqmax:o seqmin:o seqcache:o seqcycle:b",
    ),
    _table(PG_CATALOG, "pg_sequences", "schemaname sequencename sequenceowner"),
    _table(PG_CATALOG, "pg_policy", "oid:o polname polrelid:o polcmd polpermissive:b polroles:O polqual polwithcheck"),
    _table(
        PG_CATALOG,
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname stxnamespace:o stxowner:o stxstattarget:i stxkeys:V stxkind:T",
    ),
    _table(
        PG_CATALOG,
        "pg_publication",
        "oid:o pubname pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b",
    ),
    _table(PG_CATALOG, "pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    _table(PG_CATALOG, "pg_publication_rel", "oid:o prpubid:o prrelid:o prqual prattrs:V"),
    _table(PG_CATALOG, "pg_rewrite", "oid:o rulename ev_class:o ev_type ev_enabled is_instead:b"),
    _table(PG_CATALOG, "pg_depend", "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype"),
    _table(PG_CATALOG, "pg_foreign_table", "ftrelid:o ftserver:o ftoptions:T"),
    _table(PG_CATALOG, "pg_tablespace", "oid:o spcname spcowner:o spcacl:T spcoptions:T", _pg_tablespace),
    _table(
        PG_CATALOG,
        "pg_language",
        "oid:o lanname lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o lanacl:T",
    ),
    _table(
        PG_CATALOG,
        "pg_operator",
        "oid:o oprname oprnamespace:o oprowner:o oprkind oprleft:o oprright:o oprresult:o oprcode",
    ),
    _table(
        PG_CATALOG,
        "pg_opclass",
        "oid:o opcmethod:o opcname opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b opckeytype:o",
        _pg_opclass,
    ),
    _table(PG_CATALOG, "pg_opfamily", "oid:o opfmethod:o opfname opfnamespace:o opfowner:o"),
    _table(PG_CATALOG, "pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext castmethod"),
    _table(
        PG_CATALOG,
        "pg_conversion",
        "oid:o conname connamespace:o conowner:o conforencoding:i contoencoding:i conproc condefault:b",
    ),
    _table(PG_CATALOG, "pg_event_trigger", "oid:o evtname evtevent evtowner:o evtfoid:o evtenabled evttags:T"),
    _table(PG_CATALOG, "pg_db_role_setting", "setdatabase:o setrole:o setconfig:T", _pg_db_role_setting),
    _table(
        PG_CATALOG, "pg_default_acl", "oid:o defaclrole:o defaclnamespace:o defaclobjtype defaclacl:T", _pg_default_acl
    ),
    _table(
        PG_CATALOG, "pg_foreign_server", "oid:o srvname srvowner:o srvfdw:o srvtype srvversion srvacl:T srvoptions:T"
    ),
    _table(
        PG_CATALOG,
        "pg_foreign_data_wrapper",
        "oid:o fdwname fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:T fdwoptions:T",
    ),
    _table(PG_CATALOG, "pg_shdescription", "objoid:o classoid:o description"),
    _table(INFORMATION_SCHEMA, "schemata", "catalog_name schema_name schema_owner", _is_schemata),
    _table(
        INFORMATION_SCHEMA, "tables", "table_catalog table_schema table_name table_type is_insertable_into", _is_tables
    ),
    _table(
        INFORMATION_SCHEMA,
        "views",
        "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into",
        _is_views,
    ),
    _table(
        INFORMATION_SCHEMA,
        "columns",
        "table_catalog table_schema table_name column_name ordinal_position:i column_default is_nullable "
        "data_type character_maximum_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i "
        "datetime_precision:i udt_catalog udt_schema udt_name is_identity is_generated is_updatable",
        _is_columns,
    ),
    _table(
        INFORMATION_SCHEMA,
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "constraint_type is_deferrable initially_deferred enforced",
        _is_table_constraints,
    ),
    _table(
        INFORMATION_SCHEMA,
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "column_name ordinal_position:i position_in_unique_constraint:i",
        _is_key_column_usage,
    ),
    _table(
        INFORMATION_SCHEMA,
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog "
        "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
    ),
    _table(INFORMATION_SCHEMA, "routines", "specific_catalog specific_schema specific_name routine_name routine_type"),
    _table(
        _INTERNAL,
        "mz_role_rights",
        "role_name role_oid object_kind object_name qualified_name object_oid right_name",
        _role_rights,
    ),
    _table(_INTERNAL, "mz_catalog_texts", "fn_kind fn_oid:o fn_modifier:i fn_text", _catalog_texts),
)
