"""PostgreSQL's scanner and parser, behind typed errors and a bound on nesting.

libpg_query and protobuf recurse in C without a check, so a statement nested deeply enough would end the process;
``check_depth`` bounds the nesting from the tokens before anything recurses.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Any, Final

import postgast
from google.protobuf.message import DecodeError, Message
from postgast import PgQueryError, pg_query_pb2

from eddyline.sql.grammar_threads import called

__all__ = ["GrammarError", "check_depth", "parse_nodes", "scan_tokens"]

try:
    from google._upb import _message as _upb
except ImportError:  # another protobuf runtime: nesting past its own limit is then 54001
    _upb = None

#: Deeper statements are refused; measured, the C code fails only past 20,000 levels on an 8 MiB stack.
MAX_DEPTH: Final = 5_000

#: Texts shorter than this cannot nest deeper than ``MAX_DEPTH`` (a level takes at least two bytes).
_SHORT_BYTES: Final = 2 * MAX_DEPTH

_STACK_MESSAGE: Final = "stack depth limit exceeded"
_STACK_HINT: Final = "Nest the statement's expressions less deeply."

#: SQLSTATEs of the errors that the grammar raises, 42601 where none is listed; the last that fits counts.
_SQLSTATES: Final[tuple[tuple[str, str], ...]] = (
    ("invalid Unicode escape", "22025"),
    ("invalid Unicode escape value", "42601"),
    ("precision for type float", "22023"),
    ("unsafe use of", "22P06"),
    ("invalid byte sequence", "22021"),
    ("memory exhausted", "54001"),
    ("stack depth limit exceeded", "54001"),
)
#: The C function that reads U&'…', whose errors are all syntax errors.
_UNICODE_ESCAPES: Final = "str_udeescape"
_NOT_SUPPORTED: Final = re.compile(r"not (yet )?(supported|implemented)")

#: Guards protobuf's process-wide nesting limit while it is lifted; held for one decode of a deep statement.
_decode_lock: Final = threading.Lock()


class GrammarError(Exception):
    """A refusal by the scanner or the parser.  ``position``: 1-based in characters, 0 when unknown."""

    def __init__(self, message: str, sqlstate: str, position: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.position = position
        self.hint = hint

    @property
    def is_syntax(self) -> bool:
        """Whether another grammar might still accept the text."""
        return self.sqlstate == "42601"


def scan_tokens(text: str) -> Any:
    """PostgreSQL's tokens (``.start``, ``.end`` in bytes, ``.token``, ``.keyword_kind``), comments included."""
    try:
        return called(postgast.scan, text).tokens
    except PgQueryError as error:
        raise _grammar_error(error) from error


def parse_nodes(text: str) -> list[tuple[int, int, Message]]:
    """(location, length, node) of each statement, in bytes; length 0 means to the end.

    Requires: nesting bounded by ``check_depth`` (unchecked).
    """
    try:
        tree = called(postgast.parse, text)
    except PgQueryError as error:
        raise _grammar_error(error) from error
    except DecodeError:
        tree = _parse_deep(text)
    return [(s.stmt_location, s.stmt_len, s.stmt) for s in tree.stmts]


def _parse_deep(text: str) -> Any:
    """Protobuf refuses messages nested over 100 deep, which is 50 operators; its limit is lifted for this decode."""
    if _upb is None:
        raise GrammarError(_STACK_MESSAGE, "54001", hint=_STACK_HINT)
    with _decode_lock:
        _upb.SetAllowOversizeProtos(True)
        try:
            return called(postgast.parse, text)
        except DecodeError as error:
            raise GrammarError(_STACK_MESSAGE, "54001", hint=_STACK_HINT) from error
        finally:
            _upb.SetAllowOversizeProtos(False)


def _grammar_error(error: PgQueryError) -> GrammarError:
    message = error.message
    sqlstate = "0A000" if _NOT_SUPPORTED.search(message) else "42601"
    for prefix, code in _SQLSTATES:
        if message.startswith(prefix):
            sqlstate = code
    if error.funcname == _UNICODE_ESCAPES:
        sqlstate = "42601"
    if sqlstate == "54001":
        return GrammarError(_STACK_MESSAGE, sqlstate, error.cursorpos, _STACK_HINT)
    return GrammarError(message, sqlstate, error.cursorpos)


def _codes(names: Iterable[str]) -> frozenset[int]:
    return frozenset(getattr(pg_query_pb2, name) for name in names)


_OPEN: Final = frozenset(map(ord, "([")) | _codes(["CASE"])
_CLOSE: Final = frozenset(map(ord, ")]")) | _codes(["END_P"])
_FLAT: Final = frozenset(map(ord, ",")) | _codes(["AND", "OR", "WHEN", "THEN", "ELSE"])
_CHAINED: Final = _codes(["UNION", "INTERSECT", "EXCEPT", "JOIN"])
_LEAF: Final = _codes(
    [
        "IDENT",
        "UIDENT",
        "ICONST",
        "FCONST",
        "SCONST",
        "USCONST",
        "BCONST",
        "XCONST",
        "PARAM",
        "SQL_COMMENT",
        "C_COMMENT",
    ]
)


def check_depth(data: bytes) -> None:
    """Refuses (54001) a text whose AST might be deeper than ``MAX_DEPTH``.

    The bound: open brackets and CASEs, plus, at each bracket level, the operators and keywords since the last token
    that starts a sibling (a comma, AND, OR, WHEN …), plus all UNIONs and JOINs of the level, which nest leftwards.
    Cost: nothing for texts of ordinary length, one scan for longer ones.
    """
    if len(data) < _SHORT_BYTES:
        return
    chained = run = depth = 0
    outer: list[tuple[int, int]] = []
    for token in scan_tokens(data.decode()):
        code = token.token
        if code in _LEAF:
            continue
        if code in _FLAT:
            depth -= run
            run = 0
        elif code in _OPEN:
            outer.append((chained, run))
            chained = run = 0
            depth += 1
        elif code in _CLOSE:
            if outer:
                depth -= chained + run + 1
                chained, run = outer.pop()
        elif code == ord(";"):
            chained = run = depth = 0
            outer.clear()
        else:
            if code in _CHAINED:
                chained += 1
            else:
                run += 1
            depth += 1
        if depth > MAX_DEPTH:
            raise GrammarError(_STACK_MESSAGE, "54001", hint=_STACK_HINT)
