"""Roles and rights: syntax to statements.  What is not kept is refused by its name."""

from __future__ import annotations

import re
from typing import Any, Final

from eddyline.errors import make_error, unsupported
from eddyline.expr.datetime_text import parse_timestamptz
from eddyline.expr.timezone import zone_of
from eddyline.sql.ast import AstNode, enum_name, kind_of, name_list, unwrap
from eddyline.sql.catalog_view import ItemKind
from eddyline.sql.password_verifier import Verifier
from eddyline.sql.role_statements import (
    ALL_RIGHTS,
    AlterDefaultPrivileges,
    AlterOwner,
    AlterRole,
    AlterRoleSettings,
    CreateRole,
    DropOwned,
    DropRole,
    GrantRights,
    GrantRoles,
    ReassignOwned,
    RenameRole,
)
from eddyline.sql.session_statements import setting_change
from eddyline.sql.statement_binding import StatementBinding

__all__ = [
    "CURRENT_USER",
    "SESSION_USER",
    "bind_alter_database_settings",
    "bind_alter_default_privileges",
    "bind_alter_owner",
    "bind_alter_role",
    "bind_alter_role_settings",
    "bind_alter_schema_owner",
    "bind_create_role",
    "bind_drop_owned",
    "bind_drop_role",
    "bind_grant",
    "bind_grant_role",
    "bind_reassign_owned",
    "bind_rename_role",
    "role_name",
]

#: stand for names that the session knows; no identifier has zeros
CURRENT_USER: Final = "\0current_user"
SESSION_USER: Final = "\0session_user"
_ATTRIBUTES: Final = {
    "canlogin": "login",
    "superuser": "superuser",
    "createdb": "createdb",
    "createrole": "createrole",
    "inherit": "inherit",
}
_MEMBERS: Final = {"addroleto": "member_of", "rolemembers": "members", "adminmembers": "admins"}
_VALUES: Final = {"password": "password", "validUntil": "valid_until", "connectionlimit": "connection_limit"}
_SHOWN: Final = {
    "isreplication": "REPLICATION",
    "bypassrls": "BYPASSRLS",
}
_KINDS: Final = {
    "OBJECT_TABLE": ItemKind.TABLE,
    "OBJECT_VIEW": ItemKind.VIEW,
    "OBJECT_MATVIEW": ItemKind.MATERIALIZED_VIEW,
    "OBJECT_SEQUENCE": ItemKind.SEQUENCE,
}
_GRANTED: Final = {
    "OBJECT_TABLE": "table",
    "OBJECT_SCHEMA": "schema",
    "OBJECT_DATABASE": "database",
    "OBJECT_SEQUENCE": "sequence",
}
_RESERVED: Final = ("none", "public")
_MD5: Final = re.compile("md5[0-9a-f]{32}")


def role_name(spec: AstNode) -> str:
    """The role's, or what stands for it; 42704 for PUBLIC, which is none."""
    match enum_name(spec, "roletype"):
        case "ROLESPEC_CURRENT_USER" | "ROLESPEC_CURRENT_ROLE":
            return CURRENT_USER
        case "ROLESPEC_SESSION_USER":
            return SESSION_USER
        case "ROLESPEC_PUBLIC":
            raise make_error("42704", 'role "public" does not exist')
        case _:
            return str(spec.rolename)


def _new_name(name: str) -> str:
    if name in _RESERVED:
        raise make_error("42939", f'role name "{name}" is reserved')
    if name.startswith("pg_"):
        raise make_error(
            "42939", f'role name "{name}" is reserved', detail='Role names starting with "pg_" are reserved.'
        )
    return name


def _options(binding: StatementBinding, options: AstNode) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    attributes: dict[str, Any] = {}
    members: dict[str, tuple[str, ...]] = {}
    for option in map(unwrap, options):
        name = str(option.defname)
        attribute = _ATTRIBUTES.get(name) or _VALUES.get(name)
        if attribute is not None:
            if attribute in attributes:
                raise make_error("42601", "conflicting or redundant options", position=binding.locate(option.location))
            attributes[attribute] = _value(binding, attribute, option)
        elif name in _MEMBERS:
            members[_MEMBERS[name]] = tuple(role_name(unwrap(r)) for r in option.arg.list.items)
        else:
            raise unsupported(f"a role's {_SHOWN.get(name, name)}", position=binding.locate(option.location))
    return attributes, members


