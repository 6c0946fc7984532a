"""Result cells as JSON values and as PostgreSQL's text: what stored answers are compared with.

Integers, floats and booleans are themselves, NaN and the infinities are strings, everything else is PostgreSQL's
output text (UTC).
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from eddyline.adapter.outcome import ResultSet
from eddyline.errors import InterfaceError
from eddyline.expr.text_io import format_column, to_python
from eddyline.frontends.cursor import Cursor
from eddyline.repr.types import Kind, SqlType

__all__ = ["Cell", "cell_rows", "result_of", "text_rows", "type_names"]

Cell: TypeAlias = bool | int | float | str | None

_PLAIN = frozenset({Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE})


def result_of(cursor: Cursor) -> ResultSet:
    """The rows of the cursor's statement, in engine layouts; InterfaceError where it gave none."""
    outcome = cursor._outcome  # the layouts are not for users
    if outcome is None or outcome.result is None:
        raise InterfaceError("the statement gave no rows")
    return outcome.result


def type_names(cursor: Cursor) -> list[str]:
    """PostgreSQL's names of the result's types, without modifiers."""
    return [t.kind.value for t in result_of(cursor).types]


def text_rows(cursor: Cursor) -> list[tuple[str | None, ...]]:
    """All rows as PostgreSQL prints them."""
    result = result_of(cursor)
    columns = [format_column(c, t).to_pylist() for c, t in zip(result.columns, result.types, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * result.rows


def cell_rows(cursor: Cursor) -> list[list[Cell]]:
    """All rows as JSON values."""
    result = result_of(cursor)
    columns = [_cells(c, t) for c, t in zip(result.columns, result.types, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(result.rows)]


def _cells(column: Any, sql_type: SqlType) -> list[Cell]:
    if sql_type.kind not in _PLAIN:
        texts: list[Cell] = format_column(column, sql_type).to_pylist()
        return texts
    return [_finite(v) for v in to_python(column, sql_type)]


def _finite(value: Any) -> Cell:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    plain: Cell = value
    return plain
