"""Result rows as messages, a bounded piece at a time, put together by kernels from whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eddyline.adapter.copy_to import Lines
from eddyline.adapter.outcome import ResultSet
from eddyline.expr.binary_io import binary_cells, framed, messages, text_cells
from eddyline.expr.timezone import UTC, Zone

__all__ = ["copy_lines", "data_rows", "rows_at_once"]

#: at most so many rows, and about so many bytes, are encoded by one call
_MOST_ROWS: Final = 1000
_AIMED_BYTES: Final = 256 << 10
_DATA_ROW: Final = ord("D")
_COPY_DATA: Final = ord("d")


def rows_at_once(result: ResultSet) -> int:
    """How many rows of ``result`` to encode by one call."""
    if not result.rows:
        return 1
    average = max(1, sum(int(c.nbytes) for c in result.columns) // result.rows)
    return max(1, min(_MOST_ROWS, _AIMED_BYTES // average))


def data_rows(result: ResultSet, formats: Sequence[int], start: int, stop: int, zone: Zone = UTC) -> bytes:
    """A DataRow for each of the rows ``start <= r < stop``.  ``formats``: 0 text, 1 binary, one per column."""
    cells = []
    for column, sql_type, code in zip(result.columns, result.types, formats, strict=True):
        part = column.slice(start, stop - start)
        cells.append(binary_cells(part, sql_type) if code else text_cells(part, sql_type, zone))
    return messages(_DATA_ROW, cells, stop - start)[0]


def copy_lines(lines: Lines, before: bytes = b"") -> bytes:
    """A CopyData for each row, since clients take them for one; ``before``: what the first one begins with."""
    if not before:
        return framed(_COPY_DATA, lines.data, lines.offsets)
    offsets = lines.offsets + len(before)
    offsets[0] = 0
    return framed(_COPY_DATA, before + lines.data, offsets)
