"""Numbering of relations: equal subtrees get one number, in topological order, whatever their depth.

Equality is of the encoded bytes, not of Python values: the literals -0.0 and 0.0 (or 1 and true) are different.
"""

from __future__ import annotations

import msgspec

from eddyline.expr.ir import Expr
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
    Recursive,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from eddyline.plan.traverse import children, post_order

__all__ = ["Interned", "expression_key", "intern_relation"]

_encode = msgspec.msgpack.Encoder().encode


def expression_key(expr: Expr) -> bytes:
    """Equal for equal expressions only; unlike ``==``, which has -0.0 = 0.0."""
    return _encode(expr)


def _own(node: Relation) -> object:
    """The node's fields that are not relations."""
    match node:
        case Constant():
            return (node.rows, node.types)
        case Get():
            return (node.id, node.types)
        case LocalGet():
            return (node.name, node.types)
        case Let():
            return node.name
        case Recursive():
            return (node.name, node.every, node.label, node.columns)
        case Project():
            return node.columns
        case Map():
            return node.exprs
        case Filter():
            return node.predicates
        case FlatMap():
            return (node.func, node.args, node.output)
        case Join():
            return (node.kind, node.on)
        case Reduce():
            return (node.keys, node.aggregates, node.global_row)
        case TopK():
            return (node.group, node.order, node.limit, node.offset)
        case Distinct() | Union() | Negate() | Threshold():
            return None


class Interned:
    """Distinct nodes, inputs first: ``nodes[i]`` with the numbers of its inputs ``inputs[i]``.

    A ``Let`` has no number of its own: it is its body's, and a ``LocalGet`` is its value's.
    """

    def __init__(self) -> None:
        self.nodes: list[Relation] = []
        self.inputs: list[tuple[int, ...]] = []
        self.bound: dict[str, int] = {}  # the number of each Let's value
        self._numbers: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def number(self, node: Relation, inputs: tuple[int, ...]) -> int:
        key = (type(node).__name__, inputs, _encode(_own(node)))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.nodes)
            self.nodes.append(node)
            self.inputs.append(inputs)
        return found

    def uses(self) -> list[int]:
        """How many inputs of distinct nodes each node is."""
        counts = [0] * len(self.nodes)
        for inputs in self.inputs:
            for i in inputs:
                counts[i] += 1
        return counts


def intern_relation(relation: Relation) -> tuple[Interned, int]:
    """All distinct subtrees of ``relation`` and the number of the whole.  Names bound by ``Let`` must be unique;
    a free ``LocalGet`` is a leaf."""
    values = {node.name: node.value for node in post_order(relation) if isinstance(node, Let)}
    interned = Interned()
    numbers: dict[int, int] = {}
    for node in post_order(relation):  # a Let's value comes before its body
        match node:
            case LocalGet() if node.name in values:
                numbers[id(node)] = numbers[id(values[node.name])]
            case Let():
                numbers[id(node)] = numbers[id(node.body)]
                interned.bound[node.name] = numbers[id(node.value)]
            case _:
                numbers[id(node)] = interned.number(node, tuple(numbers[id(c)] for c in children(node)))
    return interned, numbers[id(relation)]
