"""The relational plan: bag algebra over typed rows, decorrelated, with positional columns.

The binder and the decorrelation emit it, rewrites transform it, ``plan.lower`` turns it into a dataflow.
Every node has ``types``, the row type of its result.  A collection is a bag with signed multiplicities; only
``Negate`` makes negative ones, and ``Threshold`` removes them.

``types`` of a composite node is computed once and kept: a plan is walked many times, and may be deep.
"""

from __future__ import annotations

import enum
from functools import cached_property
from typing import TypeAlias

import msgspec

from eddyline.expr.ir import AggregateCall, Expr, LiteralValue, SortKey
from eddyline.repr.types import SqlType

__all__ = [
    "Constant",
    "Distinct",
    "Filter",
    "FlatMap",
    "Get",
    "Join",
    "JoinKind",
    "Let",
    "LocalGet",
    "Map",
    "Negate",
    "Project",
    "Recursive",
    "Reduce",
    "Relation",
    "Threshold",
    "TopK",
    "Union",
]


class JoinKind(enum.Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"  # left rows with a match, multiplicity unchanged
    ANTI = "anti"  # left rows without a match


class Constant(msgspec.Struct, frozen=True, tag_field="op", tag="constant"):
    """Literal rows (physical scalars, see ``expr.ir``), each once."""

    rows: tuple[tuple[LiteralValue, ...], ...]
    types: tuple[SqlType, ...]


class Get(msgspec.Struct, frozen=True, tag_field="op", tag="get"):
    """A catalog object (table, view before inlining, materialized view) by its global id."""

    id: str
    types: tuple[SqlType, ...]


class LocalGet(msgspec.Struct, frozen=True, tag_field="op", tag="local_get"):
    """The value bound by the enclosing ``Let`` of that name."""

    name: str
    types: tuple[SqlType, ...]


class Let(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="let"):
    """``value`` is computed once and shared by every ``LocalGet(name)`` in ``body``.  Names are unique in a plan."""

    name: str
    value: Relation
    body: Relation

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.body.types


class Recursive(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="recursive"):
    """WITH RECURSIVE: the rows of ``base``, then those that ``step`` makes of the rows of the round before, until a
    round is empty.

    ``step`` reads the round before as ``LocalGet(name)``.  ``every``: UNION ALL; otherwise a row counts that equals no
    earlier one.  ``label`` and ``columns`` are what users call it and its columns.  Only one-shot reads have it
    (``plan.recursion``): it is taken apart before anything is optimized.
    """

    name: str
    base: Relation
    step: Relation
    every: bool
    label: str
    columns: tuple[str, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.base.types


class Project(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="project"):
    input: Relation
    columns: tuple[int, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        types = self.input.types
        return tuple(types[c] for c in self.columns)


class Map(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="map"):
    """Appends one column per expression; expression *i* may read input columns and the results of those before it."""

    input: Relation
    exprs: tuple[Expr, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return (*self.input.types, *(e.type for e in self.exprs))


class Filter(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="filter"):
    """Rows for which every predicate is true (not null).  Predicates are in source order; a later one may rely on
    an earlier one as its guard only if both stand in one ``And``."""

    input: Relation
    predicates: tuple[Expr, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


class FlatMap(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="flat_map"):
    """Each input row times the rows of a table function; its columns are appended.

    ``func``: generate_series, or unnest of arrays side by side, whose last column numbers the rows.
    """

    input: Relation
    func: str
    args: tuple[Expr, ...]
    output: tuple[SqlType, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return (*self.input.types, *self.output)


class Join(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="join"):
    """``on`` are predicates over left columns then right columns, all of which must be true.  No predicate: cross.

    Equality predicates are ``Call("eq", (l, r))``; null-safe ones ``Call("is_not_distinct_from", (l, r))``.
    SEMI and ANTI return left columns only.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    on: tuple[Expr, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.types
        return (*self.left.types, *self.right.types)


class Reduce(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="reduce"):
    """One row per distinct key: keys then aggregates.  Without keys there is always exactly one row
    (``global_row``), also over no input, as SQL's ungrouped aggregates have it."""

    input: Relation
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    global_row: bool = False

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return (*(k.type for k in self.keys), *(a.type for a in self.aggregates))


class Distinct(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="distinct"):
    """Every row with a positive multiplicity, once."""

    input: Relation

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


class TopK(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="top_k"):
    """Per group (NULLs equal), rows ``offset <= i < offset + limit`` in the order; ties by canonical row order.
    ``limit`` and ``offset`` are expressions without columns (literals or parameters), None = unbounded / 0."""

    input: Relation
    group: tuple[int, ...]
    order: tuple[SortKey, ...]
    limit: Expr | None = None
    offset: Expr | None = None

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


class Union(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="union"):
    """The bag sum; all inputs have the same types."""

    inputs: tuple[Relation, ...]

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.inputs[0].types


class Negate(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="negate"):
    input: Relation

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


class Threshold(msgspec.Struct, frozen=True, dict=True, tag_field="op", tag="threshold"):
    """Rows with a positive multiplicity, with that multiplicity."""

    input: Relation

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


Relation: TypeAlias = (
    Constant
    | Get
    | LocalGet
    | Let
    | Recursive
    | Project
    | Map
    | Filter
    | FlatMap
    | Join
    | Reduce
    | Distinct
    | TopK
    | Union
    | Negate
    | Threshold
)
