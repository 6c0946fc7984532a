"""INSERT: its rows (``insert_rows``), ON CONFLICT, RETURNING."""

from __future__ import annotations

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Column, Expr
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, unwrap
from eddyline.sql.binding import Context
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.decorrelate import positional
from eddyline.sql.insert_rows import inserted_rows
from eddyline.sql.named_objects import writable_table
from eddyline.sql.query import RowSource
from eddyline.sql.scope import Entry, ScopeColumn
from eddyline.sql.select import TargetColumn
from eddyline.sql.statement_binding import StatementBinding, item_columns
from eddyline.sql.statements import Insert, OnConflict, Returning, Statement
from eddyline.sql.targets import bind_targets
from eddyline.sql.written_table import check_not_generated, column_position, default_of, returning_nodes, settle

__all__ = ["bind_insert"]


def bind_insert(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    expect_fields(
        node,
        ("relation", "cols", "select_stmt", "on_conflict_clause", "returning_clause", "with_clause", "override"),
    )
    table = writable_table(node.relation, binding.catalog, binding.locate, "insert into")
    relation, late, given = inserted_rows(node, table, binding)
    conflict = _on_conflict(node.on_conflict_clause, node, table, binding)
    returning = _returning(node, table, binding)
    return Insert(table, relation, conflict, returning, late, given, binding.reads.found())


# --- ON CONFLICT ---------------------------------------------------------------------------------------------------


def _on_conflict(clause: AstNode, insert: AstNode, table: CatalogItem, binding: StatementBinding) -> OnConflict | None:
    if not insert.HasField("on_conflict_clause"):
        return None
    update = enum_name(clause, "action") == "ONCONFLICT_UPDATE"
    if not clause.HasField("infer"):
        if update:
            raise make_error(
                "42601",
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                position=binding.locate(clause.location),
                hint="For example, ON CONFLICT (column_name).",
            )
        return OnConflict(table.primary_key)
    _check_target(clause.infer, table, binding)
    binding.reads.columns.setdefault(table.id, set()).update(table.primary_key)  # whose values are compared
    if not update:
        return OnConflict(table.primary_key)
    alias = insert.relation.alias.aliasname or table.name
    schema = None if insert.relation.HasField("alias") else table.schema
    sources = (
        RowSource(alias, item_columns(table), schema=schema, table=table.name, item=table.id),
        RowSource("excluded", item_columns(table), offset=len(table.columns), item=table.id),
    )
    assignments, changed = _conflict_assignments(clause, table, sources, binding)
    where = None
    if clause.HasField("where_clause"):
        where = binding.condition(sources, clause.where_clause, "WHERE")
    return OnConflict(table.primary_key, assignments, where, changed)


def _check_target(infer: AstNode, table: CatalogItem, binding: StatementBinding) -> None:
    """The target must be the primary key: 42P10, or 42704 for a constraint of another name."""
    if infer.conname:
        if not table.primary_key or infer.conname != f"{table.name}_pkey":
            raise make_error("42704", f'constraint "{infer.conname}" for table "{table.name}" does not exist')
        return
    if infer.HasField("where_clause"):
        raise unsupported("a predicate in the ON CONFLICT target")
    names = []
    for element in map(unwrap, infer.index_elems):
        if not element.name:
            raise unsupported("an expression in the ON CONFLICT target")
        expect_fields(element, ("name", "ordering", "nulls_ordering"))
        if all(c.name != element.name for c in table.columns):
            raise make_error(
                "42703", f'column "{element.name}" does not exist', position=binding.locate(infer.location)
            )
        names.append(element.name)
    key = {table.columns[p].name for p in table.primary_key}
    if not key or set(names) != key:
        raise make_error("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification")


def _conflict_assignments(
    clause: AstNode, table: CatalogItem, sources: tuple[RowSource, RowSource], binding: StatementBinding
) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """The new row over (existing, excluded), and the positions of the columns that are assigned."""
    values: list[Expr | None] = [None] * len(table.columns)
    for target in map(unwrap, clause.target_list):
        location = binding.locate(target.location)
        position = column_position(table, target, location)
        if values[position] is not None:
            raise make_error("42601", f'multiple assignments to same column "{target.name}"', position=location)
        column = table.columns[position]
        node = _conflict_value(target.val, binding)
        if kind_of(node) == "set_to_default":
            values[position] = default_of(table, position)
        else:
            check_not_generated(column, f'column "{column.name}" can only be updated to DEFAULT')
            values[position] = binding.over(sources, node, "UPDATE", TargetColumn(column.name, column.type))
    changed = tuple(index for index, value in enumerate(values) if value is not None)
    row = (
        value if value is not None else Column(index, table.columns[index].type) for index, value in enumerate(values)
    )
    return tuple(row), changed


def _conflict_value(node: AstNode, binding: StatementBinding) -> AstNode:
    """The item of a row that ``(a, b) = (…)`` gives to one column."""
    if kind_of(node) != "multi_assign_ref":
        return node
    ref = node.multi_assign_ref
    if kind_of(ref.source) != "row_expr":
        raise unsupported("a subquery in ON CONFLICT DO UPDATE")
    items = ref.source.row_expr.args
    if len(items) != ref.ncolumns:
        raise make_error(
            "42601",
            "number of columns does not match number of values",
            position=binding.locate(ref.source.row_expr.location),
        )
    return items[ref.colno - 1]


# --- RETURNING -----------------------------------------------------------------------------------------------------


def _returning(node: AstNode, table: CatalogItem, binding: StatementBinding) -> Returning | None:
    """RETURNING over the stored row."""
    nodes = returning_nodes(node)
    if not nodes:
        return None
    context = _row_context(node.relation, table, binding)
    targets = bind_targets(nodes, context)
    layout = {column.id: position for position, column in enumerate(context.scope.visible)}
    ids = context.binding.ids
    exprs = tuple(positional(settle(t.expr, context), layout, ids, "RETURNING") for t in targets)
    return Returning(tuple(t.name for t in targets), exprs)


def _row_context(range_var: AstNode, table: CatalogItem, binding: StatementBinding) -> Context:
    context = binding.context("RETURNING")
    ids = context.binding.ids
    columns = tuple(ScopeColumn(c.name, ids.new(c.type, c.name), c.type) for c in table.columns)
    context.binding.reads.bring(table.id, (c.id for c in columns))
    alias = range_var.alias.aliasname
    context.scope.entries.append(Entry(alias or table.name, columns, None if alias else table.schema, table=table.name))
    context.scope.visible.extend(columns)
    return context
