"""Result rows as messages, a bounded piece at a time, put together by kernels from whole columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from eddyline.adapter.copy_to import Lines
from eddyline.adapter.outcome import ResultSet
from eddyline.expr.binary_io import binary_cells, framed, messages, text_cells
from eddyline.expr.timezone import UTC, Zone
from eddyline.repr.types import Kind, SqlType

__all__ = ["CellWriter", "copy_lines", "data_rows", "ready_rows", "row_writers", "rows_at_once", "written_rows"]

#: a value as its cell of a DataRow, length included
CellWriter: TypeAlias = Callable[[Any], bytes]

#: at most so many rows, and about so many bytes, are encoded by one call
_MOST_ROWS: Final = 1000
_AIMED_BYTES: Final = 256 << 10
_FEW_ROWS: Final = 20
_DATA_ROW: Final = ord("D")
_COPY_DATA: Final = ord("d")
_ROW: Final = struct.Struct("!cih")
_LENGTH: Final = struct.Struct("!i")


def rows_at_once(result: ResultSet) -> int:
    """How many rows of ``result`` to encode by one call."""
    if not result.rows:
        return 1
    average = max(1, sum(int(c.nbytes) for c in result.columns) // result.rows)
    return max(1, min(_MOST_ROWS, _AIMED_BYTES // average))


def ready_rows(result: ResultSet, formats: Sequence[int]) -> bytes | None:
    """The DataRow messages of a few rows whose values are at hand; None where they are not, or need more than that.

    Arrow's arrays of so few values cost more than all of this.
    """
    if result.ready is None or result.rows > _FEW_ROWS:
        return None
    writers = row_writers(result.types, formats)
    return None if writers is None else written_rows(result.ready, writers)


def row_writers(types: Sequence[SqlType], formats: Sequence[int]) -> tuple[CellWriter, ...] | None:
    """What writes the values of each column; None if one's are only written by columns."""
    found = []
    for sql_type, code in zip(types, formats, strict=True):
        writer = _WRITERS.get((sql_type.kind, code))
        if writer is None:
            return None
        found.append(writer)
    return tuple(found)


def written_rows(rows: Sequence[Sequence[Any]], writers: Sequence[CellWriter]) -> bytes:
    """A DataRow for each of a few rows of Python values."""
    written = []
    for row in rows:
        body = b"".join([_NULL if v is None else write(v) for v, write in zip(row, writers, strict=True)])
        written.append(_ROW.pack(b"D", len(body) + 6, len(writers)) + body)
    return b"".join(written)


def _cell(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _text(value: Any) -> bytes:
    return _cell(str(value).encode())


_NULL: Final = b"\xff\xff\xff\xff"
_WRITERS: Final[dict[tuple[Kind, int], CellWriter]] = {
    **{(kind, 0): _text for kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)},
    **{(kind, code): _text for kind in (Kind.TEXT, Kind.VARCHAR) for code in (0, 1)},
    (Kind.BOOLEAN, 0): lambda value: _cell(b"t" if value else b"f"),
    (Kind.BOOLEAN, 1): lambda value: _cell(b"\1" if value else b"\0"),
    (Kind.SMALLINT, 1): lambda value: _cell(struct.pack("!h", value)),
    (Kind.INTEGER, 1): lambda value: _cell(struct.pack("!i", value)),
    (Kind.BIGINT, 1): lambda value: _cell(struct.pack("!q", value)),
}


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
