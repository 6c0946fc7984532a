"""Groups of a table are made of the rows that a join has picked, where only those groups are asked for.

``… FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = … AND l_quantity < (SELECT avg(l_quantity) FROM
lineitem WHERE l_partkey = p_partkey)`` asks for averages of the few parts whose lineitems it has joined.  The join of
all lineitems with a filtered input that is unique on the join's columns has each lineitem of those parts, and has it
once: it becomes a shared value, and the averages are made of it instead of all lineitems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from eddyline.expr.ir import Call, Column, Expr
from eddyline.plan.blocks import Block
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.relation import Filter, Get, Join, JoinKind, LocalGet, Map, Project, Reduce, Relation
from eddyline.plan.traverse import children, rewrite_bottom_up, with_children
from eddyline.plan.unique import unique_keys

__all__ = ["group_joined"]


def group_joined(block: Block, facts: CatalogFacts) -> Block:
    """Cost: a walk, and for each join with groups the joins on the way to the columns that it compares them with."""
    values: list[tuple[str, Relation]] = []
    found = 0
    bodies = [*block.values, ("", block.body)]
    for name, body in bodies:
        pending: list[tuple[str, Relation]] = []

        def replace(node: Relation, pending: list[tuple[str, Relation]] = pending) -> Relation:
            nonlocal found
            use = _usable(node, facts) if isinstance(node, Join) else None
            if use is None:
                return node
            found += 1
            pending.append((f"joined{found}", use.joined))
            return use.over(LocalGet(f"joined{found}", use.joined.types))

        rewritten = rewrite_bottom_up(body, replace)
        values.extend([*pending, (name, rewritten)])
    return Block(tuple(values[:-1]), values[-1][1])


class _Source(NamedTuple):
    """A table under selections of columns: ``columns`` are the table's."""

    id: str
    columns: tuple[int, ...]


class _Use(NamedTuple):
    """``node`` may take its groups from ``joined``, which lies below its left side: ``path`` is the way there, and
    ``columns`` those of the join that the grouping reads; ``chain`` leads from its right side to the grouping."""

    node: Join
    joined: Join
    path: tuple[tuple[Relation, int], ...]
    chain: tuple[Relation, ...]
    columns: tuple[int, ...]

    def over(self, shared: Relation) -> Relation:
        left: Relation = shared
        for above, at in reversed(self.path):
            inputs = list(children(above))
            inputs[at] = left
            left = with_children(above, tuple(inputs))
        right: Relation = Project(shared, self.columns)
        for above in reversed(self.chain):
            right = with_children(above, (right,))
        return msgspec.structs.replace(self.node, left=left, right=right)


def _usable(node: Join, facts: CatalogFacts) -> _Use | None:
    if node.kind not in (JoinKind.INNER, JoinKind.LEFT):
        return None
    chain, keys = _to_grouping(node.right)
    if chain is None:
        return None
    grouping = chain[-1]
    assert isinstance(grouping, Reduce)
    source = _source(grouping.input)
    asked = _asked(node, keys)
    if source is None or asked is None:
        return None
    wanted = tuple(source.columns[k.index] for k in grouping.keys if isinstance(k, Column))
    path: list[tuple[Relation, int]] = []
    at, columns = node.left, asked
    while True:
        if isinstance(at, Join) and at.kind is JoinKind.INNER:
            picked = _picked(at, columns, source, wanted, facts)
            if picked is not None:
                return _Use(node, at, tuple(path), tuple(chain), picked)
        step = _down(at, columns)
        if step is None:
            return None
        path.append((at, step[0]))
        at, columns = children(at)[step[0]], step[1]


