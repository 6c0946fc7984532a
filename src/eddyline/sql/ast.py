"""Reading PostgreSQL's syntax tree: kinds, names, and refusing what is not understood.

Nodes are protobuf messages of libpg_query.  A field that a reader does not list is refused, never ignored, so that
syntax we do not have cannot change its meaning silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from postgast import pg_query_pb2 as pb

from eddyline.errors import unsupported

__all__ = ["AstNode", "enum_name", "expect_fields", "kind_of", "name_list", "start_of", "string_of", "unwrap", "words"]

AstNode: TypeAlias = Any
"""A protobuf message; libpg_query's classes carry no static types."""

_WORDS = {
    "window_clause": "WINDOW",
    "over": "the OVER clause of window functions",
    "locking_clause": "FOR UPDATE/SHARE",
    "into_clause": "SELECT INTO",
    "group_distinct": "GROUP BY DISTINCT",
    "agg_within_group": "WITHIN GROUP",
    "func_variadic": "VARIADIC",
    "ordinality": "WITH ORDINALITY",
    "is_rowsfrom": "ROWS FROM",
    "coldeflist": "a column definition list",
    "join_using_alias": "JOIN USING alias",
    "search_clause": "SEARCH",
    "cycle_clause": "CYCLE",
    "indirection": "a subscript or field selection",
    "catalogname": "a reference to another database",
    "array_bounds": "an array type",
    "setof": "SETOF",
    "pct_type": "%TYPE",
    "use_op": "ORDER BY … USING",
    "range_table_sample": "TABLESAMPLE",
    "range_table_func": "XMLTABLE",
    "json_table": "JSON_TABLE",
    "a_array_expr": "ARRAY[…]",
    "a_indirection": "a subscript or field selection",
    "xml_expr": "XML",
    "current_of_expr": "WHERE CURRENT OF",
}


def unwrap(node: AstNode) -> AstNode:
    """The message inside a ``Node``; other messages as they are."""
    if isinstance(node, pb.Node):
        kind = node.WhichOneof("node")
        return getattr(node, kind) if kind else None
    return node


def kind_of(node: AstNode) -> str:
    """The name of what a ``Node`` holds ("column_ref"), or "" when empty."""
    return node.WhichOneof("node") or "" if isinstance(node, pb.Node) else type(node).__name__


def words(name: str) -> str:
    """How a field or node kind is named to the user."""
    return _WORDS.get(name, name.replace("_", " "))


def expect_fields(message: AstNode, allowed: Iterable[str], position: int | None = None) -> None:
    """0A000 naming the first set field of ``message`` that is not in ``allowed``."""
    known = set(allowed)
    for field, _ in message.ListFields():
        if field.name not in known:
            raise unsupported(words(field.name), position=position)


def string_of(node: AstNode) -> str:
    """The text of a String node."""
    return str(node.string.sval)


def name_list(nodes: Iterable[AstNode]) -> tuple[str, ...]:
    return tuple(string_of(n) for n in nodes)


def enum_name(message: AstNode, field: str) -> str:
    """The symbolic name of an enum field ("AEXPR_OP")."""
    descriptor = message.DESCRIPTOR.fields_by_name[field].enum_type
    value = descriptor.values_by_number.get(getattr(message, field))
    return str(value.name) if value is not None else ""


def start_of(node: AstNode) -> int:
    """The byte offset at which an expression starts, -1 when unknown; infix operators start with their left side.

    A cast of a quoted constant is where the constant is: it is read as the type at once."""
    opening = -1  # of CAST ( around what follows
    while True:
        inner = unwrap(node)
        kind = kind_of(node)
        if kind == "a_expr" and inner.HasField("lexpr"):
            left = start_of(inner.lexpr) if kind_of(inner.lexpr) != "a_expr" else None
            if left is None:
                node = inner.lexpr
                continue
            return _earlier(opening, left if left >= 0 else int(inner.location))
        if kind == "type_cast":
            if not _is_quoted(inner.arg):
                opening = _earlier(opening, int(inner.location))
            node = inner.arg
            continue
        return _earlier(opening, int(getattr(inner, "location", -1)))


def _is_quoted(node: AstNode) -> bool:
    """A constant whose type its context decides."""
    return kind_of(node) == "a_const" and (node.a_const.isnull or node.a_const.WhichOneof("val") == "sval")


def _earlier(a: int, b: int) -> int:
    """The smaller offset of those that are known."""
    return min(a, b) if a >= 0 and b >= 0 else max(a, b)
