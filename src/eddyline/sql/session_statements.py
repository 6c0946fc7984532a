"""Statements about the session: transactions, settings, prepared statements."""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.repr.types import SqlType
from eddyline.sql.ast import AstNode, enum_name, expect_fields, kind_of, unwrap
from eddyline.sql.parse import ParsedStatement
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import (
    AlterSystem,
    Begin,
    Commit,
    Deallocate,
    Discard,
    Execute,
    Prepare,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    Savepoint,
    Set,
    SetTransaction,
    Show,
    Statement,
    Unlisten,
)
from eddyline.sql.type_names import type_of_name

__all__ = [
    "bind_alter_system",
    "bind_deallocate",
    "bind_discard",
    "bind_execute",
    "bind_prepare",
    "bind_set",
    "bind_show",
    "bind_transaction",
    "bind_unlisten",
    "setting_change",
    "setting_value",
]


def bind_transaction(binding: StatementBinding) -> Statement:
    """BEGIN, COMMIT, ROLLBACK and savepoints; two-phase commit is 0A000."""
    parsed = binding.parsed
    node = parsed.node
    match enum_name(node, "kind"):
        case "TRANS_STMT_BEGIN":
            return Begin(*_transaction_modes(node.options, parsed))
        case "TRANS_STMT_START":
            return Begin(*_transaction_modes(node.options, parsed), tag="START TRANSACTION")
        case "TRANS_STMT_COMMIT":
            return Commit(node.chain)
        case "TRANS_STMT_ROLLBACK":
            return Rollback(node.chain)
        case "TRANS_STMT_SAVEPOINT":
            return Savepoint(node.savepoint_name)
        case "TRANS_STMT_RELEASE":
            return Release(node.savepoint_name)
        case "TRANS_STMT_ROLLBACK_TO":
            return RollbackTo(node.savepoint_name)
        case _:
            raise unsupported("two-phase commit")


def _transaction_modes(options: AstNode, parsed: ParsedStatement) -> tuple[str | None, bool | None]:
    """(isolation level, read only) of transaction modes; the last of each counts."""
    isolation, read_only = None, None
    for option in map(unwrap, options):
        value = option.arg.a_const
        match option.defname:
            case "transaction_isolation":
                isolation = str(value.sval.sval)
            case "transaction_read_only":
                read_only = bool(value.ival.ival)
            case "transaction_deferrable" if not value.ival.ival:
                continue
            case _:
                raise unsupported("DEFERRABLE", position=parsed.position(option.location))
    return isolation, read_only


_MULTI: Final = {"TRANSACTION": False, "SESSION CHARACTERISTICS": True}


def bind_set(binding: StatementBinding) -> Statement:
    """SET, SET LOCAL, RESET, SET TRANSACTION …; the values stay text, for the session to read."""
    parsed = binding.parsed
    node = parsed.node
    name = str(node.name).lower()
    match enum_name(node, "kind"):
        case "VAR_SET_VALUE":
            return Set(name, tuple(setting_value(arg, parsed) for arg in node.args), node.is_local)
        case "VAR_SET_DEFAULT":
            return Set(name, None, node.is_local)
        case "VAR_RESET":
            return Reset(name)
        case "VAR_RESET_ALL":
            return Reset(None)
        case "VAR_SET_MULTI" if node.name in _MULTI:
            isolation, read_only = _transaction_modes(node.args, parsed)
            return SetTransaction(isolation, read_only, session=_MULTI[node.name])
        case "VAR_SET_MULTI":
            raise unsupported(f"SET {node.name}")
        case _:
            raise unsupported("SET … FROM CURRENT")


def bind_alter_system(binding: StatementBinding) -> Statement:
    """ALTER SYSTEM SET and RESET."""
    return AlterSystem(*setting_change(binding.parsed.node.setstmt, binding.parsed))


def setting_change(node: AstNode, parsed: ParsedStatement) -> tuple[str | None, tuple[str, ...] | None]:
    """The setting, None for all, and its values, None for its default."""
    name = str(node.name).lower()
    match enum_name(node, "kind"):
        case "VAR_SET_VALUE":
            return name, tuple(setting_value(arg, parsed) for arg in node.args)
        case "VAR_RESET_ALL":
            return None, None
        case "VAR_SET_DEFAULT" | "VAR_RESET":
            return name, None
        case "VAR_SET_MULTI":
            raise unsupported(f"SET {node.name} there")
        case _:
            raise unsupported("SET … FROM CURRENT")


def setting_value(node: AstNode, parsed: ParsedStatement) -> str:
    """A constant of SET as text; 0A000 for anything else."""
    if kind_of(node) != "a_const":
        raise unsupported("SET to an expression")
    value = node.a_const
    match value.WhichOneof("val"):
        case "ival":
            return str(value.ival.ival)
        case "fval":
            return str(value.fval.fval)
        case "boolval":
            return "true" if value.boolval.boolval else "false"
        case "sval":
            return str(value.sval.sval)
        case _:
            raise unsupported("SET to such a constant", position=parsed.position(value.location))


def bind_show(binding: StatementBinding) -> Statement:
    return Show(str(binding.parsed.node.name).lower())


def bind_prepare(binding: StatementBinding) -> Statement:
    """PREPARE: the inner statement stays unbound; a type ``unknown`` leaves its parameter to inference."""
    parsed = binding.parsed
    node = parsed.node
    inner_kind = kind_of(node.query)
    inner = ParsedStatement(parsed.text, parsed.source, parsed.offset, inner_kind, unwrap(node.query))
    types: list[SqlType | None] = []
    for type_node in map(unwrap, node.argtypes):
        if [n.string.sval for n in type_node.names] == ["unknown"]:
            types.append(None)
        else:
            types.append(type_of_name(type_node, parsed.position))
    return Prepare(node.name, inner, tuple(types))


def bind_execute(binding: StatementBinding) -> Statement:
    """Arguments are constants; ``coerce_arguments`` makes them the parameters' types."""
    node = binding.parsed.node
    return Execute(node.name, tuple(binding.constant(p, "EXECUTE parameters") for p in node.params))


def bind_deallocate(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    return Deallocate(None if parsed.node.isall else parsed.node.name)


def bind_discard(binding: StatementBinding) -> Statement:
    parsed = binding.parsed
    expect_fields(parsed.node, ("target",))
    target = enum_name(parsed.node, "target").removeprefix("DISCARD_").lower()
    if target not in ("all", "plans", "sequences", "temp"):
        raise make_error("42601", f"unrecognized DISCARD target {target}")
    return Discard(target)


def bind_unlisten(_binding: StatementBinding) -> Statement:
    """Whatever channel it names: LISTEN is refused, so that none is listened to."""
    return Unlisten()
