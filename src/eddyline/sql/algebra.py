"""The bound query: an algebra over *column ids*, with correlated references and subqueries still in place.

Every column of every range-table entry, every computed output, aggregate and subquery has an id of its own,
unique in the statement.  An ``ir.Column`` inside a bound expression holds such an id, not a position, so nothing is
renumbered when operators move.  ``decorrelate`` turns the tree into positional ``plan.relation`` nodes.

Invariants:

* I1. Ids are unique in a statement, except that a grouping column keeps its id above its ``Reduce``.
* I2. The id of a ``Subquery`` stands for its value; no operator produces it.  The operator whose expression
  mentions it attaches it to its input.
* I3. The free ids of a node (mentioned, not produced inside) are its correlated references.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from eddyline.expr.ir import AggregateCall, Column, Expr, walk
from eddyline.plan.relation import Constant, JoinKind, Relation
from eddyline.repr.types import SqlType

__all__ = [
    "UNIT",
    "Cte",
    "CteRef",
    "Distinct",
    "Filter",
    "FlatMap",
    "Ids",
    "Join",
    "Leaf",
    "Map",
    "Node",
    "Recursive",
    "Reduce",
    "Rows",
    "SetKind",
    "SetOperation",
    "Subquery",
    "SubqueryKind",
    "TopK",
    "Union",
    "With",
    "Working",
    "WorkingRef",
    "aggregate_exprs",
    "expressions",
    "inputs",
    "outputs",
]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A closed relation; ``ids`` name its columns."""

    relation: Relation
    ids: tuple[int, ...]


UNIT = Leaf(Constant(rows=((),), types=()), ())


@dataclass(eq=False)
class Cte:
    """A WITH query that is referenced through ``CteRef``s; ``ids`` are its columns within ``node``."""

    name: str
    node: Node
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CteRef:
    cte: Cte
    ids: tuple[int, ...]


@dataclass(eq=False)
class Working:
    """The rows of a recursive query's round, as its recursive term reads them; ``ids`` are its columns.

    ``recursion``: whose round; None while that is being bound.
    """

    name: str
    ids: tuple[int, ...]
    recursion: Recursive | None = None


@dataclass(frozen=True, eq=False)
class WorkingRef:
    working: Working
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Recursive:
    """The rows of ``base``, and of ``step`` over those of the round before; ``every``: UNION ALL.

    ``names``: of the columns; both terms have their types.
    """

    working: Working
    base: tuple[Node, tuple[int, ...]]
    step: tuple[Node, tuple[int, ...]]
    every: bool
    names: tuple[str, ...]
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class With:
    """Makes ``ctes`` available, in order, to each other and to ``body``."""

    ctes: tuple[Cte, ...]
    body: Node


@dataclass(frozen=True, eq=False)
class Rows:
    """VALUES: one row per tuple of expressions; the expressions may be correlated but read no column of their own."""

    rows: tuple[tuple[Expr, ...], ...]
    ids: tuple[int, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, eq=False)
class Map:
    input: Node
    exprs: tuple[tuple[int, Expr], ...]


@dataclass(frozen=True, eq=False)
class Filter:
    input: Node
    predicates: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class FlatMap:
    input: Node
    func: str
    args: tuple[Expr, ...]
    ids: tuple[int, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, eq=False)
class Join:
    """``right`` may read columns of ``left`` (LATERAL) when ``kind`` is INNER or LEFT."""

    kind: JoinKind
    left: Node
    right: Node
    on: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Reduce:
    input: Node
    keys: tuple[tuple[int, Expr], ...]
    aggregates: tuple[tuple[int, AggregateCall], ...]
    global_row: bool


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct rows of ``ids``, which are all that it produces."""

    input: Node
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TopK:
    """``order``: (id, desc, nulls_first).  ``keep`` are the columns of the result; they also decide ties."""

    input: Node
    group: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    limit: Expr | None
    offset: Expr | None
    keep: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Union:
    """The bag sum of the inputs, column by column; every input has the types of ``ids``."""

    arms: tuple[tuple[Node, tuple[int, ...]], ...]
    ids: tuple[int, ...]


class SetKind(enum.Enum):
    EXCEPT = "except"
    INTERSECT = "intersect"


@dataclass(frozen=True, eq=False)
class SetOperation:
    kind: SetKind
    all: bool
    left: tuple[Node, tuple[int, ...]]
    right: tuple[Node, tuple[int, ...]]
    ids: tuple[int, ...]


Node: TypeAlias = (
    Leaf
    | CteRef
    | WorkingRef
    | Recursive
    | With
    | Rows
    | Map
    | Filter
    | FlatMap
    | Join
    | Reduce
    | Distinct
    | TopK
    | Union
    | SetOperation
)


class SubqueryKind(enum.Enum):
    SCALAR = "scalar"
    EXISTS = "exists"
    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, eq=False)
class Subquery:
    """A subquery used as a value.

    ``ids``: its output columns; for SCALAR the first is the value.  For ANY and ALL, ``comparison`` is the
    three-valued comparison of one row, over the outer row's columns and ``ids``.  When it is plain, ``operator``
    ("eq", "ne", "lt", "le", "gt", "ge") relates ``tests`` of the outer row to ``values`` over ``ids``, one pair, or
    several under "eq" (row equality).  ``single_row``: the node has exactly one row per outer row.
    """

    kind: SubqueryKind
    node: Node
    ids: tuple[int, ...]
    type: SqlType
    tests: tuple[Expr, ...] = ()
    values: tuple[Expr, ...] = ()
    comparison: Expr | None = None
    operator: str | None = None
    single_row: bool = False


@dataclass
class Ids:
    """Issues ids and remembers what each one stands for.  Owned by the binding of one statement, on one thread."""

    types: dict[int, SqlType] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    subqueries: dict[int, Subquery] = field(default_factory=dict)

    def new(self, sql_type: SqlType, label: str = "") -> int:
        number = len(self.types)
        self.types[number] = sql_type
        if label:
            self.labels[number] = label
        return number

    def new_all(self, types: Iterable[SqlType]) -> tuple[int, ...]:
        return tuple(self.new(t) for t in types)

    def column(self, number: int) -> Column:
        return Column(number, self.types[number])

    def subquery(self, subquery: Subquery) -> Column:
        number = self.new(subquery.type)
        self.subqueries[number] = subquery
        return Column(number, subquery.type)


def inputs(node: Node) -> tuple[Node, ...]:
    """The direct inputs; a ``CteRef``'s definition and subqueries are not among them."""
    match node:
        case Leaf() | Rows() | CteRef() | WorkingRef():
            return ()
        case Recursive():
            return (node.base[0], node.step[0])
        case With():
            return (*(c.node for c in node.ctes), node.body)
        case Join():
            return (node.left, node.right)
        case Union():
            return tuple(arm for arm, _ in node.arms)
        case SetOperation():
            return (node.left[0], node.right[0])
        case _:
            return (node.input,)


