"""Predicates move towards the leaves, as far as the rows they see stay the same or were to be joined anyway.

Rules:
R1  a fallible predicate moves only to where it sees no row that it did not see before;
R2  a fallible predicate does not overtake an earlier one that stays: that one may be its guard;
R3  below a grouping only predicates that treat SQL-equal values alike (``image_blind``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eddyline.expr.ir import Column, Expr, columns_of, map_columns, walk
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.intern import expression_key
from eddyline.plan.predicates import conjuncts, fallible, image_blind, links_sides, substitute
from eddyline.plan.relation import (
    Distinct,
    Filter,
    FlatMap,
    Join,
    JoinKind,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.plan.traverse import rewrite_top_down, with_children

__all__ = ["push_filters"]

#: a mapped expression of more nodes is not repeated in a predicate below
SMALL_NODES = 8


def push_filters(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_top_down(relation, _push)


def _push(node: Relation) -> Relation:
    match node:
        case Filter():
            return _push_filter(node)
        case Join():
            return _push_condition(node)
        case _:
            return node


def _filtered(relation: Relation, predicates: Iterable[Expr]) -> Relation:
    """A filter, merged with one that is there already; a predicate that is there already adds nothing."""
    base = relation.input if isinstance(relation, Filter) else relation
    old = relation.predicates if isinstance(relation, Filter) else ()
    merged = {expression_key(p): p for p in old}
    for predicate in predicates:
        merged.setdefault(expression_key(predicate), predicate)
    return Filter(base, tuple(merged.values())) if merged else base


Move = Callable[[Expr], "Expr | None"]


def _split(predicates: tuple[Expr, ...], move: Move, *, same_rows: bool) -> tuple[list[Expr], list[Expr]]:
    """(moved, rewritten for below; staying).  ``same_rows``: below, a predicate sees just the rows it sees here."""
    moved: list[Expr] = []
    staying: list[Expr] = []
    for predicate in predicates:
        may_fail = fallible(predicate)
        below = None if may_fail and (staying or not same_rows) else move(predicate)
        if below is None:
            staying.append(predicate)
        else:
            moved.append(below)
    return moved, staying


def _push_filter(node: Filter) -> Relation:
    source = node.input
    predicates = conjuncts(node.predicates)
    match source:
        case Filter():
            return _filtered(source, predicates)
        case Project():
            columns = source.columns
            below = tuple(map_columns(p, columns.__getitem__) for p in predicates)
            return Project(_filtered(source.input, below), columns)
        case Map():
            moved, staying = _split(predicates, _through_map(source), same_rows=True)
            return _rebuilt(node, moved, staying, lambda: Map(_filtered(source.input, moved), source.exprs))
        case Join():
            return _push_into_join(node, source, predicates)
        case Union():
            return _push_into_union(node, source, predicates)
        case Reduce():
            return _push_into_reduce(node, source, predicates)
        case _:
            return _push_through(node, source, predicates)


def _rebuilt(node: Filter, moved: list[Expr], staying: list[Expr], build: Callable[[], Relation]) -> Relation:
    return _filtered(build(), staying) if moved else node


def _through_map(source: Map) -> Move:
    width = len(source.input.types)
    resolved: list[Expr] = [Column(i, t) for i, t in enumerate(source.input.types)]
    for expr in source.exprs:
        resolved.append(substitute(expr, resolved))

    def move(predicate: Expr) -> Expr | None:
        mapped = [c for c in columns_of(predicate) if c >= width]
        if not mapped:
            return predicate
        if any(sum(1 for _ in walk(resolved[c])) > SMALL_NODES or fallible(resolved[c]) for c in mapped):
            return None
        return substitute(predicate, resolved)

    return move


def _push_through(node: Filter, source: Relation, predicates: tuple[Expr, ...]) -> Relation:
    """Operators that keep rows as they are: which columns may a predicate read to be the same below?"""
    match source:
        case Distinct():
            allowed: Iterable[int] = range(len(source.types))
            grouping = True
        case TopK():
            allowed, grouping = source.group, True
        case FlatMap():
            allowed, grouping = range(len(source.input.types)), False
        case Negate() | Threshold():
            allowed, grouping = range(len(source.types)), False
        case _:
            return node
    readable = frozenset(allowed)

    def move(predicate: Expr) -> Expr | None:
        movable = columns_of(predicate) <= readable and (not grouping or image_blind(predicate))
        return predicate if movable else None

    moved, staying = _split(predicates, move, same_rows=False)
    return _rebuilt(node, moved, staying, lambda: with_children(source, (_filtered(source.input, moved),)))


def _push_into_union(node: Filter, source: Union, predicates: tuple[Expr, ...]) -> Relation:
    # Rows that a negated input takes away never reach the filter, but would reach its copies.
    may_fail = any(fallible(p) for p in predicates)
    same_rows = not may_fail or not any(_negates(i) for i in source.inputs)
    moved, staying = _split(predicates, lambda p: p, same_rows=same_rows)
    return _rebuilt(node, moved, staying, lambda: Union(tuple(_filtered(i, moved) for i in source.inputs)))


def _negates(relation: Relation) -> bool:
    stack = [relation]
    while stack:
        node = stack.pop()
        match node:
            case Negate():
                return True
            case Project() | Map() | Filter():
                stack.append(node.input)
            case Union():
                stack.extend(node.inputs)
            case _:
                pass
    return False


def _push_into_reduce(node: Filter, source: Reduce, predicates: tuple[Expr, ...]) -> Relation:
    keys = source.keys
    if not keys:
        return node

    def move(predicate: Expr) -> Expr | None:
        columns = columns_of(predicate)
        if not columns or max(columns) >= len(keys) or not image_blind(predicate):
            return None
        return substitute(predicate, keys)

    moved, staying = _split(predicates, move, same_rows=True)
    return _rebuilt(node, moved, staying, lambda: with_children(source, (_filtered(source.input, moved),)))


def _push_into_join(node: Filter, join: Join, predicates: tuple[Expr, ...]) -> Relation:
    width = len(join.left.types)
    match join.kind:
        case JoinKind.INNER:
            return _into_condition(node, join, predicates)
        case JoinKind.LEFT:
            moved, staying = _split(predicates, _left_only(width), same_rows=True)
            return _rebuilt(node, moved, staying, lambda: _with_left(join, moved))
        case JoinKind.RIGHT:
            moved, staying = _split(predicates, _right_only(width), same_rows=True)
            return _rebuilt(node, moved, staying, lambda: _with_right(join, moved))
        case JoinKind.SEMI | JoinKind.ANTI:
            moved, staying = _split(predicates, _left_only(width), same_rows=False)
            return _rebuilt(node, moved, staying, lambda: _with_left(join, moved))
        case JoinKind.FULL:
            return node


def _left_only(width: int) -> Move:
    return lambda p: p if (c := columns_of(p)) and max(c) < width else None


def _right_only(width: int) -> Move:
    return lambda p: map_columns(p, lambda i: i - width) if (c := columns_of(p)) and min(c) >= width else None


def _with_left(join: Join, predicates: Iterable[Expr]) -> Join:
    return Join(join.kind, _filtered(join.left, predicates), join.right, join.on)


def _with_right(join: Join, predicates: Iterable[Expr]) -> Join:
    return Join(join.kind, join.left, _filtered(join.right, predicates), join.on)


def _into_condition(node: Filter, join: Join, predicates: tuple[Expr, ...]) -> Relation:
    """WHERE predicates join the ON predicates.  A fallible one does so only to save the join from being a product."""
    width = len(join.left.types)
    safe = [p for p in predicates if not fallible(p)]
    linked = any(links_sides(p, width) for p in (*join.on, *safe))

    def move(predicate: Expr) -> Expr | None:
        if fallible(predicate) and (linked or not links_sides(predicate, width)):
            return None
        return predicate

    moved, staying = _split(predicates, move, same_rows=True)
    return _rebuilt(node, moved, staying, lambda: Join(join.kind, join.left, join.right, (*join.on, *moved)))


def _push_condition(join: Join) -> Relation:
    """ON predicates over one side move to that side, where the join kind allows."""
    on = conjuncts(join.on)
    width = len(join.left.types)
    kinds = JoinKind
    to_left: list[Expr] = []
    to_right: list[Expr] = []
    if join.kind in (kinds.INNER, kinds.RIGHT, kinds.SEMI):
        to_left, on_left = _split(on, _left_only(width), same_rows=False)
        on = tuple(on_left)
    if join.kind in (kinds.INNER, kinds.LEFT, kinds.SEMI, kinds.ANTI):
        to_right, on_left = _split(on, _right_only(width), same_rows=False)
        on = tuple(on_left)
    if not to_left and not to_right:
        return join
    return Join(join.kind, _filtered(join.left, to_left), _filtered(join.right, to_right), on)
