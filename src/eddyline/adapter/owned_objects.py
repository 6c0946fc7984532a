"""REASSIGN OWNED and DROP OWNED: what they do to a catalog version.  Pure functions, as in ``role_changes``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eddyline.adapter.access_rules import AccessRules, Role, schema_key
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, cascade_notice
from eddyline.adapter.dependencies import readers_of
from eddyline.adapter.role_refusals import required_by_the_system
from eddyline.adapter.sequence_links import check_no_identity, sequences_of, uses_of, without_defaults
from eddyline.errors import make_error
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.role_statements import DropOwned, ReassignOwned

__all__ = ["drop_owned", "reassign_owned"]


def reassign_owned(snapshot: CatalogSnapshot, statement: ReassignOwned, actor: Role) -> Change:
    """42501 unless the actor has the rights of all roles, 2BP01 for the first role's objects."""
    rules = snapshot.access
    old, new = _roles(rules, statement.roles), rules.role(statement.new_owner)
    _check_acts_as(rules, actor, (*old, new), "reassign")
    for role in old:
        refusal = required_by_the_system(role, "reassign ownership of")
        if refusal is not None:
            raise refusal
        for key in _owned(rules, role):
            rules = rules.with_owner(key, new.id)
    return Change(snapshot if rules is snapshot.access else snapshot.with_access(rules))


def drop_owned(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: DropOwned, actor: Role) -> Change:
    """Also takes back what the roles were granted, and what is granted by default to them or of theirs.

    42501 unless the actor has the rights of all roles, 2BP01 for the first role, and where others' objects depend on
    theirs, unless with CASCADE.
    """
    rules = snapshot.access
    roles = _roles(rules, statement.roles)
    _check_acts_as(rules, actor, roles, "drop")
    for role in roles:
        refusal = required_by_the_system(role, "drop")
        if refusal is not None:
            raise refusal
    owned = {key for role in roles for key in _owned(rules, role)}
    schemas = [s for s in snapshot.schemas if schema_key(s) in owned]
    found = _tables_and_views(i for i in snapshot.by_id.values() if i.id in owned)
    inside = _tables_and_views(i for i in snapshot.by_id.values() if i.schema in schemas and i.id not in owned)
    own = sequences_of(snapshot, [*found, *inside])
    gone = [*found, *inside, *own, *readers_of(snapshot, [*found, *inside, *own])]
    others = [i for i in gone if i.id not in owned and i.kind is not ItemKind.INDEX and i not in own]
    view = snapshot.view(search_path)
    check_no_identity(view, gone)
    uses = uses_of(view, gone)
    notices: list[str] = []
    if others or uses:
        names = [*(f"{item.kind.value} {view.shown(item)}" for item in others), *(use.column_shown for use in uses)]
        if not statement.cascade:
            raise make_error(
                "2BP01",
                "cannot drop desired object(s) because other objects depend on them",
                detail="\n".join(
                    (
                        *_reasons(snapshot, search_path, others, gone, schemas),
                        *(f"{use.column_shown} depends on {use.sequence_shown}" for use in uses),
                    )
                ),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        notices = cascade_notice(names)
    dropped = tuple(_readers_first(snapshot, gone))
    changed = without_defaults(snapshot, uses).without_items(dropped) if dropped else snapshot
    for schema in schemas:
        changed = changed.without_schema(schema)
    rules = changed.access
    for role in roles:
        rules = _without_grants(rules, role)
    if rules is not changed.access:
        changed = changed.with_access(rules)
    return Change(changed, dropped=dropped, notices=tuple(notices))


def _roles(rules: AccessRules, names: Sequence[str]) -> list[Role]:
    return [rules.role(name) for name in dict.fromkeys(names)]


def _check_acts_as(rules: AccessRules, actor: Role, roles: Sequence[Role], what: str) -> None:
    if not actor.superuser and not rules.acts_as(actor).issuperset(role.id for role in roles):
        raise make_error("42501", f"permission denied to {what} objects")


def _owned(rules: AccessRules, role: Role) -> list[str]:
    return [key for key, owner in rules.owners.items() if owner == role.id]


def _tables_and_views(items: Iterator[CatalogItem]) -> list[CatalogItem]:
    return sorted((i for i in items if i.kind is not ItemKind.INDEX), key=lambda i: int(i.id[1:]))


def _reasons(
    snapshot: CatalogSnapshot,
    search_path: tuple[str, ...],
    others: Sequence[CatalogItem],
    gone: Sequence[CatalogItem],
    schemas: Sequence[str],
) -> Iterator[str]:
    view = snapshot.view(search_path)
    for item in others:
        shown = f"{item.kind.value} {view.shown(item)}"
        if item.schema in schemas:
            yield f"{shown} depends on schema {item.schema}"
        for source in gone:
            if source.id in item.depends_on:
                yield f"{shown} depends on {source.kind.value} {view.shown(source)}"


def _readers_first(snapshot: CatalogSnapshot, items: Sequence[CatalogItem]) -> Iterator[CatalogItem]:
    """Each after all that read it."""
    left = {item.id: item for item in items}
    while left:
        free = [i for i in left.values() if not any(d.id in left for d in snapshot.dependents(i.id))]
        for item in free:
            del left[item.id]
        yield from free


def _without_grants(rules: AccessRules, role: Role) -> AccessRules:
    for key in list(rules.grants):
        while given := next((g for g in rules.granted(key) if role.id in (g.grantee, g.grantor)), None):
            rules = rules.revoking(key, given, option_only=False, cascade=True)
    return rules.without_defaults_of(role.id)
