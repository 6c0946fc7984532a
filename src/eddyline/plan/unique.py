"""Which columns of a relation are unique: what makes a DISTINCT needless."""

from __future__ import annotations

from eddyline.expr.ir import Literal
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    Map,
    Project,
    Reduce,
    Relation,
    TopK,
)
from eddyline.plan.traverse import children, post_order

__all__ = ["unique_keys"]

Keys = frozenset[frozenset[int]]
NO_KEYS: Keys = frozenset()


def unique_keys(relation: Relation, facts: CatalogFacts) -> Keys:
    """Sets of columns on which no two rows agree (NULLs equal); all multiplicities are then 0 or 1.

    An empty set in it: at most one row.  Nothing is known of unions, negations and shared values.
    """
    done: dict[int, Keys] = {}
    for node in post_order(relation):
        done[id(node)] = _keys(node, [done[id(c)] for c in children(node)], facts)
    return done[id(relation)]


def _keys(node: Relation, inputs: list[Keys], facts: CatalogFacts) -> Keys:
    match node:
        case Get():
            return frozenset(frozenset(k) for k in facts.unique_keys.get(node.id, ()))
        case Constant():
            return frozenset([frozenset[int]()]) if len(node.rows) <= 1 else NO_KEYS
        case Filter() | Map():
            return inputs[0]
        case Project():
            position = {c: i for i, c in reversed(list(enumerate(node.columns)))}
            return frozenset(frozenset(position[c] for c in key) for key in inputs[0] if key <= position.keys())
        case Reduce():
            return frozenset([frozenset(range(len(node.keys)))])
        case Distinct():
            return inputs[0] | {frozenset(range(len(node.types)))}
        case TopK():
            one = isinstance(node.limit, Literal) and node.limit.value == 1
            return inputs[0] | {frozenset(node.group)} if one else inputs[0]
        case Join():
            return _join_keys(node, inputs)
        case _:
            return NO_KEYS


def _join_keys(node: Join, inputs: list[Keys]) -> Keys:
    left, right = inputs
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    if node.kind is not JoinKind.INNER:
        return NO_KEYS
    width = len(node.left.types)
    return frozenset(a | {c + width for c in b} for a in left for b in right)
