"""CREATE SEQUENCE and ALTER SEQUENCE."""

from __future__ import annotations

from eddyline.sql.ast import expect_fields
from eddyline.sql.named_objects import new_name
from eddyline.sql.sequence_options import first_definition, sequence_options
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import AlterSequence, CreateSequence, Statement

__all__ = ["bind_alter_sequence", "bind_create_sequence"]


def bind_create_sequence(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    expect_fields(node, ("sequence", "options", "if_not_exists"))
    schema, name = new_name(node.sequence, binding.catalog, binding.locate)
    options = sequence_options(node.options, binding.locate)
    first_definition(options, "")  # for its errors
    return CreateSequence(schema, name, options, node.if_not_exists)


def bind_alter_sequence(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    expect_fields(node, ("sequence", "options", "missing_ok"))
    name = (node.sequence.schemaname or None, str(node.sequence.relname))
    return AlterSequence(name, sequence_options(node.options, binding.locate), node.missing_ok)
