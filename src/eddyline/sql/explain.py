"""EXPLAIN: the options that are understood, and what is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.sql.ast import AstNode, kind_of, unwrap
from eddyline.sql.catalog_view import ItemKind
from eddyline.sql.extensions import ExplainObjectSyntax, ExplainSyntax
from eddyline.sql.named_objects import ARTICLES, existing_relation
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Explain, Statement

__all__ = ["bind_explain", "bind_explain_extension", "bind_explain_object"]

#: accepted; the adapter may show more or less for them
_OPTIONS: Final = frozenset(
    ["verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "analyze", "format"]
)
_EXPLAINED: Final = frozenset(
    ["select_stmt", "insert_stmt", "update_stmt", "delete_stmt", "create_table_as_stmt", "view_stmt", "index_stmt"]
)
_FALSE: Final = ("false", "off", "0")


def bind_explain(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    """``dispatch`` binds the inner statement.  EXPLAIN ANALYZE and formats other than text are 0A000."""
    node = binding.parsed.node
    options = {}
    for option in map(unwrap, node.options):
        name = str(option.defname).lower()
        if name not in _OPTIONS:
            raise make_error("42601", f'unrecognized EXPLAIN option "{name}"', position=binding.locate(option.location))
        options[name] = _option_text(option)
    _check_options(options)
    kind = kind_of(node.query)
    if kind not in _EXPLAINED:
        raise unsupported(f"EXPLAIN of {kind.removesuffix('_stmt').replace('_', ' ').upper()}")
    inner = replace(binding.parsed, kind=kind, node=unwrap(node.query))
    return Explain(statement=dispatch(binding.for_inner(inner)), options=options)


def bind_explain_extension(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    syntax: ExplainSyntax = binding.parsed.node
    options = dict.fromkeys(syntax.options, "")
    _check_options(options)
    inner = replace(binding.parsed, kind=type(syntax.statement).__name__, node=syntax.statement)
    return Explain(statement=dispatch(binding.for_inner(inner)), options=options)


def bind_explain_object(binding: StatementBinding) -> Statement:
    syntax: ExplainObjectSyntax = binding.parsed.node
    options = dict.fromkeys(syntax.options, "")
    _check_options(options)
    item = existing_relation(syntax.relation, binding.catalog, binding.locate)
    if item.kind is not ItemKind(syntax.kind):
        raise make_error("42809", f'"{item.name}" is not {ARTICLES[ItemKind(syntax.kind)]}')
    return Explain(item=item, options=options)


def _option_text(option: AstNode) -> str:
    if not option.HasField("arg"):
        return ""
    match kind_of(option.arg):
        case "string":
            return str(option.arg.string.sval).lower()
        case "boolean":
            return "true" if option.arg.boolean.boolval else "false"
        case _:
            return str(option.arg.integer.ival)


def _check_options(options: dict[str, str]) -> None:
    for name, value in options.items():
        if name not in _OPTIONS:
            raise make_error("42601", f'unrecognized EXPLAIN option "{name}"')
        if name == "analyze" and value not in _FALSE:
            raise unsupported("EXPLAIN ANALYZE")
    if options.get("format", "text") != "text":
        raise unsupported(f"EXPLAIN format {options['format']}")
