"""Parameters in relations: found, and replaced by literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from eddyline.errors import make_error
from eddyline.expr.ir import AggregateCall, Expr, Literal, Parameter, rewrite, walk
from eddyline.plan.relation import Filter, FlatMap, Join, Map, Reduce, Relation, TopK
from eddyline.plan.traverse import post_order, rewrite_bottom_up

__all__ = ["bind_parameters", "has_parameters", "map_expressions", "map_node_expressions", "substitute_parameters"]


def bind_parameters(expr: Expr, literals: Sequence[Literal]) -> Expr:
    """``expr`` with ``$i`` replaced by ``literals[i - 1]``, which is of its type.  42P02: there is none."""

    def replace(node: Expr) -> Expr:
        if not isinstance(node, Parameter):
            return node
        if not 1 <= node.index <= len(literals):
            raise make_error("42P02", f"there is no parameter ${node.index}")
        return literals[node.index - 1]

    return replace(expr) if isinstance(expr, Parameter) else rewrite(expr, replace)


def substitute_parameters(relation: Relation, literals: Sequence[Literal]) -> Relation:
    """``relation`` without parameters.  Fold constants afterwards to have the literals take effect in the plan."""
    return map_expressions(relation, lambda e: bind_parameters(e, literals))


def has_parameters(relation: Relation) -> bool:
    found = False

    def look(expr: Expr) -> Expr:
        nonlocal found
        found = found or any(isinstance(node, Parameter) for node in walk(expr))
        return expr

    for node in post_order(relation):
        map_node_expressions(node, look)
    return found


def map_expressions(relation: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """``relation`` with every expression of every node passed through ``change``."""
    return rewrite_bottom_up(relation, lambda node: map_node_expressions(node, change))


def map_node_expressions(node: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """One node with its own expressions changed; the same object if they are the same objects."""

    def each(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(change(e) for e in exprs)

    match node:
        case Map():
            exprs = each(node.exprs)
            return node if _same(exprs, node.exprs) else Map(node.input, exprs)
        case Filter():
            predicates = each(node.predicates)
            return node if _same(predicates, node.predicates) else Filter(node.input, predicates)
        case FlatMap():
            args = each(node.args)
            return node if _same(args, node.args) else FlatMap(node.input, node.func, args, node.output)
        case Join():
            on = each(node.on)
            return node if _same(on, node.on) else Join(node.kind, node.left, node.right, on)
        case Reduce():
            aggregates = tuple(_aggregate(a, change) for a in node.aggregates)
            return Reduce(node.input, each(node.keys), aggregates, node.global_row)
        case TopK():
            limit = None if node.limit is None else change(node.limit)
            offset = None if node.offset is None else change(node.offset)
            return TopK(node.input, node.group, node.order, limit, offset)
        case _:
            return node


def _same(new: tuple[Expr, ...], old: tuple[Expr, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def _aggregate(call: AggregateCall, change: Callable[[Expr], Expr]) -> AggregateCall:
    return msgspec.structs.replace(
        call,
        args=tuple(change(a) for a in call.args),
        filter=None if call.filter is None else change(call.filter),
        order_by=tuple((change(e), desc, nulls_first) for e, desc, nulls_first in call.order_by),
    )
