"""State of the binding of one statement: ids, parameters, and the query blocks with what they may contain.

Owned by one thread for the duration of one bind; nothing here outlives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from eddyline.expr.ir import AggregateCall, Expr
from eddyline.repr.types import SqlType
from eddyline.sql.algebra import Cte, Ids, Node, Working
from eddyline.sql.ast import AstNode
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.column_reads import ColumnReads
from eddyline.sql.conversion import Parameters
from eddyline.sql.scope import Scope

__all__ = ["Binding", "Block", "Context", "CteEntry", "Locate", "RowValue", "SubselectResult", "ascii_position"]

Locate = Callable[[int], int | None]
"""Byte offset of a syntax node to the 1-based character position in the statement; negative offsets give None."""


def ascii_position(location: int) -> int | None:
    """``Locate`` for statements that are ASCII and start at offset 0."""
    return location + 1 if location >= 0 else None


@dataclass(frozen=True, slots=True)
class RowValue:
    """``(a, b)`` or ``ROW(a, b)``; may stand only where the binder expands it (comparisons, IN, IS NULL).
    ``places``: where the items stand, if that is known."""

    items: tuple[Expr, ...]
    position: int | None = None
    places: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """OVER (PARTITION BY … ORDER BY …); ``order``: (expression, desc, nulls first)."""

    partition: tuple[Expr, ...]
    order: tuple[tuple[Expr, bool, bool], ...]

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*self.partition, *(e for e, _, _ in self.order))


@dataclass(eq=False, slots=True)
class Block:
    """One query block (SELECT): what is being bound now and the aggregates found so far.

    ``forbids``: why aggregates may not stand here ("WHERE"), None where they may.
    ``inside_aggregate``: binding an aggregate's own arguments.
    """

    depth: int
    forbids: str | None = None
    inside_aggregate: bool = False
    aggregates: dict[int, AggregateCall] = field(default_factory=dict)
    groupings: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    #: set-returning functions in the SELECT list, by their columns: FlatMap's function, arguments
    series: dict[int, tuple[str, tuple[Expr, ...]]] = field(default_factory=dict)
    windows: dict[int, Window] = field(default_factory=dict)  # row_number() OVER (…), by its column
    #: columns put together from those of ``series``
    pairs: dict[int, Expr] = field(default_factory=dict)
    #: the recursive query whose round its FROM has
    round_of: str | None = None
    aggregate_at: int | None = None  # where the first aggregate stands
    # first position at which each column was mentioned outside an aggregate: for 42803
    mentions: dict[int, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CteEntry:
    """A WITH query by name; ``names`` label its columns.  In a recursive query's own recursive term: its round."""

    cte: Cte | Working
    names: tuple[str, ...]


class SubselectResult(Protocol):
    """What binding a nested SELECT gives an expression."""

    @property
    def node(self) -> Node: ...

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def single_row(self) -> bool: ...

    @property
    def order(self) -> tuple[tuple[int, bool, bool], ...]: ...


class Subselect(Protocol):
    """Binds a nested SELECT.  ``ordered``: ``order`` says how its rows are sorted, by columns that its node has."""

    def __call__(self, node: AstNode, context: Context, *, ordered: bool = False) -> SubselectResult: ...


@dataclass(eq=False)
class Binding:
    """``subselect`` binds a nested SELECT; it is a field because expressions and queries nest in each other."""

    catalog: CatalogView
    parameters: Parameters
    locate: Locate
    subselect: Subselect
    ids: Ids = field(default_factory=Ids)
    owners: dict[int, Block] = field(default_factory=dict)
    #: columns of ``information_schema._pg_expandarray``: an item and its number, as an array of both
    pairs: set[int] = field(default_factory=set)
    #: the first function met that has an effect, or gives something else each time
    volatile: str | None = None
    reads: ColumnReads = field(default_factory=ColumnReads)

    def own(self, number: int, block: Block) -> int:
        """Records the block that brings column ``number`` into scope."""
        self.owners[number] = block
        return number

    def new_owned(self, sql_type: SqlType, block: Block, label: str = "") -> int:
        return self.own(self.ids.new(sql_type, label), block)


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands."""

    binding: Binding
    scope: Scope
    block: Block
    ctes: Mapping[str, CteEntry]
    #: names of WITH queries that cannot be referred to yet
    later: frozenset[str] = frozenset()

    def within(self, scope: Scope) -> Context:
        return replace(self, scope=scope)

    def at(self, node: AstNode) -> int | None:
        """The position of a syntax node with a ``location``."""
        return self.binding.locate(node.location)
