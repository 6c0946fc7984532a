"""Statements about roles and rights, as they are written: names stay names until they are applied to a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from eddyline.sql.catalog_view import ItemKind

__all__ = [
    "ALL_RIGHTS",
    "AlterDefaultPrivileges",
    "AlterOwner",
    "AlterRole",
    "AlterRoleSettings",
    "CreateRole",
    "DropOwned",
    "DropRole",
    "GrantRights",
    "GrantRoles",
    "ReassignOwned",
    "RenameRole",
    "says_a_password",
]

#: kind of object → its rights, with the letters that they have in access lists
ALL_RIGHTS: Final[Mapping[str, Mapping[str, str]]] = {
    "table": {
        "INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    },
    "schema": {"USAGE": "U", "CREATE": "C"},
    "database": {"CREATE": "C", "TEMPORARY": "T", "CONNECT": "c"},
    "sequence": {"SELECT": "r", "UPDATE": "w", "USAGE": "U"},
    "column": {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "REFERENCES": "x"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CreateRole:
    """``attributes``: fields of a role with their values; the password is a verifier, None, or "" where an empty one
    was given.  ``member_of``, ``members``, ``admins``: names of roles."""

    name: str
    attributes: Mapping[str, Any]
    member_of: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterRole:
    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AlterRoleSettings:
    """``role`` None: everybody.  ``database``: in which; None: whichever.  ``name`` None: all settings.

    ``values`` None: none any more.  ``of_database``: it was said of the database, not of a role.
    """

    role: str | None
    database: str | None
    name: str | None
    values: tuple[str, ...] | None
    of_database: bool = False


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    roles: tuple[str, ...]
    new_owner: str


@dataclass(frozen=True, slots=True)
class DropOwned:
    roles: tuple[str, ...]
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterDefaultPrivileges:
    """``owners``: whose new objects are meant; none: the current role's.  ``schemas``: in which; none: anywhere.
    The rest as in ``GrantRights``."""

    owners: tuple[str, ...]
    schemas: tuple[str, ...]
    grant: bool
    kind: str
    rights: tuple[str, ...]
    grantees: tuple[str | None, ...]
    option: bool = False


@dataclass(frozen=True, slots=True)
class RenameRole:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropRole:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class GrantRights:
    """GRANT or REVOKE.  ``rights`` empty: ALL, unless there are ``of_columns``: rights with the names of the columns of
    which they are, each of them one or (None) ALL.  ``objects``: (schema or None, name); schemas and databases have no
    schema.  ``all_in``: ``objects`` are schemas whose tables and views are meant.  ``grantees``: None is PUBLIC.
    ``option``: with grant option, or only that."""

    grant: bool
    kind: str
    rights: tuple[str, ...]
    objects: tuple[tuple[str | None, str], ...]
    grantees: tuple[str | None, ...]
    all_in: bool = False
    option: bool = False
    cascade: bool = False
    of_columns: tuple[tuple[str | None, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class GrantRoles:
    """``option``: with admin option, or only that."""

    grant: bool
    roles: tuple[str, ...]
    members: tuple[str, ...]
    option: bool = False


@dataclass(frozen=True, slots=True)
class AlterOwner:
    """``kind`` None: a schema."""

    kind: ItemKind | None
    name: tuple[str | None, str]
    owner: str
    if_exists: bool = False


def says_a_password(statement: object) -> bool:
    """Whether the statement's text may hold one: nobody is to keep it."""
    return isinstance(statement, (CreateRole, AlterRole)) and "password" in statement.attributes
