"""A script as its statements, with the line that each is on, and COPY's data between them."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from eddyline.errors import Error
from eddyline.frontends.statement_scan import complete_statements
from eddyline.sql.parse import parse

__all__ = ["CopyWay", "ScriptLines", "ScriptStatement", "copies", "inline_data"]

#: blanks and comments before a statement's first word; of comments within comments the outermost is enough
_BEFORE: Final = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_COPY: Final = re.compile(r"copy\b", re.IGNORECASE)
_END_OF_DATA: Final = "\\."


class CopyWay(enum.Enum):
    """Of a COPY whose data its client gives or takes."""

    IN = enum.auto()
    OUT = enum.auto()


def copies(statement: str) -> CopyWay | None:
    """Which way a statement copies; None for any other, and for one that cannot be read."""
    if _COPY.match(statement, _first_word(statement)) is None:
        return None
    try:
        parsed = parse(statement)
    except Error:
        return None  # whoever runs it says why
    if len(parsed) != 1 or parsed[0].kind != "copy_stmt":
        return None
    node = parsed[0].node
    if node.filename or node.is_program:
        return None
    return CopyWay.IN if node.is_from else CopyWay.OUT


def inline_data(lines: Iterator[str]) -> Iterator[str]:
    """COPY's data: the next lines, up to one that is ``\\.`` alone, which is taken too, or to their end."""
    for line in lines:
        if line.rstrip("\r\n") == _END_OF_DATA:
            return
        yield line


def _first_word(text: str) -> int:
    match = _BEFORE.match(text)
    return 0 if match is None else match.end()


def _lines_of(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """``line``: of its first character, comments included; the script's first is 1."""

    text: str
    line: int

    def line_of(self, position: int | None) -> int:
        """The line of a 1-based position in the text; None: of its first word."""
        at = _first_word(self.text) if position is None else position - 1
        return self.line + self.text.count("\n", 0, at)


class ScriptLines:
    """Lines, one after the other: each is the caller's to drop, or becomes part of the statement that is begun."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._taken = 0
        self._begun = ""  # what no semicolon ends yet
        self._line = ""
        self._first = 1  # the line on which ``_begun`` begins

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._line = next(self._lines)
        self._taken += _lines_of(self._line)
        return self._line

    @property
    def blank(self) -> bool:
        """Whether no statement is begun."""
        return not self._begun.strip()

    def drop(self) -> None:
        """The newest line is none of a statement's."""
        self._begun, self._first = "", self._taken + 1

    def complete(self) -> Iterator[ScriptStatement]:
        """The statements that the newest line ends; what is read before the next one belongs to none of them."""
        if self.blank:
            self._begun, self._first = "", self._taken + 1 - _lines_of(self._line)
        text, first = self._begun + self._line, self._first
        found, self._begun = complete_statements(text)
        self._first = first + text.count("\n", 0, len(text) - len(self._begun))
        at = 0
        for statement in found:
            at = text.index(statement, at)
            yield ScriptStatement(statement, first + text.count("\n", 0, at))
            at += len(statement)

    def rest(self) -> ScriptStatement | None:
        """What no semicolon ends."""
        if self.blank:
            return None
        text = self._begun.strip()
        return ScriptStatement(text, self._first + self._begun.count("\n", 0, self._begun.index(text)))
