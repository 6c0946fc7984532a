"""DROP, TRUNCATE, CREATE SCHEMA and ALTER … RENAME: statements that are little more than names."""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.sql.ast import AstNode, enum_name, expect_fields, name_list, unwrap
from eddyline.sql.bind_roles import role_name
from eddyline.sql.catalog_view import ItemKind
from eddyline.sql.named_objects import existing_relation
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import AlterRename, CreateSchema, Drop, DropSchema, Statement, Truncate

__all__ = ["bind_create_schema", "bind_drop", "bind_rename", "bind_truncate"]

_KINDS: Final = {
    "OBJECT_TABLE": ItemKind.TABLE,
    "OBJECT_VIEW": ItemKind.VIEW,
    "OBJECT_MATVIEW": ItemKind.MATERIALIZED_VIEW,
    "OBJECT_INDEX": ItemKind.INDEX,
    "OBJECT_SEQUENCE": ItemKind.SEQUENCE,
}


def bind_drop(binding: StatementBinding) -> Statement:
    """Names stay as written: the catalog decides what they mean when it drops."""
    node = binding.parsed.node
    expect_fields(node, ("objects", "remove_type", "behavior", "missing_ok", "concurrent"))
    what = enum_name(node, "remove_type")
    cascade = enum_name(node, "behavior") == "DROP_CASCADE"
    if what == "OBJECT_SCHEMA":
        return DropSchema(name_list(node.objects), node.missing_ok, cascade)
    if what not in _KINDS:
        raise unsupported(f"DROP {what.removeprefix('OBJECT_').replace('_', ' ')}")
    names = tuple(_qualified(unwrap(o).items) for o in node.objects)
    return Drop(_KINDS[what], names, node.missing_ok, cascade)


def _qualified(nodes: AstNode) -> tuple[str | None, str]:
    names = name_list(nodes)
    if len(names) > 2:
        raise make_error("0A000", f'cross-database references are not implemented: "{".".join(names)}"')
    return (names[0], names[1]) if len(names) == 2 else (None, names[0])


def bind_truncate(binding: StatementBinding) -> Statement:
    """CASCADE has nothing to act on: there are no foreign keys."""
    tables = []
    for range_var in map(unwrap, binding.parsed.node.relations):
        item = existing_relation(range_var, binding.catalog, binding.locate)
        if item.kind is not ItemKind.TABLE:
            raise make_error("42809", f'"{item.name}" is not a table')
        if item not in tables:
            tables.append(item)
    return Truncate(tuple(tables), bool(binding.parsed.node.restart_seqs))


def bind_create_schema(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    if node.schema_elts:
        raise unsupported("CREATE SCHEMA with elements")
    expect_fields(node, ("schemaname", "if_not_exists", "authrole"))
    owner = role_name(node.authrole) if node.HasField("authrole") else None
    return CreateSchema(node.schemaname or str(owner), node.if_not_exists, owner)


def bind_rename(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    what = enum_name(node, "rename_type")
    if what not in _KINDS:
        raise unsupported(f"ALTER … RENAME {what.removeprefix('OBJECT_').replace('_', ' ')}")
    target = node.relation
    name = (target.schemaname or None, target.relname)
    return AlterRename(_KINDS[what], name, node.newname, node.missing_ok)
