"""Column references: names to ids, with PostgreSQL's errors."""

from __future__ import annotations

from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Expr
from eddyline.sql.ast import AstNode, kind_of, string_of
from eddyline.sql.binding import Context
from eddyline.sql.scope import ScopeColumn, find_column, find_entry, qualified_column, undefined_column

__all__ = ["bind_column", "resolve_names"]


def bind_column(node: AstNode, context: Context) -> Expr:
    """The column that a ColumnRef names: ``c``, ``t.c`` or ``s.t.c``."""
    position = context.at(node)
    if any(kind_of(f) == "a_star" for f in node.fields):
        raise unsupported("* in this place", position=position)
    column = resolve_names([string_of(f) for f in node.fields], context, position)
    context.binding.reads.read(column.id)
    owner = context.binding.owners.get(column.id)
    if owner is not None and not owner.inside_aggregate:
        owner.mentions.setdefault(column.id, position)
    return context.binding.ids.column(column.id)


def resolve_names(names: list[str], context: Context, position: int | None) -> ScopeColumn:
    """42703, 42702 or 42P01 when ``names`` finds no column, several, or no table."""
    scope = context.scope
    match names:
        case [name]:
            found = find_column(scope, name, position)
            if found is not None:
                return found
            if find_entry(scope, None, name) is not None:
                raise unsupported(f'whole-row reference to "{name}"', position=position)
            raise undefined_column(scope, name, position)
        case [alias, name]:
            return qualified_column(scope, None, alias, name, position)
        case [schema, alias, name]:
            return qualified_column(scope, schema, alias, name, position)
    raise make_error("42601", f"improper qualified name (too many dotted names): {'.'.join(names)}", position=position)
