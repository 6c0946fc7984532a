"""Which rows of an edge a worker has, where the plan alone tells: what is in its place is not dealt out again.

Rows are dealt to workers by the hash of key columns (``exchange``).  Grouping keeps each group where its rows are, and
an index on the grouping's key, or a join on it, asks for the same place.  Dealing such rows out once more would copy
and hash each of them, and have every worker wait for the slowest one twice for each step in time.  Where storage deals
its rows out by a key that is asked for, nobody waits for anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from eddyline.expr.ir import Mfp
from eddyline.plan import dataflow as plan

__all__ = ["Partition", "dealt_sources", "has_place", "partitions"]

#: of each key column, in the order in which they are hashed, the columns of the edge that have its values; the hash of
#: all says which worker has a row.  None: a row may be anywhere
Partition: TypeAlias = tuple[frozenset[int], ...] | None
_NONE: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})


def partitions(operators: Sequence[plan.Operator], dealt: Mapping[int, tuple[int, ...]] = _NONE) -> list[Partition]:
    """Of each operator's output.  ``dealt``: the keys by which sources are, by position.

    The same on every worker, whatever its part of the data is.  O(columns).
    """
    found: list[Partition] = []
    for position, node in enumerate(operators):
        found.append(_by(dealt[position]) if position in dealt else _output(node, found, operators))
    return found


def dealt_sources(operators: Sequence[plan.Operator]) -> dict[int, tuple[int, ...]]:
    """The storage collections of which rows are wanted by a key, and the first such key of each, by position.

    O(operators + columns).
    """
    wanted: dict[int, tuple[int, ...]] = {}
    for position in reversed(range(len(operators))):
        node = operators[position]
        match node:
            case plan.Arrange() | plan.Reduce():
                key: tuple[int, ...] | None = node.key
            case plan.TopK():
                key = node.group
            case plan.Distinct() | plan.Threshold():
                key = tuple(range(len(node.types)))
            case plan.MapFilterProject():
                key = _before(wanted.get(position, ()), node.mfp, len(operators[node.input].types))
            case plan.Negate():
                key = wanted.get(position)
            case _:
                continue
        if key:  # without columns all rows are one worker's, which should not filter them alone
            wanted[node.input] = key
    return {p: key for p, key in wanted.items() if isinstance(operators[p], plan.ImportSource)}


def _before(key: tuple[int, ...], mfp: Mfp, width: int) -> tuple[int, ...] | None:
    """The input's columns that become the columns ``key``; None where one is computed."""
    columns = tuple(mfp.projection[k] for k in key)
    return columns if all(c < width for c in columns) else None


def has_place(partition: Partition, key: Sequence[int]) -> bool:
    """Whether rows of such an edge are with the worker that owns the hash of the columns ``key``."""
    if partition is None or len(partition) != len(key):
        return False
    return all(k in columns for k, columns in zip(key, partition, strict=True))


def _output(node: plan.Operator, known: Sequence[Partition], operators: Sequence[plan.Operator]) -> Partition:
    match node:
        case plan.ImportIndex() | plan.Arrange():
            return _by(node.key)
        case plan.TopK():
            return _by(node.group)
        case plan.Reduce():
            return _by(range(len(node.key)))
        case plan.Distinct() | plan.Threshold():
            return _by(range(len(node.types)))
        case plan.Negate():
            return known[node.input]
        case plan.MapFilterProject():
            return _through(known[node.input], node.mfp)
        case plan.FlatMap():  # the input's columns come first
            return known[node.input] if node.mfp is None else _through(known[node.input], node.mfp)
        case plan.Join():
            left, right = operators[node.left], operators[node.right]
            assert isinstance(left, plan.Arrange | plan.ImportIndex), "joins read arranged edges"
            assert isinstance(right, plan.Arrange | plan.ImportIndex), "joins read arranged edges"
            width = len(left.types)
            pairs = zip(left.key, right.key, strict=True)
            return _through(tuple(frozenset((a, width + b)) for a, b in pairs), node.mfp)
        case plan.Union():
            return _common([known[i] for i in node.inputs])
        case (
            plan.ImportSource()
            | plan.ConstantSource()
            | plan.BatchSource()
            | plan.ExportIndex()
            | plan.ExportMaterializedView()
            | plan.ExportSubscribe()
        ):
            return None
        case _:
            assert_never(node)


def _by(key: Sequence[int]) -> Partition:
    return tuple(frozenset((k,)) for k in key)


def _through(partition: Partition, mfp: Mfp) -> Partition:
    """None where a key column is dropped."""
    if partition is None:
        return None
    kept = tuple(frozenset(i for i, c in enumerate(mfp.projection) if c in columns) for columns in partition)
    return kept if all(kept) else None


def _common(inputs: Sequence[Partition]) -> Partition:
    first, *others = inputs or (None,)
    for other in others:
        if first is None or other is None or len(first) != len(other):
            return None
        first = tuple(a & b for a, b in zip(first, other, strict=True))
    return first if first is not None and all(first) else None
