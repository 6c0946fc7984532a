"""What all branches of an OR demand is demanded outside it: ``(a AND b) OR (a AND c)`` becomes ``a AND (b OR c)``.

Of a join's OR, what it demands of one side alone becomes a condition of its own as well, which may then filter that
side: ``(a.x = 1 AND b.y = 2) OR (a.x = 2 AND b.y = 1)`` needs no other ``a`` than with ``x = 1 OR x = 2``.

A join's equality that is written into each branch becomes the join's key that way, instead of a test of every pair.
The rewrite keeps three-valued logic; where it evaluates in another order it can only avoid errors, because what moves
out cannot fail and every branch would have met it.
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.expr.ir import And, Expr, Or, columns_of
from eddyline.plan.facts import CatalogFacts
from eddyline.plan.intern import expression_key
from eddyline.plan.predicates import conjuncts, fallible
from eddyline.plan.relation import Filter, Join, JoinKind, Relation
from eddyline.plan.traverse import rewrite_bottom_up

__all__ = ["factor_disjunctions"]


def factor_disjunctions(relation: Relation, facts: CatalogFacts) -> Relation:
    return rewrite_bottom_up(relation, _factor)


def _factor(node: Relation) -> Relation:
    match node:
        case Filter():
            factored = _factored(node.predicates)
            return node if factored is None else Filter(node.input, factored)
        case Join():
            on = _factored(node.on) or node.on
            on = (*on, *_implied(on, len(node.left.types), node.kind))
            return node if on == node.on else Join(node.kind, node.left, node.right, on)
        case _:
            return node


def _factored(predicates: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """None if there is nothing to factor out."""
    out: list[Expr] = []
    changed = False
    for predicate in conjuncts(predicates):
        parts = _parts(predicate)
        changed |= parts != [predicate]
        out.extend(parts)
    return tuple(out) if changed else None


def _parts(predicate: Expr) -> list[Expr]:
    """Conjuncts that mean ``predicate`` together."""
    if not isinstance(predicate, Or):
        return [predicate]
    branches = [conjuncts([a]) for a in predicate.args]
    keys = [{expression_key(c) for c in branch} for branch in branches]
    shared = set.intersection(*keys)
    common = [c for c in branches[0] if expression_key(c) in shared and not fallible(c)]
    if not common:
        return [predicate]
    moved = {expression_key(c) for c in common}
    rest = [tuple(c for c in branch if expression_key(c) not in moved) for branch in branches]
    if not all(rest):  # a branch that demands nothing else: the others add nothing
        return common
    return [*common, Or(tuple(_and(branch) for branch in rest))]


def _and(branch: Sequence[Expr]) -> Expr:
    return branch[0] if len(branch) == 1 else And(tuple(branch))


#: the kinds of join whose left, and whose right input a condition may filter
_LEFT_KINDS = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
_RIGHT_KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


def _implied(predicates: Sequence[Expr], left_width: int, kind: JoinKind) -> list[Expr]:
    """What ORs over both sides demand of one that it may filter; none that is there already, and none that may fail."""
    present = {expression_key(p) for p in predicates}
    found: list[Expr] = []
    for predicate in predicates:
        columns = columns_of(predicate)
        if not isinstance(predicate, Or) or not columns or not min(columns) < left_width <= max(columns):
            continue
        for is_left in (True, False):
            if kind not in (_LEFT_KINDS if is_left else _RIGHT_KINDS):
                continue
            branches = [
                [c for c in conjuncts([a]) if not fallible(c) and _is_of(c, left_width, is_left=is_left)]
                for a in predicate.args
            ]
            if all(branches):
                found.append(Or(tuple(_and(branch) for branch in branches)))
    return [p for p in found if expression_key(p) not in present]


def _is_of(expr: Expr, left_width: int, *, is_left: bool) -> bool:
    columns = columns_of(expr)
    return bool(columns) and (max(columns) < left_width if is_left else min(columns) >= left_width)
