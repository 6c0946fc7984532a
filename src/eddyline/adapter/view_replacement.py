"""CREATE OR REPLACE VIEW: what may change, and what becomes of the views that read the replaced one.

A replacement keeps the old columns as they were and may add columns at the end.  Readers were bound to the old width,
so their references get a projection to it.  A maintained reader (index, materialized view) has a running dataflow
over the old body; replacing below it is refused.
"""

from __future__ import annotations

from dataclasses import replace

from eddyline.adapter.catalog import CatalogSnapshot
from eddyline.adapter.dependencies import check_sources, readers_of
from eddyline.errors import make_error, unsupported
from eddyline.plan.relation import Get, Project, Relation
from eddyline.plan.traverse import rewrite_bottom_up
from eddyline.repr.types import SqlType
from eddyline.sql.catalog_view import CatalogItem, ItemKind

__all__ = ["replaced_view"]


def replaced_view(snapshot: CatalogSnapshot, new: CatalogItem) -> CatalogSnapshot:
    """``snapshot`` with ``new`` in place of the view with its id.

    Raises: 42P16 when a column goes or changes; 42P17 when the view would read itself; 0A000 below maintained readers.
    """
    old = snapshot.by_id[new.id]
    _check_columns(old, new)
    readers = readers_of(snapshot, [old])
    if new.depends_on & {old.id, *(r.id for r in readers)}:
        raise make_error("42P17", f'infinite recursion detected in rules for relation "{new.name}"')
    check_sources(snapshot, new)
    maintained = [r for r in readers if r.kind is not ItemKind.VIEW]
    if maintained:
        first = maintained[0]
        raise unsupported(
            f"replacing a view that {first.kind.value} {first.name} depends on",
            hint=f"Drop {first.kind.value} {first.name} first.",
        )
    changed = snapshot.with_item(new)
    if new.types != old.types:
        for reader in snapshot.dependents(old.id):
            changed = changed.with_item(_widened(reader, new.id, new.types))
    return changed


def _check_columns(old: CatalogItem, new: CatalogItem) -> None:
    if len(new.columns) < len(old.columns):
        raise make_error("42P16", "cannot drop columns from view")
    for before, after in zip(old.columns, new.columns, strict=False):
        if before.name != after.name:
            raise make_error(
                "42P16",
                f'cannot change name of view column "{before.name}" to "{after.name}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if before.type != after.type:
            raise make_error(
                "42P16",
                f'cannot change data type of view column "{before.name}" from {before.type} to {after.type}',
            )


def _widened(reader: CatalogItem, view_id: str, types: tuple[SqlType, ...]) -> CatalogItem:
    """``reader`` with its references to the view projected to the columns that it was bound to."""

    def wider(node: Relation) -> Relation:
        if isinstance(node, Get) and node.id == view_id and node.types != types:
            return Project(Get(view_id, types), tuple(range(len(node.types))))
        return node

    assert reader.relation is not None  # readers are views here, maintained ones were refused
    return replace(reader, relation=rewrite_bottom_up(reader.relation, wider))
