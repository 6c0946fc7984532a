"""The dataflow plan: what a runtime renders.  A flat list of operators in topological order, inputs by position.

Two kinds of edge exist.  A *stream* carries update batches and a frontier.  An *arranged* edge carries sealed runs and
the trace they went into.  ``Arrange``, ``ImportIndex`` and nothing else produce arranged edges; ``Join`` and
``ExportIndex`` consume them; every other operator consumes streams (an arranged input is read as a stream of its
runs).  Row errors travel on the same edges as the rows.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

from eddyline.expr.ir import AggregateCall, Expr, FilterStep, LiteralValue, MapStep, Mfp, SortKey
from eddyline.repr.types import SqlType

__all__ = [
    "Arrange",
    "BatchSource",
    "ConstantSource",
    "DataflowClass",
    "DataflowDescription",
    "Distinct",
    "ExportIndex",
    "ExportMaterializedView",
    "ExportSubscribe",
    "FilterStep",
    "FlatMap",
    "ImportIndex",
    "ImportSource",
    "Join",
    "MapFilterProject",
    "MapStep",
    "Mfp",
    "Negate",
    "Operator",
    "Reduce",
    "ReduceFunctions",
    "Threshold",
    "TopK",
    "Union",
]


class ImportSource(msgspec.Struct, frozen=True, tag_field="op", tag="import_source"):
    """A storage collection (table, materialized view): its snapshot at as_of, then its changes."""

    id: str
    types: tuple[SqlType, ...]


class ImportIndex(msgspec.Struct, frozen=True, tag_field="op", tag="import_index"):
    """The arrangement of an index of the same replica, by reference.  Arranged edge."""

    id: str
    types: tuple[SqlType, ...]
    key: tuple[int, ...]


class ConstantSource(msgspec.Struct, frozen=True, tag_field="op", tag="constant_source"):
    """Literal rows at the dataflow's as_of; its output frontier is empty at once."""

    rows: tuple[tuple[LiteralValue, ...], ...]
    types: tuple[SqlType, ...]


class BatchSource(msgspec.Struct, frozen=True, tag_field="op", tag="batch_source"):
    """As ``ConstantSource``, the rows a ``repr.Batch`` held by reference; its times mean nothing, its diffs count."""

    rows: object
    types: tuple[SqlType, ...]


class MapFilterProject(msgspec.Struct, frozen=True, tag_field="op", tag="mfp"):
    input: int
    mfp: Mfp

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.mfp.types


class FlatMap(msgspec.Struct, frozen=True, tag_field="op", tag="flat_map"):
    """``func`` over ``args`` for each row; output row = input columns then the function's, then ``mfp`` if any.

    ``types``: of the output.  Lowering leaves ``mfp`` None.  ``names``, ``view``: as in ``Mfp``.
    """

    input: int
    func: str
    args: tuple[Expr, ...]
    types: tuple[SqlType, ...]
    mfp: Mfp | None = None
    names: tuple[str, ...] = ()
    view: str = ""


class Union(msgspec.Struct, frozen=True, tag_field="op", tag="union"):
    inputs: tuple[int, ...]
    types: tuple[SqlType, ...]


class Negate(msgspec.Struct, frozen=True, tag_field="op", tag="negate"):
    """Negates the rows' diffs; errors pass unchanged."""

    input: int
    types: tuple[SqlType, ...]


class Arrange(msgspec.Struct, frozen=True, tag_field="op", tag="arrange"):
    """Exchanges by key hash, seals, and keeps a trace.  ``key``: columns, in order; may be empty (one group)."""

    input: int
    key: tuple[int, ...]
    types: tuple[SqlType, ...]


class Join(msgspec.Struct, frozen=True, tag_field="op", tag="join"):
    """Inner equijoin of two arranged inputs whose keys have equal types, pairwise.

    Output row = left columns then right columns, through ``mfp``.  ``null_safe[i]``: NULL = NULL on key *i*;
    otherwise a NULL key matches nothing.  Empty keys: cross product.
    """

    left: int
    right: int
    null_safe: tuple[bool, ...]
    mfp: Mfp

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.mfp.types


