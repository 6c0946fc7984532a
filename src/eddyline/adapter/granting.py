"""What GRANT and REVOKE of rights do to a catalog version.  Pure functions, as in ``role_changes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eddyline.adapter.access_rules import (
    DATABASE_KEY,
    PUBLIC,
    AccessRules,
    Grant,
    Role,
    column_key,
    column_of,
    schema_key,
)
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, refuse_system_schema
from eddyline.adapter.notices import warning
from eddyline.adapter.role_refusals import denied
from eddyline.errors import DatabaseError, make_error, unsupported
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.role_statements import ALL_RIGHTS, GrantRights

__all__ = ["grant_rights", "relation_named"]

_OF_COLUMNS = frozenset(ALL_RIGHTS["column"])


def _targets(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: GrantRights
) -> Iterator[tuple[str, str, str]]:
    """(key, kind, name) of what is meant."""
    for schema, name in statement.objects:
        if statement.kind == "database":
            if name != "postgres":
                raise make_error("3D000", f'database "{name}" does not exist')
            yield DATABASE_KEY, "database", name
        elif statement.kind == "schema" or statement.all_in:
            refuse_system_schema(name)
            if name not in snapshot.schemas:
                raise make_error("3F000", f'schema "{name}" does not exist')
            if statement.all_in:
                inside = (i for i in snapshot.items(name) if i.kind is not ItemKind.INDEX)
                yield from ((i.id, i.kind.value, i.name) for i in inside if i.rights_kind == statement.kind)
            else:
                yield schema_key(name), "schema", name
        else:
            item = relation_named(snapshot, search_path, schema, name)
            if statement.kind == "sequence" and item.kind is not ItemKind.SEQUENCE:
                raise make_error("42809", f'"{name}" is not a sequence')
            yield item.id, item.kind.value, item.name


def relation_named(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], schema: str | None, name: str
) -> CatalogItem:
    """A table or view; 42P01, 42809 for an index."""
    item = snapshot.view(search_path).resolve(schema, name)
    if item is None:
        raise make_error("42P01", f'relation "{name if schema is None else f"{schema}.{name}"}" does not exist')
    refuse_system_schema(item.schema)
    if item.kind is ItemKind.INDEX:
        raise make_error("42809", f'"{name}" is an index')
    return item


@dataclass(frozen=True, slots=True)
class _Target:
    """What rights are given of or taken back: an object or a column.

    ``shown``: in warnings.  ``refused``: the error for who has no right of its ``kind`` there.  ``every``: all rights
    were meant, so that it is no matter if some are not the actor's to grant.
    """

    key: str
    kind: str
    rights: tuple[str, ...]
    shown: str
    refused: DatabaseError
    every: bool


def grant_rights(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: GrantRights, actor: Role
) -> Change:
    """42501, 42703, 42704, 0LP01, 2BP01 as PostgreSQL; what is not the actor's to grant is left out with a warning."""
    rules = snapshot.access
    notices: list[str] = []
    grantees = [PUBLIC if name is None else rules.role(name).id for name in statement.grantees]
    if statement.grant and statement.option and PUBLIC in grantees:
        raise make_error("0LP01", "grant options can only be granted to roles")
    for key, kind, name in _targets(snapshot, search_path, statement):
        of = "sequence" if kind == "sequence" else statement.kind
        known = ALL_RIGHTS[of]
        wanted = tuple(r for r in statement.rights or (() if statement.of_columns else known) if r in known)
        if len(wanted) < len(statement.rights):
            if kind != "sequence":
                raise make_error("0LP01", f"invalid privilege type USAGE for {statement.kind}")
            only = f'sequence "{name}" only supports USAGE, SELECT, and UPDATE privileges'
            notices.append(warning(only, "0LP01"))
        if wanted:
            _check_columns(snapshot, rules, statement, actor, key)
            whole = _Target(key, of, wanted, f'"{name}"', denied(_words(kind), name), not statement.rights)
            rules, warned = _changed_rights(rules, statement, actor, whole, grantees)
            notices.extend(warned)
        if statement.kind == "table" and not statement.grant:
            rules = _without_columns(rules, statement, actor, snapshot.by_id[key], wanted, grantees)
        for column in _columns(statement, snapshot.by_id[key]) if statement.of_columns else ():
            rules, warned = _changed_rights(rules, statement, actor, column, grantees)
            notices.extend(warned)
    return Change(snapshot.with_access(rules), notices=tuple(notices))


