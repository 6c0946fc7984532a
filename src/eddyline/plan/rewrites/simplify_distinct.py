"""DISTINCT disappears where rows are unique already, or where the consumer makes its own."""

from __future__ import annotations

from eddyline.plan.facts import CatalogFacts
from eddyline.plan.relation import Distinct, Join, JoinKind, Reduce, Relation
from eddyline.plan.traverse import rewrite_bottom_up
from eddyline.plan.unique import unique_keys

__all__ = ["simplify_distinct"]


def simplify_distinct(relation: Relation, facts: CatalogFacts) -> Relation:
    def simplify(node: Relation) -> Relation:
        match node:
            case Distinct(input=Distinct()):
                return node.input
            case Distinct() if unique_keys(node.input, facts):
                return node.input
            case Reduce(aggregates=(), input=Distinct() as below):
                return Reduce(below.input, node.keys, (), node.global_row)
            case Join(kind=JoinKind.SEMI | JoinKind.ANTI, right=Distinct() as below):
                return Join(node.kind, node.left, below.input, node.on)
            case _:
                return node

    return rewrite_bottom_up(relation, simplify)
