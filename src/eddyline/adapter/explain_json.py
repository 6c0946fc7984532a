"""Plans as one JSON document, of the form that PostgreSQL's has: ``[{"Plan": {"Node Type": …, "Plans": […]}, …}]``.

Made of the lines of the text, so that both say the same.  What is said of the whole read stands beside ``Plan``; times
are numbers of milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["plan_document"]

_INDENT: Final = 2
_MILLISECONDS: Final = re.compile(r"([A-Z][A-Za-z ]*): (\d+\.\d+) ms")
_COUNT: Final = re.compile(r"(Rows): (\d+)")
_LIST: Final = re.compile(r"((?:In cluster .+, )?[Ii]ndexes used): (.+)")
_TEXT: Final = re.compile(r"(Time|Runtime|Finish): (.+)")
#: what a node is, and the rest of its line
_NODE: Final = re.compile(r"(Fast path|One-shot dataflow|[A-Za-z]+ join|[A-Za-z]+(?: on)?)(?::? (.*))?")


def plan_document(lines: Iterable[str]) -> str:
    """``lines``: one a node, inputs indented below, then what is said of all."""
    document: dict[str, Any] = {}
    roots: list[dict[str, Any]] = []
    path: list[dict[str, Any]] = []  # the last node at each depth
    for line in lines:
        text = line.lstrip(" ")
        depth = (len(line) - len(text)) // _INDENT
        said = _said(text) if depth == 0 else None
        if said is not None:
            document[said[0]] = said[1]
            continue
        node = _node(text)
        depth = min(depth, len(path))
        (path[depth - 1].setdefault("Plans", []) if depth else roots).append(node)
        path[depth:] = [node]
    plan = roots[0] if len(roots) == 1 else {"Node Type": "Sequence", "Plans": roots}
    return json.dumps([{"Plan": plan, **document}], indent=_INDENT, ensure_ascii=False)


def _said(text: str) -> tuple[str, object] | None:
    """A property of the whole; None for a node."""
    if (found := _MILLISECONDS.fullmatch(text)) is not None:
        return found[1], float(found[2])
    if (found := _COUNT.fullmatch(text)) is not None:
        return found[1], int(found[2])
    if (found := _LIST.fullmatch(text)) is not None:
        return found[1][0].upper() + found[1][1:], found[2].split(", ")
    if (found := _TEXT.fullmatch(text)) is not None:
        return ("Finishing" if found[1] == "Finish" else found[1]), found[2]
    return None


def _node(text: str) -> dict[str, Any]:
    found = _NODE.fullmatch(text)
    if found is None:
        return {"Node Type": text}
    return {"Node Type": found[1]} | ({"Details": found[2]} if found[2] else {})
