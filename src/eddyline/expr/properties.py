"""What can be said of an expression without evaluating it."""

from __future__ import annotations

from eddyline.expr.casts import cast_can_fail
from eddyline.expr.functions import implementation
from eddyline.expr.ir import (
    OF_THE_MOMENT,
    VOLATILE,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    Parameter,
    Raise,
    children,
    walk,
)
from eddyline.expr.total_calls import is_total

__all__ = ["Fallibility", "can_fail", "is_constant"]


class Fallibility:
    """``can_fail`` with a memory, for one evaluation: it keys on object identity, so the tree must stay alive."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def can_fail(self, expr: Expr) -> bool:
        """Whether some row may make ``expr`` fail.  Cost: each node once per instance."""
        known = self._known
        stack = [expr]
        while stack:
            node = stack[-1]
            if id(node) in known:
                stack.pop()
                continue
            missing = [c for c in children(node) if id(c) not in known]
            if missing:
                stack.extend(missing)
                continue
            known[id(node)] = _fails_itself(node) or any(known[id(c)] for c in children(node))
            stack.pop()
        return known[id(expr)]


def _fails_itself(node: Expr) -> bool:
    match node:
        case Call():
            if node.func in OF_THE_MOMENT:
                return False
            return node.func in VOLATILE or (implementation(node.func).fallible and not is_total(node))
        case Cast():
            return cast_can_fail(node.input.type, node.type, explicit=node.explicit)
        case Raise():
            return True
    return False


def can_fail(expr: Expr) -> bool:
    """Whether some row may make ``expr`` fail: such an expression must stay behind its guard."""
    return any(_fails_itself(node) for node in walk(expr))


def is_constant(expr: Expr) -> bool:
    """No columns, parameters or failures on purpose: the value is the same for every row."""
    return not any(isinstance(node, Column | Parameter | Raise) for node in walk(expr)) or isinstance(expr, Literal)
