"""Names in scope: range-table entries, their columns, and how a name finds one.

A ``Scope`` is what the FROM clause of one query block brings in; scopes nest through ``outer`` for subqueries and
LATERAL.  Columns are ids (``sql.algebra``); ``bind_expression`` maps them to positions for callers outside queries.

Errors: 42703 undefined column, 42702 ambiguous, 42P01 missing FROM entry, 42712 duplicate alias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eddyline.errors import DatabaseError, make_error
from eddyline.repr.types import SqlType

__all__ = ["Entry", "Scope", "ScopeColumn", "find_column", "find_entry", "star_columns"]


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A visible column.  ``id`` is its column id in the statement."""

    name: str
    id: int
    type: SqlType


@dataclass(slots=True)
class Entry:
    """One range-table entry.  ``alias`` is None for an unaliased join or subquery, whose columns have no qualifier.

    ``schema`` is set for plain tables without an alias, which may be qualified as ``schema.table.column``.
    ``primary_key``: ids of the key's columns, empty without one.
    """

    alias: str | None
    columns: tuple[ScopeColumn, ...]
    schema: str | None = None
    primary_key: tuple[int, ...] = ()
    table: str | None = None  # the table's own name where an alias hides it

    def named(self, name: str) -> list[ScopeColumn]:
        return [c for c in self.columns if c.name == name]


@dataclass(slots=True)
class Scope:
    """``entries`` answer qualified names, ``visible`` unqualified ones and ``*``.

    They differ after USING, which shows its columns once.  ``lateral``: names of FROM items to the left, visible
    only to LATERAL items.  ``owner`` is the query block that the scope belongs to.
    """

    entries: list[Entry] = field(default_factory=list)
    visible: list[ScopeColumn] = field(default_factory=list)
    outer: Scope | None = None
    owner: object = None
    # Entries of enclosing FROM items that may not be used here, and why: makes PostgreSQL's message exact.
    hidden: list[Entry] = field(default_factory=list)

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def find_column(scope: Scope, name: str, position: int | None) -> ScopeColumn | None:
    """The unqualified column ``name``, innermost scope first; None if there is none (42702 if several)."""
    for level in scope.chain():
        found = [c for c in level.visible if c.name == name]
        if len(found) > 1:
            raise make_error("42702", f'column reference "{name}" is ambiguous', position=position)
        if found:
            return found[0]
    return None


def find_entry(scope: Scope, schema: str | None, alias: str) -> Entry | None:
    """The range-table entry a qualifier names, innermost scope first."""
    for level in scope.chain():
        for entry in level.entries:
            if entry.alias == alias and (schema is None or entry.schema == schema):
                return entry
    return None


def qualified_column(scope: Scope, schema: str | None, alias: str, name: str, position: int | None) -> ScopeColumn:
    """``alias.name``; 42P01 without such an entry, 42703 without such a column, 42702 if it has several."""
    entry = find_entry(scope, schema, alias)
    if entry is None:
        raise missing_entry(scope, alias, position)
    found = entry.named(name)
    if not found:
        raise make_error(
            "42703",
            f"column {alias}.{name} does not exist",
            position=position,
            hint=_near_hint(scope, alias, name),
        )
    if len(found) > 1:
        raise make_error("42702", f'column reference "{name}" is ambiguous', position=position)
    return found[0]


def missing_entry(scope: Scope, alias: str, position: int | None) -> DatabaseError:
    for level in scope.chain():
        if any(e.alias == alias for e in level.hidden):
            return make_error(
                "42P01",
                f'invalid reference to FROM-clause entry for table "{alias}"',
                position=position,
                detail=f'There is an entry for table "{alias}", '
                "but it cannot be referenced from this part of the query.",
            )
    for level in scope.chain():
        for entry in level.entries:
            if entry.table == alias and entry.alias != alias:
                return make_error(
                    "42P01",
                    f'invalid reference to FROM-clause entry for table "{alias}"',
                    position=position,
                    hint=f'Perhaps you meant to reference the table alias "{entry.alias}".',
                )
    return make_error("42P01", f'missing FROM-clause entry for table "{alias}"', position=position)


def undefined_column(scope: Scope, name: str, position: int | None) -> DatabaseError:
    """42703 for an unqualified name, with a hint when a near name or a hidden entry has it."""
    for level in scope.chain():
        for entry in level.hidden:
            if entry.named(name):
                return make_error(
                    "42703",
                    f'column "{name}" does not exist',
                    position=position,
                    detail=f'There is a column named "{name}" in table "{entry.alias}", '
                    "but it cannot be referenced from this part of the query.",
                )
    return make_error("42703", f'column "{name}" does not exist', position=position, hint=_near_hint(scope, None, name))


def star_columns(scope: Scope) -> Sequence[ScopeColumn]:
    """What ``*`` stands for in the scope's own block."""
    return scope.visible


def _near_hint(scope: Scope, alias: str | None, name: str) -> str | None:
    """PostgreSQL's "Perhaps you meant" hint: the closest names within half the name's length, at most two."""
    best: list[str] = []
    distance = len(name) // 2 + 1
    for level in scope.chain():
        for entry in level.entries:
            if entry.alias is None or (alias is not None and entry.alias != alias):
                continue
            for column in entry.columns:
                found = _edits(name, column.name, distance)
                if found < distance:
                    best, distance = [], found
                if found <= distance and found <= len(name) // 2:
                    best.append(f'"{entry.alias}.{column.name}"')
    if not best or len(best) > 2:
        return None
    if len(best) == 2:
        return f"Perhaps you meant to reference the column {best[0]} or the column {best[1]}."
    return f"Perhaps you meant to reference the column {best[0]}."


def _edits(a: str, b: str, limit: int) -> int:
    """Levenshtein distance, or anything past ``limit`` once it is known to exceed it."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def add_entries(scope: Scope, entries: Sequence[Entry], position: int | None = None) -> None:
    """Adds FROM entries; 42712 when an alias is taken."""
    for entry in entries:
        if entry.alias is not None and any(e.alias == entry.alias and e.schema == entry.schema for e in scope.entries):
            raise make_error("42712", f'table name "{entry.alias}" specified more than once', position=position)
        scope.entries.append(entry)