def aggregate_exprs(call: AggregateCall) -> Iterator[Expr]:
    yield from call.args
    if call.filter is not None:
        yield call.filter
    for expr, _, _ in call.order_by:
        yield expr


def expressions(node: Node) -> Iterator[Expr]:
    """The node's own expressions."""
    match node:
        case Map():
            yield from (e for _, e in node.exprs)
        case Filter():
            yield from node.predicates
        case FlatMap():
            yield from node.args
        case Join():
            yield from node.on
        case Rows():
            yield from (e for row in node.rows for e in row)
        case Reduce():
            yield from (e for _, e in node.keys)
            for _, call in node.aggregates:
                yield from aggregate_exprs(call)
        case TopK():
            yield from (e for e in (node.limit, node.offset) if e is not None)
        case _:
            return


def produced(node: Node) -> tuple[int, ...]:
    """The ids that this very node introduces."""
    match node:
        case Leaf() | CteRef() | WorkingRef() | Recursive() | Rows() | FlatMap() | Union() | SetOperation():
            return node.ids
        case Map():
            return tuple(i for i, _ in node.exprs)
        case Reduce():
            return (*(i for i, _ in node.keys), *(i for i, _ in node.aggregates))
        case _:
            return ()


def outputs(node: Node) -> frozenset[int]:
    """The ids that a parent may read."""
    match node:
        case Leaf() | CteRef() | WorkingRef() | Recursive() | Rows() | Union() | SetOperation() | Reduce():
            return frozenset(produced(node))
        case Distinct():
            return frozenset(node.ids)
        case TopK():
            return frozenset(node.keep)
        case With():
            return outputs(node.body)
        case Join():
            if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
                return outputs(node.left)
            return outputs(node.left) | outputs(node.right)
        case _:
            return outputs(node.input) | frozenset(produced(node))


def mentioned(exprs: Iterable[Expr]) -> set[int]:
    """The column ids in ``exprs``, subquery ids included."""
    return {e.index for expr in exprs for e in walk(expr) if isinstance(e, Column)}


class FreeIds:
    """Free ids of nodes, expressions and subqueries, memoised by node.

    Cost: linear in the tree over the life of the instance.
    """

    def __init__(self, ids: Ids, within: frozenset[int] = frozenset()) -> None:
        self._ids = ids
        self._within = within  # id() of the Working of recursions whose own free ids are being found
        self._memo: dict[int, tuple[object, frozenset[int]]] = {}  # the object is kept so that its id() stays taken

    def of_exprs(self, exprs: Iterable[Expr]) -> frozenset[int]:
        found: set[int] = set()
        for number in mentioned(exprs):
            subquery = self._ids.subqueries.get(number)
            if subquery is None:
                found.add(number)
            else:
                found |= self.of_subquery(subquery)
        return frozenset(found)

    def of_subquery(self, subquery: Subquery) -> frozenset[int]:
        own = [subquery.comparison] if subquery.comparison is not None else []
        return self.of_node(subquery.node) | (self.of_exprs(own) - frozenset(subquery.ids))

    def of_node(self, node: Node) -> frozenset[int]:
        known = self._memo.get(id(node))
        if known is not None:
            return known[1]
        result = self._of_working(node.working) if isinstance(node, (WorkingRef, Recursive)) else self._of_other(node)
        self._memo[id(node)] = (node, result)
        return result

    def _of_working(self, working: Working) -> frozenset[int]:
        """A round depends on what the recursion depends on, the mention of it in its own step aside."""
        recursion = working.recursion
        if recursion is None or id(working) in self._within:
            return frozenset()
        inside = FreeIds(self._ids, self._within | {id(working)})
        return inside.of_node(recursion.base[0]) | inside.of_node(recursion.step[0])

    def _of_other(self, node: Node) -> frozenset[int]:
        free = set(self.of_exprs(expressions(node)))
        own: set[int] = set(produced(node))
        for child in inputs(node):
            free |= self.of_node(child)
            own |= outputs(child)
        if isinstance(node, CteRef):
            free |= self.of_node(node.cte.node)
        if isinstance(node, Reduce):
            # A grouping column keeps its id: mentioned below, produced above, and both are bound here.
            own |= outputs(node.input)
        return frozenset(free - own)