def _value(binding: StatementBinding, attribute: str, option: AstNode) -> Any:
    match attribute:
        case "password":
            return _password(str(option.arg.string.sval)) if option.HasField("arg") else None
        case "valid_until":
            return parse_timestamptz(str(option.arg.string.sval), zone_of(binding.catalog.zone or "UTC"))
        case "connection_limit":
            limit = int(option.arg.integer.ival)
            if limit < -1:
                raise make_error("22023", f"invalid connection limit: {limit}")
            return limit
        case _:
            return bool(option.arg.boolean.boolval)


def _password(text: str) -> Verifier | str:
    """What is kept of it; "" as it is."""
    if _MD5.fullmatch(text):
        raise unsupported(
            "a password hashed with MD5", hint="Give the password itself, or its verifier of SCRAM-SHA-256."
        )
    return text and (Verifier.of_text(text) or Verifier.of_password(text))


def bind_create_role(binding: StatementBinding) -> CreateRole:
    """CREATE ROLE, USER (which may log in) and GROUP."""
    node = binding.parsed.node
    attributes, members = _options(binding, node.options)
    if enum_name(node, "stmt_type") == "ROLESTMT_USER":
        attributes.setdefault("login", True)
    return CreateRole(_new_name(str(node.role)), attributes, **members)


def bind_alter_role(binding: StatementBinding) -> AlterRole | GrantRoles:
    """ALTER ROLE; ALTER GROUP … ADD or DROP USER is a GRANT or a REVOKE."""
    node = binding.parsed.node
    attributes, members = _options(binding, node.options)
    name = role_name(node.role)
    if members:
        return GrantRoles(node.action > 0, (name,), members["members"])
    return AlterRole(name, attributes)


def bind_alter_role_settings(binding: StatementBinding) -> AlterRoleSettings:
    """ALTER ROLE … [IN DATABASE …] SET and RESET."""
    node = binding.parsed.node
    role = role_name(node.role) if node.HasField("role") else None
    return AlterRoleSettings(role, node.database or None, *setting_change(node.setstmt, binding.parsed))


def bind_alter_database_settings(binding: StatementBinding) -> AlterRoleSettings:
    """ALTER DATABASE … SET and RESET: everybody's in it."""
    node = binding.parsed.node
    change = setting_change(node.setstmt, binding.parsed)
    return AlterRoleSettings(None, str(node.dbname), *change, of_database=True)


def bind_reassign_owned(binding: StatementBinding) -> ReassignOwned:
    node = binding.parsed.node
    return ReassignOwned(tuple(role_name(unwrap(r)) for r in node.roles), role_name(node.newrole))


def bind_drop_owned(binding: StatementBinding) -> DropOwned:
    node = binding.parsed.node
    cascade = enum_name(node, "behavior") == "DROP_CASCADE"
    return DropOwned(tuple(role_name(unwrap(r)) for r in node.roles), cascade)


def bind_drop_role(binding: StatementBinding) -> DropRole:
    node = binding.parsed.node
    return DropRole(tuple(role_name(unwrap(r)) for r in node.roles), node.missing_ok)


def bind_rename_role(binding: StatementBinding) -> RenameRole:
    node = binding.parsed.node
    return RenameRole(str(node.subname), _new_name(str(node.newname)))


def bind_grant_role(binding: StatementBinding) -> GrantRoles:
    node = binding.parsed.node
    if node.HasField("grantor"):
        raise unsupported("GRANTED BY")
    option = False
    for given in map(unwrap, node.opt):
        if given.defname != "admin":
            raise unsupported(f"WITH {str(given.defname).upper()} of a membership")
        option = True
    roles = tuple(str(unwrap(r).priv_name) for r in node.granted_roles)
    return GrantRoles(node.is_grant, roles, tuple(role_name(unwrap(r)) for r in node.grantee_roles), option)


