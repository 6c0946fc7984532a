"""The statements of a session before they run: from text, bound, and kept by name.

Those that PREPARE keeps and those that a wire protocol's Parse keeps are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from eddyline.adapter.catalog import SearchPathView
from eddyline.adapter.cursors import Cursors
from eddyline.adapter.engine import Engine
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.prepare import MAX_CACHED_CHARS, Prepared, bind_parsed
from eddyline.adapter.result_columns import Columns, result_columns
from eddyline.errors import DatabaseError, Error, make_error
from eddyline.repr.types import SqlType
from eddyline.sql import statements as st
from eddyline.sql.parse import ParsedStatement, parse
from eddyline.sql.role_statements import says_a_password

__all__ = ["NamedStatement", "SessionStatements", "aborted", "meaning_of"]

#: catalog version, search path, TimeZone, current and session user, cluster
_Meaning: TypeAlias = tuple[int, tuple[str, ...], str | None, tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class NamedStatement:
    """``declared``: the types that were given for parameters.  ``meaning``: where ``prepared`` is known to be right."""

    parsed: ParsedStatement
    declared: Mapping[int, SqlType]
    prepared: Prepared
    meaning: _Meaning

    @property
    def asked_as(self) -> str:
        """Its text with the types of its parameters: what tells it from all that means something else at a time.

        A text has no zeros.
        """
        return "\0".join((self.parsed.text, *map(str, self.prepared.param_types)))

    @staticmethod
    def bound(parsed: ParsedStatement, declared: Mapping[int, SqlType], catalog: SearchPathView) -> NamedStatement:
        prepared = bind_parsed(parsed, catalog, None, dict(declared))
        return NamedStatement(parsed, declared, prepared, meaning_of(catalog))

    def still(self, catalog: SearchPathView) -> NamedStatement | None:
        """As it is, if its names and literals still mean what they meant; it is then known to be right there."""
        meaning, premises = meaning_of(catalog), self.prepared.premises
        if self.meaning == meaning and not premises.of_session:
            return self
        same_session = self.meaning[1:] == meaning[1:]
        return replace(self, meaning=meaning) if same_session and premises.hold(catalog) else None

    def current(self, catalog: SearchPathView) -> NamedStatement:
        """Bound again if what its names and literals mean has changed.

        0A000 if its rows have other columns then: clients read them as they were told when they prepared it.
        """
        still = self.still(catalog)
        if still is not None:
            return still
        bound = self.bound(self.parsed, self.declared, catalog)
        if _own_columns(bound) != _own_columns(self):
            raise make_error(
                "0A000",
                "cached plan must not change result type",
                hint="Prepare the statement anew: what it reads has other columns now.",
            )
        return bound


def _own_columns(statement: NamedStatement) -> Columns | None:
    """None where they are those of another statement or a cursor."""
    meant = statement.prepared.statement
    return None if isinstance(meant, st.Execute | st.Fetch) else result_columns(meant, _no_other, _no_other)


def _no_other(name: str) -> NoReturn:
    raise AssertionError(f"{name} is looked up for another statement only")


def meaning_of(catalog: SearchPathView) -> _Meaning:
    """Of names and literals, and where what they mean is looked for."""
    return catalog.version, catalog.search_path, catalog.zone, catalog.users, catalog.cluster


def aborted() -> DatabaseError:
    """What a failed transaction says to everything that cannot end it."""
    return make_error("25P02", "current transaction is aborted, commands ignored until end of transaction block")


class SessionStatements:
    """The statements of one session.  Owner: whoever serves the session's requests.

    ``names``: the catalog as the session sees it; ``failed``: whether its transaction has failed; ``fail``: makes it
    so, as every error of a request does.
    """

    def __init__(
        self,
        engine: Engine,
        names: Callable[[], SearchPathView],
        failed: Callable[[], bool],
        fail: Callable[[], None],
        cursors: Cursors,
    ) -> None:
        self._engine = engine
        self._names = names
        self._failed = failed
        self._fail = fail
        self._cursors = cursors
        self._kept: dict[str, NamedStatement] = {}

    # -- from text ----------------------------------------------------------------------------------------------------

    def parse(self, text: str) -> list[ParsedStatement]:
        """All statements of ``text``; 42601 and its kin."""
        try:
            self._engine.check_usable()
            return parse(text)
        except Error:
            self._fail()
            raise

    def remembered(self, text: str, declared: Mapping[int, SqlType]) -> NamedStatement | None:
        """What ``bind`` has remembered, for this or another session, if it still means the same."""
        catalog = self._names()
        key = _key(text, declared, catalog)
        cached = self._engine.cached_plan(key)
        if not isinstance(cached, NamedStatement) or self._failed():
            return None
        still = cached.still(catalog)
        if still is not None and still is not cached:
            self._engine.cache_plan(key, still)
        return still

    def prepare(self, text: str, declared: Mapping[int, SqlType]) -> NamedStatement | None:
        """The one statement of ``text`` bound as it means now, None if there is none; not kept under any name.

        ``declared``: types of parameters that the client gives.  42601 if there are several statements.
        """
        known = self.remembered(text, declared)
        if known is not None:
            return known
        statements = self.parse(text)
        if len(statements) > 1:
            self._fail()
            raise make_error("42601", "cannot insert multiple commands into a prepared statement")
        return self.bind(statements[0], declared, remember=text) if statements else None

    def bind(
        self, parsed: ParsedStatement, declared: Mapping[int, SqlType], *, remember: str | None = None
    ) -> NamedStatement:
        """``parsed`` as it means now; 25P02 in a failed transaction for what cannot end it.

        ``remember``: the text of which it is the only statement.
        """
        try:
            self._engine.check_usable()
            if self._failed() and parsed.kind != "transaction_stmt":
                raise aborted()
            catalog = self._names()
            statement = NamedStatement.bound(parsed, declared, catalog)
        except Error:
            self._fail()
            raise
        kept = remember is not None and not says_a_password(statement.prepared.statement)
        if remember is not None and kept and len(remember) <= MAX_CACHED_CHARS:
            self._engine.cache_plan(_key(remember, declared, catalog), statement)
        return statement

    def current(self, statement: NamedStatement) -> NamedStatement:
        """Bound again, if what its names and literals mean may have changed."""
        return statement.current(self._names())

    def columns(self, statement: NamedStatement) -> Columns | None:
        """The columns of the rows that it will give; None if it gives none."""
        return result_columns(statement.prepared.statement, lambda name: self.get(name).prepared, self._cursors.columns)

    def refused(self, error: Error) -> None:
        """Counts a request that failed before any statement of it was run, as those are counted that run."""
        self._engine.metrics.statement(error)

    # -- by name ------------------------------------------------------------------------------------------------------

    def add(self, name: str, statement: NamedStatement) -> None:
        """42P05 for a name that is taken."""
        if name in self._kept:
            raise make_error("42P05", f'prepared statement "{name}" already exists')
        self._kept[name] = statement

    def get(self, name: str) -> NamedStatement:
        """As it means now; 26000 for a name that there is not."""
        statement = self._kept.get(name)
        if statement is None:
            raise make_error("26000", f'prepared statement "{name}" does not exist')
        current = self._kept[name] = self.current(statement)
        return current

    def kept(self, name: str) -> NamedStatement | None:
        """As it was bound last; None for a name that there is not.  O(1)."""
        return self._kept.get(name)

    def is_current(self, statement: NamedStatement) -> bool:
        """Whether it still means what it was bound to."""
        return statement.meaning == meaning_of(self._names()) and not statement.prepared.premises.of_session

    def deallocate(self, statement: st.Deallocate) -> Outcome:
        """26000 for a name that there is not."""
        if statement.name is None:
            self.clear()
            return Outcome("DEALLOCATE ALL")
        if not self.discard(statement.name):
            raise make_error("26000", f'prepared statement "{statement.name}" does not exist')
        return Outcome("DEALLOCATE")

    def discard(self, name: str) -> bool:
        """Whether it was there."""
        return self._kept.pop(name, None) is not None

    def clear(self) -> None:
        self._kept.clear()


def _key(text: str, declared: Mapping[int, SqlType], catalog: SearchPathView) -> object:
    return text, tuple(declared.items()), meaning_of(catalog)[1:]
