"""COPY: its source or target, and the options of each format with PostgreSQL's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error, unsupported
from eddyline.sql.ast import AstNode, expect_fields, kind_of, name_list, unwrap
from eddyline.sql.catalog_view import CatalogItem, ItemKind
from eddyline.sql.extensions import CopySubscribeSyntax
from eddyline.sql.named_objects import existing_relation
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Copy, CopyFormat, Statement, Subscribe

__all__ = ["bind_copy", "bind_copy_subscribe"]

Locate = Callable[[int], int | None]


def bind_copy(binding: StatementBinding) -> Statement:
    node = binding.parsed.node
    if node.is_program:
        raise unsupported("COPY … PROGRAM")
    if node.HasField("where_clause"):
        raise unsupported("COPY … WHERE")
    expect_fields(node, ("relation", "query", "attlist", "is_from", "filename", "options"))
    options = _options(node.options, binding.locate, is_from=node.is_from)
    common: dict[str, Any] = {**options, "filename": node.filename or None}
    if node.HasField("query"):
        if kind_of(node.query) != "select_stmt":
            raise unsupported("COPY of a statement other than a query")
        return Copy(query=binding.query(node.query, place="COPY … TO"), **common)
    item = existing_relation(node.relation, binding.catalog, binding.locate)
    columns = _columns(item, name_list(node.attlist))
    if node.is_from:
        if item.kind is not ItemKind.TABLE:
            raise make_error("42809", f'cannot copy to {item.kind.value} "{item.name}"')
        return Copy(table=item, columns=columns, **common)
    if item.kind is not ItemKind.TABLE:
        raise make_error(
            "42809",
            f'cannot copy from {item.kind.value} "{item.name}"',
            hint="Try the COPY (SELECT ...) TO variant.",
        )
    return Copy(query=binding.query(_select(node.relation, item, columns)), **common)


def bind_copy_subscribe(binding: StatementBinding, dispatch: Callable[[StatementBinding], Statement]) -> Statement:
    """COPY (SUBSCRIBE …) TO STDOUT; ``dispatch`` binds the subscription."""
    syntax: CopySubscribeSyntax = binding.parsed.node
    node: Any = syntax.copy
    if node.is_program or node.filename:
        raise unsupported("COPY of a subscription to anything but STDOUT")
    inner = replace(binding.parsed, kind=type(syntax.subscribe).__name__, node=syntax.subscribe)
    subscribe = dispatch(binding.for_inner(inner))
    assert isinstance(subscribe, Subscribe)
    options = _options(node.options, binding.locate, is_from=False)
    if options["format"] is CopyFormat.PARQUET:
        raise unsupported("COPY of a subscription with format parquet")
    return Copy(subscribe=subscribe, **options)


def _columns(item: CatalogItem, names: tuple[str, ...]) -> tuple[int, ...]:
    by_name = {column.name: index for index, column in enumerate(item.columns)}
    positions: list[int] = []
    for name in names:
        if name not in by_name:
            raise make_error("42703", f'column "{name}" of relation "{item.name}" does not exist')
        if by_name[name] in positions:
            raise make_error("42701", f'column "{name}" specified more than once')
        positions.append(by_name[name])
    return tuple(positions) if names else tuple(range(len(item.columns)))


def _select(range_var: AstNode, item: CatalogItem, columns: tuple[int, ...]) -> AstNode:
    """``SELECT columns FROM relation``."""
    select = pb.SelectStmt(
        limit_option=pb.LIMIT_OPTION_DEFAULT,
        op=pb.SETOP_NONE,
        from_clause=[pb.Node(range_var=range_var)],
        target_list=[
            pb.Node(
                res_target=pb.ResTarget(
                    val=pb.Node(
                        column_ref=pb.ColumnRef(
                            fields=[pb.Node(string=pb.String(sval=item.columns[i].name))], location=-1
                        )
                    ),
                    location=-1,
                )
            )
            for i in columns
        ],
    )
    return pb.Node(select_stmt=select)


_DEFAULTS: Final[Mapping[CopyFormat, Mapping[str, str]]] = {
    CopyFormat.TEXT: {"delimiter": "\t", "null": "\\N"},
    CopyFormat.CSV: {"delimiter": ",", "null": ""},
    CopyFormat.BINARY: {},
    CopyFormat.PARQUET: {},
}
_CSV_ONLY: Final = ("quote", "escape", "force_quote", "force_null", "force_not_null")
_TEXTUAL: Final = ("delimiter", "null", "quote", "escape")
_LISTS: Final = ("force_quote", "force_null", "force_not_null")


def _options(nodes: AstNode, locate: Locate, *, is_from: bool) -> dict[str, Any]:
    """The fields of ``Copy`` that options decide."""
    given: dict[str, Any] = {}
    for option in map(unwrap, nodes):
        name = str(option.defname)
        if name in given:
            raise make_error("42601", "conflicting or redundant options", position=locate(option.location))
        given[name] = _value(option, name, locate)
    kind = given.pop("format", CopyFormat.TEXT)
    if given.pop("freeze", False):
        raise unsupported("COPY … FREEZE")
    given.pop("encoding", None)
    if kind is CopyFormat.PARQUET and given:
        raise unsupported(f"COPY option {next(iter(given))} with format parquet")
    if kind is CopyFormat.BINARY and given:
        raise make_error("42601", f"cannot specify {next(iter(given)).upper()} in BINARY mode")
    options = {**_DEFAULTS[kind], **given, "format": kind}
    _check_textual(options, given, kind, is_from=is_from)
    return options


def _value(option: AstNode, name: str, locate: Locate) -> Any:
    position = locate(option.location)
    if name == "format":
        text = _text(option, name)
        if text not in [f.value for f in CopyFormat]:
            raise make_error("22023", f'COPY format "{text}" not recognized', position=position)
        return CopyFormat(text)
    if name == "header":
        if option.HasField("arg") and kind_of(option.arg) == "string" and option.arg.string.sval.lower() == "match":
            return "match"
        return _boolean(option, name, ' or "match"')
    if name == "freeze":
        return _boolean(option, name)
    if name in _TEXTUAL:
        return _text(option, name)
    if name in _LISTS:
        return _names(option, name, position)
    if name == "encoding":
        encoding = _text(option, name)
        if encoding.lower().replace("-", "").replace("_", "") not in ("utf8", "unicode"):
            raise unsupported(
                f"encoding {encoding}",
                position=position,
                hint="Texts are UTF-8. In Python, copy() from STDIN takes a file that is opened with its encoding.",
            )
        return encoding
    raise make_error("42601", f'option "{name}" not recognized', position=position)


def _names(option: AstNode, name: str, position: int | None) -> tuple[str, ...]:
    """A list of column names, or "*" where all may be meant."""
    kind = kind_of(option.arg) if option.HasField("arg") else ""
    if kind == "a_star" and name == "force_quote":
        return ("*",)
    if kind != "list":
        raise make_error("22023", f'argument to option "{name}" must be a list of column names', position=position)
    return name_list(option.arg.list.items)


def _text(option: AstNode, name: str) -> str:
    if not option.HasField("arg"):
        raise make_error("42601", f"{name} requires a parameter")
    match kind_of(option.arg):
        case "string":
            return str(option.arg.string.sval)
        case "integer":
            return str(option.arg.integer.ival)
        case _:
            raise make_error("42601", f"{name} requires a parameter")


_BOOLEANS: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def _boolean(option: AstNode, name: str, otherwise: str = "") -> bool:
    if not option.HasField("arg"):
        return True
    if kind_of(option.arg) == "boolean":
        return bool(option.arg.boolean.boolval)
    text = _text(option, name).lower()
    if text not in _BOOLEANS:
        raise make_error("42601", f"{name} requires a Boolean value{otherwise}")
    return _BOOLEANS[text]


def _check_textual(options: dict[str, Any], given: Mapping[str, Any], kind: CopyFormat, *, is_from: bool) -> None:
    """PostgreSQL's ProcessCopyOptions checks, in its order; ``header`` becomes two booleans."""
    header = options.get("header", False)
    if header == "match" and not is_from:
        raise make_error("0A000", 'cannot use "match" with HEADER in COPY TO')
    options["header"], options["header_match"] = bool(header), header == "match"
    if kind in (CopyFormat.BINARY, CopyFormat.PARQUET):
        return
    delimiter, null = options["delimiter"], options["null"]
    if len(delimiter.encode()) != 1:
        raise make_error("0A000", "COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise make_error("22023", "COPY delimiter cannot be newline or carriage return")
    if "\r" in null or "\n" in null:
        raise make_error("22023", "COPY null representation cannot use newline or carriage return")
    if kind is CopyFormat.TEXT:
        if delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
            raise make_error("22023", f'COPY delimiter cannot be "{delimiter}"')
        for name in _CSV_ONLY:
            if name in given:
                shown = name.replace("_", " ")
                raise make_error("0A000", f"COPY {shown} available only in CSV mode")
    else:
        _check_csv(options, delimiter, null)
    if delimiter in null:
        raise make_error("0A000", "COPY delimiter must not appear in the NULL specification")
    for name, wanted in (("force_quote", not is_from), ("force_null", is_from), ("force_not_null", is_from)):
        if name in given and not wanted:
            shown = name.replace("_", " ")
            only = "COPY TO" if name == "force_quote" else "COPY FROM"
            raise make_error("0A000", f"COPY {shown} only available using {only}")


def _check_csv(options: dict[str, Any], delimiter: str, null: str) -> None:
    quote = options.setdefault("quote", '"')
    escape = options.setdefault("escape", quote)
    if len(quote.encode()) != 1:
        raise make_error("0A000", "COPY quote must be a single one-byte character")
    if delimiter == quote:
        raise make_error("22023", "COPY delimiter and quote must be different")
    if len(escape.encode()) != 1:
        raise make_error("0A000", "COPY escape must be a single one-byte character")
    if quote in null:
        raise make_error("0A000", "CSV quote character must not appear in the NULL specification")
