"""Arrow columns as kernels see them, and new columns that kernels fill.

Out of scope: what the bytes mean; ``kernels.cells`` says that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.kernels import cells
from eddyline.kernels.gather import OUT, gather, sizes
from eddyline.repr.types import ELEMENT_KINDS, Kind, SqlType, arrow_type

__all__ = [
    "SHORT_BYTES",
    "SHORT_ROWS",
    "ColumnBuffers",
    "SortItem",
    "address_of",
    "cell_kinds",
    "describe",
    "gather_columns",
    "is_small",
    "order_descriptors",
    "varlen_bytes",
]

_KINDS: Final = {
    Kind.BOOLEAN: cells.BITS,
    Kind.SMALLINT: cells.INT16,
    Kind.INTEGER: cells.INT32,
    Kind.BIGINT: cells.INT64,
    Kind.REAL: cells.FLOAT32,
    Kind.DOUBLE: cells.FLOAT64,
    Kind.TEXT: cells.BYTES,
    Kind.VARCHAR: cells.BYTES,
    Kind.BYTEA: cells.BYTES,
    Kind.DATE: cells.INT32,
    Kind.TIME: cells.INT64,
    Kind.TIMESTAMP: cells.INT64,
    Kind.TIMESTAMPTZ: cells.INT64,
    Kind.INTERVAL: cells.INTERVAL,
    Kind.UUID: cells.UUID,
    Kind.JSON: cells.BYTES,
    **dict.fromkeys(ELEMENT_KINDS, cells.BYTES),
}
# by name: hashing an Enum member runs Python code
_KIND_OF_NAME: Final = {kind._value_: code for kind, code in _KINDS.items()}

#: below this many bytes Arrow's pool is quicker; above it fresh pages cost nothing until they are touched
_POOL_BYTES: Final = 1 << 20
#: row types to remember
_SHAPES: Final = 4096

#: up to this many rows a kernel over a few columns takes less than about 50 µs and keeps the GIL
SHORT_ROWS: Final = 512
#: … if their varlen values are no longer than this together
SHORT_BYTES: Final = 1 << 16

Int64s = npt.NDArray[np.int64]


class SortItem(Protocol):
    """One ORDER BY item over input column ``column`` (``expr.ir.SortKey`` is one)."""

    @property
    def column(self) -> int: ...
    @property
    def desc(self) -> bool: ...
    @property
    def nulls_first(self) -> bool: ...


class _Shape(NamedTuple):
    """What a row type means for buffers, by column; ``types`` keeps the tuple alive whose identity it is found by."""

    types: Sequence[SqlType]
    kinds: tuple[int, ...]
    arrow: tuple[pa.DataType, ...]
    varlen: bool


#: by the identity of the tuple of types: an operator asks for the same few again and again
_shapes: dict[int, _Shape] = {}


def _shape_of(types: Sequence[SqlType]) -> _Shape:
    found = _shapes.get(id(types))
    if found is not None:
        return found
    kinds = tuple(_cell_kind(t) for t in types)
    shape = _Shape(types, kinds, tuple(arrow_type(t) for t in types), any(kind in cells.VARLEN for kind in kinds))
    if isinstance(types, tuple):  # what can be changed may mean something else the next time
        if len(_shapes) >= _SHAPES:
            _shapes.clear()
        _shapes[id(types)] = shape
    return shape


def cell_kinds(types: Sequence[SqlType]) -> tuple[int, ...]:
    """The cell kind of each column."""
    return _shape_of(types).kinds


def _cell_kind(sql_type: SqlType) -> int:
    if sql_type.kind is Kind.NUMERIC:
        return cells.NUMERIC if sql_type.scale is None else cells.DECIMAL
    if sql_type.kind is Kind.BPCHAR:
        return cells.PADDED if sql_type.length is None else cells.BYTES
    return _KIND_OF_NAME[sql_type.kind._value_]


def address_of(array: npt.NDArray[np.generic]) -> int:
    """Where the array's first element lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def describe(columns: Sequence[pa.Array], kinds: Sequence[int]) -> Int64s:
    """int64[columns, WIDTH]: see ``kernels.cells``.  Valid while the arrays live.  O(columns), NULL counts included."""
    rows: list[int] = []
    widths, texts = cells.WIDTHS, cells.VARLEN
    for array, kind in zip(columns, kinds, strict=True):
        buffers = array.buffers()
        offset = array.offset
        validity = buffers[0].address if buffers[0] is not None and array.null_count else 0
        first = buffers[1]
        if kind in texts:
            offsets = first.address + 8 * offset if first is not None else 0
            values = buffers[2].address if buffers[2] is not None else 0
        else:
            offsets = 0
            values = first.address + widths[kind] * offset if first is not None else 0
        rows += (kind, values, offsets, validity, offset, 0)
    return np.array(rows, np.int64).reshape(len(columns), cells.WIDTH)


