"""Joins of a few rows that lookups find: each side by literal keys, or by keys that the rows of the other side have.

The rows are few, so that a join is their cross product through the predicates of ON: what SQL says, and no second
notion of equality.  Equalities come first, so that other predicates see only the pairs that a join would show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from eddyline.expr.ir import Call, Expr, Literal, Mfp, Parameter, columns_of, map_columns, rewrite, walk
from eddyline.plan.facts import IndexFacts
from eddyline.plan.fast_path import MAX_KEYS, PeekPlan, fast_path, linear_over
from eddyline.plan.mfp import MfpBuilder
from eddyline.plan.predicates import conjuncts
from eddyline.plan.relation import Filter, Join, JoinKind, Map, Project, Relation
from eddyline.repr.ids import is_working
from eddyline.repr.types import BOOLEAN

__all__ = ["LookupJoin", "LookupNode", "key_number", "keyed_by", "lookup_join", "peeks_of"]

#: a statement's own parameters have smaller numbers
_FIRST_KEY: Final = 1 << 20


class LookupJoin(msgspec.Struct, frozen=True):
    """Rows of ``left``, with those of ``right`` that ``on`` (over both) lets through; then ``mfp``.

    ``keys``: expressions over the left rows whose values ``right`` is looked up by (see ``keyed_by``); None: it has
    keys of its own.  ``outer``: a left row without a match is kept, beside NULLs.  A side may also be rows that are at
    hand, of a recursion or its round: a walk of those.
    """

    left: LookupNode
    right: LookupNode
    keys: tuple[Expr, ...] | None
    on: Mfp
    outer: bool
    mfp: Mfp


LookupNode: TypeAlias = PeekPlan | LookupJoin


def lookup_join(relation: Relation, indexes: Sequence[IndexFacts], stored: Sequence[IndexFacts]) -> LookupJoin | None:
    """The plan of an optimized relation; None if it is no inner or left join whose sides can be looked up."""
    chain: list[Map | Filter | Project] = []
    while isinstance(relation, (Map, Filter, Project)):
        chain.append(relation)
        relation = relation.input
    if not isinstance(relation, Join) or relation.kind not in (JoinKind.INNER, JoinKind.LEFT):
        return None
    left, right = relation.left, relation.right
    found = _oriented(left, right, conjuncts(relation.on), indexes, stored)
    swapped = found is None and relation.kind is JoinKind.INNER
    if swapped:
        at = [*range(len(right.types), len(right.types) + len(left.types)), *range(len(right.types))]
        moved = [map_columns(p, at.__getitem__) for p in conjuncts(relation.on)]
        found = _oriented(right, left, moved, indexes, stored)
    if found is None:
        return None
    first, second, keys, on = found
    types = (*right.types, *left.types) if swapped else relation.types
    then = MfpBuilder(types)
    if swapped:
        then.project(at)
    for node in reversed(chain):
        match node:
            case Map():
                then.map(node.exprs)
            case Filter():
                then.filter(conjuncts(node.predicates))
            case Project():
                then.project(node.columns)
    matching = MfpBuilder(types)
    matching.filter(sorted(on, key=lambda p: not _is_equality(p)))
    return LookupJoin(first, second, keys, matching.build(), relation.kind is JoinKind.LEFT, then.build())


def _oriented(
    left: Relation,
    right: Relation,
    on: Sequence[Expr],
    indexes: Sequence[IndexFacts],
    stored: Sequence[IndexFacts],
) -> tuple[LookupNode, LookupNode, tuple[Expr, ...] | None, Sequence[Expr]] | None:
    """(left, right, keys, on) with the left side looked up first."""
    first = _alone(left, indexes, stored)
    if first is None:
        return None
    second = _alone(right, indexes, stored)
    if second is not None:
        return first, second, None, on
    keyed = _keyed(right, len(left.types), on, indexes, stored)
    return None if keyed is None else (first, keyed[0], keyed[1], on)


def _alone(relation: Relation, indexes: Sequence[IndexFacts], stored: Sequence[IndexFacts]) -> LookupNode | None:
    at_hand = linear_over(relation)
    if at_hand is not None and is_working(at_hand[0].id):
        return PeekPlan(at_hand[0].id, at_hand[0].id, (), None, at_hand[1])
    plan = fast_path(relation, indexes, stored)
    if isinstance(plan, PeekPlan):
        return None if plan.keys is None else plan
    return None if plan is not None else lookup_join(relation, indexes, stored)


def _is_equality(predicate: Expr) -> bool:
    return isinstance(predicate, Call) and predicate.func == "eq"


def _keyed(
    right: Relation, width: int, on: Sequence[Expr], indexes: Sequence[IndexFacts], stored: Sequence[IndexFacts]
) -> tuple[PeekPlan, tuple[Expr, ...]] | None:
    """The right side as a lookup by values of the left row, which stand in for parameters in its keys."""
    values: list[Expr] = []
    predicates: list[Expr] = []
    for predicate in on:
        for own, value in _equalities(predicate, width):
            predicates.append(Call("eq", (own, Parameter(_FIRST_KEY + len(values), value.type)), BOOLEAN))
            values.append(value)
    while predicates:
        plan = fast_path(Filter(right, tuple(predicates)), indexes, stored)
        if not isinstance(plan, PeekPlan) or plan.keys is None:
            return None
        used = {n for key in plan.keys for e in key for n in _keys_in(e)}
        if len(used) == len(predicates):
            return plan, tuple(values)
        if not used:
            return None
        # What is no part of the key is left to ON.
        predicates = [p for p in predicates if used.issuperset(_keys_in(p))]
    return None


def _equalities(predicate: Expr, width: int) -> Iterator[tuple[Expr, Expr]]:
    """(side over the right columns, value over the left columns) if the predicate equates the two."""
    if not isinstance(predicate, Call) or predicate.func != "eq":
        return
    for own, value in (predicate.args, predicate.args[::-1]):
        reads, given = columns_of(own), columns_of(value)
        if reads and given and min(reads) >= width and max(given) < width:
            yield map_columns(own, lambda c: c - width), value


def _keys_in(expr: Expr) -> set[int]:
    return {e.index for e in walk(expr) if isinstance(e, Parameter) and e.index >= _FIRST_KEY}


def key_number(expr: Expr) -> int | None:
    """Which of a ``LookupJoin``'s ``keys`` the expression, of the right side's keys, stands for; None: of none."""
    keyed = isinstance(expr, Parameter) and expr.index >= _FIRST_KEY
    return expr.index - _FIRST_KEY if keyed and isinstance(expr, Parameter) else None


def keyed_by(plan: PeekPlan, rows: Sequence[Sequence[Literal]]) -> PeekPlan | None:
    """``plan`` with the keys that ``rows``, values of a ``LookupJoin``'s ``keys``, ask for; None if they are too many.

    To be done before the statement's own parameters are substituted.
    """
    assert plan.keys is not None
    if len(rows) * len(plan.keys) > MAX_KEYS:
        return None
    keys: list[tuple[Expr, ...]] = []
    for row in rows:

        def value(expr: Expr, row: Sequence[Literal] = row) -> Expr:
            keyed = isinstance(expr, Parameter) and expr.index >= _FIRST_KEY
            return row[expr.index - _FIRST_KEY] if keyed and isinstance(expr, Parameter) else expr

        keys += [tuple(value(e) if isinstance(e, Parameter) else rewrite(e, value) for e in key) for key in plan.keys]
    return PeekPlan(plan.index, plan.on, plan.key_types, tuple(keys), plan.mfp, plan.each)


def peeks_of(plan: LookupNode) -> Iterator[PeekPlan]:
    """Every lookup of the plan, rows at hand aside."""
    if isinstance(plan, PeekPlan):
        if not is_working(plan.on):
            yield plan
    else:
        yield from peeks_of(plan.left)
        yield from peeks_of(plan.right)
