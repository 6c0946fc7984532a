"""What CREATE ROLE, GRANT and their kin do to a catalog version: pure functions, with PostgreSQL's checks and words.

``actor``: the role that asks, whose own rights decide.  Names that the session knows are filled in before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias, get_args

from eddyline.adapter.access_rules import (
    BOOTSTRAP,
    DATABASE_KEY,
    AccessRules,
    Membership,
    Role,
    column_of,
    schema_key,
)
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, refuse_system_schema
from eddyline.adapter.default_privileges import alter_default_privileges
from eddyline.adapter.granting import grant_rights, relation_named
from eddyline.adapter.notices import skipped, warning
from eddyline.adapter.owned_objects import drop_owned, reassign_owned
from eddyline.adapter.role_refusals import denied, not_owner
from eddyline.adapter.role_settings import alter_role_settings
from eddyline.adapter.sequence_links import sequences_of
from eddyline.errors import make_error, unsupported
from eddyline.sql.bind_roles import CURRENT_USER, SESSION_USER
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.cluster_statements import ClusterOwner
from eddyline.sql.role_statements import (
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
from eddyline.sql.statements import CreateSchema

__all__ = ["RoleStatement", "change_roles", "with_users"]

RoleStatement: TypeAlias = (
    AlterDefaultPrivileges
    | AlterOwner
    | AlterRole
    | AlterRoleSettings
    | CreateRole
    | DropOwned
    | DropRole
    | GrantRights
    | GrantRoles
    | ReassignOwned
    | RenameRole
)

#: statements that may name a role by what the session knows
_NAMING: tuple[Any, ...] = (*get_args(RoleStatement), ClusterOwner, CreateSchema)


def with_users(statement: Any, current: str, session: str) -> Any:
    """The statement with names in place of CURRENT_USER and SESSION_USER; one that names no roles as it is."""
    if not isinstance(statement, _NAMING):
        return statement
    names = {CURRENT_USER: current, SESSION_USER: session}

    def named(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(named, value))
        return names.get(value, value) if isinstance(value, str) else value

    found = {f.name: named(getattr(statement, f.name)) for f in fields(statement)}
    return type(statement)(**found)


def change_roles(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: RoleStatement, actor: Role
) -> Change:
    """The catalog after the statement; 42501, 42704, 42710, 2BP01 and others as PostgreSQL."""
    match statement:
        case CreateRole():
            return _create(snapshot, statement, actor)
        case AlterRole():
            return _alter(snapshot, statement, actor)
        case RenameRole():
            return _rename(snapshot, statement, actor)
        case DropRole():
            return _drop(snapshot, search_path, statement, actor)
        case GrantRoles():
            return _memberships(snapshot, statement, actor)
        case GrantRights():
            return grant_rights(snapshot, search_path, statement, actor)
        case AlterOwner():
            return _owner(snapshot, search_path, statement, actor)
        case AlterRoleSettings():
            return alter_role_settings(snapshot, statement, actor)
        case AlterDefaultPrivileges():
            return alter_default_privileges(snapshot, statement, actor)
        case ReassignOwned():
            return reassign_owned(snapshot, statement, actor)
        case DropOwned():
            return drop_owned(snapshot, search_path, statement, actor)


def _create(snapshot: CatalogSnapshot, statement: CreateRole, actor: Role) -> Change:
    rules, attributes = snapshot.access, statement.attributes
    if attributes.get("superuser") and not actor.superuser:
        raise make_error("42501", "must be superuser to create superusers")
    if not (actor.superuser or actor.createrole):
        raise make_error("42501", "permission denied to create role")
    if statement.name in rules.roles:
        raise make_error("42710", f'role "{statement.name}" already exists')
    role, notices = _changed(Role(rules.next_id, statement.name), attributes)
    rules = rules.with_role(role)
    for name in statement.member_of:
        rules = _joined(rules, rules.role(name), role, actor, admin=False)
    for name in statement.members:
        rules = _joined(rules, role, rules.role(name), actor, admin=False)
    for name in statement.admins:
        rules = _joined(rules, role, rules.role(name), actor, admin=True)
    return Change(snapshot.with_access(rules), notices=notices)


def _changed(role: Role, attributes: Mapping[str, Any]) -> tuple[Role, tuple[str, ...]]:
    """The role with those attributes, and notices."""
    if "password" not in attributes:
        return replace(role, **attributes), ()
    given = attributes["password"]
    changed = replace(role, **{**attributes, "password": str(given) if given else None})
    return changed, ("empty string is not a valid password, clearing password",) if given == "" else ()


def _check_manages(actor: Role, role: Role, what: str) -> None:
    if role.superuser and not actor.superuser:
        raise make_error("42501", f"must be superuser to {what} superusers")
    if not (actor.superuser or actor.createrole):
        raise make_error("42501", "permission denied" if what == "alter" else f"permission denied to {what} role")


def _alter(snapshot: CatalogSnapshot, statement: AlterRole, actor: Role) -> Change:
    role = snapshot.access.role(statement.name)
    if "superuser" in statement.attributes and not actor.superuser:
        raise make_error("42501", "must be superuser to alter superuser roles or change superuser attribute")
    if role.superuser and not actor.superuser:
        raise make_error("42501", "must be superuser to alter superuser roles or change superuser attribute")
    if role.id != actor.id or statement.attributes.keys() != {"password"}:  # one's own password is one's own to change
        _check_manages(actor, role, "alter")
    if role.id == BOOTSTRAP and statement.attributes.get("superuser") is False:
        raise unsupported("the first role without SUPERUSER")
    changed, notices = _changed(role, statement.attributes)
    return Change(snapshot.with_access(snapshot.access.with_role(changed)), notices=notices)


def _rename(snapshot: CatalogSnapshot, statement: RenameRole, actor: Role) -> Change:
    role = snapshot.access.role(statement.name)
    if role.id == actor.id:
        raise make_error("0A000", "session user cannot be renamed")
    if statement.new_name in snapshot.access.roles:
        raise make_error("42710", f'role "{statement.new_name}" already exists')
    _check_manages(actor, role, "rename")
    return Change(snapshot.with_access(snapshot.access.with_role(replace(role, name=statement.new_name))))


def _drop(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: DropRole, actor: Role) -> Change:
    rules, notices = snapshot.access, []
    if not (actor.superuser or actor.createrole):
        raise make_error("42501", "permission denied to drop role")
    for name in statement.names:
        role = rules.roles.get(name)
        if role is None:
            if not statement.if_exists:
                raise make_error("42704", f'role "{name}" does not exist')
            notices.append(skipped("role", name, exists=False))
            continue
        if role.id == actor.id:
            raise make_error("55006", "current user cannot be dropped")
        _check_manages(actor, role, "drop")
        held = [(_shown(snapshot, search_path, key), owned) for key, owned in rules.held_by(role.id)]
        held += _held_by_default(rules, role)
        if held or role.name == "postgres":
            lines = sorted(f"{'owner of' if owned else 'privileges for'} {shown}" for shown, owned in held)
            raise make_error(
                "2BP01",
                f'role "{name}" cannot be dropped because some objects depend on it',
                detail="\n".join(lines) or "The database system requires it.",
            )
        rules = rules.without_role(role)
    changed = snapshot if rules is snapshot.access else snapshot.with_access(rules)
    return Change(changed, notices=tuple(notices))


def _held_by_default(rules: AccessRules, role: Role) -> Iterator[tuple[str, bool]]:
    for found in rules.defaults:
        owned = found.owner == role.id
        if owned or any(g.grantee == role.id for g in found.grants):
            what = "relations" if found.kind == "table" else f"{found.kind}s"
            where = "" if found.schema is None else f" in schema {found.schema}"
            yield f"default privileges on new {what} belonging to role {rules.named(found.owner).name}{where}", owned


def _shown(snapshot: CatalogSnapshot, search_path: tuple[str, ...], key: str) -> str:
    column = column_of(key)
    if column is not None:
        of = snapshot.by_id[column[0]]
        return f"column {of.columns[column[1]].name} of {_shown(snapshot, search_path, of.id)}"
    item = snapshot.by_id.get(key)
    if item is not None:
        return f"{item.kind.value} {snapshot.view(search_path).shown(item)}"
    cluster = snapshot.clusters.get(key)
    if cluster is not None:
        return f"cluster {cluster.name}"
    return "database postgres" if key == DATABASE_KEY else f"schema {key.removeprefix('schema/')}"


# --- memberships ---------------------------------------------------------------------------------------------------


def _check_admin(rules: AccessRules, role: Role, actor: Role) -> None:
    if role.superuser and not actor.superuser:
        raise make_error("42501", "must be superuser to alter superusers")
    selves = rules.may_become(actor)
    admin = any(m.role == role.id and m.admin and m.member in selves for m in rules.memberships)
    if not (actor.superuser or actor.createrole or admin):
        raise make_error("42501", f'must have admin option on role "{role.name}"')


def _joined(rules: AccessRules, role: Role, member: Role, actor: Role, *, admin: bool) -> AccessRules:
    _check_admin(rules, role, actor)
    if (role.id in rules.may_become(member) and member.id == role.id) or member.id in rules.may_become(role):
        raise make_error("0LP01", f'role "{role.name}" is a member of role "{member.name}"')
    old = next((m for m in rules.memberships if (m.role, m.member) == (role.id, member.id)), None)
    new = Membership(role.id, member.id, admin or (old is not None and old.admin), actor.id)
    return replace(rules, memberships=(*(m for m in rules.memberships if m is not old), new))


def _memberships(snapshot: CatalogSnapshot, statement: GrantRoles, actor: Role) -> Change:
    rules, notices = snapshot.access, []
    for role in [rules.role(name) for name in statement.roles]:
        for member in [rules.role(name) for name in statement.members]:
            if statement.grant:
                rules = _joined(rules, role, member, actor, admin=statement.option)
                continue
            _check_admin(rules, role, actor)
            old = next((m for m in rules.memberships if (m.role, m.member) == (role.id, member.id)), None)
            if old is None:
                notices.append(warning(f'role "{member.name}" is not a member of role "{role.name}"'))
                continue
            kept = tuple(m for m in rules.memberships if m is not old)
            rules = replace(rules, memberships=(*kept, replace(old, admin=False)) if statement.option else kept)
    return Change(snapshot.with_access(rules), notices=tuple(notices))


def _check_not_linked(snapshot: CatalogSnapshot, item: CatalogItem) -> None:
    """0A000 for a sequence that goes with a table, whose owner it has."""
    if item.sequence is not None and item.sequence.owner is not None:
        table = snapshot.by_id[item.sequence.owner[0]]
        raise make_error(
            "0A000",
            f'cannot change owner of sequence "{item.name}"',
            detail=f'Sequence "{item.name}" is linked to table "{table.name}".',
        )


def _owner(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: AlterOwner, actor: Role) -> Change:
    rules, (schema, name) = snapshot.access, statement.name
    if statement.kind is None:
        refuse_system_schema(name)
        if name not in snapshot.schemas:
            raise make_error("3F000", f'schema "{name}" does not exist')
        keys, kind = [schema_key(name)], "schema"
        within = DATABASE_KEY
    else:
        if statement.if_exists and snapshot.view(search_path).resolve(schema, name) is None:
            return Change(snapshot, notices=(skipped("relation", name, exists=False),))
        item = relation_named(snapshot, search_path, schema, name)
        if statement.kind is not ItemKind.TABLE and item.kind is not statement.kind:
            raise make_error("42809", f'"{name}" is not a {statement.kind.value}')
        _check_not_linked(snapshot, item)
        keys, kind, within = [item.id], item.kind.value, schema_key(item.schema)
        keys += [sequence.id for sequence in sequences_of(snapshot, [item])]
    new = rules.role(statement.owner)
    if not rules.owns(actor, keys[0]):
        raise not_owner(kind, name)
    if rules.owner(keys[0]) == new.id:
        return Change(snapshot)
    if not actor.superuser:
        if new.id not in rules.may_become(actor):
            raise make_error("42501", f'must be member of role "{new.name}"')
        if not rules.allows(new if statement.kind is not None else actor, within, "CREATE"):
            raise denied(*(("database", "postgres") if within == DATABASE_KEY else ("schema", within[7:])))
    for key in keys:
        rules = rules.with_owner(key, new.id)
    return Change(snapshot.with_access(rules))
