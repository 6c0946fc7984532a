"""CREATE SEQUENCE, ALTER SEQUENCE and RESTART IDENTITY: what they do to a catalog version.  Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eddyline.adapter.access_rules import Role
from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.catalog_changes import Change, name_taken, refuse_system_schema
from eddyline.adapter.notices import skipped
from eddyline.adapter.role_refusals import not_owner
from eddyline.adapter.sequence_links import sequence_item, sequences_of
from eddyline.errors import make_error
from eddyline.sql.catalog_view import CatalogItem, ItemKind, SequenceDef
from eddyline.sql.sequence_options import SequenceOptions, altered, first_definition
from eddyline.sql.statements import AlterSequence, CreateSequence

__all__ = ["alter_sequence", "create_sequence", "restart_sequences"]


def create_sequence(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], item_id: str, statement: CreateSequence, actor: Role
) -> Change:
    """42P07 when the name is taken (a notice with IF NOT EXISTS); see ``_owner`` for OWNED BY."""
    taken = name_taken(snapshot, statement.schema, statement.name, if_not_exists=statement.if_not_exists)
    if taken is not None:
        return taken
    definition = first_definition(statement.options, item_id)
    item = sequence_item(item_id, statement.schema, statement.name, definition)
    if statement.options.owned_by is not None:
        owner = _owner(snapshot, search_path, item, actor.id, statement.options.owned_by)
        item = replace(item, sequence=replace(definition, owner=owner))
    return Change(snapshot.with_item(item), item)


def alter_sequence(
    snapshot: CatalogSnapshot,
    search_path: tuple[str, ...],
    key: str,
    statement: AlterSequence,
    last: Callable[[SequenceDef], int],
) -> Change:
    """``key``: of its position, if it begins anew; ``last``: the value that a sequence has last given.

    42P01, 42809, 22023; 0A000 for the owner of an identity's.
    """
    schema, name = statement.name
    item = snapshot.view(search_path).resolve(schema, name)
    if item is None:
        if statement.if_exists:
            return Change(snapshot, notices=(skipped("relation", name, exists=False),))
        shown = name if schema is None else f"{schema}.{name}"
        raise make_error("42P01", f'relation "{shown}" does not exist')
    refuse_system_schema(item.schema)
    if item.sequence is None:
        raise make_error("42809", f'"{name}" is not a sequence')
    definition = altered(item.sequence, statement.options, key, last(item.sequence))
    changed = sequence_item(item.id, item.schema, item.name, definition)
    owned_by = statement.options.owned_by
    if owned_by is not None:
        if definition.identity and definition.owner is not None:
            table = snapshot.by_id[definition.owner[0]]
            raise make_error(
                "0A000",
                "cannot change ownership of identity sequence",
                detail=f'Sequence "{item.name}" is linked to table "{table.name}".',
            )
        owner = _owner(snapshot, search_path, item, snapshot.access.owner(item.id), owned_by)
        changed = replace(changed, sequence=replace(definition, owner=owner))
    return Change(snapshot.with_item(changed), changed)


def _owner(
    snapshot: CatalogSnapshot, search_path: tuple[str, ...], item: CatalogItem, role_id: int, names: Sequence[str]
) -> tuple[str, int] | None:
    """What OWNED BY names: 42P01, 42703, 42809; 55000 for a table of another owner, or in another schema."""
    if not names:
        return None
    *where, column = names
    schema, name = (where[0], where[1]) if len(where) == 2 else (None, where[0])
    table = snapshot.view(search_path).resolve(schema, name)
    if table is None:
        raise make_error("42P01", f'relation "{".".join(where)}" does not exist')
    if table.kind is not ItemKind.TABLE:
        plural = "indexes" if table.kind is ItemKind.INDEX else f"{table.kind.value}s"
        raise make_error(
            "42809",
            f'sequence cannot be owned by relation "{table.name}"',
            detail=f"This operation is not supported for {plural}.",
        )
    if snapshot.access.owner(table.id) != role_id:
        raise make_error("55000", "sequence must have same owner as table it is linked to")
    if table.schema != item.schema:
        raise make_error("55000", "sequence must be in same schema as table it is linked to")
    for position, found in enumerate(table.columns):
        if found.name == column:
            return table.id, position
    raise make_error("42703", f'column "{column}" of relation "{table.name}" does not exist')


def restart_sequences(snapshot: CatalogSnapshot, tables: Sequence[CatalogItem], key: str, actor: Role) -> Change:
    """Those that go with the tables begin again where they first began.  42501 unless they are the actor's."""
    changed = snapshot
    there = [snapshot.by_id[table.id] for table in tables if table.id in snapshot.by_id]
    for number, item in enumerate(sequences_of(snapshot, there)):
        assert item.sequence is not None
        if not snapshot.access.owns(actor, item.id):
            raise not_owner("sequence", item.name)
        options = SequenceOptions(restart="start")
        definition = altered(item.sequence, options, f"{key}.{number}", item.sequence.start)
        changed = changed.with_item(sequence_item(item.id, item.schema, item.name, definition))
    return Change(changed)
