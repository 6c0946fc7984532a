"""From a relation to the operators of a dataflow, each distinct subtree once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.errors import InternalError, make_error
from eddyline.expr.evaluate import evaluate
from eddyline.expr.ir import Expr, Literal, LiteralValue
from eddyline.expr.literals import scalar_literal
from eddyline.plan.dataflow import (
    ConstantSource,
    Distinct,
    ExportIndex,
    ExportMaterializedView,
    ExportSubscribe,
    FlatMap,
    ImportIndex,
    ImportSource,
    Operator,
    Threshold,
    TopK,
)
from eddyline.plan.facts import IndexFacts
from eddyline.plan.filtered import is_filtered
from eddyline.plan.intern import intern_relation
from eddyline.plan.lower_join import JoinFacts, lower_join
from eddyline.plan.lower_reduce import lower_reduce
from eddyline.plan.operators import OperatorList, Stream
from eddyline.plan.relation import Constant as ConstantRelation
from eddyline.plan.relation import Distinct as DistinctRelation
from eddyline.plan.relation import (
    Filter,
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
    Union,
)
from eddyline.plan.relation import FlatMap as FlatMapRelation
from eddyline.plan.relation import Threshold as ThresholdRelation
from eddyline.plan.relation import TopK as TopKRelation
from eddyline.plan.unique import UniqueKeys, node_keys

__all__ = ["lower", "lower_index", "lower_materialized_view", "lower_subscribe"]


Declared = Mapping[str, tuple[tuple[int, ...], ...]]
NOTHING_DECLARED: Declared = {}


def lower(
    relation: Relation,
    indexes: Sequence[IndexFacts] = (),
    *,
    unique_keys: Declared = NOTHING_DECLARED,
    single_time: bool = False,
) -> tuple[Operator, ...]:
    """Operators in topological order; the last one's output is the relation.

    No parameters may be left in it.  2201W, 2201X: a negative LIMIT or OFFSET.  An object with an index is read
    through it, others from storage.  ``unique_keys``: as in ``CatalogFacts``; they save state in outer and semi joins.
    ``single_time``: for a dataflow whose until is one step past its as_of, and for no other.
    """
    into, result = _lower(relation, indexes, unique_keys, single_time=single_time)
    return into.reachable(result.position())


def lower_index(
    relation: Relation,
    index_id: str,
    on: str,
    key: tuple[int, ...],
    indexes: Sequence[IndexFacts] = (),
    *,
    unique_keys: Declared = NOTHING_DECLARED,
) -> tuple[Operator, ...]:
    """As ``lower``, published as an index on ``on`` with that key."""
    into, result = _lower(relation, indexes, unique_keys)
    arranged = result.arranged(key)
    return into.reachable(into.add(ExportIndex(index_id, on, arranged, key, result.types)))


def lower_materialized_view(
    relation: Relation,
    view_id: str,
    indexes: Sequence[IndexFacts] = (),
    *,
    unique_keys: Declared = NOTHING_DECLARED,
) -> tuple[Operator, ...]:
    """As ``lower``, written to the storage collection ``view_id``."""
    into, result = _lower(relation, indexes, unique_keys)
    return into.reachable(into.add(ExportMaterializedView(view_id, result.position(), result.types)))


def lower_subscribe(
    relation: Relation,
    subscribe_id: str,
    indexes: Sequence[IndexFacts] = (),
    *,
    with_snapshot: bool = True,
    unique_keys: Declared = NOTHING_DECLARED,
) -> tuple[Operator, ...]:
    """As ``lower``, its changes sent under ``subscribe_id``."""
    into, result = _lower(relation, indexes, unique_keys)
    return into.reachable(into.add(ExportSubscribe(subscribe_id, result.position(), result.types, with_snapshot)))


def _lower(
    relation: Relation, indexes: Sequence[IndexFacts], declared: Declared, *, single_time: bool = False
) -> tuple[OperatorList, Stream]:
    interned, root = intern_relation(relation)
    uses = interned.uses()
    into = OperatorList()
    streams: list[Stream] = []
    keys: list[UniqueKeys] = []
    for i, node in enumerate(interned.nodes):
        inputs = interned.inputs[i]
        if isinstance(node, Join):
            facts = JoinFacts(indexes, keys[inputs[0]], keys[inputs[1]], left_filtered=is_filtered(node.left))
            stream = lower_join(node.kind, streams[inputs[0]], streams[inputs[1]], node.on, facts)
        else:
            stream = _lower_node(node, [streams[c] for c in inputs], into, indexes, single_time=single_time)
        keys.append(node_keys(node, [keys[c] for c in inputs], declared))
        streams.append(stream.shared() if uses[i] > 1 else stream)
    return into, streams[root]


def _lower_node(
    node: Relation, inputs: list[Stream], into: OperatorList, indexes: Sequence[IndexFacts], *, single_time: bool
) -> Stream:
    match node:
        case Get():
            return _import(node, into, indexes)
        case ConstantRelation():
            return into.stream(ConstantSource(node.rows, node.types))
        case Project():
            return inputs[0].project(node.columns)
        case Map():
            return inputs[0].map(node.exprs)
        case Filter():
            return inputs[0].filter(node.predicates)
        case FlatMapRelation():
            return into.stream(FlatMap(inputs[0].position(), node.func, node.args, node.types))
        case Reduce():
            return lower_reduce(
                inputs[0], node.keys, node.aggregates, global_row=node.global_row, single_time=single_time
            )
        case DistinctRelation():
            return into.stream(Distinct(inputs[0].position(), node.types))
        case ThresholdRelation():
            return into.stream(Threshold(inputs[0].position(), node.types))
        case TopKRelation():
            return _top_k(node, inputs[0])
        case Union():
            return into.union(*inputs)
        case Negate():
            return into.negate(inputs[0])
        case LocalGet():
            raise InternalError(f"plan reads {node.name}, which nothing binds")
        case Let() | Join() | Recursive():
            raise InternalError(f"{type(node).__name__} is not lowered here")


def _import(node: Get, into: OperatorList, indexes: Sequence[IndexFacts]) -> Stream:
    index = next((i for i in indexes if i.on == node.id), None)
    if index is not None:
        return into.stream(ImportIndex(index.id, index.types, index.key))
    return into.stream(ImportSource(node.id, node.types))


def _top_k(node: TopKRelation, source: Stream) -> Stream:
    limit = _count(node.limit, "2201W", "LIMIT must not be negative")
    offset = _count(node.offset, "2201X", "OFFSET must not be negative") or 0
    if limit is None and offset == 0:
        return source
    return source.into.stream(TopK(source.position(), node.group, node.order, limit, offset, node.types))


def _count(expr: Expr | None, sqlstate: str, message: str) -> int | None:
    """The value of a LIMIT or OFFSET; NULL is none."""
    if expr is None:
        return None
    value = expr.value if isinstance(expr, Literal) else _computed(expr)
    if value is None:
        return None
    count = int(value)
    if count < 0:
        raise make_error(sqlstate, message)
    return count


def _computed(expr: Expr) -> LiteralValue:
    """The value of an expression without columns; its error is the query's."""
    value = evaluate(expr, [], 1)
    if value.errors is not None:
        raise make_error(value.errors.sqlstates[0], value.errors.messages[0])
    return scalar_literal(value.array[0], expr.type)
