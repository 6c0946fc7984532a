"""Result rows as messages, a bounded piece at a time, put together by kernels from whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from eddyline.adapter.outcome import ResultSet
from eddyline.expr.binary_io import Cells, binary_cells, text_cells
from eddyline.expr.timezone import UTC, Zone
from eddyline.kernels.wire import append_cells, begin_messages

__all__ = ["data_rows", "framed_lines", "rows_at_once"]

#: at most so many rows, and about so many bytes, are encoded by one call
_MOST_ROWS: Final = 1000
_AIMED_BYTES: Final = 256 << 10
#: up to here kernels keep the GIL: they take less than giving it up
_SHORT_BYTES: Final = 64 << 10
_DATA_ROW: Final = ord("D")
_COPY_DATA: Final = ord("d")
_NO_NULLS: Final = np.empty(0, np.uint8)


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
    return _messages(_DATA_ROW, cells, stop - start)


def _messages(tag: int, columns: Sequence[Cells], rows: int) -> bytes:
    sizes = np.full(rows, 7 + 4 * len(columns), np.int64)
    for cells in columns:
        lengths = np.diff(cells.offsets)
        sizes += lengths * cells.valid if len(cells.valid) else lengths
    size = int(sizes.sum())
    begin, append = (
        (begin_messages.short, append_cells.short) if size <= _SHORT_BYTES else (begin_messages, append_cells)
    )
    out, positions = np.empty(size, np.uint8), np.empty(rows, np.int64)
    begin(tag, len(columns), sizes, positions, out)
    for cells in columns:
        append(cells.offsets, cells.data, cells.valid, 1, positions, out)
    return out.tobytes()


def framed_lines(data: bytes, offsets: np.ndarray) -> bytes:
    """A CopyData for each of the pieces ``data[offsets[i]:offsets[i + 1]]``."""
    sizes = np.diff(offsets) + 5
    out, positions = np.empty(int(sizes.sum()), np.uint8), np.empty(len(sizes), np.int64)
    begin_messages(_COPY_DATA, -1, sizes, positions, out)
    append_cells(offsets, np.frombuffer(data, np.uint8), _NO_NULLS, 0, positions, out)
    return out.tobytes()
