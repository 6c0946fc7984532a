"""Where statements end in a text that is still being typed."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["complete_statements"]

#: what a semicolon may be hidden in, and semicolons; what is begun and not ended is found by its beginning alone
_TOKENS: Final = re.compile(
    r"""
      (?P<line>--[^\n]*)
    | (?P<comment>/\*)
    | (?P<escaped>(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*(?P<escaped_end>'(?!'))?)
    | (?P<text>'(?:[^']|'')*(?P<text_end>'(?!'))?)
    | (?P<name>"(?:[^"]|"")*(?P<name_end>"(?!"))?)
    | (?P<dollar>(?<![\w$])\$(?:[A-Za-z_\x80-\U0010ffff][\w]*)?\$)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*|\*/")


def complete_statements(text: str) -> tuple[list[str], str]:
    """The statements of ``text`` that a semicolon ends, without it, and what is left.  Blank ones are left out."""
    found: list[str] = []
    begun = at = 0
    while (token := _TOKENS.search(text, at)) is not None:
        end = _end_of(text, token)
        if end is None:
            break
        at = end
        if token.lastgroup == "end":
            found.append(text[begun : token.start()].strip())
            begun = at
    return [statement for statement in found if statement], text[begun:]


def _end_of(text: str, token: re.Match[str]) -> int | None:
    """Where the token ends; None if it does not."""
    if token["comment"] is not None:
        return _end_of_comment(text, token.end())
    if token["dollar"] is not None:
        end = text.find(token[0], token.end())
        return None if end < 0 else end + len(token[0])
    for kind in ("escaped", "text", "name"):
        if token[kind] is not None:
            return None if token[f"{kind}_end"] is None else token.end()
    return token.end()


def _end_of_comment(text: str, at: int) -> int | None:
    """Comments nest."""
    depth = 1
    while depth:
        mark = _COMMENT.search(text, at)
        if mark is None:
            return None
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at
