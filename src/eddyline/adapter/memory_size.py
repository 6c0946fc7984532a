"""Amounts of memory as settings give and show them: a number of bytes, or one with PostgreSQL's units."""

from __future__ import annotations

import re
from typing import Final

from eddyline.errors import make_error

__all__ = ["bytes_of", "memory_size"]

_UNITS: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MOST: Final = 1 << 60


def memory_size(name: str, text: str) -> str:
    """``text`` in its shortest form; 22023 for anything else.  0 means no bound; a number without unit is bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?\s*", text)
    if match is None:
        raise make_error(
            "22023",
            f'invalid value for parameter "{name}": "{text}"',
            hint='Valid units for this parameter are "B", "kB", "MB", "GB", and "TB"; 0 is no bound.',
        )
    size = round(float(match[1]) * _UNITS[match[2] or "B"])
    if size > _MOST:
        raise make_error("22023", f'{text.strip()} is outside the valid range for parameter "{name}" (0 .. {_MOST})')
    if size == 0:
        return "0"
    unit = max((u for u, factor in _UNITS.items() if size % factor == 0), key=_UNITS.__getitem__)
    return f"{size // _UNITS[unit]}{unit}"


def bytes_of(text: str) -> int | None:
    """What ``memory_size`` gave, in bytes; None for no bound."""
    match = re.fullmatch(r"(\d+)(B|kB|MB|GB|TB)?", text)
    assert match is not None, text
    return int(match[1]) * _UNITS[match[2] or "B"] or None
