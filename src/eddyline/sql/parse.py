"""Text → statements: PostgreSQL's grammar (libpg_query), widened by the extension statements.

The text goes to PostgreSQL's parser first, so whatever PostgreSQL accepts means what PostgreSQL says.  Only a text
that it refuses is split at its semicolons and offered, statement by statement, to the extensions
(``sql.extensions``); if they don't know it either, PostgreSQL's error stands.

Invariants:
I1  locations in a statement's AST are byte offsets into ``ParsedStatement.source``;
I2  ``ParsedStatement.position`` turns them into 1-based character positions in the text given to ``parse``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import postgast
from google.protobuf.message import Message

from eddyline.errors import DatabaseError, make_error
from eddyline.sql.extensions import InClusterSyntax, recognise
from eddyline.sql.grammar import GrammarError, check_depth, parse_nodes, scan_tokens
from eddyline.sql.habits import habit_hint
from eddyline.sql.words import Named

__all__ = ["ParsedStatement", "parse"]

#: Longer texts are refused (54000): the AST of one takes about ten times its size.
MAX_TEXT_BYTES: Final = 256 << 20

_SEMICOLON: Final = ord(";")
_QUOTED: Final = re.compile(r'at or near "(.*)"$', re.DOTALL)
_PASSWORD: Final = re.compile(r"\bpassword\b", re.IGNORECASE)
_PASSWORD_BEFORE: Final = re.compile(r"\bpassword\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """One statement.  ``kind`` is the AST's node name (``select_stmt`` …) or the extension's class name.

    ``node``: the protobuf message of that kind, or the extension.
    ``text``: the statement as written, without its semicolon and the blanks around it.
    ``source``: the text that the AST's locations refer to (I1); ``offset``: characters of the original before it.
    ``cluster``: what IN CLUSTER names, with its position in ``source``.
    """

    text: str
    source: str
    offset: int
    kind: str
    node: Any
    cluster: Named | None = None

    def position(self, location: int) -> int | None:
        """The 1-based character position in the original text of an AST location; None for -1 (unknown)."""
        if location < 0:
            return None
        if self.source.isascii():
            return self.offset + location + 1
        before = self.source.encode()[:location]
        return self.offset + len(before.decode(errors="replace")) + 1

    def locator(self) -> Callable[[int], int | None]:
        """``position`` for many locations: linear work once, constant per call."""
        if self.source.isascii():
            return self.position
        octets = np.frombuffer(self.source.encode(), np.uint8)
        # characters that start before each byte; UTF-8 continuation bytes are 10xxxxxx
        starts = np.concatenate(([0], np.cumsum(octets & 0xC0 != 0x80, dtype=np.int32)))
        first = self.offset + 1

        def position(location: int) -> int | None:
            return first + int(starts[location]) if 0 <= location < len(starts) else None

        return position


def parse(text: str) -> list[ParsedStatement]:
    """The statements of ``text`` in order; none for blanks, comments and bare semicolons.

    Raises: 42601 with PostgreSQL's message and the position; 22021 for NUL and lone surrogates; 54001 for nesting
    that no stack would hold; 54000 for a text over ``MAX_TEXT_BYTES``.  Cost: linear in the text.
    """
    data = encode_text(text)
    try:
        check_depth(data)
        nodes = parse_nodes(text)
    except GrammarError as error:
        if not error.is_syntax:
            raise typed_error(error, text) from error
        return _parse_each(text, data)
    statements = []
    for location, length, node in nodes:
        end = location + length if length else len(data)
        body = _trim(text if location == 0 and end == len(data) else data[location:end].decode())
        statements.append(ParsedStatement(body, text, 0, *_unwrap(node)))
    return statements


def encode_text(text: str) -> bytes:
    """UTF-8 bytes that PostgreSQL would accept; 22021 for what it would not, 54000 for too many."""
    nul = text.find("\x00")
    if nul >= 0:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00', position=nul + 1)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{b:02x}" for b in text[error.start].encode("utf-8", "surrogatepass"))
        raise make_error(
            "22021", f'invalid byte sequence for encoding "UTF8": {shown}', position=error.start + 1
        ) from error
    if len(data) > MAX_TEXT_BYTES:
        raise make_error("54000", "statement is too long", detail=f"The limit is {MAX_TEXT_BYTES} bytes.")
    return data


def typed_error(error: GrammarError, text: str, *, offset: int = 0) -> DatabaseError:
    """PostgreSQL's error as ours; ``offset`` characters of the original stand before ``text``, which it is about."""
    position = offset + error.position if error.position else None
    message = _without_password(error.message, text, error.position)
    return make_error(error.sqlstate, message, position=position, hint=error.hint)


def _without_password(message: str, text: str, position: int) -> str:
    """The message without what it quotes, where that may be a password: errors are logged."""
    quoted = _QUOTED.search(message)
    if quoted is None or not position or _PASSWORD.search(text) is None:
        return message
    follows = _PASSWORD_BEFORE.search(text[: position - 1]) is not None
    return message[: quoted.start(1)] + "…" + message[quoted.end(1) :] if follows or "'" in quoted[1] else message


def _parse_each(text: str, data: bytes) -> list[ParsedStatement]:
    """Statement by statement, with extensions."""
    statements = []
    start = start_chars = 0
    for end in _statement_ends(text, data):
        piece_bytes = data[start:end]
        piece = piece_bytes.decode()
        statements.extend(_parse_one(piece, start_chars))
        start, start_chars = end, start_chars + len(piece)
    return statements


def _parse_one(piece: str, offset: int) -> list[ParsedStatement]:
    try:
        nodes = parse_nodes(piece)
        return [ParsedStatement(_trim(piece), piece, offset, *_unwrap(node)) for _, _, node in nodes]
    except GrammarError as error:
        try:
            extension = recognise(piece)
        except GrammarError as inner:
            raise typed_error(inner, piece, offset=offset) from inner
        except DatabaseError as inner:
            if inner.position is not None:
                inner.position += offset
            raise
        if extension is None:
            error.hint = error.hint or habit_hint(piece)
            raise typed_error(error, piece, offset=offset) from error
        if isinstance(extension, InClusterSyntax):
            kind, node = _unwrap(extension.statement)
            return [ParsedStatement(_trim(piece), piece, offset, kind, node, extension.cluster)]
        return [ParsedStatement(_trim(piece), piece, offset, type(extension).__name__, extension)]


def _statement_ends(text: str, data: bytes) -> list[int]:
    """Byte offsets one past each statement, its semicolon included (errors are "near" it)."""
    try:
        tokens = scan_tokens(text)
    except GrammarError as error:
        raise typed_error(error, text) from error
    ends = [token.end for token in tokens if token.token == _SEMICOLON]
    if not ends or ends[-1] < len(data):
        ends.append(len(data))
    return ends


def _trim(text: str) -> str:
    """Without the blanks, comments and semicolons around the statement."""
    stripped = text.strip()
    if not (stripped.startswith(("--", "/*")) or stripped.endswith(("*/", ";")) or "--" in stripped):
        return stripped
    data = text.encode()
    comments = (postgast.pg_query_pb2.SQL_COMMENT, postgast.pg_query_pb2.C_COMMENT, _SEMICOLON)
    kept = [t for t in scan_tokens(text) if t.token not in comments]
    return data[kept[0].start : kept[-1].end].decode() if kept else ""


def _unwrap(node: Message) -> tuple[str, Message]:
    kind = node.WhichOneof("node")
    return kind, getattr(node, kind)
