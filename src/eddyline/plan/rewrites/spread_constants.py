"""Constants cross equalities: ``a.x = b.y`` with ``a.x = 5`` filters the other side by ``b.y = 5``, too.

The join's result is the same; less is read, arranged and kept.  An outer join takes a filter on the padded side only,
an anti join on the right side only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.expr.ir import Call, Column, Expr
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.predicates import is_constant
from eddyline.plan.relation import Distinct, Filter, Join, JoinKind, Map, Project, Reduce, Relation, TopK
from eddyline.plan.traverse import children, post_order, with_children
from eddyline.repr.types import BOOLEAN

__all__ = ["spread_constants"]

Constants = Mapping[int, Expr]
_TO_LEFT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT)
_TO_RIGHT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.LEFT, JoinKind.ANTI)


def spread_constants(relation: Relation, facts: CatalogFacts) -> Relation:
    done: dict[int, Relation] = {}
    known: dict[int, Constants] = {}
    for node in post_order(relation):
        below = [known[id(c)] for c in children(node)]
        rebuilt = with_children(node, tuple(done[id(c)] for c in children(node)))
        if isinstance(rebuilt, Join):
            rebuilt, below = _spread(rebuilt, below[0], below[1])
        done[id(node)] = rebuilt
        known[id(node)] = _constants(rebuilt, below)
    return done[id(relation)]


def _spread(join: Join, left: Constants, right: Constants) -> tuple[Join, list[Constants]]:
    """The join with filters added to its sides, and the constants of the sides then."""
    to_left: dict[int, Expr] = {}
    to_right: dict[int, Expr] = {}
    for first, second in _column_pairs(join):
        if join.kind in _TO_RIGHT and first in left and second not in right:
            to_right[second] = left[first]
        elif join.kind in _TO_LEFT and second in right and first not in left:
            to_left[first] = right[second]
    if not to_left and not to_right:
        return join, [left, right]
    sides = (_filtered(join.left, to_left), _filtered(join.right, to_right))
    return Join(join.kind, *sides, join.on), [{**left, **to_left}, {**right, **to_right}]


def _column_pairs(join: Join) -> list[tuple[int, int]]:
    """(left column, right column) of the equalities between columns of one type."""
    width = len(join.left.types)
    pairs = []
    for predicate in join.on:
        match predicate:
            case Call(func="eq", args=(Column() as a, Column() as b)) if a.type == b.type:
                first, second = sorted((a.index, b.index))
                if first < width <= second:
                    pairs.append((first, second - width))
            case _:
                pass
    return pairs


def _filtered(relation: Relation, constants: Constants) -> Relation:
    types = relation.types
    equalities = tuple(Call("eq", (Column(c, types[c]), value), BOOLEAN) for c, value in constants.items())
    return Filter(relation, equalities) if equalities else relation


def _constants(node: Relation, below: Sequence[Constants]) -> Constants:
    """Columns that equal one literal or parameter in every row."""
    match node:
        case Filter():
            return {**below[0], **_equated(node.predicates)}
        case Project():
            return {i: below[0][c] for i, c in enumerate(node.columns) if c in below[0]}
        case Map() | Distinct() | TopK():
            return below[0]
        case Reduce():
            keys = enumerate(node.keys)
            return {i: below[0][k.index] for i, k in keys if isinstance(k, Column) and k.index in below[0]}
        case Join():
            width = len(node.left.types)
            of_right = {c + width: value for c, value in below[1].items()}
            match node.kind:
                case JoinKind.INNER:
                    return {**below[0], **of_right}
                case JoinKind.RIGHT:
                    return of_right
                case JoinKind.FULL:
                    return {}
                case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
                    return below[0]
        case _:
            return {}


def _equated(predicates: Sequence[Expr]) -> Constants:
    found: dict[int, Expr] = {}
    for predicate in predicates:
        match predicate:
            case Call(func="eq", args=(Column() as column, value)) if is_constant(value):
                found[column.index] = value
            case Call(func="eq", args=(value, Column() as column)) if is_constant(value):
                found[column.index] = value
            case _:
                pass
    return found