class ReduceFunctions(enum.Enum):
    """How a Reduce keeps its state."""

    ACCUMULABLE = "accumulable"  # count, sum, avg, bool_*, stddev*, var*: accumulators in a private table
    BASIC = "basic"  # string_agg, array_agg: recomputed from the group's arranged rows


class Reduce(msgspec.Struct, frozen=True, tag_field="op", tag="reduce"):
    """Groups by the key columns (exchanged by key hash).  Output: key columns, then one column per aggregate.

    Aggregates are not DISTINCT here, and min/max only in a dataflow with a single time: lowering turns DISTINCT into
    ``Distinct`` below the Reduce, min and max into ``TopK``, and joins the parts.  Aggregate arguments and filters read
    the input's columns.
    ``global_row``: no keys, and exactly one row always (count 0, others NULL over no input).
    ``names`` (of the input's columns), ``view``: as in ``Mfp``.
    """

    input: int
    key: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    functions: ReduceFunctions
    types: tuple[SqlType, ...]
    global_row: bool = False
    names: tuple[str, ...] = ()
    view: str = ""


class Distinct(msgspec.Struct, frozen=True, tag_field="op", tag="distinct"):
    """Each row with positive multiplicity once (exchanged by row hash)."""

    input: int
    types: tuple[SqlType, ...]


class Threshold(msgspec.Struct, frozen=True, tag_field="op", tag="threshold"):
    input: int
    types: tuple[SqlType, ...]


class TopK(msgspec.Struct, frozen=True, tag_field="op", tag="top_k"):
    """Rows ``offset <= i < offset + limit`` of each group; ``limit`` None: unbounded.

    ``extreme``: the aggregate (min, max) whose value the last column is, if that is what it computes; for texts.
    """

    input: int
    group: tuple[int, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int
    types: tuple[SqlType, ...]
    extreme: str | None = None


class ExportIndex(msgspec.Struct, frozen=True, tag_field="op", tag="export_index"):
    """Publishes an arranged input as the index ``id`` on collection ``on``."""

    id: str
    on: str
    input: int
    key: tuple[int, ...]
    types: tuple[SqlType, ...]


class ExportMaterializedView(msgspec.Struct, frozen=True, tag_field="op", tag="export_materialized_view"):
    """Writes the input's changes to storage collection ``id``."""

    id: str
    input: int
    types: tuple[SqlType, ...]


class ExportSubscribe(msgspec.Struct, frozen=True, tag_field="op", tag="export_subscribe"):
    """Sends the input's consolidated changes, batch by sealed interval, as ``SubscribeResponse``s."""

    id: str
    input: int
    types: tuple[SqlType, ...]
    with_snapshot: bool = True


Operator: TypeAlias = (
    ImportSource
    | ImportIndex
    | ConstantSource
    | BatchSource
    | MapFilterProject
    | FlatMap
    | Union
    | Negate
    | Arrange
    | Join
    | Reduce
    | Distinct
    | Threshold
    | TopK
    | ExportIndex
    | ExportMaterializedView
    | ExportSubscribe
)


class DataflowClass(enum.Enum):
    MAINTAINED = "maintained"
    ONE_SHOT_READ = "one_shot_read"


class DataflowDescription(msgspec.Struct, frozen=True):
    """One dataflow: its operators and the interval of times it computes.

    ``as_of``: inputs are advanced to it.  ``until``: updates at or past it are suppressed (EMPTY: unbounded).
    ``memory_bytes``: what a read's dataflow may hold on a replica; past it, it ends with an error (None: no bound).
    """

    name: str
    operators: tuple[Operator, ...]
    as_of: int
    until: int
    dataflow_class: DataflowClass = DataflowClass.MAINTAINED
    memory_bytes: int | None = None

    @property
    def imports(self) -> tuple[ImportSource | ImportIndex, ...]:
        return tuple(o for o in self.operators if isinstance(o, (ImportSource, ImportIndex)))

    @property
    def exports(self) -> tuple[ExportIndex | ExportMaterializedView | ExportSubscribe, ...]:
        return tuple(o for o in self.operators if isinstance(o, (ExportIndex, ExportMaterializedView, ExportSubscribe)))
