"""What reads what: the items that a drop would take along, the refusal without CASCADE, and sources that went away."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.adapter.catalog import CatalogSnapshot, SearchPathView
from eddyline.adapter.sequence_links import SequenceUse
from eddyline.errors import DatabaseError, make_error
from eddyline.plan.relation import Get
from eddyline.plan.traverse import post_order
from eddyline.sql.catalog_view import CatalogItem, ItemKind

__all__ = ["check_sources", "check_unreferenced", "dependency_lines", "readers_of"]


def readers_of(snapshot: CatalogSnapshot, items: Sequence[CatalogItem]) -> list[CatalogItem]:
    """Everything that depends on ``items``, directly or not, without ``items``; what is read before its readers."""
    given = {item.id for item in items}
    reached: dict[str, CatalogItem] = {}
    frontier = list(items)
    while frontier:
        step = [d for item in frontier for d in snapshot.dependents(item.id)]
        frontier = list({d.id: d for d in step}.values())
        for reader in frontier:
            # Met again further away: it moves behind what was found meanwhile.
            reached.pop(reader.id, None)
            if reader.id not in given:
                reached[reader.id] = reader
    return list(reached.values())


def check_unreferenced(
    view: SearchPathView,
    items: Sequence[CatalogItem],
    readers: Sequence[CatalogItem],
    schemas: tuple[str, ...] = (),
    uses: Sequence[SequenceUse] = (),
) -> None:
    """2BP01, with what depends on what, if anything but indexes reads ``items``, or if ``schemas`` hold anything.

    ``uses``: defaults of other tables that call sequences among ``items``.
    """
    blocking = [r for r in readers if r.kind is not ItemKind.INDEX]
    if not blocking and not schemas and not uses:
        return
    lines = [f"{_shown(view, item)} depends on schema {item.schema}" for item in items if item.schema in schemas]
    lines.extend(dependency_lines(view, items, blocking))
    lines.extend(f"{use.column_shown} depends on {use.sequence_shown}" for use in uses)
    if schemas:
        what = f"schema {schemas[0]}" if len(schemas) == 1 else "desired object(s)"
    else:
        what = _shown(view, items[0]) if len(items) == 1 else "desired object(s)"
    raise make_error(
        "2BP01",
        f"cannot drop {what} because other objects depend on {'it' if 'desired' not in what else 'them'}",
        detail="\n".join(lines),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def dependency_lines(view: SearchPathView, items: Sequence[CatalogItem], readers: Sequence[CatalogItem]) -> list[str]:
    """Of what ``readers`` depend on, among themselves and ``items``, as PostgreSQL says it."""
    return [
        f"{_shown(view, reader)} depends on {_shown(view, source)}"
        for reader in readers
        for source in (*items, *readers)
        if source.id in reader.depends_on
    ]


def _shown(view: SearchPathView, item: CatalogItem) -> str:
    return f"{item.kind.value} {view.shown(item)}"


def check_sources(snapshot: CatalogSnapshot, item: CatalogItem) -> None:
    """40001 when something that ``item`` was bound to has been dropped, or replaced in another shape, since then; its
    cluster is a part of that.
    """
    gone = any(snapshot.item(i) is None for i in (*item.depends_on, *([item.on] if item.on is not None else [])))
    relation = item.relation
    if not gone and relation is not None:
        reads = (node for node in post_order(relation) if isinstance(node, Get))
        gone = any((read := snapshot.item(node.id)) is None or node.types != read.types for node in reads)
    if gone:
        raise _changed(f'Something that "{item.name}" reads was dropped or replaced by another transaction.')
    if item.kind in (ItemKind.INDEX, ItemKind.MATERIALIZED_VIEW) and item.cluster not in snapshot.clusters:
        raise _changed(f'The cluster where "{item.name}" would be kept was dropped by another transaction.')


def _changed(detail: str) -> DatabaseError:
    return make_error(
        "40001",
        "could not serialize access due to concurrent update",
        detail=detail,
        hint="Retry the statement.",
    )
