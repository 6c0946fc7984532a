"""ALTER ROLE … SET and ALTER DATABASE … SET: settings that sessions begin with."""

from __future__ import annotations

import logging

from eddyline.adapter.access_rules import EVERYBODY, Role, RoleSettings
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.role_refusals import not_owner
from eddyline.adapter.settings import check_cluster, checked_value, setting_key
from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.sql.role_statements import AlterRoleSettings

__all__ = ["alter_role_settings", "login_settings"]

_log = logging.getLogger("eddyline.admission")


def alter_role_settings(snapshot: CatalogSnapshot, statement: AlterRoleSettings, actor: Role) -> Change:
    """Sessions that there are keep what they have.

    42501 for another role's without CREATEROLE, a superuser's or everybody's without SUPERUSER; 42704, 3D000; 55P02 and
    22023 as SET.
    """
    rules = snapshot.access
    role = None if statement.role is None else rules.role(statement.role)
    _check_may(statement, role, actor)
    if statement.database is not None and statement.database != "postgres":
        raise make_error("3D000", f'database "{statement.database}" does not exist')
    of, here = EVERYBODY if role is None else role.id, statement.database is not None
    values = dict(rules.settings_of(of, in_database=here))
    if statement.name is None:
        values = {}
    elif statement.values is None:
        checked_value(statement.name, None)
        values.pop(setting_key(statement.name), None)
    else:
        if statement.name == "session_authorization":
            raise unsupported("session_authorization as a setting of a role")
        value = checked_value(statement.name, statement.values)
        check_cluster(statement.name, value, snapshot.cluster_names)
        values[setting_key(statement.name)] = value
    return Change(snapshot.with_access(rules.with_settings(RoleSettings(of, here, values))))


def _check_may(statement: AlterRoleSettings, role: Role | None, actor: Role) -> None:
    if actor.superuser:
        return
    if role is None:
        if statement.database is None:
            raise make_error("42501", "must be superuser to alter settings globally")
        raise not_owner("database", statement.database)
    if role.superuser:
        raise make_error("42501", "must be superuser to alter superusers")
    if not actor.createrole and role.id != actor.id:
        raise make_error("42501", "permission denied")


def login_settings(snapshot: CatalogSnapshot, user: str) -> dict[str, str]:
    """What a session of ``user`` begins with: by setting, the narrowest that is set.  O(1) where nothing is."""
    rules = snapshot.access
    role = rules.roles.get(user)
    if role is None or not rules.settings:
        return {}
    values: dict[str, str] = {}
    for of, here in ((EVERYBODY, False), (EVERYBODY, True), (role.id, False), (role.id, True)):
        values.update(rules.settings_of(of, in_database=here))
    return {name: value for name, value in values.items() if _still_means_something(snapshot, role, name, value)}


def _still_means_something(snapshot: CatalogSnapshot, role: Role, name: str, value: str) -> bool:
    """What does not is left out, and logged: nobody is kept out by it."""
    rules = snapshot.access
    if name == "role" and value != "none":
        other = rules.roles.get(value)
        if other is None or not (role.superuser or other.id in rules.may_become(role)):
            _log.warning('role "%s" begins without its setting: it may not be "%s"', role.name, value)
            return False
        return True
    try:
        check_cluster(name, checked_value(name, (value,), verbatim=True), snapshot.cluster_names)
    except DatabaseError as problem:
        _log.warning('role "%s" begins without its setting: %s', role.name, problem.message)
        return False
    return True
