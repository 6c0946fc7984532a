"""Why a role may not do something, in PostgreSQL's words."""

from __future__ import annotations

from eddyline.adapter.access_rules import BOOTSTRAP, Role
from eddyline.errors import DatabaseError, make_error

__all__ = ["denied", "not_owner", "required_by_the_system"]


def denied(kind: str, name: str) -> DatabaseError:
    """42501 for a right that is missing."""
    return make_error("42501", f"permission denied for {kind} {name}")


def not_owner(kind: str, name: str) -> DatabaseError:
    return make_error("42501", f"must be owner of {kind} {name}")


def required_by_the_system(role: Role, what: str) -> DatabaseError | None:
    """2BP01 for what the first role owns; None for any other."""
    if role.id != BOOTSTRAP:
        return None
    return make_error(
        "2BP01",
        f"cannot {what} objects owned by role {role.name} because they are required by the database system",
    )
