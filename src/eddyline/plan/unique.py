"""Which columns of a relation are unique: what makes a DISTINCT needless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from eddyline.expr.ir import Call, Column, Literal
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import conjuncts, links_sides
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

__all__ = ["NO_KEYS", "UniqueKeys", "node_keys", "unique_keys"]

UniqueKeys: TypeAlias = frozenset[frozenset[int]]
NO_KEYS: UniqueKeys = frozenset()


def unique_keys(relation: Relation, facts: CatalogFacts) -> UniqueKeys:
    """Sets of columns on which no two rows agree (NULLs equal); all multiplicities are then 0 or 1.

    An empty set in it: at most one row.  Nothing is known of unions, negations and shared values.
    """
    done: dict[int, UniqueKeys] = {}
    for node in post_order(relation):
        done[id(node)] = node_keys(node, [done[id(c)] for c in children(node)], facts.unique_keys)
    return done[id(relation)]


def node_keys(
    node: Relation, inputs: Sequence[UniqueKeys], declared: Mapping[str, tuple[tuple[int, ...], ...]]
) -> UniqueKeys:
    """The unique keys of one node, given those of its inputs and those of catalog objects."""
    match node:
        case Get():
            return frozenset(frozenset(k) for k in declared.get(node.id, ()))
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


def _join_keys(node: Join, inputs: Sequence[UniqueKeys]) -> UniqueKeys:
    left, right = inputs
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    if node.kind is not JoinKind.INNER:
        return NO_KEYS
    width = len(node.left.types)
    found = frozenset(a | {c + width for c in b} for a in left for b in right)
    before, own = _equated(node)
    if any(key <= own for key in right):  # a left row is there once at most
        found |= left
    if any(key <= before for key in left):
        found |= frozenset(frozenset(c + width for c in key) for key in right)
    return found


def _equated(node: Join) -> tuple[frozenset[int], frozenset[int]]:
    """The columns of the left side and of the right one (from 0) that are equal, by their types' own equality."""
    width = len(node.left.types)
    before: set[int] = set()
    own: set[int] = set()
    for predicate in conjuncts(node.on):
        if not links_sides(predicate, width) or not isinstance(predicate, Call):
            continue
        first, second = predicate.args
        if isinstance(first, Column) and isinstance(second, Column) and first.type.kind is second.type.kind:
            low, high = sorted((first.index, second.index))
            before.add(low)
            own.add(high - width)
    return frozenset(before), frozenset(own)
