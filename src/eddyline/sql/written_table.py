"""The table that INSERT, UPDATE or DELETE writes, the rows it is joined with, and what RETURNING makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Call, Column, Expr, Literal, columns_of
from eddyline.plan.late import Late, has_volatile, split, volatile_refused, whole
from eddyline.plan.relation import Get, Join, JoinKind, Project, Relation, TopK
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT
from eddyline.sql.algebra import Cte, Filter, Node, With
from eddyline.sql.ast import AstNode
from eddyline.sql.binding import Block, Context
from eddyline.sql.catalog_view import CatalogItem, ColumnDef
from eddyline.sql.comparison import conjuncts
from eddyline.sql.conversion import coerce, is_unknown
from eddyline.sql.decorrelate import decorrelate, positional
from eddyline.sql.expressions import bind_boolean
from eddyline.sql.from_clause import bind_from
from eddyline.sql.named_objects import writable_table
from eddyline.sql.scope import Entry, Scope, ScopeColumn
from eddyline.sql.select import bind_with
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Returning
from eddyline.sql.targets import bind_targets

__all__ = [
    "WrittenTable",
    "bind_written_table",
    "check_not_generated",
    "column_position",
    "default_of",
    "returning_nodes",
    "settle",
]


@dataclass(slots=True)
class WrittenTable:
    """``node`` yields the table's columns (``entry``) beside those of the FROM or USING items (``others``)."""

    table: CatalogItem
    context: Context
    node: Node
    entry: Entry
    others: list[Entry]
    ctes: tuple[Cte, ...]

    @property
    def old_ids(self) -> tuple[int, ...]:
        return tuple(c.id for c in self.entry.columns)

    def clause(self, forbids: str) -> Context:
        """The context for a clause in which aggregates are refused as not allowed in ``forbids``."""
        self.context.block.forbids = forbids
        return self.context

    def restrict(self, where: AstNode) -> None:
        condition = bind_boolean(where, self.clause("WHERE"), "WHERE")
        self.node = Filter(self.node, conjuncts(condition))

    def relation(self, columns: Sequence[int]) -> Relation:
        """``columns`` of every row to write, once per table row however many rows it was joined with."""
        relation, late = self.split_relation(columns)
        if late is not None:
            raise volatile_refused(str(self.context.binding.volatile), "this place")
        return relation

    def split_relation(self, columns: Sequence[int]) -> tuple[Relation, Late | None]:
        """As ``relation``, with what is computed of its rows once they are read."""
        node = With(self.ctes, self.node) if self.ctes else self.node
        relation = decorrelate(node, columns, self.context.binding.ids)
        if self.others:
            relation = _one_match(relation, self.table)
        parts = split(relation) if has_volatile(relation) else whole(relation)
        return parts.finished(range(len(parts.columns)))

    def returning(self, nodes: Iterable[AstNode], row_ids: Sequence[int]) -> tuple[list[str], list[Expr], list[int]]:
        """(names, expressions over ids, ids of other items' columns that they read).

        ``row_ids`` are the table's columns as RETURNING sees them (the new ones for UPDATE).
        """
        context = self.clause("RETURNING").within(self._returned_scope(row_ids))
        targets = bind_targets(nodes, context)
        exprs = [settle(t.expr, context) for t in targets]
        used = set().union(*map(columns_of, exprs))
        mine = {*row_ids, *self.old_ids}
        foreign = [c.id for entry in self.others for c in entry.columns]
        extra = [i for i in dict.fromkeys(foreign) if i in used and i not in mine]
        return [t.name for t in targets], exprs, extra

    def positional_returning(self, names: list[str], exprs: list[Expr], columns: Sequence[int]) -> Returning:
        layout = {number: position for position, number in enumerate(columns)}
        ids = self.context.binding.ids
        return Returning(tuple(names), tuple(positional(e, layout, ids, "RETURNING") for e in exprs))

    def _returned_scope(self, row_ids: Sequence[int]) -> Scope:
        new = dict(zip(self.old_ids, row_ids, strict=True))
        scope = self.context.scope

        def renewed(column: ScopeColumn) -> ScopeColumn:
            return replace(column, id=new.get(column.id, column.id))

        entries = [
            replace(entry, columns=tuple(map(renewed, entry.columns))) if entry is self.entry else entry
            for entry in scope.entries
        ]
        return Scope(entries, list(map(renewed, scope.visible)), scope.outer, scope.owner)


def bind_written_table(
    binding: StatementBinding,
    range_var: AstNode,
    others: Sequence[AstNode],
    with_clause: AstNode | None,
    verb: str,
) -> WrittenTable:
    """``others``: FROM or USING items.  A WITH query of the table's name does not hide the table."""
    table = writable_table(range_var, binding.catalog, binding.locate, verb)
    context = binding.context()
    ctes: tuple[Cte, ...] = ()
    if with_clause is not None:
        context, ctes = bind_with(with_clause, context)
    context = replace(context, block=Block(depth=1))
    target = pb.RangeVar()
    target.CopyFrom(range_var)
    target.schemaname = table.schema
    node, scope = bind_from([pb.Node(range_var=target), *others], context)
    binding.reads.not_read(table.id)  # the table itself is written; what is read of it are columns that are named
    entry = scope.entries[0]
    return WrittenTable(table, context.within(scope), node, entry, scope.entries[1:], ctes)


def _one_match(relation: Relation, table: CatalogItem) -> Relation:
    """One of the joined rows per table row: by key where there is one, else by all columns and back to the table.

    Ties break by canonical row order.  Without a key a table may hold a row several times; each of them is written.
    """
    width = len(table.columns)
    group = table.primary_key or tuple(range(width))
    single = TopK(relation, group, (), Literal(1, BIGINT))
    if table.primary_key:
        return single
    on = tuple(
        Call("is_not_distinct_from", (Column(i, t), Column(width + i, t)), BOOLEAN) for i, t in enumerate(table.types)
    )
    joined = Join(JoinKind.INNER, Get(table.id, table.types), single, on)
    total = len(single.types)
    return Project(joined, (*range(width), *range(2 * width, width + total)))


def column_position(table: CatalogItem, target: AstNode, position: int | None) -> int:
    """Where the column that a ResTarget assigns stands; 42703 without it, 0A000 for a part of one."""
    for index, column in enumerate(table.columns):
        if column.name == target.name:
            if target.indirection:
                raise unsupported("assignment to a part of a column", position=position)
            return index
    raise make_error("42703", f'column "{target.name}" of relation "{table.name}" does not exist', position=position)


def returning_nodes(node: AstNode) -> Sequence[AstNode]:
    """The RETURNING list; empty without the clause."""
    if not node.HasField("returning_clause"):
        return ()
    clause = node.returning_clause
    if clause.options:
        raise unsupported("RETURNING WITH")
    return list(clause.exprs)


def settle(expr: Expr, context: Context) -> Expr:
    """``expr``, as text if its type is still unknown."""
    return coerce(expr, TEXT, context.binding.parameters) if is_unknown(expr) else expr


def check_not_generated(column: ColumnDef, message: str) -> None:
    """428C9, with ``message``, for a value that is given to a column GENERATED ALWAYS AS IDENTITY."""
    if column.identity == "a":
        raise make_error(
            "428C9",
            message,
            detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            hint="Use OVERRIDING SYSTEM VALUE to override." if message.startswith("cannot insert") else None,
        )


def default_of(table: CatalogItem, position: int) -> Expr:
    """What DEFAULT stands for in a column."""
    column = table.columns[position]
    return column.default if column.default is not None else Literal(None, column.type)