def _to_grouping(relation: Relation) -> tuple[list[Relation] | None, tuple[int, ...]]:
    """(the nodes down to a grouping by columns of its input, where its keys are among the relation's columns)."""
    chain: list[Relation] = []
    place: list[int | None] = list(range(len(relation.types)))
    node = relation
    while isinstance(node, (Project, Filter, Map)):
        if isinstance(node, Project):
            place = [None if c is None else node.columns[c] for c in place]
        elif isinstance(node, Map):
            width = len(node.input.types)
            place = [None if c is None or c >= width else c for c in place]
        chain.append(node)
        node = node.input
    if not isinstance(node, Reduce) or not node.keys or not all(isinstance(k, Column) for k in node.keys):
        return None, ()
    chain.append(node)
    if not all(k in place for k in range(len(node.keys))):
        return None, ()
    return chain, tuple(place.index(k) for k in range(len(node.keys)))


def _source(relation: Relation) -> _Source | None:
    columns = tuple(range(len(relation.types)))
    while isinstance(relation, Project):
        columns = tuple(relation.columns[c] for c in columns)
        relation = relation.input
    return _Source(relation.id, columns) if isinstance(relation, Get) else None


def _pairs(on: Sequence[Expr], width: int) -> list[tuple[int, int]] | None:
    """The columns that each condition equates, left and right (from 0), if all conditions do."""
    pairs: list[tuple[int, int]] = []
    for predicate in on:
        if not isinstance(predicate, Call) or predicate.func != "eq":
            return None
        first, second = predicate.args
        if not isinstance(first, Column) or not isinstance(second, Column) or first.type.kind is not second.type.kind:
            return None
        low, high = sorted((first.index, second.index))
        if not low < width <= high:
            return None
        pairs.append((low, high - width))
    return pairs


def _asked(node: Join, keys: tuple[int, ...]) -> tuple[int, ...] | None:
    """The columns of the left side that stand for the keys of the groups."""
    pairs = _pairs(node.on, len(node.left.types))
    by_key = {right: left for left, right in pairs or ()}
    return tuple(by_key[k] for k in keys) if all(k in by_key for k in keys) else None


def _down(node: Relation, columns: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
    """(the input that the columns come from, the columns there)."""
    match node:
        case Project():
            return 0, tuple(node.columns[c] for c in columns)
        case Filter():
            return 0, columns
        case Map():
            return (0, columns) if all(c < len(node.input.types) for c in columns) else None
        case Join():
            width = len(node.left.types)
            if all(c < width for c in columns) and node.kind is not JoinKind.RIGHT and node.kind is not JoinKind.FULL:
                return 0, columns
            if all(c >= width for c in columns) and node.kind is JoinKind.INNER:
                return 1, tuple(c - width for c in columns)
    return None


def _picked(
    joined: Join, columns: tuple[int, ...], source: _Source, wanted: tuple[int, ...], facts: CatalogFacts
) -> tuple[int, ...] | None:
    """The join's columns that are the source's, if it has every row of ``source`` whose ``wanted`` columns are those
    of one of its own rows, and has it once."""
    width = len(joined.left.types)
    pairs = _pairs(joined.on, width)
    for is_left in (True, False):
        own, other = (joined.left, joined.right) if is_left else (joined.right, joined.left)
        table = _source(own)
        if not pairs or table is None or table.id != source.id or not set(source.columns) <= set(table.columns):
            continue
        equal = {table.columns[a if is_left else b]: (b if is_left else a) for a, b in pairs}
        if len(equal) != len(pairs) or set(equal) != set(wanted) or not _is_filtered(other):
            continue
        if not any(key <= set(equal.values()) for key in unique_keys(other, facts)):
            continue
        first, second = (0, width) if is_left else (width, 0)
        places = {c: first + i for i, c in enumerate(table.columns)}
        if all(c in (places[w], second + equal[w]) for c, w in zip(columns, wanted, strict=True)):
            return tuple(places[c] for c in source.columns)
    return None


def _is_filtered(relation: Relation) -> bool:
    while isinstance(relation, (Project, Map)):
        relation = relation.input
    return isinstance(relation, Filter)
