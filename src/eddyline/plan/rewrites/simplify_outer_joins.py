"""An outer join whose NULL-extended rows a filter above rejects anyway becomes a stricter join."""

from __future__ import annotations

from eddyline.expr.ir import Expr, map_columns
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import rejects_nulls
from eddyline.plan.relation import Filter, Join, JoinKind, Project, Relation
from eddyline.plan.traverse import rewrite_bottom_up

__all__ = ["simplify_outer_joins"]


def simplify_outer_joins(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _simplify)


def _simplify(node: Relation) -> Relation:
    if not isinstance(node, Filter):
        return node
    match node.input:
        case Join() as join:
            stricter = _stricter(join, node.predicates)
            return node if stricter is join else Filter(stricter, node.predicates)
        case Project(input=Join() as join) as project:
            below = tuple(map_columns(p, project.columns.__getitem__) for p in node.predicates)
            stricter = _stricter(join, below)
            return node if stricter is join else Filter(Project(stricter, project.columns), node.predicates)
        case _:
            return node


def _stricter(join: Join, predicates: tuple[Expr, ...]) -> Join:
    width = len(join.left.types)
    left = frozenset(range(width))
    right = frozenset(range(width, width + len(join.right.types)))
    # Which side's NULLs are never seen above: rows that only the other side made are then lost.
    no_null_left = any(rejects_nulls(p, left) for p in predicates)
    no_null_right = any(rejects_nulls(p, right) for p in predicates)
    match join.kind:
        case JoinKind.LEFT if no_null_right:
            kind = JoinKind.INNER
        case JoinKind.RIGHT if no_null_left:
            kind = JoinKind.INNER
        case JoinKind.FULL if no_null_left and no_null_right:
            kind = JoinKind.INNER
        case JoinKind.FULL if no_null_left:
            kind = JoinKind.LEFT
        case JoinKind.FULL if no_null_right:
            kind = JoinKind.RIGHT
        case _:
            return join
    return Join(kind, join.left, join.right, join.on)
