"""A statement as tokens, for what PostgreSQL's grammar does not have; the pieces that it does have are parsed by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message
from postgast import pg_query_pb2

from eddyline.sql.grammar import GrammarError, parse_nodes, scan_tokens

__all__ = ["Named", "Word", "Words", "blank", "name_end", "parse_single"]

_COMMENTS: Final = (pg_query_pb2.SQL_COMMENT, pg_query_pb2.C_COMMENT)
_NO_KEYWORD: Final = pg_query_pb2.NO_KEYWORD
_QUOTE: Final = ord('"')
_NAME_BYTES: Final = 63


@dataclass(frozen=True, slots=True)
class Word:
    """One token: bytes ``start:end``; ``depth`` counts the brackets around it.

    ``text`` is upper case for words that are not quoted, so that it can be compared with keywords.
    """

    text: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class Named:
    """A name, and where it stands: the 1-based position of its first character in the text that it was read from."""

    name: str
    position: int


class Words:
    """A statement's tokens without comments and without its closing semicolon."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.items: list[Word] = []
        depth = 0
        for token in scan_tokens(source):
            if token.token in _COMMENTS:
                continue
            raw = self.data[token.start : token.end]
            text = raw.decode()
            depth -= text in (")", "]")
            quoted = (token.keyword_kind == _NO_KEYWORD and token.token != pg_query_pb2.IDENT) or raw[0] == _QUOTE
            self.items.append(Word(text if quoted else text.upper(), token.start, token.end, max(depth, 0)))
            depth += text in ("(", "[")
        if self.items and self.items[-1].text == ";":
            self.items.pop()

    def text(self, at: int) -> str:
        return self.items[at].text if 0 <= at < len(self.items) else ""

    def match(self, at: int, *words: str) -> bool:
        """Whether the tokens from ``at`` on are ``words``."""
        return all(self.text(at + i) == word for i, word in enumerate(words))

    def start(self, at: int) -> int:
        """Where token ``at`` starts; the end of the text for one past the last."""
        return self.items[at].start if at < len(self.items) else len(self.data)

    def end_before(self, at: int) -> int:
        return self.items[at - 1].end

    def find(self, *words: str, first: int = 0) -> int:
        """The first position of ``words`` outside brackets from ``first`` on, or -1."""
        for at in range(first, len(self.items)):
            if self.items[at].depth == 0 and self.match(at, *words):
                return at
        return -1

    def closing(self, at: int) -> int:
        """The position of the bracket that closes the one at ``at``; a syntax error without one."""
        depth = self.items[at].depth
        for position in range(at + 1, len(self.items)):
            if self.items[position].depth == depth and self.items[position].text == ")":
                return position
        raise self.syntax_error(len(self.items))

    def syntax_error(self, at: int) -> GrammarError:
        """PostgreSQL's message about token ``at``."""
        if at >= len(self.items):
            return GrammarError("syntax error at end of input", "42601", len(self.data.decode()) + 1)
        word = self.items[at]
        shown = self.data[word.start : word.end].decode()
        position = len(self.data[: word.start].decode()) + 1
        return GrammarError(f'syntax error at or near "{shown}"', "42601", position)

    def char_position(self, at: int) -> int:
        return len(self.data[: self.start(at)].decode()) + 1

    def identifier(self, at: int) -> str:
        """The name that token ``at`` spells: folded unless quoted."""
        if at >= len(self.items):
            raise self.syntax_error(at)
        word = self.items[at]
        raw = self.data[word.start : word.end].decode()
        if raw.startswith('"'):
            return raw[1:-1].replace('""', '"')
        if not (raw[0].isalpha() or raw[0] == "_"):
            raise self.syntax_error(at)
        return raw.lower()

    def named(self, at: int) -> Named:
        """The name at token ``at``, as long as PostgreSQL's can be; a syntax error for anything else."""
        name = self.identifier(at).encode()[:_NAME_BYTES].decode(errors="ignore")
        return Named(name, self.char_position(at))

    def check_end(self, at: int) -> None:
        """A syntax error unless the statement ends before token ``at``."""
        if at < len(self.items):
            raise self.syntax_error(at)

    def listed(self, first: int, last: int) -> list[tuple[int, int]]:
        """Tokens ``first:last``, which a bracket closes, split at the commas between them."""
        depth = self.items[last].depth + 1
        commas = [i for i in range(first, last) if self.text(i) == "," and self.items[i].depth == depth]
        return list(zip([first, *(comma + 1 for comma in commas)], [*commas, last], strict=True))


def blank(data: bytes, start: int, end: int) -> bytes:
    """``data`` with bytes ``start:end`` as spaces."""
    return data[:start] + b" " * (end - start) + data[end:]


def parse_single(data: bytes) -> Message:
    """The one statement node in ``data``."""
    nodes = parse_nodes(data.decode())
    if len(nodes) != 1:
        raise GrammarError("syntax error at end of input", "42601", len(data.decode()) + 1)
    return nodes[0][2]


def name_end(words: Words, at: int) -> int:
    """One past the qualified name that starts at ``at``."""
    end = at + 1
    while words.text(end) == ".":
        end += 2
    return end
