"""A plan as a block: shared values in order, then the body.  No ``Let`` inside, ``LocalGet`` as leaves.

Shared values do not depend on where they are bound, so every ``Let`` can move to the top.  Rewrites then see trees.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from eddyline.plan.intern import intern_relation
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    LocalGet,
    Map,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
)
from eddyline.plan.traverse import children, post_order, rewrite_bottom_up, with_children

__all__ = ["Block", "block_of", "inline_cheap", "relation_of", "share_common"]

_LEAVES = (Constant, Get, LocalGet)
_STATEFUL = (Reduce, Distinct, TopK, Threshold)
_SHARED = (*_STATEFUL, Join, FlatMap)


@dataclass(frozen=True)
class Block:
    """``values[i]`` may read ``values[j]`` for j < i only."""

    values: tuple[tuple[str, Relation], ...]
    body: Relation


def block_of(relation: Relation) -> Block:
    """The block of a plan whose ``Let`` names are unique."""
    values: list[tuple[str, Relation]] = []
    done: dict[int, Relation] = {}
    for node in post_order(relation):
        if isinstance(node, Let):
            values.append((node.name, done[id(node.value)]))
            done[id(node)] = done[id(node.body)]
        else:
            done[id(node)] = with_children(node, tuple(done[id(c)] for c in children(node)))
    return Block(_in_order(values), done[id(relation)])


def _in_order(values: list[tuple[str, Relation]]) -> tuple[tuple[str, Relation], ...]:
    """The values sorted so that each comes after those it reads: a body may bind before the value around it."""
    by_name = dict(values)
    out: dict[str, Relation] = {}
    stack = [(name, False) for name, _ in reversed(values)]
    while stack:
        name, ready = stack.pop()
        if name in out:
            continue
        if ready:
            out[name] = by_name[name]
            continue
        stack.append((name, True))
        reads = {n.name for n in post_order(by_name[name]) if isinstance(n, LocalGet)}
        stack.extend((read, False) for read in sorted(reads) if read in by_name)
    return tuple(out.items())


def relation_of(block: Block) -> Relation:
    """The block as nested ``Let``s."""
    relation = block.body
    for name, value in reversed(block.values):
        relation = Let(name, value, relation)
    return relation


def _cheap(relation: Relation) -> bool:
    """A leaf under column selection: rendering it twice costs nothing."""
    while isinstance(relation, (Project, Map, Filter)):
        if isinstance(relation, Map):
            return False
        relation = relation.input
    return isinstance(relation, _LEAVES)


def inline_cheap(block: Block) -> Block:
    """Values that are unused, used once, or no work at all disappear."""
    uses: Counter[str] = Counter()
    _count(block.body, uses)
    for _, value in reversed(block.values):
        _count(value, uses)
    inlined: dict[str, Relation] = {}

    def replace(node: Relation) -> Relation:
        return inlined.get(node.name, node) if isinstance(node, LocalGet) else node

    values: list[tuple[str, Relation]] = []
    for name, value in block.values:
        expanded = rewrite_bottom_up(value, replace)
        if uses[name] <= 1 or _cheap(expanded):
            inlined[name] = expanded
        else:
            values.append((name, expanded))
    return Block(tuple(values), rewrite_bottom_up(block.body, replace))


def _count(relation: Relation, uses: Counter[str]) -> None:
    """Adds the occurrences of each name; a node object in two places counts for both."""
    weight: dict[int, int] = {id(relation): 1}
    for node in reversed(list(post_order(relation))):
        times = weight[id(node)]
        if isinstance(node, LocalGet):
            uses[node.name] += times
        for child in children(node):
            weight[id(child)] = min(weight.get(id(child), 0) + times, 2)


def share_common(block: Block, *, stateful_only: bool) -> Block:
    """Equal subtrees that keep state become shared values, computed once; values shared already stay so.

    ``stateful_only``: groupings only.  Before the rewrites that is what pays: a shared value is a barrier to
    pushdown, and a join that occurs twice may be wanted with different filters.  Joins are shared once filters are in
    their places, and before columns are left out: a view that asks twice for one join wants different ones of it.
    """
    kinds = _STATEFUL if stateful_only else _SHARED
    interned, root = intern_relation(relation_of(block))
    shared = set(interned.bound.values())
    counts = list(interned.uses())
    for i in reversed(range(len(counts))):
        if counts[i] > 1 and i not in shared and not isinstance(interned.nodes[i], kinds):
            for child in interned.inputs[i]:  # a selection of columns that is read twice reads its input twice
                counts[child] += 1
    results: list[Relation] = []
    values: list[tuple[str, Relation]] = []
    for i, (node, uses) in enumerate(zip(interned.nodes, counts, strict=True)):
        result = with_children(node, tuple(results[c] for c in interned.inputs[i]))
        types = result.types  # from the leaves up: a node's types are made of its inputs', however deep the plan
        if uses > 1 and (isinstance(node, kinds) or i in shared):
            name = f"l{len(values)}"
            values.append((name, result))
            result = LocalGet(name, types)
        results.append(result)
    return inline_cheap(Block(tuple(values), results[root]))
