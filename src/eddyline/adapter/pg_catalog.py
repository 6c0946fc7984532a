"""The rows of ``pg_catalog``: what exists, as PostgreSQL's tools ask for it.

OIDs are bigint, names and one-letter codes text, access rights too, and lists arrays of such.  There is one database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from eddyline.adapter.access_rules import DATABASE_KEY, column_key, schema_key
from eddyline.adapter.pg_objects import (
    DATABASE_OID,
    KEY_OIDS,
    NAMESPACES,
    PG_CATALOG,
    ROLE_OID,
    columns_of_relations,
    identifier,
    key_columns,
    key_name,
    key_oid,
    keyed,
    names_of,
    namespace,
    owner_name,
    quoted,
    relations,
    schemas,
    type_modifier,
)
from eddyline.adapter.pg_sequences import catalog_default, serial_texts
from eddyline.adapter.system_relations import INT2S, INT2VECTOR, OIDS, OIDVECTOR, TEXTS, Contents, Row, sorted_items
from eddyline.expr.array_layout import literal_from_values
from eddyline.expr.describe import describe
from eddyline.expr.ir import Column
from eddyline.repr.type_facts import TYPE_FACTS, TypeFacts
from eddyline.repr.types import Kind, SqlType, is_array
from eddyline.sql.catalog_view import CatalogItem, ColumnDef, ItemKind
from eddyline.sql.role_statements import ALL_RIGHTS
from eddyline.sql.system_functions import DATABASE, oid_of

__all__ = [
    "catalog_texts",
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_auth_members",
    "pg_authid",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_group",
    "pg_index",
    "pg_indexes",
    "pg_matviews",
    "pg_namespace",
    "pg_opclass",
    "pg_roles",
    "pg_shadow",
    "pg_tables",
    "pg_tablespace",
    "pg_type",
    "pg_user",
    "pg_views",
    "role_rights",
]

_HIDDEN: Final = "********"
_HEAP, _BTREE = 2, 403
_RELKINDS: Final = {
    ItemKind.TABLE: "r",
    ItemKind.VIEW: "v",
    ItemKind.MATERIALIZED_VIEW: "m",
    ItemKind.INDEX: "i",
    ItemKind.SEQUENCE: "S",
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


def _index_columns(index: CatalogItem, on: CatalogItem) -> list[str]:
    names = [identifier(c.name) for c in on.columns]
    return [describe(key, names) for key in index.keys]


# -- rows of pg_catalog -----------------------------------------------------------------------------------------------


def _acl(contents: Contents, key: str, kind: str) -> str | None:
    items = contents.access.acl(key, kind)
    return None if items is None else literal_from_values(items, TEXTS)


def pg_namespace(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for name in schemas(contents):
        key = schema_key(name)
        yield namespace(name), name, rules.owner(key), _acl(contents, key, "schema")


def _class_row(
    oid: int, item: tuple[str, str], kind: str, columns: int, owner: int, acl: str | None, *, indexed: bool = False
) -> Row:
    """``item``: schema and name."""
    schema, name = item
    am = _HEAP if kind in "rm" else _BTREE if kind == "i" else 0
    return (
        oid, name, namespace(schema), 0, 0, owner, am, oid, 0, 0, -1.0, 0, 0, indexed, False, "p", kind, columns,
        0, False, False, False, False, False, True, "d" if kind in "rm" else "n", False, acl, None, None,
    )  # fmt: skip


def pg_class(contents: Contents) -> Iterator[Row]:
    indexed, rules = {i.on for i in sorted_items(contents, ItemKind.INDEX)}, contents.access
    for item in sorted_items(contents):
        width = len(item.keys) if item.kind is ItemKind.INDEX else len(item.columns)
        has_index = item.id in indexed or bool(item.primary_key)
        owner, acl = rules.owner(item.on or item.id), _acl(contents, item.id, item.rights_kind)
        named = (item.schema, item.name)
        yield _class_row(oid_of(item.id), named, _RELKINDS[item.kind], width, owner, acl, indexed=has_index)
    for table in keyed(contents):
        named = (table.schema, key_name(table))
        yield _class_row(key_oid(table), named, "i", len(table.primary_key), rules.owner(table.id), None)


def _attribute_row(relation: int, number: int, column: ColumnDef, *, stored: bool, acl: str | None = None) -> Row:
    """``stored``: it is the relation's own column, not an index's."""
    known = TYPE_FACTS[column.type.kind]
    return (
        relation, column.name, known.oid, -1, known.length, number, int(is_array(column.type)),
        type_modifier(column.type),
        known.length in (1, 2, 4, 8), stored and column.not_null, stored and column.default_text is not None,
        column.identity if stored else "", "", False, True, 0,
        _DEFAULT_COLLATION if column.type.kind in _COLLATED else 0, acl, None, _storage(known), "",
    )  # fmt: skip


def pg_attribute(contents: Contents) -> Iterator[Row]:
    for item, number, column in columns_of_relations(contents):
        acl = _acl(contents, column_key(item.id, number - 1), "column")
        yield _attribute_row(oid_of(item.id), number, column, stored=True, acl=acl)
    for on, _, oid, _, names in _index_texts(contents):
        by_name = {identifier(c.name): c for c in on.columns}
        for number, name in enumerate(names, 1):
            if name in by_name:
                yield _attribute_row(oid, number, by_name[name], stored=False)


def pg_attrdef(contents: Contents) -> Iterator[Row]:
    for item, number, column in columns_of_relations(contents):
        if column.default_text is not None:
            default = catalog_default(contents, column, public=None)
            yield oid_of(item.id) * 2000 + number, oid_of(item.id), number, default


def pg_type(contents: Contents) -> Iterator[Row]:
    for kind, t in TYPE_FACTS.items():
        collation = _DEFAULT_COLLATION if kind in _COLLATED else 0
        stem = "array_" if t.name.startswith("_") else t.name
        yield (
            t.oid, t.name, NAMESPACES[PG_CATALOG], ROLE_OID, t.length, t.length in (1, 2, 4, 8), "b", t.category,
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
        False, True, False, literal_from_values(positions, INT2VECTOR), literal_from_values(collations, OIDVECTOR),
        literal_from_values(classes, OIDVECTOR), literal_from_values([0] * len(positions), INT2VECTOR), None, None,
    )  # fmt: skip


def pg_index(contents: Contents) -> Iterator[Row]:
    for index in sorted_items(contents, ItemKind.INDEX):
        on = contents.by_id.get(index.on or "")
        if on is not None:
            positions = [key.index + 1 if isinstance(key, Column) else 0 for key in index.keys]
            valid = index.id not in contents.unbuilt
            yield _index_row(oid_of(index.id), on, positions, primary=False, valid=valid)
    for table in keyed(contents):
        yield _index_row(key_oid(table), table, [c + 1 for c in table.primary_key], primary=True)


def pg_constraint(contents: Contents) -> Iterator[Row]:
    for table in keyed(contents):
        keys = literal_from_values([c + 1 for c in table.primary_key], INT2S)
        yield (
            key_oid(table), key_name(table), namespace(table.schema), "p", False, False, True, oid_of(table.id), 0,
            key_oid(table), 0, "", "", "", keys, None,
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


def pg_opclass(contents: Contents) -> Iterator[Row]:
    for kind, (oid, name) in _OPERATOR_CLASSES.items():
        if kind is not Kind.VARCHAR:
            yield oid, _BTREE, name, NAMESPACES[PG_CATALOG], ROLE_OID, 0, TYPE_FACTS[kind].oid, True, 0


def pg_database(contents: Contents) -> Iterator[Row]:
    acl = _acl(contents, DATABASE_KEY, "database")
    yield DATABASE_OID, DATABASE, ROLE_OID, 6, "c", False, True, -1, "C", "C", None, _DEFAULT_TABLESPACE, acl


def pg_roles(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        yield (
            r.id, r.name, r.superuser, r.inherit, r.createrole, r.createdb, r.login, False, r.connection_limit,
            _HIDDEN, r.valid_until, False, _config(contents.access.settings_of(r.id, in_database=False)),
        )  # fmt: skip


def _config(values: Mapping[str, str]) -> str | None:
    return literal_from_values([f"{n}={v}" for n, v in values.items()], TEXTS) if values else None


def pg_db_role_setting(contents: Contents) -> Iterator[Row]:
    for found in contents.access.settings:
        yield DATABASE_OID if found.in_database else 0, found.role, _config(found.values)


def pg_default_acl(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for number, found in enumerate(rules.defaults, 1):
        where = 0 if found.schema is None else namespace(found.schema)
        acl = literal_from_values(rules.default_acl(found), TEXTS)
        yield number, found.owner, where, {"table": "r", "sequence": "S"}.get(found.kind, "n"), acl


def pg_authid(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        yield (
            r.id, r.name, r.superuser, r.inherit, r.createrole, r.createdb, r.login, False, False, r.connection_limit,
            r.password, r.valid_until,
        )  # fmt: skip


def pg_shadow(contents: Contents) -> Iterator[Row]:
    for r in sorted(contents.access.roles.values(), key=lambda role: role.id):
        if r.login:
            yield r.name, r.id, r.createdb, r.superuser, False, False, r.password, r.valid_until, None


def pg_user(contents: Contents) -> Iterator[Row]:
    yield from ((*row[:6], _HIDDEN, *row[7:]) for row in pg_shadow(contents))


def pg_group(contents: Contents) -> Iterator[Row]:
    rules = contents.access
    for r in sorted(rules.roles.values(), key=lambda role: role.id):
        if not r.login:
            members = [m.member for m in rules.memberships if m.role == r.id]
            yield r.name, r.id, literal_from_values(members, OIDS)


def pg_auth_members(contents: Contents) -> Iterator[Row]:
    yield from ((m.role, m.member, m.grantor, m.admin) for m in contents.access.memberships)


def pg_am(contents: Contents) -> Iterator[Row]:
    yield _HEAP, "heap", "t"
    yield _BTREE, "btree", "i"


def pg_tablespace(contents: Contents) -> Iterator[Row]:
    yield _DEFAULT_TABLESPACE, "pg_default", ROLE_OID, None, None
    yield _DEFAULT_TABLESPACE + 1, "pg_global", ROLE_OID, None, None


def pg_collation(contents: Contents) -> Iterator[Row]:
    yield _DEFAULT_COLLATION, "default", NAMESPACES[PG_CATALOG], ROLE_OID, "d", True, -1, None, None, None, None


def pg_tables(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.TABLE):
        yield item.schema, item.name, owner_name(contents, item.id), None, bool(item.primary_key), False, False, False


def pg_views(contents: Contents) -> Iterator[Row]:
    yield from (
        (i.schema, i.name, owner_name(contents, i.id), i.definition) for i in sorted_items(contents, ItemKind.VIEW)
    )


def pg_matviews(contents: Contents) -> Iterator[Row]:
    for item in sorted_items(contents, ItemKind.MATERIALIZED_VIEW):
        yield item.schema, item.name, owner_name(contents, item.id), None, False, True, item.definition


def _index_texts(contents: Contents) -> Iterator[tuple[CatalogItem, str, int, str, list[str]]]:
    """What is indexed, the index's name and OID, its definition, its columns."""
    for index in sorted_items(contents, ItemKind.INDEX):
        on = contents.by_id.get(index.on or "")
        if on is None:
            continue
        columns = _index_columns(index, on)
        where = f"{identifier(on.schema)}.{identifier(on.name)}"
        text = f"CREATE INDEX {identifier(index.name)} ON {where} USING btree ({', '.join(columns)})"
        yield on, index.name, oid_of(index.id), text, columns
    for table in keyed(contents):
        where = f"{identifier(table.schema)}.{identifier(table.name)}"
        name = identifier(key_name(table))
        text = f"CREATE UNIQUE INDEX {name} ON {where} USING btree ({key_columns(table)})"
        columns = [identifier(table.columns[c].name) for c in table.primary_key]
        yield table, key_name(table), key_oid(table), text, columns


