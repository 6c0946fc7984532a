"""VALUES made of plain constants, read straight into physical scalars.

INSERT of many literal rows is common, and binding each cell as an expression costs ten times as much.  A cell that
is not plainly right (another type, out of range, too long, an expression) ends the attempt; ordinary binding then
gives its value or its error.  Where this succeeds it gives what binding would give.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Final

from eddyline.errors import Error
from eddyline.expr.ir import LiteralValue
from eddyline.expr.text_io import parse_literal
from eddyline.plan.relation import Constant
from eddyline.repr.types import Kind, SqlType, is_array
from eddyline.sql.ast import AstNode
from eddyline.sql.conversion import INTEGER_RANGES

__all__ = ["literal_rows"]


class _NotPlain(Exception):
    """This cell needs binding."""


Reader = Callable[[AstNode], LiteralValue]

_EPOCH: Final = dt.datetime(1970, 1, 1)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-5][0-9]")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_PLAIN_DIGITS: Final = 36  # well inside what numeric holds

_VALUES_ONLY: Final = frozenset(["values_lists", "limit_option", "op"])


def literal_rows(select: AstNode, types: Sequence[SqlType]) -> Constant | None:
    """The rows of a VALUES statement stored in columns of ``types``, or None when some cell needs binding.

    Cost: a few µs per cell.
    """
    if any(field.name not in _VALUES_ONLY for field, _ in select.ListFields()):
        return None
    readers = [_reader(t) for t in types]
    rows: list[tuple[LiteralValue, ...]] = []
    try:
        for entry in select.values_lists:
            items = entry.list.items
            if len(items) != len(readers):
                return None
            rows.append(tuple([read(node) for read, node in zip(readers, items, strict=True)]))
    except (_NotPlain, Error):
        return None
    return Constant(tuple(rows), tuple(types))


def _reader(target: SqlType) -> Reader:
    """A function from a cell's node to its value; it raises where the value is not plain."""
    if target.kind in INTEGER_RANGES:
        return _integer(*INTEGER_RANGES[target.kind])
    match target.kind:
        case Kind.TEXT | Kind.VARCHAR:
            return _text(target.length)
        case Kind.NUMERIC if target.scale is not None and target.scale > (target.precision or 38):
            return _null  # leading zeros of the fraction are among its digits: the general way counts them
        case Kind.NUMERIC if target.scale is not None:
            return _scaled(target.scale, (target.precision or 38) - target.scale)
        case Kind.NUMERIC:
            return _decimal
        case Kind.DOUBLE:
            return _double
        case Kind.BOOLEAN:
            return _boolean
        case Kind.DATE:
            return _quickly(_iso_date, _parsed(target))
        case Kind.TIMESTAMP if target.precision is None:
            return _quickly(_iso_timestamp, _parsed(target))
        case Kind.UUID:
            return _quickly(_plain_uuid, _parsed(target))
        case Kind.REAL | Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.INTERVAL | Kind.BYTEA:
            return _parsed(target)
        case _ if is_array(target) and target.length is None:
            return _parsed(target)
        case _:
            return _null


def _constant(node: AstNode) -> tuple[AstNode, str | None]:
    """(the constant, which kind it is; None for NULL)."""
    if node.WhichOneof("node") != "a_const":
        raise _NotPlain
    const = node.a_const
    return const, None if const.isnull else const.WhichOneof("val")


def _null(node: AstNode) -> LiteralValue:
    if _constant(node)[1] is not None:
        raise _NotPlain
    return None


def _integer(low: int, high: int) -> Reader:
    def read(node: AstNode) -> LiteralValue:
        const, kind = _constant(node)
        if kind is None:
            return None
        if kind == "ival":
            value = int(const.ival.ival)
        elif kind == "fval" and const.fval.fval.lstrip("-").isdecimal():
            value = int(const.fval.fval)
        else:
            raise _NotPlain
        if not low <= value <= high:
            raise _NotPlain
        return value

    return read


