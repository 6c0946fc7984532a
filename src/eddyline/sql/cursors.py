"""DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.sql.ast import enum_name, kind_of, unwrap
from eddyline.sql.extensions import DeclareSubscribeSyntax, FetchSyntax
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import CloseCursor, DeclareCursor, Fetch, FetchDirection, Select, Statement, Subscribe

__all__ = ["bind_close_cursor", "bind_declare", "bind_declare_subscribe", "bind_fetch", "bind_fetch_extension"]

_BINARY: Final = 0x01
_SCROLL: Final = 0x02
_NO_SCROLL: Final = 0x04
_HOLD: Final = 0x20
#: how the grammar writes ALL
_ALL: Final = 2**63 - 1


def bind_declare(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    """``dispatch`` binds the query."""
    node = binding.parsed.node
    if node.options & _BINARY:
        raise unsupported("a BINARY cursor", hint="Ask for binary results in the extended protocol.")
    inner = replace(binding.parsed, kind=kind_of(node.query), node=unwrap(node.query))
    query = dispatch(binding.for_inner(inner))
    if not isinstance(query, Select):
        raise make_error("42P11", "a cursor is declared for a query")
    return DeclareCursor(str(node.portalname), query, bool(node.options & _HOLD), _scroll(node.options))


def _scroll(options: int) -> bool | None:
    return True if options & _SCROLL else False if options & _NO_SCROLL else None


def bind_declare_subscribe(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    syntax: DeclareSubscribeSyntax = binding.parsed.node
    declare = syntax.declare.declare_cursor_stmt
    if declare.options & (_BINARY | _SCROLL | _HOLD):
        raise unsupported("a BINARY, SCROLL or WITH HOLD cursor for SUBSCRIBE")
    inner = replace(binding.parsed, kind=type(syntax.subscribe).__name__, node=syntax.subscribe)
    query = dispatch(binding.for_inner(inner))
    assert isinstance(query, Subscribe)
    return DeclareCursor(str(declare.portalname), query, scroll=False)


def bind_fetch(binding: StatementBinding) -> Statement:
    return _fetch(binding.parsed.node)


def bind_fetch_extension(binding: StatementBinding) -> Statement:
    syntax: FetchSyntax = binding.parsed.node
    return replace(_fetch(syntax.fetch.fetch_stmt), timeout_s=syntax.timeout_s)


def _fetch(node: object) -> Fetch:
    direction = FetchDirection(enum_name(node, "direction").removeprefix("FETCH_").lower())
    count = int(node.how_many)  # type: ignore[attr-defined]  # a FetchStmt
    whole = count == _ALL and direction in (FetchDirection.FORWARD, FetchDirection.BACKWARD)
    return Fetch(str(node.portalname), direction, None if whole else count, bool(node.ismove))  # type: ignore[attr-defined]  # likewise


def bind_close_cursor(binding: StatementBinding) -> Statement:
    return CloseCursor(str(binding.parsed.node.portalname) or None)
