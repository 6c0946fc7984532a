"""Correlated predicates lifted out of a subquery, so that it becomes one side of a join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eddyline.expr.ir import Call, Column, Expr, rewrite
from eddyline.plan.relation import JoinKind
from eddyline.sql.algebra import UNIT, Filter, FlatMap, FreeIds, Ids, Join, Map, Node, outputs
from eddyline.sql.comparison import mentions

__all__ = ["Peeled", "equality_keys", "is_rowwise", "peel", "substitute"]


@dataclass(slots=True)
class Peeled:
    """``core`` has no reference to the outer row; the subquery is its rows that pass ``predicates`` for an outer row,
    with ``computed`` (id to expression over both) on top."""

    core: Node
    predicates: list[Expr] = field(default_factory=list)
    computed: dict[int, Expr] = field(default_factory=dict)


def substitute(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    if not values or not (mentions(expr) & values.keys()):
        return expr
    return rewrite(expr, lambda e: values.get(e.index, e) if isinstance(e, Column) else e)


def peel(node: Node, outer: Iterable[int], ids: Ids, free: FreeIds) -> Peeled | None:
    """``node`` without its references to ``outer``, or None where they stand too deep."""
    return _Peeling(frozenset(outer), ids, free).peel(node)


@dataclass(slots=True)
class _Peeling:
    outer: frozenset[int]
    ids: Ids
    free: FreeIds

    def peel(self, node: Node) -> Peeled | None:
        if not self.free.of_node(node) & self.outer:
            return Peeled(node)
        match node:
            case Filter():
                return self._filter(node)
            case Map():
                return self._map(node)
            case Join() if node.kind in (JoinKind.INNER, JoinKind.LEFT):
                return self._join(node)
        return None

    def _correlated(self, expr: Expr) -> bool:
        return bool(self.free.of_exprs((expr,)) & self.outer)

    def _has_subquery(self, expr: Expr) -> bool:
        return any(n in self.ids.subqueries for n in mentions(expr))

    def _split(self, result: Peeled, predicates: Iterable[Expr]) -> list[Expr] | None:
        """The uncorrelated ones; the others go into ``result``.  None if a correlated one holds a subquery."""
        own: list[Expr] = []
        for predicate in predicates:
            expr = substitute(predicate, result.computed)
            if not self._correlated(expr):
                own.append(expr)
            elif self._has_subquery(expr):
                return None
            else:
                result.predicates.append(expr)
        return own

    def _filter(self, node: Filter) -> Peeled | None:
        result = self.peel(node.input)
        if result is None:
            return None
        own = self._split(result, node.predicates)
        if own is None:
            return None
        if own:
            result.core = Filter(result.core, tuple(own))
        return result

    def _map(self, node: Map) -> Peeled | None:
        result = self.peel(node.input)
        if result is None:
            return None
        own: list[tuple[int, Expr]] = []
        for number, expr in node.exprs:
            value = substitute(expr, result.computed)
            if not self._correlated(value):
                own.append((number, value))
            elif self._has_subquery(value):
                return None
            else:
                result.computed[number] = value
        if own:
            result.core = Map(result.core, tuple(own))
        return result

    def _join(self, node: Join) -> Peeled | None:
        if self.free.of_node(node.right) & outputs(node.left):
            return None
        left = self.peel(node.left)
        if left is None:
            return None
        if node.kind is JoinKind.LEFT:
            on = [substitute(p, left.computed) for p in node.on]
            if self.free.of_node(node.right) & self.outer or any(self._correlated(p) for p in on):
                return None
            return Peeled(Join(JoinKind.LEFT, left.core, node.right, tuple(on)), left.predicates, left.computed)
        right = self.peel(node.right)
        if right is None:
            return None
        result = Peeled(left.core, [*left.predicates, *right.predicates], {**left.computed, **right.computed})
        own = self._split(result, node.on)
        if own is None:
            return None
        result.core = Join(JoinKind.INNER, left.core, right.core, tuple(own))
        return result


def equality_keys(predicates: Iterable[Expr], outer: Iterable[int]) -> list[tuple[Expr, Expr]] | None:
    """(outer side, inner side) of each predicate, when all are equalities between the outer row and the inner one."""
    ours = frozenset(outer)
    keys: list[tuple[Expr, Expr]] = []
    for predicate in predicates:
        if not isinstance(predicate, Call) or predicate.func != "eq":
            return None
        left, right = predicate.args
        a, b = mentions(left), mentions(right)
        if a and a <= ours and b and not b & ours:
            keys.append((left, right))
        elif b and b <= ours and a and not a & ours:
            keys.append((right, left))
        else:
            return None
    return keys


def is_rowwise(node: Node) -> bool:
    """Whether the node maps, filters and expands one row of no columns, so that it can run on the outer row itself."""
    while isinstance(node, Map | Filter | FlatMap):
        node = node.input
    return node is UNIT
