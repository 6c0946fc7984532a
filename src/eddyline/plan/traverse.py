"""Walking and rebuilding relations without Python recursion, however deep they are.

A walk visits each *object* once: a subtree that the binder used in two places is one object, and its rewrite is
shared too.  Costs are linear in the number of distinct node objects.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import msgspec

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

__all__ = [
    "Steps",
    "children",
    "gets",
    "post_order",
    "rewrite_bottom_up",
    "rewrite_top_down",
    "run_steps",
    "with_children",
]

T = TypeVar("T")

Steps = Generator[Generator[Any, Any, Any], Any, T]
"""A recursive function written as a generator: it yields a recursive call and is sent its result."""


def run_steps(steps: Steps[T]) -> T:
    """The result of a recursive generator, on an explicit stack."""
    stack: list[Steps[Any]] = [steps]
    value: Any = None
    while stack:
        try:
            call = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
        else:
            stack.append(call)
            value = None
    result: T = value
    return result


def children(relation: Relation) -> tuple[Relation, ...]:
    """The direct inputs, left to right; a ``Let``'s value before its body, a recursion's base before its step."""
    match relation:
        case Constant() | Get() | LocalGet():
            return ()
        case Let():
            return (relation.value, relation.body)
        case Recursive():
            return (relation.base, relation.step)
        case Join():
            return (relation.left, relation.right)
        case Union():
            return relation.inputs
        case Project() | Map() | Filter() | FlatMap() | Reduce() | Distinct() | TopK() | Negate() | Threshold():
            return (relation.input,)


def with_children(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    """``relation`` over other inputs; the same object if the inputs are the same objects."""
    old = children(relation)
    if len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True)):
        return relation
    match relation:
        case Constant() | Get() | LocalGet():
            return relation
        case Let():
            return Let(relation.name, new[0], new[1])
        case Recursive():
            return msgspec.structs.replace(relation, base=new[0], step=new[1])
        case Join():
            return Join(relation.kind, new[0], new[1], relation.on)
        case Union():
            return Union(new)
        case Project() | Map() | Filter() | FlatMap() | Reduce() | Distinct() | TopK() | Negate() | Threshold():
            return msgspec.structs.replace(relation, input=new[0])


def post_order(relation: Relation) -> Iterator[Relation]:
    """Every distinct node object once, inputs first."""
    seen: set[int] = set()
    stack: list[tuple[Relation, bool]] = [(relation, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))


def gets(relation: Relation) -> frozenset[str]:
    """The ids of the catalog objects that a relation reads."""
    return frozenset(node.id for node in post_order(relation) if isinstance(node, Get))


def rewrite_bottom_up(relation: Relation, replace: Callable[[Relation], Relation]) -> Relation:
    """``relation`` rebuilt from its leaves, each rebuilt node passed through ``replace``."""
    done: dict[int, Relation] = {}
    for node in post_order(relation):
        done[id(node)] = replace(with_children(node, tuple(done[id(c)] for c in children(node))))
    return done[id(relation)]


def rewrite_top_down(relation: Relation, replace: Callable[[Relation], Relation]) -> Relation:
    """``replace`` applied to each node until it changes no more, then to the inputs of the result.

    It is an error to pass a ``replace`` that never settles.
    """
    done: dict[int, Relation] = {}  # id of an original node -> its rewrite
    settled: dict[int, Relation] = {}  # id of an original node -> itself after ``replace``, inputs not yet rewritten
    keep: list[Relation] = []  # settled nodes stay alive, so that their ids stay theirs
    stack: list[tuple[Relation, bool]] = [(relation, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            top = settled[id(node)]
            done[id(node)] = with_children(top, tuple(done[id(c)] for c in children(top)))
            continue
        top = node
        while (changed := replace(top)) is not top:
            keep.append(top)
            top = changed
        keep.extend((node, top))
        settled[id(node)] = top
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(children(top)))
    return done[id(relation)]
