"""Recursive queries taken apart: what is computed once, what is repeated, and what reads the results.

A ``Recursive`` node becomes a ``Get`` of rows that whoever runs the plan computes first: the rows of ``base``, then,
round by round, those that ``step`` makes of the round before.  What is left are plans without recursion, which are
optimized and run like any other.  A recursion within the step of another one belongs to that step if it reads, however
indirectly, its round; otherwise it is computed once, like everything that does not change from round to round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from eddyline.expr.ir import Expr, Mfp
from eddyline.plan.fast_path import linear_over
from eddyline.plan.relation import Get, Let, LocalGet, Recursive, Relation, TopK
from eddyline.plan.traverse import children, post_order, with_children
from eddyline.repr.ids import is_working, working_id
from eddyline.repr.types import SqlType

__all__ = ["FirstRowsOnly", "Recursion", "Unrolled", "first_rows_only", "has_recursion", "unroll", "working_reads"]


@dataclass(frozen=True, slots=True)
class Recursion:
    """``id``: what reads all of its rows as a ``Get``; ``round_id``: what ``step`` reads the round before as.

    ``every``, ``label``, ``columns``: as in ``Recursive``.
    """

    id: str
    round_id: str
    base: Relation
    step: Unrolled
    every: bool
    label: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Unrolled:
    """``body`` reads the results of ``recursions``, each of which may read those before it."""

    recursions: tuple[Recursion, ...]
    body: Relation


def has_recursion(relation: Relation) -> bool:
    """O(nodes)."""
    return any(isinstance(node, Recursive) for node in post_order(relation))


def working_reads(relation: Relation) -> frozenset[str]:
    """The ids of recursions and rounds that ``relation`` reads."""
    return frozenset(node.id for node in post_order(relation) if isinstance(node, Get) and is_working(node.id))


def unroll(relation: Relation) -> Unrolled:
    """``relation`` without ``Recursive`` nodes.  Names of ``Let`` and ``Recursive`` are unique in it.

    Cost: one walk, and for each recursion the shared values that it reads once more.
    """
    return _Unrolling().run(relation)


class _Unrolling:
    def __init__(self) -> None:
        self._numbers = 0
        self._done: dict[int, Relation] = {}  # id() of a node: without recursions and Lets
        self._reads: dict[int, frozenset[str]] = {}  # id() of a node: the recursions whose round it reads from outside
        self._values: dict[str, Relation] = {}  # of a Let, as it was; it comes before all who read it
        self._within: dict[str | None, list[Recursion]] = {None: []}  # by the name of the recursion that they are in
        self._rounds: dict[str, str] = {}
        self._depth: dict[str, int] = {}

    def run(self, relation: Relation) -> Unrolled:
        nodes = list(post_order(relation))
        for place, node in enumerate(nodes):
            if isinstance(node, Recursive):  # one that is within another comes before it
                self._within[node.name] = []
                self._depth[node.name] = -place
                self._rounds[node.name] = self._id()
            elif isinstance(node, Let):
                self._values[node.name] = node.value
        for node in nodes:
            self._done[id(node)], self._reads[id(node)] = self._unrolled(node)
        return Unrolled(tuple(self._within[None]), self._closed(self._done[id(relation)]))

    def _id(self) -> str:
        self._numbers += 1
        return working_id(self._numbers)

    def _unrolled(self, node: Relation) -> tuple[Relation, frozenset[str]]:
        match node:
            case LocalGet() if node.name in self._rounds:
                return Get(self._rounds[node.name], node.types), frozenset((node.name,))
            case LocalGet():
                return node, self._reads[id(self._values[node.name])]
            case Let():
                return self._done[id(node.body)], self._reads[id(node.body)]
            case Recursive():
                return self._recursion(node)
            case _:
                below = children(node)
                reads = frozenset[str]().union(*(self._reads[id(c)] for c in below))
                return with_children(node, tuple(self._done[id(c)] for c in below)), reads

    def _recursion(self, node: Recursive) -> tuple[Relation, frozenset[str]]:
        reads = (self._reads[id(node.base)] | self._reads[id(node.step)]) - {node.name}
        step = Unrolled(tuple(self._within[node.name]), self._closed(self._done[id(node.step)]))
        base = self._closed(self._done[id(node.base)])
        found = Recursion(
            self._id(), self._rounds[node.name], base, step, node.every, node.label, node.columns, node.types
        )
        self._within[max(reads, key=self._depth.__getitem__, default=None)].append(found)
        return Get(found.id, node.types), reads

    def _closed(self, relation: Relation) -> Relation:
        """``relation`` under the shared values that it reads, however indirectly."""
        order: dict[str, None] = {}
        stack = [(name, False) for name in _shared(relation)]
        while stack:
            name, ready = stack.pop()
            if ready:
                order[name] = None
            elif name not in order:
                stack.append((name, True))
                stack.extend((inner, False) for inner in _shared(self._done[id(self._values[name])]))
        for name in reversed(order):
            relation = Let(name, self._done[id(self._values[name])], relation)
        return relation


def _shared(relation: Relation) -> Iterable[str]:
    return dict.fromkeys(node.name for node in post_order(relation) if isinstance(node, LocalGet))


@dataclass(frozen=True, slots=True)
class FirstRowsOnly:
    """Of recursion ``id`` no more rows are read than give ``limit`` after ``offset``, once through ``mfp``."""

    id: str
    mfp: Mfp
    limit: Expr
    offset: Expr | None


def first_rows_only(relation: Relation) -> tuple[FirstRowsOnly, ...]:
    """The recursions that an optimized relation reads in one place, under a LIMIT without an order."""
    nodes = list(post_order(relation))
    uses = Counter(id(child) for node in nodes for child in children(node))
    readers = Counter(node.id for node in nodes if isinstance(node, Get))
    found = []
    for node in nodes:
        if not isinstance(node, TopK) or node.order or node.group or node.limit is None:
            continue
        chain = linear_over(node.input)
        if chain is None or not is_working(chain[0].id) or readers[chain[0].id] > 1:
            continue
        below = node.input
        while uses[id(below)] == 1 and not isinstance(below, Get):
            (below,) = children(below)
        if uses[id(below)] == 1:
            found.append(FirstRowsOnly(chain[0].id, chain[1], node.limit, node.offset))
    return tuple(found)
