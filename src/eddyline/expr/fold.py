"""Constant folding that keeps errors lazy.

A constant subexpression that fails is left in place: it may stand behind a guard that no row passes.  Errors are only
ever lost, never gained: arguments and branches that cannot matter go away, as they do in PostgreSQL's planner.
"""

from __future__ import annotations

from eddyline.expr.date_bounds import with_date_bound
from eddyline.expr.evaluate import evaluate
from eddyline.expr.functions import implementation
from eddyline.expr.ir import OF_THE_MOMENT, VOLATILE, And, Call, Case, Cast, Coalesce, Expr, Literal, Or, rewrite
from eddyline.expr.literals import scalar_literal
from eddyline.repr.types import BOOLEAN

__all__ = ["fold"]

_LONGEST = 65_536  # characters of a folded literal: plans travel in messages


def fold(expr: Expr) -> Expr:
    """An expression with the same value on every row, constants computed; it fails on no further row."""
    return rewrite(expr, _fold_node)


def _fold_node(node: Expr) -> Expr:
    match node:
        case Call():
            return _fold_call(node)
        case Cast():
            return _compute(node) if isinstance(node.input, Literal) else node
        case And():
            return _fold_connective(node, absorbing=False)
        case Or():
            return _fold_connective(node, absorbing=True)
        case Case():
            return _fold_case(node)
        case Coalesce():
            return _fold_coalesce(node)
    return node


def _compute(node: Expr) -> Expr:
    """The literal of a node over literals, or the node if it fails or is long."""
    value = evaluate(node, [], 1)
    if value.errors is not None:
        return node
    literal = scalar_literal(value.array[0], node.type)
    return node if isinstance(literal, str) and len(literal) > _LONGEST else Literal(literal, node.type)


def _fold_call(node: Call) -> Expr:
    if node.func in OF_THE_MOMENT or node.func in VOLATILE:
        return node  # its value is the statement's, or a row's, not the plan's
    if any(isinstance(a, Literal) and a.value is None for a in node.args):
        if implementation(node.func).strict:
            return Literal(None, node.type)
        if node.func == "nullif" and node.type == node.args[0].type:
            return node.args[0]
    return _compute(node) if all(isinstance(a, Literal) for a in node.args) else with_date_bound(node)


def _fold_connective(node: And | Or, *, absorbing: bool) -> Expr:
    """A constant that absorbs does so from any place, past failing arguments before it, as in PostgreSQL's planner."""
    if any(isinstance(a, Literal) and a.value is absorbing for a in node.args):
        return Literal(absorbing, BOOLEAN)
    kept = tuple(a for a in node.args if not (isinstance(a, Literal) and a.value is (not absorbing)))
    if not kept:
        return Literal(not absorbing, BOOLEAN)
    if len(kept) == 1:
        return kept[0]
    rebuilt = And(kept) if isinstance(node, And) else Or(kept)
    return _compute(rebuilt) if all(isinstance(a, Literal) for a in kept) else rebuilt


def _fold_case(node: Case) -> Expr:
    whens: list[tuple[Expr, Expr]] = []
    otherwise = node.otherwise
    for condition, result in node.whens:
        if isinstance(condition, Literal):
            if condition.value is not True:
                continue
            otherwise = result
            break
        whens.append((condition, result))
    return Case(tuple(whens), otherwise, node.type) if whens else otherwise


def _fold_coalesce(node: Coalesce) -> Expr:
    kept: list[Expr] = []
    for arg in node.args:
        if isinstance(arg, Literal):
            if arg.value is None:
                continue
            kept.append(arg)
            break
        kept.append(arg)
    if not kept:
        return Literal(None, node.type)
    return kept[0] if len(kept) == 1 else Coalesce(tuple(kept), node.type)
