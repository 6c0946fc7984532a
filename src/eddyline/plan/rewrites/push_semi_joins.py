"""A semi or anti join that leaves few rows comes before joins that leave as many as there are.

``orders JOIN lineitem … WHERE o_orderkey IN (SELECT … HAVING …)`` joins the few orders, instead of looking through the
join of all of them.  A semi join passes an inner join whose other input is not filtered, to the input whose columns
its condition reads, if its own right side is filtered: what it is for is then likely rarer than what the join drops.
Where the other input is filtered, or the right side is everything there is, the order as written stays.
"""

from __future__ import annotations

from eddyline.expr.ir import columns_of, map_columns
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.filtered import is_filtered
from eddyline.plan.predicates import fallible
from eddyline.plan.relation import Join, JoinKind, Project, Relation
from eddyline.plan.traverse import rewrite_top_down

__all__ = ["push_semi_joins"]


def push_semi_joins(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_top_down(relation, _push)


def _push(node: Relation) -> Relation:
    if not isinstance(node, Join) or node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return node
    # A condition that may fail must not see rows that the join would have dropped.
    if any(fallible(p) for p in node.on) or not is_filtered(node.right):
        return node
    return _before_joins(node)


def _before_joins(semi: Join) -> Relation:
    """The semi join as far down its left side as it may go."""
    source = semi.left
    width = len(source.types)
    match source:
        case Project():
            columns = source.columns
            inside = len(source.input.types)

            def below(column: int) -> int:
                return columns[column] if column < width else column - width + inside

            on = tuple(map_columns(p, below) for p in semi.on)
            pushed = _before_joins(Join(semi.kind, source.input, semi.right, on))
            return semi if isinstance(pushed, Join) and pushed.kind is semi.kind else Project(pushed, columns)
        case Join() if source.kind is JoinKind.INNER:
            return _into_input(semi, source)
        case _:
            return semi


def _into_input(semi: Join, join: Join) -> Relation:
    width, left_width = len(join.types), len(join.left.types)
    read = frozenset(c for p in semi.on for c in columns_of(p) if c < width)
    if not read:
        return semi
    if max(read) < left_width and not is_filtered(join.right):
        own, other_width, first = join.left, left_width, 0
    elif min(read) >= left_width and not is_filtered(join.left):
        own, other_width, first = join.right, len(join.right.types), left_width
    else:
        return semi

    def below(column: int) -> int:
        return column - first if column < width else column - width + other_width

    pushed = _before_joins(Join(semi.kind, own, semi.right, tuple(map_columns(p, below) for p in semi.on)))
    left, right = (pushed, join.right) if own is join.left else (join.left, pushed)
    return Join(JoinKind.INNER, left, right, join.on)
