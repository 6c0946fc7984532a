"""Texts that differ by literals alone: what they have in common, without parsing them.

Programs that write values into their texts send a text that nobody has seen before each time.  ``text_shape`` takes
the literals out by one pass of a regular expression.  What it cannot be sure of stays in the text, which is always
right: two texts have one shape only if they agree in everything else.

Invariants:
I1  two texts of one shape are, to PostgreSQL's scanner, the same tokens but for the values of the literals taken out,
    provided that in one of them each was a token of its own (whoever uses a shape has parsed one of its texts);
I2  literals at one place of a shape have one type: int4, int8, numeric of one number of decimals, or unknown.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["INT4", "INT8", "MAX_SHAPED_CHARS", "UNKNOWN_TEXT", "TextShape", "text_shape"]

#: longer texts have no shape
MAX_SHAPED_CHARS: Final = 4_000
#: more literals than this are data, which are better parsed at once
_MOST_LITERALS: Final = 64

#: marks of literals' types; a numeric's is its number of decimals
INT4: Final = "i"
INT8: Final = "l"
UNKNOWN_TEXT: Final = "s"

_WORDS: Final = frozenset({"select", "insert", "update", "delete"})
_FIRST_WORD: Final = re.compile(r"\s*([A-Za-z]{6})\s")
#: said as what it is not: without regard to case, each character of a range that is named takes time to compile
_HIGH: Final = r"[^\x00-\x7f]"
#: what stays as it is | a quoted literal | a number | what may change the meaning of the rest
_PARTS: Final = re.compile(
    r"("
    r'"[^"]*"'
    r"|\b(?:limit|offset|first|next)\s+[0-9]+"
    r")"
    r"|('(?:[^'\\]|'')*')"
    rf"|(?<![\w.$\"'])(?<!{_HIGH})([0-9]+(?:\.[0-9]+)?)(?![\w.$\"']|{_HIGH})"
    rf"|([\w&$]'|[\\$\x00]|;(?!\s*\Z)|--|/\*|{_HIGH}')",
    re.IGNORECASE,
)
#: behind which a minus belongs to the number that follows
_SIGNED: Final = re.compile(r"(?:[=(,]\s*|[-+*/<>]\s+)-\s*\Z")


class TextShape(NamedTuple):
    """``pieces``: the text around the literals, one more than there are; ``marks``: their types; ``values``: a number
    with its sign, the content of a quoted literal.
    """

    pieces: tuple[str, ...]
    marks: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def key(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The same for all texts of the shape."""
        return self.pieces, self.marks

    def template(self) -> str:
        """The text with ``$1``, ``$2`` … in place of the literals."""
        numbered = (f"{piece}${number}" for number, piece in enumerate(self.pieces[:-1], 1))
        return "".join(numbered) + self.pieces[-1]


def text_shape(text: str) -> TextShape | None:
    """None for what has no literals, for long texts, and where one cannot be sure.  O(text)."""
    if len(text) > MAX_SHAPED_CHARS:
        return None
    first = _FIRST_WORD.match(text)
    if first is None or first[1].lower() not in _WORDS:
        return None
    pieces: list[str] = []
    marks: list[str] = []
    values: list[str] = []
    begun = 0
    for part in _PARTS.finditer(text):
        kind = part.lastindex
        if kind == 1:
            continue
        if kind == 4 or len(values) == _MOST_LITERALS:
            return None
        start = part.start()
        piece, value = text[begun:start], part[0]
        if kind == 2:
            mark, value = UNKNOWN_TEXT, value[1:-1].replace("''", "'")
        else:
            if piece.endswith("-") or piece[-2:].rstrip().endswith("-"):
                signed = _SIGNED.search(piece)
                if signed is not None:
                    piece, value = piece[: signed.end()].rstrip().removesuffix("-"), "-" + value
            found = _number_mark(value)
            if found is None:
                return None
            mark = found
        pieces.append(piece)
        marks.append(mark)
        values.append(value)
        begun = part.end()
    if not values:
        return None
    pieces.append(text[begun:])
    return TextShape(tuple(pieces), tuple(marks), tuple(values))


def _number_mark(value: str) -> str | None:
    """The type that PostgreSQL gives to the number, and whether it has a sign; None at the edges of what types hold."""
    sign = "-" if value[0] == "-" else ""
    whole, point, decimals = value.partition(".")
    if point:
        return f"{sign}{len(decimals)}" if len(value) <= 30 else None
    size = len(whole) - len(sign)
    if size <= 9 or (size <= 10 and abs(int(whole)) < 2**31):
        return sign + INT4
    return sign + INT8 if size <= 18 and abs(int(whole)) > 2**31 else None
