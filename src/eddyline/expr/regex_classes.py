"""Character classes of regular expressions as ranges of code points.

Letters, digits and marks follow Unicode; ``digit`` and ``xdigit`` are ASCII, and ``space`` leaves the no-break
spaces out.  Code points from 0x20000 on count as letters up to the end of the third ideographic plane.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["CLASS_NAMES", "Ranges", "class_ranges", "complement", "with_other_case"]

Ranges: TypeAlias = tuple[tuple[int, int], ...]

_MAX_FOLDED: Final = 4096
_LAST: Final = 0x10FFFF
_PLANES_END: Final = 0x20000
_IDEOGRAPHS: Final = (0x20000, 0x323AF)
_SPACES: Final[Ranges] = (
    (9, 13), (32, 32), (0x1680, 0x1680), (0x2000, 0x2006), (0x2008, 0x200A), (0x2028, 0x2029),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
_BLANKS: Final[Ranges] = (
    (9, 9), (32, 32), (0x1680, 0x1680), (0x2000, 0x2006), (0x2008, 0x200A), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
_DIGITS: Final[Ranges] = ((48, 57),)

CLASS_NAMES: Final = frozenset(
    (
        "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
        "xdigit",
    )
)  # fmt: skip


def complement(ranges: Ranges) -> Ranges:
    """All other code points.  ``ranges`` must be sorted by start; they may overlap."""
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    if start <= _LAST:
        result.append((start, _LAST))
    return tuple(result)


@functools.cache
def class_ranges(name: str) -> Ranges:
    """The code points of a class; the larger ones take some 20 ms the first time."""
    match name:
        case "digit":
            return _DIGITS
        case "xdigit":
            return ((48, 57), (65, 70), (97, 102))
        case "space":
            return _SPACES
        case "blank":
            return _BLANKS
        case "word":
            return _union(class_ranges("alnum"), ((95, 95),))
        case "alnum":
            return _union(_scan(_is_alnum), (_IDEOGRAPHS,))
        case "alpha":
            return complement(_union(complement(class_ranges("alnum")), _DIGITS))
        case "upper":
            return _scan(str.isupper)
        case "lower":
            return _scan(str.islower)
        case "cntrl":
            return _scan(lambda c: unicodedata.category(c) in ("Cc", "Zl", "Zp"))
        case "punct":
            return _scan(_is_punct)
        case "graph":
            return _union(class_ranges("alnum"), class_ranges("punct"))
    return _union(class_ranges("graph"), _scan(lambda c: unicodedata.category(c) == "Zs"))


def with_other_case(ranges: Ranges) -> Ranges:
    """``ranges`` and the upper and lower case of their characters, one to one."""
    if sum(high - low for low, high in ranges) > _MAX_FOLDED:
        return ranges  # a class: closed under case but for rarities
    extra: list[tuple[int, int]] = []
    for low, high in ranges:
        for code in range(low, high + 1):
            for other in (chr(code).lower(), chr(code).upper()):
                if len(other) == 1 and ord(other) != code:
                    extra.append((ord(other), ord(other)))
    return _union(ranges, tuple(extra))


def _is_alnum(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "L" or category in ("Nd", "Nl", "Mc")


def _is_punct(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "PS" or category in ("Mn", "Me", "No", "Cf")


def _scan(member: Callable[[str], bool]) -> Ranges:
    result: list[tuple[int, int]] = []
    start = -1
    for code in range(_PLANES_END + 1):
        inside = code < _PLANES_END and not 0xD800 <= code <= 0xDFFF and member(chr(code))
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            result.append((start, code - 1))
            start = -1
    return tuple(result)


def _union(left: Ranges, right: Ranges) -> Ranges:
    return complement(complement(tuple(sorted((*left, *right)))))
