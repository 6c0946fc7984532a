"""Modules of others that most programs never use, imported when something of them is asked for first.

What they take would otherwise be a part of every start.  An import that fails is reported there, and tried again by
the next use.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LateModule"]


class LateModule:
    """Stands for the module ``name`` (absolute), whose attributes it has.  Any thread."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"LateModule({self._name!r})"
