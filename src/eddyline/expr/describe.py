"""Expressions as SQL-like text, for EXPLAIN and error details."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from eddyline.expr.ir import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Expr,
    Literal,
    Or,
    Parameter,
    Raise,
    children,
    walk,
)
from eddyline.expr.literals import literal_scalar
from eddyline.expr.registry import sql_name
from eddyline.expr.text_output import text_of
from eddyline.repr.types import Kind, arrow_type

__all__ = ["describe", "written"]

#: operators with words for names
_INFIX = {
    "is_distinct_from": "IS DISTINCT FROM",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "like": "LIKE",
    "not_like": "NOT LIKE",
    "ilike": "ILIKE",
    "not_ilike": "NOT ILIKE",
}
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_not_true": "IS NOT TRUE",
    "is_false": "IS FALSE",
    "is_not_false": "IS NOT FALSE",
    "is_unknown": "IS UNKNOWN",
    "is_not_unknown": "IS NOT UNKNOWN",
}
_BARE = (Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)


def describe(expr: Expr, names: Sequence[str] | None = None) -> str:
    """``expr`` as text; column *i* is ``names[i]``, or ``#i`` without names.  Any depth."""
    return _text(expr, names, hidden=frozenset())


def written(expr: Expr, names: Sequence[str], *, whole: bool = True) -> str:
    """``expr`` about as its author wrote it: ``describe`` without the casts that nobody asked for.

    ``whole``: it stands alone, and needs no parentheses around it.
    """
    if isinstance(expr, Raise):
        return "(SELECT ...)"  # a subquery's: nothing else raises
    # A cast that fails is named even if it is implicit.
    hidden = frozenset(id(e) for e in walk(expr) if isinstance(e, Cast) and not e.explicit and e is not expr)
    text = _text(expr, names, hidden)
    bracketed = whole and isinstance(expr, (Call, And, Or)) and text.startswith("(")
    return text[1:-1] if bracketed else text


def _text(expr: Expr, names: Sequence[str] | None, hidden: frozenset[int]) -> str:
    """``hidden``: the ids of the casts to leave out."""
    done: list[str] = []
    for node in reversed(list(walk(expr))):
        parts = [done.pop() for _ in children(node)]
        done.append(parts[0] if id(node) in hidden else _render(node, parts, names))
    return done[0]


def _render(node: Expr, parts: list[str], names: Sequence[str] | None) -> str:
    match node:
        case Column():
            return names[node.index] if names is not None else f"#{node.index}"
        case Literal():
            return _literal(node)
        case Parameter():
            return f"${node.index}"
        case Raise():
            return f"raise({node.sqlstate})"
        case Cast():
            return f"{parts[0]}::{node.type}"
        case Case():
            whens = "".join(f" WHEN {c} THEN {r}" for c, r in zip(parts[:-1:2], parts[1:-1:2], strict=True))
            return f"CASE{whens} ELSE {parts[-1]} END"
        case And():
            return f"({' AND '.join(parts)})"
        case Or():
            return f"({' OR '.join(parts)})"
        case Coalesce():
            return f"coalesce({', '.join(parts)})"
        case Call():
            return _call(node.func, parts)


def _call(func: str, parts: list[str]) -> str:
    if len(parts) == 1 and func in _POSTFIX:
        return f"({parts[0]} {_POSTFIX[func]})"
    if len(parts) == 1 and func == "not":
        return f"(NOT {parts[0]})"
    name = sql_name(func)
    operator = _INFIX.get(func) or (None if name[0].isalpha() and not name.startswith("u-") else name)
    if operator is None or len(parts) > 2:
        return f"{name}({', '.join(parts)})"
    if len(parts) == 1:
        return f"({operator.removeprefix('u')} {parts[0]})"
    return f"({f' {operator} '.join(parts)})"


def _literal(node: Literal) -> str:
    if node.value is None:
        return "NULL"
    if node.type.kind in _BARE:
        return str(node.value).lower() if node.type.kind is Kind.BOOLEAN else str(node.value)
    value = pa.array([literal_scalar(node.value, node.type)], arrow_type(node.type))
    text = str(text_of(value, node.type)[0]).replace("'", "''")
    return f"'{text}'" if node.type.kind is Kind.TEXT else f"'{text}'::{node.type.kind.value}"
