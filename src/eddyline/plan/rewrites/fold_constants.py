"""Constant subexpressions become literals; filters and conditions are split into their conjuncts.

A constant that fails stays an expression: it must fail only on rows that evaluate it.
"""

from __future__ import annotations

from eddyline.expr.fold import fold
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.parameters import map_node_expressions
from eddyline.plan.predicates import conjuncts
from eddyline.plan.relation import Filter, Join, Relation
from eddyline.plan.traverse import rewrite_bottom_up

__all__ = ["fold_constants"]


def fold_constants(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _fold_node)


def _fold_node(node: Relation) -> Relation:
    folded = map_node_expressions(node, fold)
    match folded:
        case Filter():
            return Filter(folded.input, conjuncts(folded.predicates))
        case Join():
            return Join(folded.kind, folded.left, folded.right, conjuncts(folded.on))
        case _:
            return folded
