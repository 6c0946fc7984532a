"""Regular expressions in action: whole columns through Arrow's engine where only *whether* matters, Python's where
the place does.

Python's engine backtracks, Arrow's runs in linear time; the first is given only what the second cannot do
(look-around, back references, word boundaries) or what needs the ends of a match.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import unsupported
from eddyline.expr.regex_analysis import (
    captures_settled,
    contains,
    is_deterministic,
    least_length,
    looks_right,
    prefers_longest,
    quantifier_moods,
)
from eddyline.expr.regex_classes import Ranges
from eddyline.expr.regex_syntax import (
    Alternation,
    Assertion,
    Backreference,
    Chars,
    Flags,
    Group,
    Look,
    Node,
    Regex,
    Repeat,
    Sequence,
    parse_regex,
)
from eddyline.expr.registry import Evaluated
from eddyline.expr.rowwise import map_rows

__all__ = ["Matcher", "Span", "compile_regex", "match_column"]

Span = tuple[int, int]
_LINEAR_WORD: Final = ("y", "Y", "m", "M")
_MAX_PLACED: Final = 1_000  # characters of a text whose match ends are tried with their surroundings in view


def _code(code: int, *, linear: bool) -> str:
    return f"\\x{{{code:x}}}" if linear else f"\\U{code:08x}"


def _set(ranges: Ranges, *, linear: bool) -> str:
    if ranges == ((0, 0x10FFFF),):
        return "."
    if not ranges:
        return r"[^\x00-\x{10ffff}]" if linear else "(?!)"
    body = "".join(
        _code(low, linear=linear) + (f"-{_code(high, linear=linear)}" if high > low else "") for low, high in ranges
    )
    return f"[{body}]"


_ASSERTIONS: Final = {
    "A": r"\A", "Z": r"\Z", "y": r"\b", "Y": r"\B", "m": r"\b(?=\w)", "M": r"\b(?<=\w)",
}  # fmt: skip


def _assertion(node: Assertion, *, linear: bool) -> str:
    if node.kind == "^":
        return "(?m:^)" if node.lines else r"\A"
    end = r"\z" if linear else r"\Z"
    if node.kind == "$":
        return "(?m:$)" if node.lines else end
    return end if node.kind == "Z" else _ASSERTIONS[node.kind]


def _translated(node: Node, *, linear: bool, greedy: bool | None) -> str:
    """``node`` in the syntax of Arrow's (``linear``) or Python's engine; ``greedy`` overrides all quantifiers."""

    def inner(child: Node) -> str:
        return _translated(child, linear=linear, greedy=greedy)

    match node:
        case Chars():
            return _set(node.ranges, linear=linear)
        case Sequence():
            return "".join(
                inner(item) if not isinstance(item, Alternation) else f"(?:{inner(item)})" for item in node.items
            )
        case Alternation():
            return "|".join(map(inner, node.branches))
        case Repeat():
            most = "" if node.most is None else str(node.most)
            lazy = "" if (node.greedy if greedy is None else greedy) else "?"
            return f"(?:{inner(node.item)}){{{node.least},{most}}}{lazy}"
        case Group():
            return f"({inner(node.item)})" if node.number else f"(?:{inner(node.item)})"
        case Look():
            mark = ("?" if node.ahead else "?<") + ("!" if node.negated else "=")
            return f"({mark}{inner(node.item)})"
        case Assertion():
            return _assertion(node, linear=linear)
        case Backreference():
            return f"(?:\\{node.number})"


def _python(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source, re.DOTALL)
    except (re.error, OverflowError) as error:
        what = "variable-width look-behind" if "look-behind" in str(error) else "such a regular expression"
        raise unsupported(what) from None


@dataclass(frozen=True, slots=True)
class Matcher:
    """One expression, ready to be matched.  Immutable; shared by threads."""

    regex: Regex
    linear: str | None  # for Arrow's engine, if it can
    replacing: str | None  # the same, finding the matches that PostgreSQL takes, none of them empty
    first: re.Pattern[str]  # finds where the leftmost match starts, and its end if ``direct``
    direct: bool  # ``first`` finds the match that PostgreSQL takes
    longest: bool

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """PostgreSQL's match at or after ``start``; its groups count only if ``captures`` allows."""
        found = self.first.search(text, start)
        if found is None or self.direct:
            return found
        begin, end = found.span()
        ends = range(len(text), end, -1) if self.longest else range(begin, end)
        for candidate in ends:
            better = self._between(text, begin, candidate)
            if better is not None:
                return better
        return self._between(text, begin, end) or found

    def _between(self, text: str, begin: int, end: int) -> re.Match[str] | None:
        """The match of exactly these ends."""
        if not looks_right(self.regex.root):
            return self.first.fullmatch(text, begin, end)
        if len(text) > _MAX_PLACED:
            raise unsupported("an ambiguous regular expression with context on a text this long")
        return _placed(self.first.pattern, end).match(text, begin)

    def require_captures(self) -> None:
        """0A000 if the captures of an ambiguous expression cannot be told."""
        if not self.direct and not captures_settled(self.regex.root):
            raise unsupported("capturing from an ambiguous regular expression")


@functools.lru_cache(maxsize=4096)
def _placed(source: str, end: int) -> re.Pattern[str]:
    """``source``, its match ending at character ``end`` of the text."""
    return re.compile(rf"(?:{source})(?<=\A.{{{end}}})", re.DOTALL)


@functools.lru_cache(maxsize=1024)
def compile_regex(pattern: str, flags: Flags) -> Matcher:
    """The matcher of an expression; 2201B if it is malformed, 0A000 if it has a construct that we do not have."""
    regex = parse_regex(pattern, flags)
    root = regex.root
    longest = prefers_longest(root)
    direct = is_deterministic(root)
    source = _translated(root, linear=False, greedy=longest if direct and quantifier_moods(root) else None)
    linear = None
    if not contains(root, Look, Backreference) and not _has_word_boundary(root):
        linear = "(?s)" + _translated(root, linear=True, greedy=None)
    replacing = None
    if linear is not None and direct and least_length(root) > 0:
        replacing = "(?s)" + _translated(root, linear=True, greedy=longest)
    return Matcher(regex, linear, replacing, _python(source), direct, longest)


def _has_word_boundary(node: Node) -> bool:
    return contains(node, Assertion) and any(k in _kinds(node) for k in _LINEAR_WORD)


def _kinds(node: Node) -> set[str]:
    match node:
        case Assertion():
            return {node.kind}
        case Sequence():
            return set().union(*map(_kinds, node.items)) if node.items else set()
        case Alternation():
            return set().union(*map(_kinds, node.branches))
        case Repeat() | Group() | Look():
            return _kinds(node.item)
        case _:
            return set()


def match_column(text: pa.Array, matcher: Matcher) -> Evaluated:
    """bool[n]: where the expression matches somewhere; NULL for NULL."""
    if matcher.linear is not None:
        try:
            return Evaluated(pc.match_substring_regex(text, matcher.linear))
        except pa.ArrowInvalid:  # larger than that engine allows: the other one decides
            return _match_rows(text, matcher)
    return _match_rows(text, matcher)


def _match_rows(text: pa.Array, matcher: Matcher) -> Evaluated:
    search = matcher.first.search
    return map_rows([text], lambda value: search(value) is not None, pa.bool_())