def order_descriptors(descriptors: Int64s, order: Sequence[SortItem]) -> Int64s:
    """The ORDER BY items' descriptors, with their flags."""
    items = descriptors[[item.column for item in order]]
    for row, item in zip(items, order, strict=True):
        row[5] = (cells.DESC if item.desc else 0) | (cells.NULLS_FIRST if item.nulls_first else 0)
    return items


def varlen_bytes(descriptors: Int64s, rows: int) -> list[int]:
    """Bytes of values per column; 0 unless varlen."""
    out = []
    for kind, _, offsets, _, _, _ in descriptors.tolist():
        if kind in cells.VARLEN and rows:
            first = ctypes.c_int64.from_address(offsets).value
            out.append(ctypes.c_int64.from_address(offsets + 8 * rows).value - first)
        else:
            out.append(0)
    return out


def is_small(columns: Sequence[pa.Array], most_bytes: int) -> bool:
    """Whether keeping the arrays pins at most ``most_bytes``."""
    return bool(sum(b.size for c in columns for b in c.buffers() if b is not None) <= most_bytes)


def _allocate(size: int) -> pa.Buffer:
    return pa.allocate_buffer(size) if size < _POOL_BYTES else pa.py_buffer(np.empty(size, np.uint8))


class ColumnBuffers:
    """Columns being written: room for ``rows`` rows and ``varlen[c]`` bytes of values in varlen column *c*.

    One writer.  ``finish`` ends the writing; the buffers belong to the arrays from then on.
    """

    __slots__ = ("_arrow", "_buffers", "outs")

    def __init__(
        self,
        types: Sequence[SqlType],
        kinds: Sequence[int],
        rows: int,
        varlen: Sequence[int],
        nullable: Sequence[bool],
    ) -> None:
        self._arrow = _shape_of(types).arrow
        self._buffers: list[list[pa.Buffer | None]] = []
        outs = []
        for kind, size, null in zip(kinds, varlen, nullable, strict=True):
            validity = pa.py_buffer(np.zeros((rows + 7) // 8, np.uint8)) if null else None
            bitmap = validity.address if validity is not None else 0
            if kind in cells.VARLEN:
                offsets = _allocate(8 * (rows + 1))
                ctypes.c_int64.from_address(offsets.address).value = 0
                values = _allocate(size)
                self._buffers.append([validity, offsets, values])
                outs.append((values.address, offsets.address, bitmap, 0))
            else:
                if kind == cells.BITS:
                    values = pa.py_buffer(np.zeros((rows + 7) // 8, np.uint8))
                else:
                    values = _allocate(rows * cells.WIDTHS[kind])
                self._buffers.append([validity, values])
                outs.append((values.address, 0, bitmap, 0))
        #: int64[columns, OUT], for ``kernels.gather``
        self.outs: Int64s = np.array(outs, np.int64).reshape(len(outs), OUT)

    def finish(self, rows: int) -> tuple[pa.Array, ...]:
        """The first ``rows`` rows as arrays."""
        make = pa.Array.from_buffers
        return tuple([make(t, rows, b) for t, b in zip(self._arrow, self._buffers, strict=True)])


def gather_columns(
    types: Sequence[SqlType], kinds: Sequence[int], descs: Int64s, skip: int, runs: Int64s, rows: Int64s
) -> tuple[pa.Array, ...]:
    """The columns of the picked rows; ``descs`` int64[runs, skip + columns, WIDTH].  O(picks × columns)."""
    columns = len(kinds)
    if columns == 0:
        return ()
    if len(rows) == 0:  # perhaps of no runs at all, which the kernels do not expect
        return ColumnBuffers(types, kinds, 0, [0] * columns, [False] * columns).finish(0)
    short = len(rows) <= SHORT_ROWS
    varlen = [0] * columns
    if _shape_of(types).varlen:
        sized = np.zeros((columns, OUT), np.int64)
        (sizes.short if short else sizes)(descs, skip, runs, rows, sized)
        varlen = sized[:, 3].tolist()
        short = short and sum(varlen) <= SHORT_BYTES
    nullable: list[bool] = (descs[:, skip:, 3] != 0).any(axis=0).tolist()
    buffers = ColumnBuffers(types, kinds, len(rows), varlen, nullable)
    (gather.short if short else gather)(descs, skip, runs, rows, 0, len(rows), 0, buffers.outs)
    return buffers.finish(len(rows))
