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
from eddyline.sql.statements import Explain, Select, Statement

__all__ = ["bind_explain", "bind_explain_extension", "bind_explain_object"]

_OPTIONS: Final = frozenset(
    ["verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "analyze", "format"]
)
#: understood where they ask for nothing
_NOT_THERE: Final = ("costs", "settings", "buffers", "wal")
_EXPLAINED: Final = frozenset(
    ["select_stmt", "insert_stmt", "update_stmt", "delete_stmt", "create_table_as_stmt", "view_stmt", "index_stmt"]
)
_READS_ONLY: Final = "EXPLAIN ANALYZE runs the statement and says where its time went: for SELECT, VALUES and TABLE."
_FALSE: Final = ("false", "off", "0")
_TRUE: Final = ("", "true", "on", "1")


def bind_explain(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    """``dispatch`` binds the inner statement.  EXPLAIN ANALYZE of anything but a read, options that we do not have, and
    formats other than text are 0A000.
    """
    node = binding.parsed.node
    options = {}
    for option in map(unwrap, node.options):
        name = str(option.defname).lower()
        if name not in _OPTIONS:
            raise make_error("42601", f'unrecognized EXPLAIN option "{name}"', position=binding.locate(option.location))
        options[name] = _option_text(option)
    analyze = _check_options(options)
    kind = kind_of(node.query)
    if kind not in _EXPLAINED:
        raise unsupported(f"EXPLAIN of {kind.removesuffix('_stmt').replace('_', ' ').upper()}")
    inner = replace(binding.parsed, kind=kind, node=unwrap(node.query))
    return _of_statement(dispatch(binding.for_inner(inner)), options, analyze)


def bind_explain_extension(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    syntax: ExplainSyntax = binding.parsed.node
    options = _options_of(syntax.options)
    analyze = _check_options(options)
    inner = replace(binding.parsed, kind=type(syntax.statement).__name__, node=syntax.statement)
    return _of_statement(dispatch(binding.for_inner(inner)), options, analyze)


def bind_explain_object(binding: StatementBinding) -> Statement:
    syntax: ExplainObjectSyntax = binding.parsed.node
    options = _options_of(syntax.options)
    if _check_options(options):
        raise unsupported(f"EXPLAIN ANALYZE {syntax.kind.upper()}", hint=_READS_ONLY)
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


def _of_statement(statement: Statement, options: dict[str, str], analyze: bool) -> Explain:
    if analyze and not isinstance(statement, Select):
        raise unsupported("EXPLAIN ANALYZE of a statement other than a read", hint=_READS_ONLY)
    return Explain(statement=statement, options=options, analyze=analyze)


def _options_of(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = (text.partition(" ") for text in texts)
    return {name: value for name, _, value in pairs}


def _check_options(options: dict[str, str]) -> bool:
    """Whether to run the statement.  42601, 22023 and 0A000 as PostgreSQL has them, or for what is not there."""
    on = {name: _is_on(name, value) for name, value in options.items() if name != "format"}
    for name in _NOT_THERE:
        if on.get(name):
            raise unsupported(f"EXPLAIN option {name.upper()}")
    analyze = on.get("analyze", False)
    for name in ("timing", "summary"):
        if on.get(name) and not analyze:
            raise make_error("22023", f"EXPLAIN option {name.upper()} requires ANALYZE")
    wanted = options.get("format", "text")
    if wanted in ("xml", "yaml"):
        raise unsupported(f"EXPLAIN format {wanted}", hint="There are text and json.")
    if wanted not in ("text", "json"):
        raise make_error("22023", f'unrecognized value for EXPLAIN option "format": "{wanted}"')
    return analyze


def _is_on(name: str, value: str) -> bool:
    if name not in _OPTIONS:
        raise make_error("42601", f'unrecognized EXPLAIN option "{name}"')
    if value not in _TRUE and value not in _FALSE:
        raise make_error("42601", f"{name} requires a Boolean value")
    return value in _TRUE
