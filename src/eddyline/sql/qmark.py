"""``?`` placeholders (PEP 249's qmark style) as PostgreSQL's ``$n``.

The scanner tells literals, comments and quoted names apart, so only real operator tokens are looked at.  Because
``=?`` is one operator token to PostgreSQL, a token is taken apart when what remains beside its outer question marks
is an ordinary operator; ``?|``, ``?&`` and ``@?``, which are operators of their own, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postgast import pg_query_pb2

from eddyline.sql.grammar import GrammarError, scan_tokens

__all__ = ["qmark_position", "qmark_to_dollar"]

_BESIDE: Final = frozenset(
    ["", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "^", "||", "~", "~*", "!~", "!~*", "~~", "~~*"]
)
_OPERATORS: Final = frozenset(["?|", "?&", "@?"])
_MARK: Final = ord("?")


def qmark_to_dollar(text: str) -> tuple[str, int]:
    """(text with the n-th ``?`` as ``$n``, number of placeholders).

    The text comes back unchanged, with 0, where it holds a ``$n`` already, and where it cannot be scanned (the
    parser then says why).  To be called only when parameters are given: ``?`` is an operator character otherwise.
    """
    if "?" not in text:
        return text, 0
    data = text.encode("utf-8", "surrogatepass")
    pieces, start, count = [], 0, 0
    for at in _marks(text):
        count += 1
        pieces.append(data[start:at] + b"$%d" % count)
        start = at + 1
    pieces.append(data[start:])
    return b"".join(pieces).decode("utf-8", "surrogatepass"), count


def qmark_position(text: str, position: int) -> int:
    """Where ``position`` (1-based) of the rewritten text was in ``text``."""
    data = text.encode("utf-8", "surrogatepass")
    added = 0
    for number, at in enumerate(_marks(text), start=1):
        here = len(data[:at].decode("utf-8", "surrogatepass")) + 1
        if here + added >= position:
            break
        added += min(len(str(number)), position - here - added)
    return position - added


def _marks(text: str) -> Iterator[int]:
    """Byte offsets of the placeholders; none if the text holds ``$n`` or can't be scanned."""
    if "\x00" in text or (not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)):
        return
    try:
        tokens = scan_tokens(text)
    except GrammarError:
        return
    if any(token.token == pg_query_pb2.PARAM for token in tokens):
        return
    data = text.encode()
    for token in tokens:
        first, last = data[token.start], data[token.end - 1]
        if _MARK not in (first, last) or token.token in (pg_query_pb2.SQL_COMMENT, pg_query_pb2.C_COMMENT):
            continue
        operator = data[token.start : token.end].decode()
        if operator in _OPERATORS or operator.strip("?") not in _BESIDE or operator.startswith("??"):
            continue
        if first == _MARK:
            yield token.start
        if last == _MARK and token.end - token.start > 1:
            yield token.end - 1