def _text(length: int | None) -> Reader:
    def read(node: AstNode) -> LiteralValue:
        const, kind = _constant(node)
        if kind is None:
            return None
        if kind != "sval":
            raise _NotPlain
        value = str(const.sval.sval)
        if length is not None and len(value) > length:
            raise _NotPlain
        return value

    return read


def _scaled(scale: int, whole_digits: int) -> Reader:
    def read(node: AstNode) -> LiteralValue:
        const, kind = _constant(node)
        if kind is None:
            return None
        if kind == "ival":
            whole, fraction = str(const.ival.ival), ""
        elif kind == "fval":
            whole, _, fraction = const.fval.fval.partition(".")
        else:
            raise _NotPlain
        digits = whole.lstrip("-")
        plain = digits.isdecimal() and (not fraction or fraction.isdecimal())
        if not plain or len(fraction) > scale or len(digits) > max(whole_digits, 1):
            raise _NotPlain
        if (len(digits) > 1 and digits[0] == "0") or whole == "-0":
            raise _NotPlain
        if whole_digits < 1 and digits != "0":
            raise _NotPlain
        return f"{whole}.{fraction.ljust(scale, '0')}" if scale else whole

    return read


def _decimal(node: AstNode) -> LiteralValue:
    """A numeric that keeps its own scale."""
    const, kind = _constant(node)
    if kind is None:
        return None
    if kind == "ival":
        return str(const.ival.ival)
    text = const.fval.fval if kind == "fval" else ""
    if _DECIMAL.fullmatch(text) is None or len(text) > _PLAIN_DIGITS:
        raise _NotPlain
    return str(text)


def _double(node: AstNode) -> LiteralValue:
    const, kind = _constant(node)
    if kind is None:
        return None
    if kind == "ival":
        return float(const.ival.ival)
    text = const.fval.fval if kind == "fval" else ""
    if _DECIMAL.fullmatch(text) is None or len(text) > _PLAIN_DIGITS:
        raise _NotPlain
    return float(text) or 0.0  # a numeric constant has no -0


def _boolean(node: AstNode) -> LiteralValue:
    const, kind = _constant(node)
    if kind is None:
        return None
    if kind != "boolval":
        raise _NotPlain
    return bool(const.boolval.boolval)


def _parsed(target: SqlType) -> Reader:
    """By the type's input function; each text is parsed once.  Numbers go to a real as their text."""
    known: dict[str, LiteralValue] = {}

    def read(node: AstNode) -> LiteralValue:
        const, kind = _constant(node)
        if kind is None:
            return None
        if kind == "sval":
            text = str(const.sval.sval)
        elif target.kind is Kind.REAL and kind in ("ival", "fval"):
            text = str(const.ival.ival) if kind == "ival" else const.fval.fval
            text = text if text.strip("-0.") else "0"  # a numeric constant has no -0
        else:
            raise _NotPlain
        if text not in known:
            known[text] = parse_literal(text, target)
        return known[text]

    return read


def _quickly(simple: Callable[[str], LiteralValue], otherwise: Reader) -> Reader:
    """``simple`` for texts of the one common form; it returns None for any other."""

    def read(node: AstNode) -> LiteralValue:
        const, kind = _constant(node)
        if kind == "sval":
            value = simple(str(const.sval.sval))
            if value is not None:
                return value
        return otherwise(node)

    return read


def _iso_date(text: str) -> LiteralValue:
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return (dt.date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:  # the input function knows how to say it
        return None


def _iso_timestamp(text: str) -> LiteralValue:
    if _TIMESTAMP.fullmatch(text) is None:
        return None
    try:
        return (dt.datetime.fromisoformat(text) - _EPOCH) // dt.timedelta(microseconds=1)
    except ValueError:
        return None


def _plain_uuid(text: str) -> LiteralValue:
    return text.replace("-", "").lower() if _UUID.fullmatch(text) is not None else None
