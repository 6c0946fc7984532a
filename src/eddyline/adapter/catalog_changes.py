"""What definitions do to a catalog snapshot: pure functions from a snapshot and a bound statement to the next one.

Names are checked here, against the snapshot that the change applies to, with PostgreSQL's messages.  Nothing is
executed: the caller creates and drops dataflows for ``Change.created`` and ``Change.dropped``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.dependencies import check_sources, check_unreferenced, readers_of
from eddyline.adapter.notices import skipped
from eddyline.adapter.sequence_links import (
    check_defaults,
    check_no_identity,
    sequences_of,
    uses_of,
    with_sequences,
    without_defaults,
)
from eddyline.adapter.system_catalog import SYSTEM_SCHEMAS
from eddyline.adapter.view_replacement import replaced_view
from eddyline.errors import DatabaseError, make_error
from eddyline.plan.traverse import gets
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.statements import (
    AlterRename,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    DropSchema,
)

__all__ = [
    "Change",
    "alter_rename",
    "announced",
    "cascade_notice",
    "create_index",
    "create_materialized_view",
    "create_schema",
    "create_table",
    "create_view",
    "drop",
    "drop_schema",
    "name_taken",
    "refuse_system_schema",
]

_NAME_BYTES = 63
_RESERVED_PREFIXES = ("pg_", "mz_")
_RESERVED_SCHEMAS = ("information_schema", "eddyline")


@dataclass(frozen=True, slots=True)
class Change:
    """``created``: the new or replaced item, None when nothing was made.  ``dropped``: readers before what they read.

    ``notices``: texts of NOTICE messages.  A change that does nothing has the snapshot it was given.
    ``sequences``: those that a new table has of its own.
    """

    snapshot: CatalogSnapshot
    created: CatalogItem | None = None
    dropped: tuple[CatalogItem, ...] = ()
    notices: tuple[str, ...] = ()
    sequences: tuple[CatalogItem, ...] = ()


def create_table(
    snapshot: CatalogSnapshot, item_id: str, statement: CreateTable | CreateTableAs, sequence_ids: Sequence[str] = ()
) -> Change:
    """42P07 when the name is taken (a notice with IF NOT EXISTS), 3F000 without the schema.

    ``sequence_ids``: of the sequences that its columns have of their own.
    """
    taken = name_taken(snapshot, statement.schema, statement.name, if_not_exists=statement.if_not_exists)
    if taken is not None:
        return taken
    key = statement.primary_key if isinstance(statement, CreateTable) else ()
    table = CatalogItem(
        id=item_id,
        schema=statement.schema,
        name=statement.name,
        kind=ItemKind.TABLE,
        columns=statement.columns,
        primary_key=key,
    )
    options = statement.sequences if isinstance(statement, CreateTable) else ()
    table, sequences = with_sequences(snapshot, table, options, sequence_ids)
    check_defaults(snapshot, table, {s.id for s in sequences})
    made = _created(snapshot, table)
    changed = made.snapshot
    for sequence in sequences:
        changed = changed.with_item(sequence)
    return replace(made, snapshot=changed, sequences=sequences)


def create_view(snapshot: CatalogSnapshot, item_id: str, statement: CreateView) -> Change:
    """With OR REPLACE an existing view keeps its id, so what reads it stays; see ``view_replacement``."""
    old = snapshot.find(statement.schema, statement.name)
    if statement.or_replace and old is not None:
        if old.kind is not ItemKind.VIEW:
            raise make_error("42809", f'"{old.name}" is not a view')
        changed = replaced_view(snapshot, _view_item(old.id, statement, ItemKind.VIEW))
        return Change(changed, changed.by_id[old.id])
    taken = name_taken(snapshot, statement.schema, statement.name, if_not_exists=False)
    return taken or _created(snapshot, _view_item(item_id, statement, ItemKind.VIEW))


def create_materialized_view(snapshot: CatalogSnapshot, item_id: str, statement: CreateMaterializedView) -> Change:
    taken = name_taken(snapshot, statement.schema, statement.name, if_not_exists=statement.if_not_exists)
    item = _view_item(item_id, statement, ItemKind.MATERIALIZED_VIEW)
    return taken or _created(snapshot, replace(item, cluster=statement.cluster))


def _view_item(item_id: str, statement: CreateView | CreateMaterializedView, kind: ItemKind) -> CatalogItem:
    return CatalogItem(
        id=item_id,
        schema=statement.schema,
        name=statement.name,
        kind=kind,
        columns=statement.columns,
        relation=statement.relation,
        definition=statement.definition,
        depends_on=gets(statement.relation),
        reads=statement.reads,
    )


def create_index(snapshot: CatalogSnapshot, item_id: str, statement: CreateIndex) -> Change:
    """The index stands in the schema of what it is on; without a name it gets PostgreSQL's kind of name."""
    schema = statement.on.schema
    name = statement.name
    if name is None:
        name = _free_name(snapshot, schema, statement.name_stem)
    taken = name_taken(snapshot, schema, name, if_not_exists=statement.if_not_exists)
    if taken is not None:
        return taken
    return _created(
        snapshot,
        CatalogItem(
            id=item_id,
            schema=schema,
            name=name,
            kind=ItemKind.INDEX,
            on=statement.on.id,
            keys=statement.keys,
            cluster=statement.cluster,
        ),
    )


