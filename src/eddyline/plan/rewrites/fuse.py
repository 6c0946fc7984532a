"""Neighbouring projections, maps, filters, unions and negations become one; those that do nothing disappear."""

from __future__ import annotations

from eddyline.expr.ir import Literal
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import conjuncts
from eddyline.plan.relation import Constant, Filter, Map, Negate, Project, Relation, TopK, Union
from eddyline.plan.traverse import rewrite_bottom_up

__all__ = ["fuse"]


def fuse(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _fuse_node)


def _fuse_node(node: Relation) -> Relation:
    match node:
        case Project():
            return _fuse_project(node)
        case Map():
            if not node.exprs:
                return node.input
            if isinstance(node.input, Map):
                return Map(node.input.input, (*node.input.exprs, *node.exprs))
        case Filter():
            return _fuse_filter(node)
        case Union():
            return _fuse_union(node)
        case Negate() if isinstance(node.input, Negate):
            return node.input.input
        case TopK() if node.limit is None and _no_offset(node):
            return node.input
        case _:
            pass
    return node


def _no_offset(node: TopK) -> bool:
    return node.offset is None or (isinstance(node.offset, Literal) and not node.offset.value)


def _fuse_project(node: Project) -> Relation:
    source, columns = node.input, node.columns
    if isinstance(source, Project):
        columns = tuple(source.columns[c] for c in columns)
        source = source.input
    if columns == tuple(range(len(source.types))):
        return source
    if isinstance(source, Constant):
        rows = tuple(tuple(row[c] for c in columns) for row in source.rows)
        return Constant(rows, tuple(source.types[c] for c in columns))
    if isinstance(source, Map):  # a projection that drops all the map's columns
        width = len(source.input.types)
        if all(c < width for c in columns):
            return _fuse_project(Project(source.input, columns))
    return node if source is node.input else Project(source, columns)


def _fuse_filter(node: Filter) -> Relation:
    source = node.input
    if isinstance(source, Filter):
        return _fuse_filter(Filter(source.input, (*source.predicates, *node.predicates)))
    predicates = conjuncts(node.predicates)
    if not predicates:
        return source
    same = len(predicates) == len(node.predicates) and all(
        a is b for a, b in zip(predicates, node.predicates, strict=True)
    )
    return node if same else Filter(source, predicates)


def _fuse_union(node: Union) -> Relation:
    if not any(isinstance(i, Union) for i in node.inputs) and len(node.inputs) > 1:
        return node
    inputs: list[Relation] = []
    for source in node.inputs:
        inputs.extend(source.inputs if isinstance(source, Union) else (source,))
    return inputs[0] if len(inputs) == 1 else Union(tuple(inputs))
