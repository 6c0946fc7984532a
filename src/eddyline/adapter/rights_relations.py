"""Who has which rights, as relations: those of ``information_schema``, and what ``has_column_privilege`` asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from eddyline.adapter.access_rules import PUBLIC, AccessRules, column_key
from eddyline.adapter.pg_objects import INFORMATION_SCHEMA, identifier, names_of
from eddyline.adapter.system_relations import Contents, Row, Viewer, seen_table, sorted_items, system_table
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.role_statements import ALL_RIGHTS
from eddyline.sql.system_functions import DATABASE, oid_of

__all__ = ["RIGHTS_TABLES", "enabled_roles"]

_INTERNAL: Final = "mz_internal"
_TABLE_COLUMNS: Final = (
    "grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy"
)
_COLUMN_COLUMNS: Final = "grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable"


def _tables(contents: Contents) -> list[CatalogItem]:
    """What ``information_schema`` speaks of: the standard has no materialized views."""
    return sorted_items(contents, ItemKind.TABLE, ItemKind.VIEW)


def _column_rights(contents: Contents) -> Iterator[Row]:
    """What each role may do with each column: O(roles * columns)."""
    rules = contents.access
    for role in rules.roles.values():
        for item in sorted_items(contents):
            if item.kind is ItemKind.INDEX or item.rights_kind != "table":
                continue
            qualified, in_quotes = names_of(item)
            for position, column in enumerate(item.columns):
                who = role.name, str(role.id), identifier(item.name), qualified, in_quotes, str(oid_of(item.id))
                for right in ALL_RIGHTS["column"]:
                    if rules.allows_columns(role, item, right, (position,)):
                        yield *who, column.name, str(position + 1), right
                    if rules.grantor(role, column_key(item.id, position), right) is not None:
                        yield *who, column.name, str(position + 1), f"{right}WITHGRANTOPTION"


class _Given(NamedTuple):
    """A right of a table or a column, by whom and to whom: roles' ids."""

    grantor: int
    grantee: int
    right: str
    grantable: bool


def _given(rules: AccessRules, key: str, kind: str) -> Iterator[_Given]:
    """What the owner of a table has, and what is granted."""
    owner = rules.owner(key)
    if kind == "table":
        yield from (_Given(owner, owner, right, grantable=True) for right in ALL_RIGHTS[kind])
    yield from (_Given(g.grantor, g.grantee, g.right, g.grantable) for g in rules.granted(key))


def _names(rules: AccessRules) -> dict[int, str]:
    return {PUBLIC: "PUBLIC"} | {role.id: role.name for role in rules.roles.values()}


def enabled_roles(rules: AccessRules, viewer: Viewer) -> frozenset[int]:
    """The roles whose rights the current user has; all for a superuser."""
    role = rules.roles.get(viewer.users[0])
    if role is None:
        return frozenset()
    return frozenset(r.id for r in rules.roles.values()) if role.superuser else rules.acts_as(role)


def _is_owners(rules: AccessRules, item: CatalogItem, grantee: int) -> bool:
    """Whether the grantee has the rights of the owner, which may all be granted."""
    role = next((r for r in rules.roles.values() if r.id == grantee), None)
    return role is not None and rules.owns(role, item.id)


def _table_rows(contents: Contents, viewer: Viewer, *, of_public: bool) -> Iterator[Row]:
    rules = contents.access
    names, enabled = _names(rules), enabled_roles(rules, viewer)
    shown = enabled | {PUBLIC} if of_public else enabled
    for item in _tables(contents):
        for given in _given(rules, item.id, "table"):
            if given.grantor in enabled or given.grantee in shown:
                grantable = given.grantable or _is_owners(rules, item, given.grantee)
                yield (
                    names[given.grantor], names[given.grantee], DATABASE, item.schema, item.name, given.right,
                    _yes(grantable), _yes(given.right == "SELECT"),
                )  # fmt: skip


def _column_rows(contents: Contents, viewer: Viewer, *, of_public: bool) -> Iterator[Row]:
    """A right of a table is one of each of its columns."""
    rules = contents.access
    names, enabled = _names(rules), enabled_roles(rules, viewer)
    shown = enabled | {PUBLIC} if of_public else enabled
    for item in _tables(contents):
        whole = [g for g in _given(rules, item.id, "table") if g.right in ALL_RIGHTS["column"]]
        for position, column in enumerate(item.columns):
            of_column = _given(rules, column_key(item.id, position), "column")
            for given in dict.fromkeys((*whole, *of_column)):
                if given.grantor in enabled or given.grantee in shown:
                    grantable = given.grantable or _is_owners(rules, item, given.grantee)
                    yield (
                        names[given.grantor], names[given.grantee], DATABASE, item.schema, item.name, column.name,
                        given.right, _yes(grantable),
                    )  # fmt: skip


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _table_privileges(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    return _table_rows(contents, viewer, of_public=True)


def _role_table_grants(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    return _table_rows(contents, viewer, of_public=False)


def _column_privileges(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    return _column_rows(contents, viewer, of_public=True)


def _role_column_grants(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    return _column_rows(contents, viewer, of_public=False)


RIGHTS_TABLES: Final = (
    system_table(
        _INTERNAL,
        "mz_column_rights",
        "role_name role_oid object_name qualified_name quoted_name object_oid column_name column_number right_name",
        _column_rights,
    ),
    seen_table(INFORMATION_SCHEMA, "table_privileges", _TABLE_COLUMNS, _table_privileges),
    seen_table(INFORMATION_SCHEMA, "role_table_grants", _TABLE_COLUMNS, _role_table_grants),
    seen_table(INFORMATION_SCHEMA, "column_privileges", _COLUMN_COLUMNS, _column_privileges),
    seen_table(INFORMATION_SCHEMA, "role_column_grants", _COLUMN_COLUMNS, _role_column_grants),
)
