"""Lets that name something used once, or something cheap, are put in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eddyline.plan.relation import Get, Let, LocalGet, Relation
from eddyline.plan.traverse import children, with_children

__all__ = ["inline_lets"]


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
        return with_children(node, tuple(replace(child) for child in children(node)))

    return replace(relation)


def _walk(relation: Relation) -> Iterator[Relation]:
    stack = [relation]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(children(node))