def _words(kind: str) -> str:
    """Of views, too, PostgreSQL says here that they are tables."""
    return kind if kind in ("schema", "database", "sequence") else "table"


def _columns(statement: GrantRights, item: CatalogItem) -> Iterator[_Target]:
    """The columns that are named, in the table's order; 42703 for one that there is not."""
    every = tuple(ALL_RIGHTS["column"])
    positions = {c.name: number for number, c in enumerate(item.columns)}
    rights: dict[str, list[str]] = {}
    for right, names in statement.of_columns:
        for name in names:
            if name not in positions:
                raise make_error("42703", f'column "{name}" of relation "{item.name}" does not exist')
            rights.setdefault(name, []).extend(every if right is None else (right,))
    for name in sorted(rights, key=lambda n: positions[n]):
        wanted = tuple(dict.fromkeys(rights[name]))
        shown = f'column "{name}" of relation "{item.name}"'
        refused = make_error("42501", f"permission denied for {shown}")
        yield _Target(column_key(item.id, positions[name]), "column", wanted, shown, refused, set(wanted) == set(every))


def _changed_rights(
    rules: AccessRules, statement: GrantRights, actor: Role, target: _Target, grantees: Sequence[int]
) -> tuple[AccessRules, list[str]]:
    """The rules after the grants or revocations of one target's rights, and warnings; 42501 without any right of it."""
    key = target.key
    notices: list[str] = []
    done, code = ("were granted", "01007") if statement.grant else ("could be revoked", "01006")
    by = {right: grantor for right in target.rights if (grantor := rules.grantor(actor, key, right)) is not None}
    if not by:
        column = column_of(key)
        keys = (key,) if column is None else (key, column[0])
        if not any(rules.allows(actor, k, right) for k in keys for right in ALL_RIGHTS[target.kind]):
            raise target.refused
        notices.append(warning(f"no privileges {done} for {target.shown}", code))
    elif len(by) < len(target.rights) and not target.every:
        notices.append(warning(f"not all privileges {done} for {target.shown}", code))
    for grantee in grantees:
        if grantee == rules.owner(key):
            if not statement.grant:
                raise unsupported("REVOKE from the owner", hint="Make another role the owner.")
            continue  # which has all rights
        rules = _changed_of(rules, statement, key, grantee, by)
    return rules, notices


def _changed_of(
    rules: AccessRules, statement: GrantRights, key: str, grantee: int, by: Mapping[str, int]
) -> AccessRules:
    """``by``: whose grants they are, by right."""
    for right, grantor in by.items():
        grant = Grant(grantee, right, grantor, statement.grant and statement.option)
        if statement.grant:
            rules = rules.granting(key, grant)
        else:
            rules = rules.revoking(key, grant, option_only=statement.option, cascade=statement.cascade)
    return rules


def _without_columns(
    rules: AccessRules,
    statement: GrantRights,
    actor: Role,
    item: CatalogItem,
    rights: Sequence[str],
    grantees: Sequence[int],
) -> AccessRules:
    """What is taken back of a table is taken back of each of its columns."""
    for position in range(len(item.columns)):
        key = column_key(item.id, position)
        by = {r: found for r in rights if r in _OF_COLUMNS and (found := rules.grantor(actor, key, r)) is not None}
        for grantee in grantees if rules.granted(key) else ():
            rules = _changed_of(rules, statement, key, grantee, by)
    return rules


def _check_columns(
    snapshot: CatalogSnapshot, rules: AccessRules, statement: GrantRights, actor: Role, key: str
) -> None:
    """A REVOKE is one from all columns too, which takes some right on them."""
    rights = set(statement.rights or ALL_RIGHTS["table"]) & _OF_COLUMNS
    if statement.grant or statement.kind != "table" or not rights:
        return
    item = snapshot.by_id[key]
    if item.kind is ItemKind.SEQUENCE or any(rules.allows(actor, key, right) for right in _OF_COLUMNS):
        return
    if not any(rules.allows(actor, key, right) for right in ALL_RIGHTS["table"]):
        raise denied("table", item.name)
    without = [
        column.name
        for number, column in enumerate(item.columns)
        if not any(rules.allows(actor, column_key(key, number), right) for right in _OF_COLUMNS)
    ]
    if without or item.kind is ItemKind.TABLE:  # of whose columns PostgreSQL counts those of the system first
        shown = f'column "{(without or [item.columns[0].name])[0]}" of relation "{item.name}"'
        raise make_error("42501", f"permission denied for {shown}")
