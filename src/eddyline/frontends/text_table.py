"""Results as tables of text, for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from eddyline.adapter.outcome import ResultSet
from eddyline.expr.text_output import padded, text_of
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import Kind, SqlType

__all__ = ["table_lines", "text_rows"]

_RIGHT = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})


def text_rows(result: ResultSet, zone: Zone = UTC) -> list[tuple[str | None, ...]]:
    """The rows as output text; None for NULL."""
    columns = [
        padded(text_of(column, sql_type, zone), sql_type).to_pylist()
        for column, sql_type in zip(result.columns, result.types, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * result.rows


def table_lines(names: Sequence[str], types: Sequence[SqlType], rows: Sequence[Sequence[str | None]]) -> Iterator[str]:
    """Aligned columns, numbers to the right, and how many rows there are.  A line break in a value is shown as ↵."""
    cells = [[("" if v is None else _one_line(v)) for v in row] for row in rows]
    widths = [max([_width(name), *(_width(row[i]) for row in cells)]) for i, name in enumerate(names)]
    yield " " + " | ".join(_centred(n, w) for n, w in zip(names, widths, strict=True)).rstrip()
    yield "+".join("-" * (w + 2) for w in widths)
    right = [t.kind in _RIGHT for t in types]
    for row in cells:
        padded_cells = (_padded(v, w, right=r) for v, w, r in zip(row, widths, right, strict=True))
        yield (" " + " | ".join(padded_cells)).rstrip()
    yield f"({len(rows)} row{'' if len(rows) == 1 else 's'})"


def _one_line(text: str) -> str:
    return text.replace("\r\n", "↵").replace("\n", "↵").replace("\t", "    ")


def _width(text: str) -> int:
    """Columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _centred(text: str, width: int) -> str:
    space = width - _width(text)
    return " " * (space // 2) + text + " " * (space - space // 2)
