"""An outer join whose NULL-extended rows a filter above rejects anyway becomes a stricter join.

What stands between the filter and the join may compute from NULLs what the filter then rejects: ``0.2 * avg(…)``.
"""

from __future__ import annotations

from eddyline.expr.ir import Expr
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import null_when, rejects_nulls
from eddyline.plan.relation import Filter, Join, JoinKind, Map, Project, Relation
from eddyline.plan.traverse import rewrite_bottom_up, with_children

__all__ = ["simplify_outer_joins"]


def simplify_outer_joins(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _simplify)


def _simplify(node: Relation) -> Relation:
    if not isinstance(node, Filter):
        return node
    above: list[Project | Map] = []
    join = node.input
    while isinstance(join, (Project, Map)):
        above.append(join)
        join = join.input
    if not isinstance(join, Join):
        return node
    width, total = len(join.left.types), len(join.types)
    # Which side's NULLs are never seen above: rows that only the other side made are then lost.
    no_null_left = _rejects(node.predicates, above, frozenset(range(width)))
    no_null_right = _rejects(node.predicates, above, frozenset(range(width, total)))
    kind = _stricter(join.kind, no_null_left=no_null_left, no_null_right=no_null_right)
    if kind is join.kind:
        return node
    result: Relation = Join(kind, join.left, join.right, join.on)
    for step in reversed(above):
        result = with_children(step, (result,))
    return Filter(result, node.predicates)


def _rejects(predicates: tuple[Expr, ...], above: list[Project | Map], nulls: frozenset[int]) -> bool:
    """Whether a row of the join that is NULL in ``nulls`` passes the predicates never, as the steps ``above`` show it
    (from the top).  A step that fails for such a row is spared."""
    for step in reversed(above):
        if isinstance(step, Project):
            nulls = frozenset(i for i, c in enumerate(step.columns) if c in nulls)
            continue
        found = set(nulls)
        width = len(step.input.types)
        for i, expr in enumerate(step.exprs):
            if null_when(expr, frozenset(found)):
                found.add(width + i)
        nulls = frozenset(found)
    return any(rejects_nulls(p, nulls) for p in predicates)


def _stricter(kind: JoinKind, *, no_null_left: bool, no_null_right: bool) -> JoinKind:
    match kind:
        case JoinKind.LEFT if no_null_right:
            return JoinKind.INNER
        case JoinKind.RIGHT if no_null_left:
            return JoinKind.INNER
        case JoinKind.FULL if no_null_left and no_null_right:
            return JoinKind.INNER
        case JoinKind.FULL if no_null_left:
            return JoinKind.LEFT
        case JoinKind.FULL if no_null_right:
            return JoinKind.RIGHT
        case _:
            return kind
