"""Entry points of query binding: text's syntax tree to a typed, decorrelated relation.

``bind_query`` serves SELECT, views, INSERT … SELECT and VALUES; ``bind_expression`` serves what stands alone over one
row: DEFAULT, index keys, ON CONFLICT … SET.  Both turn exhaustion of the stack into 54001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.errors import exhausted
from eddyline.expr.ir import Expr, SortKey
from eddyline.plan.late import volatile_refused
from eddyline.plan.relation import Project, Relation, TopK
from eddyline.repr.types import TEXT, SqlType
from eddyline.sql.algebra import Cte, With
from eddyline.sql.ast import AstNode
from eddyline.sql.binding import Binding, Block, Context, Locate, ascii_position
from eddyline.sql.catalog_view import CatalogView
from eddyline.sql.column_reads import ColumnReads, Reads, StatementReads
from eddyline.sql.conversion import Parameters, coerce, exactly, is_unknown
from eddyline.sql.decorrelate import decorrelate, positional
from eddyline.sql.expressions import assign, bind, position_of
from eddyline.sql.scope import Entry, Scope, ScopeColumn
from eddyline.sql.select import TargetColumn, bind_select, bind_subselect, bind_with, finish

__all__ = ["BoundQuery", "RowSource", "TargetColumn", "bind_expression", "bind_query"]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound SELECT.  ``relation`` has the output columns, then ``hidden_columns`` that only the order reads.

    ``order``, ``limit`` and ``offset`` are the *finishing* of the outermost query, not part of ``relation``; limits
    are bigint expressions without columns (literals or parameters), None = unbounded / 0.  A negative parameter is
    for the executor to refuse (2201W, 2201X).  ``volatile``: calls in it have to be split off (``plan.late``).
    ``reads``: columns that it names.
    """

    relation: Relation
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    order: tuple[SortKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    hidden_columns: int = 0
    volatile: bool = False
    reads: Reads = ()

    def as_relation(self) -> Relation:
        """The query as a view's body: LIMIT and OFFSET as a ``TopK``; an order without a limit is dropped."""
        relation = self.relation
        if self.limit is not None or self.offset is not None:
            relation = TopK(relation, (), self.order, self.limit, self.offset)
        if self.hidden_columns:
            relation = Project(relation, tuple(range(len(self.types))))
        return relation


@dataclass(frozen=True, slots=True)
class RowSource:
    """Columns that a standalone expression may read: a table's row under ``alias``, at positions from ``offset``.

    ``qualified_only``: its columns need their qualifier (EXCLUDED).  ``item``: the id of the table whose columns they
    are; naming one reads it.
    """

    alias: str | None
    columns: tuple[tuple[str, SqlType], ...]
    offset: int = 0
    schema: str | None = None
    qualified_only: bool = False
    table: str | None = None  # its own name where the alias hides it
    item: str | None = None


def bind_query(
    select: AstNode,
    catalog: CatalogView,
    params: dict[int, SqlType],
    *,
    locate: Locate = ascii_position,
    targets: Sequence[TargetColumn | None] = (),
    ctes: AstNode | None = None,
    check_params: bool = True,
    place: str | None = "this place",
    reads: StatementReads | None = None,
) -> BoundQuery:
    """A SelectStmt as a relation and its finishing.

    ``params`` holds the known types of ``$n`` and receives those that the query decides.  ``targets``: columns that
    the outputs are assigned to, in order (INSERT).  ``ctes``: the WithClause of an enclosing statement.
    ``check_params``: raise 42P18 if a parameter stays without a type.  ``place``: where the query stands, if nothing in
    it may be volatile (0A000); None: anything may be.  ``reads``: is told of columns that are named.
    """
    reads = StatementReads() if reads is None else reads
    context = _context(catalog, params, locate, Scope(), reads)
    try:
        enclosing: tuple[Cte, ...] = ()
        if ctes is not None:
            context, enclosing = bind_with(ctes, context)
        finished = finish(bind_select(select, context, targets), targets)
        columns = (*finished.ids, *(c for c, _, _ in finished.order if c not in finished.ids))
        known = (*enclosing, *finished.ctes)
        node = With(known, finished.node) if known else finished.node
        relation = decorrelate(node, columns, context.binding.ids)
    except RecursionError as error:
        raise exhausted(error) from error
    if check_params:
        context.binding.parameters.check_all_decided()
    width = len(finished.ids)
    volatile = context.binding.volatile
    if volatile is not None and place is not None:
        raise volatile_refused(volatile, place)
    order = tuple(SortKey(columns.index(c), d, n) for c, d, n in finished.order)
    return BoundQuery(
        relation,
        finished.names,
        relation.types[:width],
        order,
        finished.limit,
        finished.offset,
        len(columns) - width,
        volatile is not None,
        reads.found(),
    )


def bind_expression(
    node: AstNode,
    catalog: CatalogView,
    params: dict[int, SqlType],
    *,
    sources: Sequence[RowSource] = (),
    locate: Locate = ascii_position,
    target: TargetColumn | None = None,
    forbids: str = "this expression",
    check_params: bool = True,
    reads: StatementReads | None = None,
) -> Expr:
    """An expression over one row, with positional columns; subqueries are 0A000, aggregates 42803.

    ``target``: the column it is assigned to; only then it may be volatile.  ``forbids``: where it stands, for messages
    ("DEFAULT expressions").  ``reads``: is told of columns that are named.
    """
    scope = Scope()
    context = _context(catalog, params, locate, scope, reads or StatementReads(), forbids)
    ids = context.binding.ids
    layout: dict[int, int] = {}
    for source in sources:
        columns = []
        for position, (name, sql_type) in enumerate(source.columns, source.offset):
            number = ids.new(sql_type, f"{source.alias}.{name}" if source.alias else name)
            layout[number] = position
            columns.append(ScopeColumn(name, number, sql_type))
        if source.item is not None:
            context.binding.reads.bring(source.item, (c.id for c in columns))
        scope.entries.append(Entry(source.alias, tuple(columns), source.schema, table=source.table))
        if not source.qualified_only:
            scope.visible.extend(columns)
    try:
        value = bind(node, context)
        if target is not None:
            value = exactly(assign(value, target.type, target.name, context, position_of(node, context)), target.type)
        elif is_unknown(value):
            value = coerce(value, TEXT, context.binding.parameters)
        if context.binding.volatile is not None and target is None:
            raise volatile_refused(context.binding.volatile, forbids)
        result = positional(value, layout, ids, forbids)
    except RecursionError as error:
        raise exhausted(error) from error
    if check_params:
        context.binding.parameters.check_all_decided()
    return result


def _context(
    catalog: CatalogView,
    params: dict[int, SqlType],
    locate: Locate,
    scope: Scope,
    reads: StatementReads,
    forbids: str | None = None,
) -> Context:
    binding = Binding(catalog, Parameters(params, catalog.zone), locate, bind_subselect, reads=ColumnReads(reads))
    return Context(binding, scope, Block(depth=0, forbids=forbids), {})
