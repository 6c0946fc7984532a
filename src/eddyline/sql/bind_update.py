"""UPDATE: old rows beside new ones.

SET expressions read the old row, so ``SET a = b, b = a`` swaps.  RETURNING reads the new row and the FROM items.
"""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error
from eddyline.expr.ir import Expr
from eddyline.sql.algebra import Map
from eddyline.sql.ast import AstNode, expect_fields, kind_of, unwrap
from eddyline.sql.binding import Context, RowValue
from eddyline.sql.conversion import exactly
from eddyline.sql.expressions import assign, bind, bind_row_subquery, bind_value, position_of
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Statement, Update
from eddyline.sql.written_table import (
    WrittenTable,
    bind_written_table,
    check_not_generated,
    column_position,
    default_of,
    returning_nodes,
)

__all__ = ["bind_update"]

_ONLY_DEFAULT: Final = 'column "{}" can only be updated to DEFAULT'


def bind_update(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    expect_fields(node, ("relation", "target_list", "from_clause", "where_clause", "returning_clause", "with_clause"))
    with_clause = node.with_clause if node.HasField("with_clause") else None
    written = bind_written_table(binding, node.relation, node.from_clause, with_clause, "update")
    assigned = _assignments(node.target_list, written)
    if node.HasField("where_clause"):
        written.restrict(node.where_clause)
    ids = written.context.binding.ids
    new_ids = list(written.old_ids)
    computed = []
    for position, expr in assigned.items():
        new_ids[position] = ids.new(expr.type)
        computed.append((new_ids[position], expr))
    written.context.binding.reads.bring(written.table.id, new_ids)  # RETURNING reads the columns under these
    written.node = Map(written.node, tuple(computed))
    nodes = returning_nodes(node)
    changed = tuple(sorted(assigned))
    if not nodes:
        relation, late = written.split_relation((*written.old_ids, *new_ids))
        return Update(written.table, relation, changed, late=late, reads=binding.reads.found())
    names, exprs, extra = written.returning(nodes, new_ids)
    columns = (*written.old_ids, *new_ids, *extra)
    returning = written.positional_returning(names, exprs, columns)
    relation, late = written.split_relation(columns)
    return Update(written.table, relation, changed, returning, late, binding.reads.found())


def _assignments(nodes: AstNode, written: WrittenTable) -> dict[int, Expr]:
    """Column position → new value, of the column's type; 42601 for a column assigned twice."""
    context = written.clause("UPDATE")
    assigned: dict[int, Expr] = {}
    rows: dict[int, RowValue] = {}
    for target in map(unwrap, nodes):
        position = context.at(target)
        column = column_position(written.table, target, position)
        if column in assigned:
            raise make_error("42601", f'multiple assignments to same column "{target.name}"', position=position)
        assigned[column] = _assigned(target, column, written, context, rows)
    return assigned


def _assigned(target: AstNode, column: int, written: WrittenTable, context: Context, rows: dict[int, RowValue]) -> Expr:
    definition = written.table.columns[column]
    node = target.val
    if kind_of(node) == "multi_assign_ref":
        part = _part(node.multi_assign_ref, context, rows)
        if not isinstance(part, Expr):
            node = part
        else:
            check_not_generated(definition, _ONLY_DEFAULT.format(definition.name))
            value = assign(part, definition.type, definition.name, context, context.at(target))
            return exactly(value, definition.type)
    if kind_of(node) == "set_to_default":
        return default_of(written.table, column)
    check_not_generated(definition, _ONLY_DEFAULT.format(definition.name))
    value = assign(bind(node, context), definition.type, definition.name, context, position_of(node, context))
    return exactly(value, definition.type)


def _part(ref: AstNode, context: Context, rows: dict[int, RowValue]) -> Expr | AstNode:
    """One column's share of ``(a, b) = …``: the syntax node of a row's item, or a column of a subquery's row."""
    source = ref.source
    if kind_of(source) == "row_expr":
        items = source.row_expr.args
        _check_count(len(items), ref.ncolumns, context.at(source.row_expr))
        return items[ref.colno - 1]
    if kind_of(source) == "sub_link":
        start = source.sub_link.location
        if start not in rows:
            rows[start] = bind_row_subquery(source.sub_link, context)
        _check_count(len(rows[start].items), ref.ncolumns, context.at(source.sub_link))
        return rows[start].items[ref.colno - 1]
    value = bind_value(source, context)
    position = position_of(source, context)
    if isinstance(value, RowValue):
        _check_count(len(value.items), ref.ncolumns, position)
        return value.items[ref.colno - 1]
    raise make_error(
        "0A000",
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        position=position,
    )


def _check_count(given: int, wanted: int, position: int | None) -> None:
    if given != wanted:
        raise make_error("42601", "number of columns does not match number of values", position=position)
