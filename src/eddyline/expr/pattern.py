"""LIKE and ILIKE.

A constant pattern becomes a prefix, suffix or substring search, or a regular expression for Arrow's linear-time
engine.  A pattern that ends in a lone escape fails (22025) only for texts whose match gets that far, so that it is
matched one by one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.constants import per_constant
from eddyline.expr.registry import Arguments, Evaluated, Function, Overload, declare, implements
from eddyline.expr.rowwise import map_rows
from eddyline.expr.text_functions import lower_text, lowered
from eddyline.expr.text_output import padded
from eddyline.repr.types import BOOLEAN, TEXT, Kind, SqlType

__all__ = ["escape_regex", "is_complete_pattern", "like"]

K = Kind
_WILDCARDS: Final = ("%", "_")


class _Piece(NamedTuple):
    """A literal string, or a wildcard if ``wild``."""

    text: str
    wild: bool


def _pieces(pattern: str) -> list[_Piece] | None:
    """The pattern's literals and wildcards; None if it ends in a lone escape."""
    pieces: list[_Piece] = []
    literal = ""
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if position == len(pattern):
                return None
            literal += pattern[position]
        elif character in _WILDCARDS:
            if literal:
                pieces.append(_Piece(literal, wild=False))
            literal = ""
            pieces.append(_Piece(character, wild=True))
        else:
            literal += character
        position += 1
    if literal:
        pieces.append(_Piece(literal, wild=False))
    return pieces


def is_complete_pattern(pattern: str) -> bool:
    """Whether the pattern can be matched without an error."""
    return _pieces(pattern) is not None


def escape_regex(text: str) -> str:
    """``text`` as a literal of both engines: Python's and Arrow's."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{ord(c):02x}" for c in text)


def like(text: pa.Array, pattern: str) -> Evaluated:
    """bool[n]: which values match; NULL for NULL."""
    pieces = _pieces(pattern)
    if pieces is None:
        return map_rows([text], lambda value: _match_unfinished(value, pattern), pa.bool_())
    match [(p.text, p.wild) for p in pieces]:
        case []:
            return Evaluated(pc.equal(text, ""))
        case [(literal, False)]:
            return Evaluated(pc.equal(text, literal))
        case [(literal, False), ("%", True)]:
            return Evaluated(pc.starts_with(text, literal))
        case [("%", True), (literal, False)]:
            return Evaluated(pc.ends_with(text, literal))
        case [("%", True), (literal, False), ("%", True)]:
            return Evaluated(pc.match_substring(text, literal))
    body = _regex(pieces)
    try:
        return Evaluated(pc.match_substring_regex(text, rf"(?s)\A{body}\z"))
    except pa.ArrowInvalid:  # a pattern too large for that engine
        return map_rows([text], lambda value: _like_one(value, pattern), pa.bool_())


def _regex(pieces: list[_Piece]) -> str:
    return "".join((".*" if p.text == "%" else ".") if p.wild else escape_regex(p.text) for p in pieces)


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    pieces = _pieces(pattern)
    return None if pieces is None else re.compile(_regex(pieces), re.DOTALL)


def _like_one(text: str, pattern: str) -> bool:
    compiled = _compiled(pattern)
    return _match_unfinished(text, pattern) if compiled is None else compiled.fullmatch(text) is not None


def _unfinished() -> DatabaseError:
    return make_error("22025", "LIKE pattern must not end with escape character")


def _match_unfinished(text: str, pattern: str) -> bool:
    """Whether ``text`` matches, read left to right; 22025 where the reading meets the lone escape at the end."""
    return _match_from(text, pattern, 0, 0) is True


def _match_from(text: str, pattern: str, t: int, p: int) -> bool | None:
    """None: no match, nor will a later start of ``text`` find one."""
    while t < len(text) and p < len(pattern):
        character = pattern[p]
        if character == "%":
            return _match_many(text, pattern, t, p + 1)
        if character == "\\":
            p += 1
            if p == len(pattern):
                raise _unfinished()
        if (character != "_") and pattern[p] != text[t]:
            return False
        t, p = t + 1, p + 1
    if t < len(text):
        return False
    return True if not pattern[p:].strip("%") else None


def _match_many(text: str, pattern: str, t: int, p: int) -> bool | None:
    while p < len(pattern) and pattern[p] in _WILDCARDS:
        if pattern[p] == "_":
            if t == len(text):
                return None
            t += 1
        p += 1
    if p == len(pattern):
        return True
    first = pattern[p]
    if first == "\\":
        if p + 1 == len(pattern):
            raise _unfinished()
        first = pattern[p + 1]
    for start in range(t, len(text)):
        if text[start] == first:
            matched = _match_from(text, pattern, start, p)
            if matched is not False:
                return matched
    return None


def _like(*, fold: bool, negate: bool) -> Function:
    def compute(pattern: str, others: Sequence[pa.Array]) -> Evaluated:
        text = others[0]
        if fold:
            text = lowered(text)
            pattern = lowered(pa.array([pattern], pa.large_string()))[0].as_py()
        found = like(text, pattern)
        return Evaluated(pc.invert(found.array), found.errors) if negate else found

    def by_row(value: str, pattern: str) -> bool:
        if fold:
            value, pattern = lower_text(value), lower_text(pattern)
        return _like_one(value, pattern) is not negate

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        operands = Arguments([padded(args[0], types[0]), args.operand(1)], rows)
        return per_constant(operands, 1, pa.bool_(), rows, compute, by_row=by_row)

    return apply


for _name, _fold, _negate in (
    ("like", False, False),
    ("not_like", False, True),
    ("ilike", True, False),
    ("not_ilike", True, True),
):
    implements(_name, fallible=True)(_like(fold=_fold, negate=_negate))


def _with_backslash(pattern: str, escape: str) -> str:
    """``pattern`` with its escape character exchanged for a backslash ("" means that there is none)."""
    if escape == "\\":
        return pattern
    if len(escape) > 1:
        raise make_error("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    if not escape:
        return pattern.replace("\\", "\\\\")
    result = ""
    escaped = False
    for character in pattern:
        if character == escape and not escaped:
            result += "\\"
            escaped = True
        elif character == "\\":
            result += "\\" if escaped else "\\\\"
            escaped = False
        else:
            result += character
            escaped = False
    return result


@implements("like_escape", fallible=True)
def _like_escape(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    return map_rows([args[0], args[1]], _with_backslash, pa.large_string())


declare(
    *(
        Overload(operator, (kind, K.TEXT), BOOLEAN, impl)
        for operator, impl in (("~~", "like"), ("!~~", "not_like"), ("~~*", "ilike"), ("!~~*", "not_ilike"))
        for kind in (K.TEXT, K.BPCHAR)
    ),
    Overload("like_escape", (K.TEXT, K.TEXT), TEXT, "like_escape"),
)
