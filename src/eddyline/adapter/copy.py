"""COPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import ReadContext
from eddyline.errors import unsupported
from eddyline.expr.ir import Literal
from eddyline.sql.statements import Copy

__all__ = ["copy"]


def copy(context: ReadContext, statement: Copy, parameters: Sequence[Literal], file: Any) -> Outcome:
    raise unsupported("COPY")
