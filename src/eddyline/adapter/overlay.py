"""Reading one's own uncommitted writes: pending rows laid over the tables they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.expr.ir import LiteralValue
from eddyline.expr.text_io import scalar_literal
from eddyline.plan.inline import inline_views
from eddyline.plan.relation import Constant, Get, Negate, Relation, Union
from eddyline.plan.traverse import rewrite_bottom_up
from eddyline.repr.batch import Batch
from eddyline.sql.catalog_view import CatalogView, ItemKind

__all__ = ["overlaid"]


def overlaid(relation: Relation, catalog: CatalogView, pending: Mapping[str, Sequence[Batch]]) -> Relation:
    """``relation`` down to base tables (materialized views too), each with its pending rows added and taken away."""

    def definition(item_id: str) -> Relation | None:
        item = catalog.item(item_id)
        return item.relation if item is not None and item.kind is not ItemKind.TABLE else None

    def lay_over(node: Relation) -> Relation:
        if not isinstance(node, Get) or not pending.get(node.id):
            return node
        changes = Batch.concat(node.types, pending[node.id])
        parts: list[Relation] = [node]
        for sign in (1, -1):
            rows = _literal_rows(changes, sign)
            if rows:
                constant = Constant(rows, node.types)
                parts.append(constant if sign > 0 else Negate(constant))
        return Union(tuple(parts))

    return rewrite_bottom_up(inline_views(relation, definition), lay_over)


def _literal_rows(batch: Batch, sign: int) -> tuple[tuple[LiteralValue, ...], ...]:
    """The rows whose diff has that sign, repeated as often as it says."""
    rows: list[tuple[LiteralValue, ...]] = []
    for i in range(len(batch)):
        count = int(batch.diffs[i]) * sign
        if count > 0:
            values = tuple(scalar_literal(c[i], t) for c, t in zip(batch.columns, batch.types, strict=True))
            rows.extend([values] * count)
    return tuple(rows)