def create_schema(snapshot: CatalogSnapshot, statement: CreateSchema) -> Change:
    name = statement.name
    if name.startswith(_RESERVED_PREFIXES) or name in _RESERVED_SCHEMAS:
        prefix = next((p for p in _RESERVED_PREFIXES if name.startswith(p)), name)
        raise make_error(
            "42939",
            f'unacceptable schema name "{name}"',
            detail=f'The prefix "{prefix}" is reserved for system schemas.',
        )
    if name in snapshot.schemas:
        if statement.if_not_exists:
            return Change(snapshot, notices=(skipped("schema", name, exists=True),))
        raise make_error("42P06", f'schema "{name}" already exists')
    return Change(snapshot.with_schema(name))


def drop(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: Drop) -> Change:
    """DROP of items: 42P01 / 42704 for missing ones, 42809 for another kind, 2BP01 for those still read."""
    found: list[CatalogItem] = []
    notices: list[str] = []
    for schema, name in statement.names:
        item = _find_dropped(snapshot, search_path, statement.kind, schema, name)
        if isinstance(item, CatalogItem):
            if item not in found:
                found.append(item)
        elif statement.if_exists:
            notices.append(f"{item.message}, skipping")
        else:
            raise item
    if not found:
        return Change(snapshot, notices=tuple(notices))
    own = sequences_of(snapshot, found)
    readers = readers_of(snapshot, [*found, *own])
    view = snapshot.view(search_path)
    check_no_identity(view, found)
    uses = uses_of(view, [*found, *readers, *own])
    if statement.cascade:
        names = [f"{r.kind.value} {view.shown(r)}" for r in announced(readers)]
        notices.extend(cascade_notice([*names, *(use.column_shown for use in uses)]))
    else:
        check_unreferenced(view, found, readers, uses=uses)
    gone = (*reversed(own), *reversed(readers), *reversed(found))
    return Change(without_defaults(snapshot, uses).without_items(gone), dropped=gone, notices=tuple(notices))


def drop_schema(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: DropSchema) -> Change:
    """DROP SCHEMA: 3F000 for missing ones, 2BP01 for those that hold something."""
    notices: list[str] = []
    schemas: list[str] = []
    for name in statement.names:
        refuse_system_schema(name)
        if name in snapshot.schemas:
            schemas.append(name)
        elif statement.if_exists:
            notices.append(skipped("schema", name, exists=False))
        else:
            raise make_error("3F000", f'schema "{name}" does not exist')
    members = [i for s in dict.fromkeys(schemas) for i in snapshot.items(s) if i.kind is not ItemKind.INDEX]
    own = sequences_of(snapshot, members)
    found = sorted((i for i in members if i not in own), key=lambda i: int(i.id[1:]))
    readers = readers_of(snapshot, [*found, *own])
    view = snapshot.view(search_path)
    uses = uses_of(view, [*found, *own, *readers])
    if found and not statement.cascade:
        check_unreferenced(view, found, readers, schemas=tuple(schemas), uses=uses)
    everything = [*found, *readers]
    names = [f"{i.kind.value} {view.shown(i)}" for i in announced(everything)]
    notices.extend(cascade_notice([*names, *(use.column_shown for use in uses)]))
    gone = (*reversed(own), *reversed(everything))
    changed = without_defaults(snapshot, uses).without_items(gone) if gone else snapshot
    for name in dict.fromkeys(schemas):
        changed = changed.without_schema(name)
    return Change(changed, dropped=gone, notices=tuple(notices))


