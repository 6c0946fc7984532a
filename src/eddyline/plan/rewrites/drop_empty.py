"""What is empty whatever the data becomes an empty constant, and so do its consumers: ``WHERE false``, ``LIMIT 0``."""

from __future__ import annotations

from eddyline.expr.ir import Literal
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import is_false
from eddyline.plan.relation import (
    Constant,
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
from eddyline.plan.traverse import rewrite_bottom_up
from eddyline.repr.types import SqlType

__all__ = ["drop_empty"]


def drop_empty(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _drop)


def _empty(relation: Relation) -> bool:
    return isinstance(relation, Constant) and not relation.rows


def _drop(node: Relation) -> Relation:
    match node:
        case Filter():
            empty = _empty(node.input) or any(is_false(p) for p in node.predicates)
        case TopK():
            empty = _empty(node.input) or (isinstance(node.limit, Literal) and node.limit.value == 0)
        case Reduce():
            empty = _empty(node.input) and not node.global_row
        case Map() | Project() | FlatMap() | Distinct() | Negate() | Threshold():
            empty = _empty(node.input)
        case Union():
            return _drop_union(node)
        case Join():
            return _drop_join(node)
        case _:
            return node
    return Constant((), node.types) if empty else node


def _drop_union(node: Union) -> Relation:
    inputs = tuple(i for i in node.inputs if not _empty(i))
    if len(inputs) == len(node.inputs):
        return node
    if not inputs:
        return Constant((), node.types)
    return inputs[0] if len(inputs) == 1 else Union(inputs)


def _drop_join(node: Join) -> Relation:
    left, right = _empty(node.left), _empty(node.right)
    never = any(is_false(p) for p in node.on)
    match node.kind:
        case JoinKind.INNER | JoinKind.SEMI:
            return Constant((), node.types) if left or right or never else node
        case JoinKind.ANTI:
            return node.left if left or right or never else node
        case JoinKind.LEFT:
            return _pad_right(node.left, node.right.types) if left or right or never else node
        case JoinKind.RIGHT:
            return _pad_left(node.right, node.left.types) if left or right or never else node
        case JoinKind.FULL:
            if right:
                return _pad_right(node.left, node.right.types)
            if left:
                return _pad_left(node.right, node.left.types)
            if never:
                padded = (_pad_right(node.left, node.right.types), _pad_left(node.right, node.left.types))
                return _drop_union(Union(padded))
            return node


def _pad_right(relation: Relation, types: tuple[SqlType, ...]) -> Relation:
    if _empty(relation):
        return Constant((), (*relation.types, *types))
    return Map(relation, tuple(Literal(None, t) for t in types))


def _pad_left(relation: Relation, types: tuple[SqlType, ...]) -> Relation:
    if _empty(relation):
        return Constant((), (*types, *relation.types))
    width = len(relation.types)
    order = (*range(width, width + len(types)), *range(width))
    return Project(_pad_right(relation, types), order)
