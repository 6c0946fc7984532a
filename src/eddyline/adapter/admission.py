"""Who may log in, by which password, and as whom a session then acts."""

from __future__ import annotations

import time

from eddyline.adapter.access_rules import DATABASE_KEY, AccessRules, Role
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change
from eddyline.adapter.define import commit_with_definitions
from eddyline.adapter.engine import Engine
from eddyline.adapter.settings import Settings
from eddyline.adapter.transaction import Defining
from eddyline.errors import make_error
from eddyline.sql import statements as st
from eddyline.sql.password_verifier import Verifier

__all__ = ["acting_role", "admitted", "login_verifier", "password_refusal", "set_role"]

_NO_ROLE = "none"


def login_verifier(engine: Engine, user: str, given: Verifier | None) -> Verifier | None:
    """What the user's password is checked with: the role's own, or else ``given``.

    None: there is no password, or the time is up until which it was valid.
    """
    role = engine.catalog.snapshot().access.roles.get(user)
    if role is None:
        return given
    if _is_expired(role):
        return None
    return given if role.password is None else Verifier.of_text(role.password)


def password_refusal(engine: Engine, user: str, given: Verifier | None) -> str:
    """Why a password of ``user`` was not taken, for the server's log alone: the client is not told which it was.

    ``given`` as for ``login_verifier``.
    """
    role = engine.catalog.snapshot().access.roles.get(user)
    if role is None and given is None:
        return "no such role"
    if role is not None and _is_expired(role):
        return "password expired"
    if given is None and (role is None or role.password is None):
        return "no password set"
    return "wrong password"


def _is_expired(role: Role) -> bool:
    return role.valid_until is not None and role.valid_until <= time.time_ns() // 1000


def admitted(engine: Engine, user: str) -> Role:
    """The role of somebody who has shown who they are, if that was asked for.

    28000 for a role that may not log in, 42501 for one that may not connect to the database.  A name that is no
    role's becomes a superuser's: without passwords whoever can connect can be ``postgres``, and with them only
    somebody whom a file of the server's names comes here without a role.
    """
    if user in (_NO_ROLE, "public") or user.startswith("pg_"):
        raise make_error("28000", f'role name "{user}" is reserved')
    rules = engine.catalog.snapshot().access
    if user not in rules.roles:
        rules = _with_role_made(engine, user)
    role = rules.role(user)
    if not role.login:
        raise make_error("28000", f'role "{user}" is not permitted to log in')
    if not rules.allows(role, DATABASE_KEY, "CONNECT"):
        raise make_error(
            "42501", 'permission denied for database "postgres"', detail="User does not have CONNECT privilege."
        )
    return role


def _with_role_made(engine: Engine, user: str) -> AccessRules:
    with engine.commit_lock:
        if user not in engine.catalog.snapshot().access.roles:
            made = Defining("CREATE ROLE", engine.catalog.allocate_id(), lambda s: _with_superuser(s, user))
            commit_with_definitions(engine, [made], {}, wait=True)
        return engine.catalog.snapshot().access


def _with_superuser(snapshot: CatalogSnapshot, user: str) -> Change:
    rules = snapshot.access
    role = Role(rules.next_id, user, login=True, superuser=True, createdb=True, createrole=True)
    return Change(snapshot.with_access(rules.with_role(role)))


def acting_role(rules: AccessRules, settings: Settings) -> Role:
    """Of SET ROLE, or else the session's.  42704 if it was dropped or renamed meanwhile."""
    return rules.role(settings.in_force.users[0])


def set_role(rules: AccessRules, settings: Settings, login: str, statement: st.Set) -> None:
    """SET ROLE and SET SESSION AUTHORIZATION.  22023 for no role, 42501 for one that it may not be.

    ``login``: the name that the session was opened with.
    """
    value = None if statement.values is None else statement.values[0]
    if statement.name == "session_authorization":
        target = login if value is None else value
        if target not in rules.roles:
            raise make_error("22023", f'role "{target}" does not exist')
        if target != login and not rules.role(login).superuser:
            raise make_error("42501", f'permission denied to set session authorization "{target}"')
        settings.set("role", (_NO_ROLE,), local=statement.local)
        settings.set("session_authorization", (target,), local=statement.local)
        return
    if value is not None and value != _NO_ROLE:
        role, session = rules.roles.get(value), rules.role(settings.in_force.users[1])
        if role is None:
            raise make_error("22023", f'role "{value}" does not exist')
        if not session.superuser and role.id not in rules.may_become(session):
            raise make_error("42501", f'permission denied to set role "{value}"')
    settings.set("role", (value or _NO_ROLE,), local=statement.local)
