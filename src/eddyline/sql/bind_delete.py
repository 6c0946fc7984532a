"""DELETE: the rows to retract."""

from __future__ import annotations

from eddyline.sql.ast import expect_fields
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Delete, Statement
from eddyline.sql.written_table import bind_written_table, returning_nodes

__all__ = ["bind_delete"]


def bind_delete(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    expect_fields(node, ("relation", "using_clause", "where_clause", "returning_clause", "with_clause"))
    with_clause = node.with_clause if node.HasField("with_clause") else None
    written = bind_written_table(binding, node.relation, node.using_clause, with_clause, "delete from")
    if node.HasField("where_clause"):
        written.restrict(node.where_clause)
    nodes = returning_nodes(node)
    if not nodes:
        return Delete(written.table, written.relation(written.old_ids), reads=binding.reads.found())
    names, exprs, extra = written.returning(nodes, written.old_ids)
    columns = (*written.old_ids, *extra)
    returning = written.positional_returning(names, exprs, columns)
    return Delete(written.table, written.relation(columns), returning, binding.reads.found())
