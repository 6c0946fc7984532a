"""Hints for habits of other tools and drivers, where PostgreSQL's grammar only says that it met a syntax error."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["habit_hint", "placeholder_hint"]

_PARAMETERS: Final = "Parameters are written $1, $2 … or ?, and their values given as a list."
_NAMED: Final = re.compile(r"%\(\w+\)s|(?<![:\w]):[a-z_]\w*|%s", re.IGNORECASE)
_HABITS: Final = (
    (
        re.compile(r"\\\w"),
        "Commands with a backslash are psql's own. SHOW TABLES, SHOW VIEWS, SHOW INDEXES FROM …, SHOW COLUMNS FROM … "
        "list what there is.",
    ),
    (re.compile(r"desc(ribe)?\s+\w", re.IGNORECASE), "SHOW COLUMNS FROM … lists the columns of a relation."),
)


def placeholder_hint(text: str) -> str | None:
    """What to write instead of ``%s``, ``%(name)s`` or ``:name``; None if ``text`` has none of them."""
    return _PARAMETERS if _NAMED.search(text) else None


def habit_hint(text: str) -> str | None:
    """For a statement that is no SQL; None if nothing is known to say."""
    start = text.lstrip()
    for habit, hint in _HABITS:
        if habit.match(start):
            return hint
    if re.search(r"\?\s*([,);]|$)|[=<>(,]\s*\?", text):
        return "A ? is a parameter only where values are given for it: execute(statement, [value])."
    return placeholder_hint(text)
