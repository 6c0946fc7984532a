"""Lets that name something used once, or something cheap, are put in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

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
    Negate,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)

__all__ = ["inline_lets", "relation_inputs", "with_inputs"]


def relation_inputs(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Constant() | Get() | LocalGet():
            return ()
        case Let():
            return (relation.value, relation.body)
        case Join():
            return (relation.left, relation.right)
        case Union():
            return relation.inputs
        case _:
            return (relation.input,)


def with_inputs(relation: Relation, replace: Callable[[Relation], Relation]) -> Relation:
    """The node with each input passed through ``replace``."""
    match relation:
        case Constant() | Get() | LocalGet():
            return relation
        case Let():
            return Let(relation.name, replace(relation.value), replace(relation.body))
        case Join():
            return Join(relation.kind, replace(relation.left), replace(relation.right), relation.on)
        case Union():
            return Union(tuple(replace(i) for i in relation.inputs))
        case Project():
            return Project(replace(relation.input), relation.columns)
        case Map():
            return Map(replace(relation.input), relation.exprs)
        case Filter():
            return Filter(replace(relation.input), relation.predicates)
        case FlatMap():
            return FlatMap(replace(relation.input), relation.func, relation.args, relation.output)
        case Reduce():
            return Reduce(replace(relation.input), relation.keys, relation.aggregates, relation.global_row)
        case Distinct():
            return Distinct(replace(relation.input))
        case TopK():
            return TopK(replace(relation.input), relation.group, relation.order, relation.limit, relation.offset)
        case Negate():
            return Negate(replace(relation.input))
        case Threshold():
            return Threshold(replace(relation.input))


def inline_lets(relation: Relation) -> Relation:
    """Equivalent, without Lets that are used at most once or that only name a ``Get``."""
    uses = Counter(r.name for r in _walk(relation) if isinstance(r, LocalGet))
    values: dict[str, Relation] = {}

    def replace(node: Relation) -> Relation:
        if isinstance(node, LocalGet):
            return values.get(node.name, node)
        if isinstance(node, Let):
            value = replace(node.value)
            if uses[node.name] <= 1 or isinstance(value, Get | LocalGet):
                values[node.name] = value
                return replace(node.body)
            return Let(node.name, value, replace(node.body))
        return with_inputs(node, replace)

    return replace(relation)


def _walk(relation: Relation) -> Iterator[Relation]:
    stack = [relation]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(relation_inputs(node))
