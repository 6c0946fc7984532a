"""Projection pushdown: every operator is fed only the columns that it or its consumers read.

Works on the whole block, because a shared value must keep what any of its readers needs.  What a DISTINCT, a
THRESHOLD or a top-k compares (ties included) is needed whatever is read above.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from eddyline.errors import InternalError
from eddyline.expr.ir import AggregateCall, Expr, columns_of, map_columns
from eddyline.plan.blocks import Block
from eddyline.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
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
from eddyline.plan.traverse import Steps, rewrite_bottom_up, run_steps

__all__ = ["narrow_block"]

Needed = frozenset[int]


def narrow_block(block: Block) -> Block:
    """The block with the same result and no column that is not needed for it."""
    reads: dict[str, set[int]] = {}
    body = _narrow_all(block.body, reads)
    narrowed: list[tuple[str, Relation, tuple[int, ...]]] = []
    for name, value in reversed(block.values):
        kept = tuple(sorted(reads.get(name, ())))
        narrowed.append((name, run_steps(_Narrowing(reads).narrow(value, frozenset(kept))), kept))
    kept_of = {name: kept for name, _, kept in narrowed}

    def rename(node: Relation) -> Relation:
        match node:
            case Project(input=LocalGet() as get) if get.name in kept_of:
                kept = kept_of[get.name]
                types = tuple(get.types[c] for c in kept)
                return Project(LocalGet(get.name, types), tuple(kept.index(c) for c in node.columns))
            case _:
                return node

    values = tuple((name, rewrite_bottom_up(value, rename)) for name, value, _ in reversed(narrowed))
    return Block(values, rewrite_bottom_up(body, rename))


def _narrow_all(relation: Relation, reads: dict[str, set[int]]) -> Relation:
    return run_steps(_Narrowing(reads).narrow(relation, frozenset(range(len(relation.types)))))


def _positions(kept: Iterable[int]) -> dict[int, int]:
    return {c: i for i, c in enumerate(sorted(kept))}


def _pick(relation: Relation, positions: dict[int, int], needed: Needed) -> Relation:
    """The needed columns, in order, of a relation that has old column *c* at ``positions[c]``."""
    columns = tuple(positions[c] for c in sorted(needed))
    return relation if columns == tuple(range(len(relation.types))) else Project(relation, columns)


def _move(expr: Expr, positions: dict[int, int]) -> Expr:
    return map_columns(expr, positions.__getitem__)


def _read_by(exprs: Iterable[Expr]) -> Needed:
    return frozenset(c for e in exprs for c in columns_of(e))


class _Narrowing:
    """One pass.  ``reads`` collects the columns read of each shared value."""

    def __init__(self, reads: dict[str, set[int]]) -> None:
        self._reads = reads

    def narrow(self, node: Relation, needed: Needed) -> Steps[Relation]:
        """``node`` with exactly the needed columns, in order."""
        match node:
            case Get():
                return _pick(node, _positions(range(len(node.types))), needed)
            case LocalGet():
                self._reads.setdefault(node.name, set()).update(needed)
                return Project(node, tuple(sorted(needed)))  # always a projection: narrow_block renames it
            case Recursive():
                raise InternalError(f"recursion {node.name} has not been taken apart")
            case Constant():
                columns = sorted(needed)
                rows = tuple(tuple(row[c] for c in columns) for row in node.rows)
                return Constant(rows, tuple(node.types[c] for c in columns))
            case Project():
                result: Relation = yield self._project(node, needed)
                return result
            case Map():
                result = yield self._map(node, needed)
                return result
            case Filter():
                kept = needed | _read_by(node.predicates)
                below: Relation = yield self.narrow(node.input, kept)
                at = _positions(kept)
                return _pick(Filter(below, tuple(_move(p, at) for p in node.predicates)), at, needed)
            case FlatMap():
                result = yield self._flat_map(node, needed)
                return result
            case Join():
                result = yield self._join(node, needed)
                return result
            case Reduce():
                result = yield self._reduce(node, needed)
                return result
            case Distinct() | TopK() | Threshold():
                everything = frozenset(range(len(node.types)))
                below = yield self.narrow(node.input, everything)
                whole = msgspec.structs.replace(node, input=below)
                return _pick(whole, _positions(everything), needed)
            case Negate():
                below = yield self.narrow(node.input, needed)
                return Negate(below)
            case Union():
                inputs: list[Relation] = []
                for source in node.inputs:
                    below = yield self.narrow(source, needed)
                    inputs.append(below)
                return Union(tuple(inputs))
            case Let():
                raise AssertionError("a block has no Let inside")

    def _project(self, node: Project, needed: Needed) -> Steps[Relation]:
        columns = [node.columns[c] for c in sorted(needed)]
        below: Relation = yield self.narrow(node.input, frozenset(columns))
        at = _positions(set(columns))
        return Project(below, tuple(at[c] for c in columns))

    def _map(self, node: Map, needed: Needed) -> Steps[Relation]:
        width = len(node.input.types)
        read = set(needed)
        used: list[int] = []
        for i in reversed(range(len(node.exprs))):
            if width + i in read:
                used.append(i)
                read |= columns_of(node.exprs[i])
        kept = frozenset(c for c in read if c < width)
        below: Relation = yield self.narrow(node.input, kept)
        at = _positions(kept)
        exprs: list[Expr] = []
        for i in reversed(used):
            exprs.append(_move(node.exprs[i], at))
            at[width + i] = len(kept) + len(exprs) - 1
        return _pick(Map(below, tuple(exprs)) if exprs else below, at, needed)

    def _flat_map(self, node: FlatMap, needed: Needed) -> Steps[Relation]:
        width = len(node.input.types)
        kept = frozenset(c for c in needed if c < width) | _read_by(node.args)
        below: Relation = yield self.narrow(node.input, kept)
        at = _positions(kept)
        args = tuple(_move(a, at) for a in node.args)
        at.update((width + i, len(kept) + i) for i in range(len(node.output)))
        return _pick(FlatMap(below, node.func, args, node.output), at, needed)

    def _join(self, node: Join, needed: Needed) -> Steps[Relation]:
        width = len(node.left.types)
        read = needed | _read_by(node.on)
        left_kept = frozenset(c for c in read if c < width)
        right_kept = frozenset(c - width for c in read if c >= width)
        left: Relation = yield self.narrow(node.left, left_kept)
        right: Relation = yield self.narrow(node.right, right_kept)
        at = _positions(left_kept)
        at.update((c + width, len(left_kept) + i) for c, i in _positions(right_kept).items())
        joined = Join(node.kind, left, right, tuple(_move(p, at) for p in node.on))
        if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return _pick(joined, _positions(left_kept), needed)
        return _pick(joined, at, needed)

    def _reduce(self, node: Reduce, needed: Needed) -> Steps[Relation]:
        width = len(node.keys)
        aggregates = [a for i, a in enumerate(node.aggregates) if width + i in needed]
        kept = _read_by(node.keys) | _read_by(e for a in aggregates for e in _inputs_of(a))
        below: Relation = yield self.narrow(node.input, kept)
        at = _positions(kept)
        moved = tuple(_move_aggregate(a, at) for a in aggregates)
        reduced = Reduce(below, tuple(_move(k, at) for k in node.keys), moved, node.global_row)
        return _pick(reduced, _positions({*range(width), *needed}), needed)


def _inputs_of(call: AggregateCall) -> tuple[Expr, ...]:
    own = (*call.args, *(e for e, _, _ in call.order_by))
    return own if call.filter is None else (*own, call.filter)


def _move_aggregate(call: AggregateCall, at: dict[int, int]) -> AggregateCall:
    return msgspec.structs.replace(
        call,
        args=tuple(_move(a, at) for a in call.args),
        filter=None if call.filter is None else _move(call.filter, at),
        order_by=tuple((_move(e, at), desc, nulls_first) for e, desc, nulls_first in call.order_by),
    )
