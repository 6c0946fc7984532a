"""ALTER DEFAULT PRIVILEGES: what is granted of objects as they are made.  Pure functions, as in ``role_changes``."""

from __future__ import annotations

from dataclasses import replace

from eddyline.adapter.access_rules import PUBLIC, DefaultGrants, Grant, Role
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, refuse_system_schema
from eddyline.errors import make_error, unsupported
from eddyline.sql.role_statements import ALL_RIGHTS, AlterDefaultPrivileges

__all__ = ["alter_default_privileges"]


def alter_default_privileges(snapshot: CatalogSnapshot, statement: AlterDefaultPrivileges, actor: Role) -> Change:
    """Of objects that exist nothing changes.

    42501 for the objects of a role that the actor is no member of, 42704, 3F000, 0LP01.
    """
    rules = snapshot.access
    grantees = [PUBLIC if name is None else rules.role(name).id for name in statement.grantees]
    if statement.grant and statement.option and PUBLIC in grantees:
        raise make_error("0LP01", "grant options can only be granted to roles")
    members = rules.may_become(actor)
    for name in statement.owners or (actor.name,):
        owner = rules.role(name)
        if not actor.superuser and owner.id not in members:
            raise make_error("42501", f'must be member of role "{owner.name}"')
        for schema in statement.schemas or (None,):
            _check_schema(snapshot, schema)
            found = rules.default_grants(owner.id, schema, statement.kind)
            rules = rules.with_defaults(_changed(found, statement, owner, grantees))
    return Change(snapshot if rules is snapshot.access else snapshot.with_access(rules))


def _check_schema(snapshot: CatalogSnapshot, schema: str | None) -> None:
    if schema is None:
        return
    refuse_system_schema(schema)
    if schema not in snapshot.schemas:
        raise make_error("3F000", f'schema "{schema}" does not exist')


def _changed(
    found: DefaultGrants, statement: AlterDefaultPrivileges, owner: Role, grantees: list[int]
) -> DefaultGrants:
    grants = {(g.grantee, g.right): g for g in found.grants}
    for grantee in grantees:
        if grantee == owner.id and found.schema is None:
            if not statement.grant:
                raise unsupported("REVOKE from the owner", hint="Make another role the owner.")
            continue  # which has all rights
        for right in statement.rights or ALL_RIGHTS[statement.kind]:
            old = grants.get((grantee, right))
            if statement.grant:
                option = statement.option or (old is not None and old.grantable)
                grants[grantee, right] = Grant(grantee, right, owner.id, option)
            elif old is not None and statement.option:
                grants[grantee, right] = replace(old, grantable=False)
            else:
                grants.pop((grantee, right), None)
    return replace(found, grants=tuple(grants.values()))
