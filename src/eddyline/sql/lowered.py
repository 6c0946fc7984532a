"""Relations with named columns: what lowering passes around.

A ``Lowered`` pairs a positional relation with the position of each column id.  Several ids may share a position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eddyline.expr.ir import Call, Column, Expr, map_columns
from eddyline.plan.relation import Filter, Join, JoinKind, Map, Project, Relation
from eddyline.repr.types import BOOLEAN

__all__ = ["Lowered", "add_columns", "filtered", "join_lowered", "select_columns", "trimmed"]


@dataclass(frozen=True)
class Lowered:
    """``layout``: column id to position in ``relation``."""

    relation: Relation
    layout: dict[int, int]

    def place(self, expr: Expr) -> Expr:
        """``expr`` over ids as an expression over positions; KeyError for an id that is not here."""
        return map_columns(expr, self.layout.__getitem__)

    def column(self, number: int) -> Column:
        position = self.layout[number]
        return Column(position, self.relation.types[position])


def select_columns(lowered: Lowered, ids: Sequence[int]) -> Relation:
    """Exactly ``ids``, in order."""
    positions = tuple(lowered.layout[i] for i in ids)
    if positions == tuple(range(len(lowered.relation.types))):
        return lowered.relation
    return Project(lowered.relation, positions)


def trimmed(lowered: Lowered, ids: Iterable[int]) -> Lowered:
    """Only ``ids``, once each."""
    wanted = tuple(dict.fromkeys(ids))
    return Lowered(select_columns(lowered, wanted), {n: i for i, n in enumerate(wanted)})


def add_columns(lowered: Lowered, exprs: Sequence[tuple[int, Expr]]) -> Lowered:
    """With a column per (id, expression over ids); a plain column only gets a second name."""
    layout = dict(lowered.layout)
    width = len(lowered.relation.types)
    added: list[Expr] = []
    for number, expr in exprs:
        placed = lowered.place(expr)
        if isinstance(placed, Column):
            layout[number] = placed.index
            continue
        layout[number] = width + len(added)
        added.append(placed)
    relation = Map(lowered.relation, tuple(added)) if added else lowered.relation
    return Lowered(relation, layout)


def filtered(lowered: Lowered, predicates: Sequence[Expr]) -> Lowered:
    if not predicates:
        return lowered
    return Lowered(Filter(lowered.relation, tuple(lowered.place(p) for p in predicates)), lowered.layout)


def join_lowered(kind: JoinKind, left: Lowered, right: Lowered, on: Sequence[Expr]) -> Lowered:
    """The join on ``on`` (over ids) and on null-safe equality of the ids that both sides have.

    The result has the left's column for those.
    """
    width = len(left.relation.types)
    types = right.relation.types
    shared: list[Expr] = []
    layout = dict(left.layout)
    for number, position in right.layout.items():
        if number in left.layout:
            pair = (left.column(number), Column(width + position, types[position]))
            shared.append(Call("is_not_distinct_from", pair, BOOLEAN))
        else:
            layout[number] = width + position
    placed = tuple(map_columns(p, layout.__getitem__) for p in on)
    relation = Join(kind, left.relation, right.relation, (*shared, *placed))
    return Lowered(relation, left.layout if kind in (JoinKind.SEMI, JoinKind.ANTI) else layout)