def pg_indexes(contents: Contents) -> Iterator[Row]:
    for on, name, _, text, _ in _index_texts(contents):
        yield on.schema, on.name, name, None, text


def catalog_texts(contents: Contents) -> Iterator[Row]:
    """What functions say of objects: (which function, OID, modifier, text)."""
    for role in contents.access.roles.values():
        yield "role", role.id, 0, identifier(role.name)
    for schema in schemas(contents):
        yield "namespace", namespace(schema), 0, identifier(schema)
    for item in sorted_items(contents):
        yield "name", oid_of(item.id), 0, identifier(item.name)
        yield "schema", oid_of(item.id), 0, item.schema
        yield "relation", oid_of(item.id), 0, f"{item.schema}.{item.name}"
        if item.definition is not None:
            yield "view", oid_of(item.id), 0, f" {item.definition};"
    for on, name, oid, text, columns in _index_texts(contents):
        if oid >= KEY_OIDS:
            yield "name", oid, 0, identifier(name)
            yield "schema", oid, 0, on.schema
        yield "index", oid, 0, text
        yield from (("index column", oid, number, column) for number, column in enumerate(columns, 1))
    yield from serial_texts(contents)
    for table in keyed(contents):
        yield "constraint", key_oid(table), 0, f"PRIMARY KEY ({key_columns(table)})"
    bare = [SqlType(kind) for kind in TYPE_FACTS]
    shown = {
        (TYPE_FACTS[t.kind].oid, type_modifier(t)): str(t)
        for t in (*bare, *(c.type for _, _, c in columns_of_relations(contents)))
    }
    shown.update({(TYPE_FACTS[t.kind].oid, -1): t.kind.value for t in bare})
    yield from (("type", oid, modifier, text) for (oid, modifier), text in shown.items())
    yield from (("type name", known.oid, -1, known.name) for known in TYPE_FACTS.values())


def role_rights(contents: Contents) -> Iterator[Row]:
    """What each role may do: O(roles * objects)."""
    rules = contents.access
    objects = [("database", DATABASE_KEY, DATABASE, (DATABASE, quoted(DATABASE)), DATABASE_OID)]
    objects += [("schema", schema_key(s), s, (s, quoted(s)), namespace(s)) for s in schemas(contents)]
    objects += [(i.rights_kind, i.id, identifier(i.name), names_of(i), oid_of(i.id)) for i in relations(contents)]
    for role in rules.roles.values():
        for kind, key, name, (qualified, in_quotes), oid in objects:
            own_system = kind == "schema" and name not in contents.schemas
            who = role.name, str(role.id), kind, name, qualified, str(oid)
            for right in ALL_RIGHTS[kind]:
                if rules.allows(role, key, right) or (own_system and right == "USAGE"):
                    yield *who, right, in_quotes
                if rules.grantor(role, key, right) is not None:
                    yield *who, f"{right}WITHGRANTOPTION", in_quotes
