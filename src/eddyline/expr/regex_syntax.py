"""PostgreSQL's advanced regular expressions: text to a tree.

Malformed expressions are 2201B with PostgreSQL's reasons; basic and extended (non-advanced) syntax, collating
elements of several characters and other rarities are refused with 0A000 by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, NoReturn, TypeAlias

from eddyline.errors import make_error, unsupported
from eddyline.expr.regex_classes import CLASS_NAMES, Ranges, class_ranges, complement, with_other_case

__all__ = [
    "Alternation",
    "Assertion",
    "Backreference",
    "Chars",
    "Flags",
    "Group",
    "Look",
    "Node",
    "Regex",
    "Repeat",
    "Sequence",
    "parse_regex",
]


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of ``ranges``: sorted, disjoint (first, last) code points."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int
    most: int | None
    greedy: bool
    exact: bool  # written {m}: takes over the preference of its item


@dataclass(frozen=True, slots=True)
class Group:
    item: Node
    number: int  # 0: not capturing


@dataclass(frozen=True, slots=True)
class Look:
    item: Node
    ahead: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Assertion:
    """kind: "^" "$" (start and end, of lines if ``lines``), "A" "Z" (of the text), "y" "Y" "m" "M" (words)."""

    kind: str
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Backreference:
    number: int


Node: TypeAlias = Chars | Sequence | Alternation | Repeat | Group | Look | Assertion | Backreference


@dataclass(frozen=True, slots=True)
class Flags:
    ignore_case: bool = False
    newline_dot: bool = True  # whether . and [^x] match a newline
    lines: bool = False  # whether ^ and $ match at lines
    expanded: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Regex:
    root: Node
    groups: int
    flags: Flags


def invalid(reason: str) -> NoReturn:
    raise make_error("2201B", f"invalid regular expression: {reason}")


_MAX_REPEAT: Final = 255
_EVERYTHING: Final[Ranges] = ((0, 0x10FFFF),)
_SIMPLE: Final = {"a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASS_ESCAPES: Final = {"d": "digit", "s": "space", "w": "word"}


def with_options(flags: Flags, letters: str) -> Flags | None:
    """``flags`` changed by option letters; None if one is unknown."""
    for letter in letters:
        match letter:
            case "i":
                flags = replace(flags, ignore_case=True)
            case "c":
                flags = replace(flags, ignore_case=False)
            case "n" | "m":
                flags = replace(flags, newline_dot=False, lines=True)
            case "p":
                flags = replace(flags, newline_dot=False, lines=False)
            case "w":
                flags = replace(flags, newline_dot=True, lines=True)
            case "s":
                flags = replace(flags, newline_dot=True, lines=False)
            case "x":
                flags = replace(flags, expanded=True)
            case "t":
                flags = replace(flags, expanded=False)
            case "q":
                flags = replace(flags, literal=True)
            case "e" | "b":
                raise unsupported(f'regular expression option "{letter}"')
            case _:
                return None
    return flags


def parse_regex(text: str, flags: Flags) -> Regex:
    """The tree of an advanced regular expression with its embedded options applied."""
    if text.startswith("***="):
        text, flags = text[4:], replace(flags, literal=True)
    elif text.startswith("***:"):
        text = text[4:]
    elif text.startswith("***"):
        invalid("quantifier operand invalid")
    options = re.match(r"\(\?([a-zA-Z]+)\)", text)
    if options is not None and not flags.literal:
        changed = with_options(flags, options[1])
        if changed is None:
            invalid("invalid embedded option")
        text, flags = text[options.end() :], changed
    if flags.literal:
        literal = _Parser("", flags).literal
        return Regex(Sequence(tuple(literal(ord(c)) for c in text)), 0, flags)
    parser = _Parser(text, flags)
    root = parser.alternation(0)
    if parser.position < len(text):
        invalid("parentheses () not balanced")
    if parser.highest_reference > parser.groups:
        invalid("invalid backreference number")
    return Regex(root, parser.groups, flags)


class _Parser:
    """Recursive descent; single use.  Depth is bounded, because each level is a Python frame or two."""

    max_depth = 100

    def __init__(self, text: str, flags: Flags) -> None:
        self.text = text
        self.flags = flags
        self.position = 0
        self.groups = 0
        self.closed: set[int] = set()
        self.highest_reference = 0
        self.in_look = False

    def peek(self, count: int = 1) -> str:
        return self.text[self.position : self.position + count]

    def alternation(self, depth: int) -> Node:
        if depth > self.max_depth:
            raise make_error("54001", "regular expression is too deeply nested")
        branches = [self.branch(depth)]
        while self.peek() == "|":
            self.position += 1
            branches.append(self.branch(depth))
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))

    def skip_blanks(self) -> None:
        """Comments, and in expanded syntax white space."""
        while True:
            if self.peek(3) == "(?#":
                end = self.text.find(")", self.position)
                self.position = len(self.text) if end < 0 else end + 1
            elif self.flags.expanded and self.peek() and self.peek() in " \t\n\r\f\v":
                self.position += 1
            elif self.flags.expanded and self.peek() == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end + 1
            else:
                return

    def branch(self, depth: int) -> Node:
        items: list[Node] = []
        while True:
            self.skip_blanks()
            if self.peek() in ("", "|") or (self.peek() == ")" and depth > 0):
                break
            item = self.atom(depth)
            self.skip_blanks()
            items.append(self.quantified(item))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def quantified(self, item: Node) -> Node:
        bounds = self.quantifier()
        if bounds is None:
            return item
        if isinstance(item, Assertion | Look):
            invalid("quantifier operand invalid")
        least, most, exact = bounds
        greedy = True
        if self.peek() == "?":
            self.position += 1
            greedy = False
        self.skip_blanks()
        if self.quantifier() is not None:
            invalid("quantifier operand invalid")
        return Repeat(item, least, most, greedy, exact)

    def quantifier(self) -> tuple[int, int | None, bool] | None:
        character = self.peek()
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(character)
        if simple is not None:
            self.position += 1
            return (*simple, False)
        if character != "{" or not re.match(r"\{[0-9]", self.peek(2)):
            return None
        match = re.compile(r"\{([0-9]+)(,([0-9]*))?\}").match(self.text, self.position)
        if match is None:
            invalid(
                "braces {} not balanced" if "}" not in self.text[self.position :] else "invalid repetition count(s)"
            )
        self.position = match.end()
        least = int(match[1][:9])
        most = least if match[2] is None else int(match[3][:9]) if match[3] else None
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            invalid("invalid repetition count(s)")
        return least, most, match[2] is None

    def atom(self, depth: int) -> Node:
        character = self.peek()
        self.position += 1
        match character:
            case "(":
                return self.parenthesis(depth)
            case "[":
                return self.bracket()
            case ".":
                return Chars(_EVERYTHING if self.flags.newline_dot else complement(((10, 10),)))
            case "^" | "$":
                return Assertion(character, self.flags.lines)
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                invalid("quantifier operand invalid")
            case "{" if re.match("[0-9]", self.peek()):
                invalid("quantifier operand invalid")
            case ")":
                invalid("parentheses () not balanced")
        return self.literal(ord(character))

    def literal(self, code: int) -> Chars:
        return Chars(self.folded(((code, code),)))

    def folded(self, ranges: Ranges) -> Ranges:
        """With the other case of each character, if case does not matter."""
        return with_other_case(ranges) if self.flags.ignore_case else ranges

    def parenthesis(self, depth: int) -> Node:
        if self.peek() != "?":
            number = 0
            if not self.in_look:
                self.groups += 1
                number = self.groups
            item = self.closing(depth)
            self.closed.add(number)
            return Group(item, number)
        for mark, ahead, negated in (
            ("?=", True, False),
            ("?!", True, True),
            ("?<=", False, False),
            ("?<!", False, True),
        ):
            if self.peek(len(mark)) == mark:
                self.position += len(mark)
                outer, self.in_look = self.in_look, True
                item = self.closing(depth)
                self.in_look = outer
                return Look(item, ahead, negated)
        if self.peek(2) == "?:":
            self.position += 2
            return Group(self.closing(depth), 0)
        invalid("quantifier operand invalid")

    def closing(self, depth: int) -> Node:
        item = self.alternation(depth + 1)
        if self.peek() != ")":
            invalid("parentheses () not balanced")
        self.position += 1
        return item

    def escape(self) -> Node:
        letter = self.peek()
        if not letter:
            invalid("invalid escape \\ sequence")
        if letter in "AZyYmM":
            self.position += 1
            return Assertion(letter)
        if letter.lower() in _CLASS_ESCAPES:
            self.position += 1
            return Chars(self.class_escape(letter))
        if letter in "123456789":
            return self.reference_or_octal()
        return self.literal(self.escaped_code())

    def class_escape(self, letter: str) -> Ranges:
        ranges = class_ranges(_CLASS_ESCAPES[letter.lower()])
        if letter.islower():
            return ranges
        return complement(ranges)

    def reference_or_octal(self) -> Node:
        digits = re.compile("[0-9]+").match(self.text, self.position)
        text = digits[0] if digits is not None else ""
        number = int(text[:9])
        if len(text) == 1 or number <= self.groups:
            self.position += len(text)
            if number not in self.closed or self.in_look:
                invalid("invalid backreference number")
            self.highest_reference = max(self.highest_reference, number)
            return Backreference(number)
        return self.literal(self.escaped_code())

    def escaped_code(self) -> int:
        """The code point of a character escape, the backslash already read."""
        letter = self.peek()
        self.position += 1
        if letter in _SIMPLE:
            return _SIMPLE[letter]
        if letter == "c":
            control = self.peek()
            self.position += 1
            if not control:
                invalid("invalid escape \\ sequence")
            return ord(control) & 0o37
        forms = {"u": r"[0-9a-fA-F]{4}", "U": r"[0-9a-fA-F]{8}", "x": r"[0-9a-fA-F]+"}
        if letter in forms:
            return self.number(forms[letter], 16)
        if letter.isdigit() and letter in "01234567":
            self.position -= 1
            return self.number(r"[0-7]{1,3}", 8)
        if letter.isalnum() and letter.isascii():
            invalid("invalid escape \\ sequence")
        return ord(letter)

    def number(self, pattern: str, base: int) -> int:
        match = re.compile(pattern).match(self.text, self.position)
        if match is None:
            invalid("invalid escape \\ sequence")
        self.position = match.end()
        code = int(match[0][-12:], base)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            invalid("invalid escape \\ sequence")
        return code

    def bracket(self) -> Node:
        for mark, kind in (("[:<:]]", "m"), ("[:>:]]", "M")):
            if self.peek(len(mark)) == mark:
                self.position += len(mark)
                return Assertion(kind)
        negated = self.peek() == "^"
        self.position += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                invalid("brackets [] not balanced")
            self.bracket_item(ranges, first=first)
            first = False
        self.position += 1
        merged = complement(complement(tuple(sorted(ranges))))
        if negated:
            merged = complement(merged if self.flags.newline_dot else tuple(sorted((*merged, (10, 10)))))
        return Chars(merged)

    def bracket_item(self, ranges: list[tuple[int, int]], *, first: bool) -> None:
        if self.peek(2) == "[:":
            ranges.extend(self.named_class())
            return
        if self.peek() == "\\" and self.peek(2)[1:].lower() in _CLASS_ESCAPES and len(self.peek(2)) == 2:
            self.position += 2
            ranges.extend(self.class_escape(self.text[self.position - 1]))
            return
        if self.peek() == "-" and not first and self.peek(2) != "-]":
            invalid("invalid character range")
        low = self.bracket_char()
        high = low
        if self.peek() == "-" and self.peek(2) != "-]" and len(self.peek(2)) == 2:
            self.position += 1
            if self.peek(2) == "[:" or (self.peek() == "\\" and self.peek(2)[1:].lower() in _CLASS_ESCAPES):
                invalid("invalid character range")
            high = self.bracket_char()
            if high < low:
                invalid("invalid character range")
        ranges.extend(self.folded(((low, high),)))

    def bracket_char(self) -> int:
        mark = self.peek(2)
        if mark in ("[.", "[="):
            end = self.text.find(mark[1] + "]", self.position + 2)
            if end < 0:
                invalid("brackets [] not balanced")
            name = self.text[self.position + 2 : end]
            self.position = end + 2
            if len(name) != 1:
                raise unsupported(f'collating element "{name}"')
            return ord(name)
        character = self.peek()
        self.position += 1
        if character != "\\":
            return ord(character)
        if not self.peek():
            invalid("invalid escape \\ sequence")
        return self.escaped_code()

    def named_class(self) -> Ranges:
        end = self.text.find(":]", self.position + 2)
        if end < 0:
            invalid("brackets [] not balanced")
        name = self.text[self.position + 2 : end]
        self.position = end + 2
        if name not in CLASS_NAMES:
            invalid("invalid character class")
        if self.flags.ignore_case and name in ("upper", "lower"):
            name = "alpha"
        return class_ranges(name)
