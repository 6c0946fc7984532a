"""Views replaced by what they stand for."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.plan.relation import Get, Let, LocalGet, Relation
from eddyline.plan.traverse import children, post_order, with_children

__all__ = ["inline_views"]

Lookup = Callable[[str], "Relation | None"]


def inline_views(relation: Relation, lookup: Lookup) -> Relation:
    """``relation`` with every ``Get`` for which ``lookup`` knows a definition replaced by it, views in views too.

    ``lookup`` returns None for what is read as it is: tables, materialized views, and views with an index.
    Views have no cycles.  ``Let`` names become unique in the result.  Cost: each view is expanded once.
    """
    done: dict[str, Relation] = {}
    stack: list[tuple[str, Relation]] = [("", relation)]
    names = 0
    while stack:
        view, definition = stack[-1]
        missing = {
            node.id: below
            for node in post_order(definition)
            if isinstance(node, Get) and node.id not in done and (below := lookup(node.id)) is not None
        }
        if missing:
            stack.extend(missing.items())
            continue
        stack.pop()
        if view in done:
            continue
        done[view], names = _expand(definition, done, names)
    return done[""]


def _expand(definition: Relation, done: dict[str, Relation], names: int) -> tuple[Relation, int]:
    """The definition over expanded views, its own ``Let``s renamed to names not used before."""
    renamed: dict[str, str] = {}
    for node in post_order(definition):
        if isinstance(node, Let):
            renamed[node.name] = f"v{names}"
            names += 1
    results: dict[int, Relation] = {}
    for node in post_order(definition):
        match node:
            case Get():
                result = done.get(node.id, node)
            case LocalGet():
                result = LocalGet(renamed.get(node.name, node.name), node.types)
            case Let():
                result = Let(renamed[node.name], results[id(node.value)], results[id(node.body)])
            case _:
                result = with_children(node, tuple(results[id(c)] for c in children(node)))
        results[id(node)] = result
    return results[id(definition)], names
