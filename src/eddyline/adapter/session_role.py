"""As whom a session's statements run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from eddyline.adapter.access_rules import AccessRules, Role, schema_key
from eddyline.adapter.admission import acting_role, set_role
from eddyline.adapter.authorization import (
    authorize,
    check_any_right,
    check_columns,
    check_one_right,
    check_rights,
)
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.engine import Engine
from eddyline.adapter.notices import no_transaction_block
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.role_changes import with_users
from eddyline.adapter.settings import Settings
from eddyline.adapter.system_catalog import SYSTEM_SCHEMAS
from eddyline.sql import statements as st
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.role_statements import ALL_RIGHTS

__all__ = ["ROLE_SETTINGS", "SessionRole"]

ROLE_SETTINGS = ("role", "session_authorization")


class SessionRole:
    """``user``: the name that the session was opened with.  ``catalog``: as its transaction has it.

    Owner: the session's running statement.
    """

    def __init__(self, engine: Engine, settings: Settings, catalog: Callable[[], CatalogSnapshot], user: str) -> None:
        self._engine = engine
        self._settings = settings
        self._catalog = catalog
        self._user = user

    @property
    def _rules(self) -> AccessRules:
        """As they are now, or as the transaction would have them."""
        own = self._catalog()
        return own.access if own.draft else self._engine.catalog.snapshot().access

    @property
    def acting(self) -> Role:
        """42704 if it was dropped meanwhile."""
        return acting_role(self._rules, self._settings)

    @property
    def search_path(self) -> tuple[str, ...]:
        """Where names are looked for: the setting's schemas of which it has USAGE."""
        in_force, rules = self._settings.in_force, self._rules
        role = rules.roles.get(in_force.users[0])
        if role is None or role.superuser:
            return in_force.search_path
        return tuple(
            s for s in in_force.search_path if s in SYSTEM_SCHEMAS or rules.allows(role, schema_key(s), "USAGE")
        )

    def authorize(self, statement: st.Statement) -> None:
        """42501 if it may not run the statement now."""
        rules = self._rules
        authorize(self._catalog(), rules, acting_role(rules, self._settings), statement)

    def check_bulk(self, table: CatalogItem, rights: Iterable[str], columns: Iterable[str]) -> None:
        """42501 without one of the rights on the table, or on those of its columns that are named."""
        rules, names = self._rules, frozenset(columns)
        role = acting_role(rules, self._settings)
        positions = [n for n, column in enumerate(table.columns) if column.name in names]
        for right in rights:
            if right in ALL_RIGHTS["column"]:
                check_columns(rules, role, table, right, positions)
            else:
                check_rights(rules, role, table, right)

    def check_one_of(self, item: CatalogItem, rights: tuple[str, ...]) -> None:
        """42501 without any of these rights on a sequence."""
        rules = self._rules
        check_one_right(rules, acting_role(rules, self._settings), item, rights)

    def check_any(self, item: CatalogItem) -> None:
        """42501 without any right on a table or view, or on what an index is of."""
        rules = self._rules
        check_any_right(rules, acting_role(rules, self._settings), item)

    def become(self, statement: st.Statement, *, in_transaction: bool = True) -> Outcome | None:
        """Does what SET or RESET of the role says; None for any other statement."""
        match statement:
            case st.Set(local=True) if statement.name in ROLE_SETTINGS and not in_transaction:
                return Outcome("SET", notices=(no_transaction_block("SET LOCAL"),))
            case st.Set() if statement.name in ROLE_SETTINGS:
                set_role(self._rules, self._settings, self._user, statement)
                return Outcome("SET")
            case st.Reset() if statement.name in ROLE_SETTINGS:
                begun_as = self._settings.login.get("role") if statement.name == "role" else None
                back = st.Set(statement.name, None if begun_as is None else (begun_as,))
                set_role(self._rules, self._settings, self._user, back)
                return Outcome("RESET")
            case _:
                return None

    def named(self, statement: Any) -> Any:
        """A statement about roles with the names that only the session knows; any other as it is."""
        return with_users(statement, *self._settings.in_force.users)
