"""Which matches of a regular expression a backtracking engine finds, and which PostgreSQL wants.

PostgreSQL takes the leftmost match, and of those the longest (or the shortest, if the first quantifier with a
preference is a lazy one); parts are then settled left to right, each by its own preference.  A backtracking engine
takes the first match in its order of alternatives.  The two agree where

D  the expression is *deterministic*: in any state the next character decides the way (the follow sets of its
   character positions are disjoint), so that of one start every match lies on one path; lazy quantifiers can then be
   made greedy, or the reverse, to the preference of the whole;
M  the ends of the match are known, and every piece between captures is *monotone*: the engine tries its lengths in
   the order that PostgreSQL prefers.

What satisfies neither has its whole match found by trying ends, and captures of it are refused.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from eddyline.expr.regex_classes import Ranges
from eddyline.expr.regex_syntax import (
    Alternation,
    Assertion,
    Backreference,
    Chars,
    Group,
    Look,
    Node,
    Repeat,
    Sequence,
)

__all__ = [
    "captures_settled",
    "contains",
    "is_deterministic",
    "least_length",
    "looks_right",
    "prefers_longest",
    "quantifier_moods",
]


def prefers_longest(node: Node) -> bool:
    """Whether the whole expression takes its longest match."""
    return _preference(node) is not False


def _preference(node: Node) -> bool | None:
    """True: longest, False: shortest, None: no preference."""
    match node:
        case Alternation():
            return True
        case Sequence():
            return next((p for p in map(_preference, node.items) if p is not None), None)
        case Repeat():
            return _preference(node.item) if node.exact else node.greedy
        case Group():
            return _preference(node.item)
        case _:
            return None


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Sequence():
            return node.items
        case Alternation():
            return node.branches
        case Repeat() | Group() | Look():
            return (node.item,)
        case _:
            return ()


def contains(node: Node, *kinds: type) -> bool:
    return isinstance(node, kinds) or any(contains(child, *kinds) for child in _children(node))


def quantifier_moods(node: Node) -> set[bool]:
    """The greediness of all quantifiers that leave a choice."""
    moods: set[bool] = set()
    if isinstance(node, Repeat) and node.least != node.most:
        moods.add(node.greedy)
    for child in _children(node):
        moods |= quantifier_moods(child)
    return moods


def looks_right(node: Node) -> bool:
    """Whether a match may depend on what follows it."""
    if isinstance(node, Assertion):
        return node.kind not in ("^", "A") or node.lines
    return (isinstance(node, Look) and node.ahead) or any(looks_right(child) for child in _children(node))


class _Positions(NamedTuple):
    """Glushkov sets of a subexpression, by position numbers."""

    nullable: bool
    first: frozenset[int]
    last: frozenset[int]


class _Automaton:
    def __init__(self) -> None:
        self.ranges: list[Ranges] = []
        self.follow: list[set[int]] = []
        self.possible = True

    def build(self, node: Node) -> _Positions:
        match node:
            case Chars():
                self.ranges.append(node.ranges)
                self.follow.append(set())
                number = frozenset((len(self.ranges) - 1,))
                return _Positions(False, number, number)
            case Sequence():
                return self._sequence([self.build(item) for item in node.items])
            case Alternation():
                return self._alternation([self.build(branch) for branch in node.branches])
            case Repeat():
                return self._repeat(node)
            case Group():
                return self.build(node.item)
            case Backreference():
                self.possible = False
        return _Positions(True, frozenset(), frozenset())  # nothing is read

    def _sequence(self, parts: list[_Positions]) -> _Positions:
        total = _Positions(True, frozenset(), frozenset())
        for part in parts:
            self._connect(total.last, part.first)
            total = _Positions(
                total.nullable and part.nullable,
                total.first | part.first if total.nullable else total.first,
                total.last | part.last if part.nullable else part.last,
            )
        return total

    def _alternation(self, parts: list[_Positions]) -> _Positions:
        if any(part.nullable for part in parts[:-1]):
            self.possible = False
        first = frozenset().union(*(part.first for part in parts))
        return _Positions(parts[-1].nullable, first, frozenset().union(*(part.last for part in parts)))

    def _repeat(self, node: Repeat) -> _Positions:
        if node.most == 0:
            return _Positions(True, frozenset(), frozenset())
        part = self.build(node.item)
        if part.nullable and node.most != 1:
            self.possible = False
        if node.most != 1:
            self._connect(part.last, part.first)
        return _Positions(node.least == 0 or part.nullable, part.first, part.last)

    def _connect(self, before: frozenset[int], after: frozenset[int]) -> None:
        for position in before:
            if self.follow[position] & after:
                self.possible = False  # two ways to the same place: (a*)*
            self.follow[position] |= after


def is_deterministic(node: Node) -> bool:
    """Property D.  Counted repeats are taken as open ones."""
    automaton = _Automaton()
    whole = automaton.build(node)
    if not automaton.possible or len(automaton.ranges) > _MAX_POSITIONS:
        return False
    return all(_disjoint([automaton.ranges[p] for p in after]) for after in (whole.first, *automaton.follow))


_MAX_POSITIONS = 400


def _disjoint(sets: list[Ranges]) -> bool:
    merged = sorted(r for ranges in sets for r in ranges)
    return all(left[1] < right[0] for left, right in pairwise(merged))


def _lengths(node: Node) -> tuple[int, int | None]:
    """The least and the most characters that the expression reads; None: no bound or unknown."""
    match node:
        case Chars():
            return 1, 1
        case Sequence():
            parts = [_lengths(item) for item in node.items]
            most = None if any(m is None for _, m in parts) else sum(m for _, m in parts if m is not None)
            return sum(least for least, _ in parts), most
        case Alternation():
            parts = [_lengths(branch) for branch in node.branches]
            most = None if any(m is None for _, m in parts) else max(m for _, m in parts if m is not None)
            return min(least for least, _ in parts), most
        case Repeat():
            least, most = _lengths(node.item)
            return least * node.least, None if most is None or node.most is None else most * node.most
        case Group():
            return _lengths(node.item)
        case Backreference():
            return 0, None
        case _:
            return 0, 0


def least_length(node: Node) -> int:
    """The least number of characters that a match has."""
    return _lengths(node)[0]


def _fixed(node: Node) -> bool:
    least, most = _lengths(node)
    return least == most


def _monotone(items: tuple[Node, ...]) -> bool:
    """Property M of a run of items taken as one piece."""
    variable = [item for item in items if not _fixed(item)]
    if not variable:
        return True
    whole = Sequence(items)
    if len(variable) == 1:
        item = variable[0]
        while isinstance(item, Group) and not item.number:
            item = item.item
        if isinstance(item, Repeat) and _fixed(item.item):
            return True
    moods = quantifier_moods(whole)
    return moods == {prefers_longest(whole)} and is_deterministic(whole)


def captures_settled(node: Node) -> bool:
    """Whether an engine that is given both ends of the match captures what PostgreSQL does."""
    if is_deterministic(node):
        return True
    if isinstance(node, Alternation):
        return all(captures_settled(branch) for branch in node.branches)
    items = node.items if isinstance(node, Sequence) else (node,)
    variable = [item for item in items if not _fixed(item)]
    if len(variable) == 1 and isinstance(variable[0], Group) and not _captures(variable[0].item):
        return True  # the ends of the match are those of the group
    run: list[Node] = []
    for item in items:
        if not contains(item, Group) or not _captures(item):
            run.append(item)
            continue
        if not _monotone(tuple(run)) or not isinstance(item, Group):
            return False
        if _captures(item.item) and not is_deterministic(item.item):
            return False
        if not _monotone(item.item.items if isinstance(item.item, Sequence) else (item.item,)):
            return False
        run = []
    return _monotone(tuple(run)) and not contains(node, Backreference)


def _captures(node: Node) -> bool:
    return (isinstance(node, Group) and node.number > 0) or any(_captures(child) for child in _children(node))
