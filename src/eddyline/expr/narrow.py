"""A map-filter-project over no more columns than it reads, so that whoever makes its input need not make the rest."""

from __future__ import annotations

from eddyline.expr.ir import Expr, FilterStep, MapStep, Mfp, columns_of, map_columns
from eddyline.expr.properties import can_fail

__all__ = ["narrow"]


def narrow(mfp: Mfp, width: int) -> tuple[tuple[int, ...], Mfp]:
    """(which of ``width`` input columns ``mfp`` reads, ascending; the same over those alone).

    All of them where a row may fail: its error shows the row.  O(expressions).
    """
    exprs = [_expr_of(step) for step in mfp.steps]
    if any(can_fail(expr) for expr in exprs):
        return tuple(range(width)), mfp
    read = {c for expr in exprs for c in columns_of(expr)} | set(mfp.projection)
    kept = tuple(sorted(c for c in read if c < width))
    if len(kept) == width:
        return kept, mfp
    place = {column: at for at, column in enumerate(kept)}

    def placed(column: int) -> int:
        return place[column] if column < width else len(kept) + column - width

    steps = tuple(
        MapStep(map_columns(expr, placed)) if isinstance(step, MapStep) else FilterStep(map_columns(expr, placed))
        for step, expr in zip(mfp.steps, exprs, strict=True)
    )
    names = tuple(mfp.names[c] for c in kept) if mfp.names else ()
    return kept, Mfp(steps, tuple(map(placed, mfp.projection)), mfp.types, names, mfp.view)


def _expr_of(step: MapStep | FilterStep) -> Expr:
    return step.expr if isinstance(step, MapStep) else step.predicate