def alter_rename(snapshot: CatalogSnapshot, search_path: tuple[str, ...], statement: AlterRename) -> Change:
    """ALTER … RENAME TO: readers refer by id, so only the name changes."""
    schema, name = statement.name
    item = snapshot.view(search_path).resolve(schema, name)
    if item is None:
        if statement.if_exists:
            return Change(snapshot, notices=(skipped("relation", name, exists=False),))
        shown = name if schema is None else f"{schema}.{name}"
        raise make_error("42P01", f'relation "{shown}" does not exist')
    refuse_system_schema(item.schema)
    if statement.kind is not ItemKind.TABLE and item.kind is not statement.kind:
        raise make_error("42809", f'"{name}" is not {_ARTICLES[statement.kind]}')
    taken = name_taken(snapshot, item.schema, statement.new_name, if_not_exists=False)
    return taken or _created(snapshot, replace(item, name=statement.new_name))


def _created(snapshot: CatalogSnapshot, item: CatalogItem) -> Change:
    check_sources(snapshot, item)
    return Change(snapshot.with_item(item), item)


def name_taken(snapshot: CatalogSnapshot, schema: str, name: str, *, if_not_exists: bool) -> Change | None:
    """None when ``name`` is free; a change that does nothing with IF NOT EXISTS; 42P07 otherwise."""
    refuse_system_schema(schema)
    if schema not in snapshot.schemas:
        raise make_error("3F000", f'schema "{schema}" does not exist')
    if snapshot.find(schema, name) is None:
        return None
    if if_not_exists:
        return Change(snapshot, notices=(skipped("relation", name, exists=True),))
    raise make_error("42P07", f'relation "{name}" already exists')


def refuse_system_schema(schema: str) -> None:
    """42501 for what the system keeps of itself."""
    if schema in SYSTEM_SCHEMAS:
        raise make_error(
            "42501",
            f'permission denied: "{schema}" is a system schema',
            hint="Make objects in a schema of your own.",
        )


def _free_name(snapshot: CatalogSnapshot, schema: str, stem: str) -> str:
    """``stem``_idx, or with the first number that makes it free; at most 63 bytes, as PostgreSQL's names."""
    number = 0
    while True:
        suffix = f"_idx{number or ''}"
        name = stem.encode()[: _NAME_BYTES - len(suffix)].decode(errors="ignore") + suffix
        if snapshot.find(schema, name) is None:
            return name
        number += 1


_ARTICLES = {
    ItemKind.TABLE: "a table",
    ItemKind.VIEW: "a view",
    ItemKind.MATERIALIZED_VIEW: "a materialized view",
    ItemKind.INDEX: "an index",
    ItemKind.SEQUENCE: "a sequence",
}


def _find_dropped(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], kind: ItemKind, schema: str | None, name: str
) -> CatalogItem | DatabaseError:
    """The item, or why there is none; 42809 (raised) for one of another kind."""
    if schema is not None and schema not in snapshot.schemas and schema not in SYSTEM_SCHEMAS:
        return make_error("3F000", f'schema "{schema}" does not exist')
    item = snapshot.view(search_path).resolve(schema, name)
    if item is None:
        sqlstate = "42704" if kind is ItemKind.INDEX else "42P01"
        return make_error(sqlstate, f'{kind.value} "{name}" does not exist')
    refuse_system_schema(item.schema)
    if item.kind is not kind:
        raise make_error(
            "42809",
            f'"{name}" is not {_ARTICLES[kind]}',
            hint=f"Use DROP {item.kind.value.upper()} to remove {_ARTICLES[item.kind]}.",
        )
    return item


def announced(items: list[CatalogItem]) -> list[CatalogItem]:
    """Indexes go silently with what they are on."""
    return [item for item in items if item.kind is not ItemKind.INDEX]


def cascade_notice(names: list[str]) -> list[str]:
    """PostgreSQL's notice of what a drop takes along; none without any."""
    if not names:
        return []
    if len(names) == 1:
        return [f"drop cascades to {names[0]}"]
    lines = "\n".join(f"drop cascades to {name}" for name in names)
    return [f"drop cascades to {len(names)} other objects\nDETAIL: {lines}"]
