"""What of a map-filter-project over pairs of rows can be done to the rows of one side alone, before they are paired."""

from __future__ import annotations

from typing import NamedTuple

from eddyline.expr.ir import Expr, FilterStep, MapStep, Mfp, columns_of, map_columns
from eddyline.expr.properties import can_fail
from eddyline.repr.types import SqlType

__all__ = ["OneSide", "one_side"]


class OneSide(NamedTuple):
    """``own``, over the columns of one side; ``other``, the columns of the other side that are read (from 0,
    ascending); and ``rest``, over own's result and those, in the order of the sides."""

    own: Mfp
    other: tuple[int, ...]
    rest: Mfp


def one_side(mfp: Mfp, left: tuple[SqlType, ...], right: tuple[SqlType, ...], *, is_left: bool) -> OneSide:
    """``mfp``, over the columns of ``left`` then ``right``, in two parts that give the same rows.

    The rows of ``own`` have what ``rest`` reads and nothing else: rows that differ elsewhere are equal there.
    Where a row may fail, its error shows all of it: nothing moves then, and no column goes.  O(expressions).
    """
    width = len(left) + len(right)
    side = range(len(left)) if is_left else range(len(left), width)
    if any(can_fail(_expr_of(step)) for step in mfp.steps):
        own_types, others = (left, right) if is_left else (right, left)
        return OneSide(Mfp((), tuple(range(len(side))), own_types), tuple(range(len(others))), mfp)
    types = {c: t for c, t in enumerate((*left, *right)) if c in side}
    place = {c: c - side.start for c in side}
    own: list[MapStep | FilterStep] = []
    rest: list[tuple[int, MapStep | FilterStep]] = []
    column = width
    for step in mfp.steps:
        expr = _expr_of(step)
        reads = columns_of(expr)
        if reads and reads <= place.keys():
            own.append(_over(step, place))
            if isinstance(step, MapStep):
                place[column], types[column] = len(place), expr.type
        else:
            rest.append((column, step))
        column += isinstance(step, MapStep)
    needed = sorted({c for _, step in rest for c in columns_of(_expr_of(step))} | set(mfp.projection))
    outputs = [c for c in needed if c in place]
    theirs = [c for c in needed if c < width and c not in side]
    before = [*outputs, *theirs] if is_left else [*theirs, *outputs]
    after = [c for c, step in rest if isinstance(step, MapStep)]
    later = {c: i for i, c in enumerate((*before, *after))}
    return OneSide(
        Mfp(tuple(own), tuple(place[c] for c in outputs), tuple(types[c] for c in outputs)),
        tuple(c - len(left) if is_left else c for c in theirs),
        Mfp(tuple(_over(step, later) for _, step in rest), tuple(later[c] for c in mfp.projection), mfp.types),
    )


def _expr_of(step: MapStep | FilterStep) -> Expr:
    return step.expr if isinstance(step, MapStep) else step.predicate


def _over(step: MapStep | FilterStep, place: dict[int, int]) -> MapStep | FilterStep:
    """The step over columns that stand elsewhere."""
    moved = map_columns(_expr_of(step), place.__getitem__)
    return MapStep(moved) if isinstance(step, MapStep) else FilterStep(moved)