def bind_grant(binding: StatementBinding) -> GrantRights:
    """GRANT and REVOKE of rights on tables (views too), schemas and the database."""
    node = binding.parsed.node
    what, target = enum_name(node, "objtype"), enum_name(node, "targtype")
    if what not in _GRANTED:
        raise unsupported(f"GRANT on a {what.removeprefix('OBJECT_').lower().replace('_', ' ')}")
    if node.HasField("grantor"):
        raise unsupported("GRANTED BY")
    kind, all_in = _GRANTED[what], target == "ACL_TARGET_ALL_IN_SCHEMA"
    privileges = [unwrap(p) for p in node.privileges]
    of_columns = tuple(_of_columns(p, kind) for p in privileges if p.cols)
    return GrantRights(
        grant=node.is_grant,
        kind=kind,
        rights=tuple(_right(p, kind, or_sequence=kind == "table") for p in privileges if not p.cols),
        objects=tuple(_object(o) for o in node.objects),
        grantees=tuple(_grantee(unwrap(g)) for g in node.grantees),
        all_in=all_in,
        option=node.grant_option,
        cascade=enum_name(node, "behavior") == "DROP_CASCADE",
        of_columns=of_columns,
    )


def bind_alter_default_privileges(binding: StatementBinding) -> AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES of tables (views too) and schemas."""
    options, node = binding.parsed.node.options, binding.parsed.node.action
    what = enum_name(node, "objtype")
    if what not in _GRANTED:
        raise unsupported(f"default privileges on {what.removeprefix('OBJECT_').lower().replace('_', ' ')}s")
    owners: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    for option in map(unwrap, options):
        names = option.arg.list.items
        if option.defname == "roles":
            owners = tuple(role_name(unwrap(r)) for r in names)
        else:
            schemas = name_list(names)
    kind = _GRANTED[what]
    if any(unwrap(p).cols for p in node.privileges):
        raise make_error("0LP01", "default privileges cannot be set for columns")
    if kind == "schema" and schemas:
        raise make_error("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
    return AlterDefaultPrivileges(
        owners=owners,
        schemas=schemas,
        grant=node.is_grant,
        kind=kind,
        rights=tuple(_right(unwrap(p), kind) for p in node.privileges),
        grantees=tuple(_grantee(unwrap(g)) for g in node.grantees),
        option=node.grant_option,
    )


def _of_columns(node: AstNode, kind: str) -> tuple[str | None, tuple[str, ...]]:
    """A right of columns, None for ALL, and their names as written."""
    if kind != "table":
        raise make_error("0LP01", "column privileges are only valid for relations")
    return _right(node, "column") if node.priv_name else None, name_list(node.cols)


def _right(node: AstNode, kind: str, *, or_sequence: bool = False) -> str:
    """``or_sequence``: one of sequences may be meant, which GRANT ON TABLE gives rights on, too."""
    right = str(node.priv_name).upper()
    right = "TEMPORARY" if right == "TEMP" else right
    if right not in {r for rights in ALL_RIGHTS.values() for r in rights} | {"EXECUTE"}:
        raise make_error("42601", f'unrecognized privilege type "{right.lower()}"')
    if or_sequence and right in ALL_RIGHTS["sequence"]:
        return right
    if right not in ALL_RIGHTS[kind]:
        shown = "relation" if kind == "table" else kind
        raise make_error("0LP01", f"invalid privilege type {right} for {shown}")
    return right


def _object(node: AstNode) -> tuple[str | None, str]:
    if kind_of(node) == "range_var":
        found = unwrap(node)
        return found.schemaname or None, str(found.relname)
    return None, name_list([node])[0]


def _grantee(spec: AstNode) -> str | None:
    return None if enum_name(spec, "roletype") == "ROLESPEC_PUBLIC" else role_name(spec)


def bind_alter_owner(binding: StatementBinding) -> AlterOwner | None:
    """ALTER TABLE, VIEW or MATERIALIZED VIEW … OWNER TO; None for any other ALTER."""
    node = binding.parsed.node
    if len(node.cmds) != 1 or enum_name(unwrap(node.cmds[0]), "subtype") != "AT_ChangeOwner":
        return None
    what = enum_name(node, "objtype")
    if what not in _KINDS:
        raise unsupported(f"ALTER {what.removeprefix('OBJECT_')} … OWNER TO")
    target = node.relation
    name = (target.schemaname or None, str(target.relname))
    return AlterOwner(_KINDS[what], name, role_name(unwrap(node.cmds[0]).newowner), node.missing_ok)


def bind_alter_schema_owner(binding: StatementBinding) -> AlterOwner:
    node = binding.parsed.node
    what = enum_name(node, "object_type")
    if what != "OBJECT_SCHEMA":
        raise unsupported(f"ALTER {what.removeprefix('OBJECT_').replace('_', ' ')} … OWNER TO")
    return AlterOwner(None, _object(node.object), role_name(node.newowner))
