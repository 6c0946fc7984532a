"""Elements of arrays as cells: bytes whose order is the elements' order.

A cell is ``01``, the value and, where values have no fixed width, ``00``; of a NULL it is ``02`` and filler of the same
width, or ``02 00``.  Equal values have equal cells: -0 is 0, there is one NaN, and numerics are counted in units of
the 38th digit after the point, so that how many digits were shown is not kept.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import make_error
from eddyline.expr.ir import LiteralValue
from eddyline.expr.layout import EXACT, fixed_array, pack_numeric, unpack_numeric, validity, values_of
from eddyline.expr.rowwise import map_rows
from eddyline.repr.types import Kind, SqlType, arrow_type

__all__ = [
    "NULL_MARK",
    "VALUE_MARK",
    "CellColumn",
    "cell_of",
    "cell_width",
    "cells_of",
    "elements_of",
    "literal_of",
    "picked",
]

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

VALUE_MARK: Final = 1
NULL_MARK: Final = 2
_SCALE: Final = 38
_NUMERIC_ZERO: Final = 1 << 255
_WIDTHS: Final = {
    Kind.BOOLEAN: 1, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8, Kind.NUMERIC: 32, Kind.REAL: 4, Kind.DOUBLE: 8,
    Kind.DATE: 4, Kind.TIME: 8, Kind.TIMESTAMP: 8, Kind.TIMESTAMPTZ: 8, Kind.UUID: 16,
}  # fmt: skip
_FLOATS: Final = {Kind.REAL: (">f", ">I"), Kind.DOUBLE: (">d", ">Q")}
_ESCAPED: Final = ((b"\x01", b"\x01\x02"), (b"\x00", b"\x01\x01"))


def cell_width(element: SqlType) -> int | None:
    """Bytes of a value in its cell; None where it ends with ``00``."""
    return _WIDTHS.get(element.kind)


# -- single values ----------------------------------------------------------------------------------------------------


def cell_of(value: LiteralValue, element: SqlType) -> bytes:
    """The cell of a literal of type ``element``."""
    width = cell_width(element)
    if value is None:
        return b"\x02".ljust((1 if width is None else width) + 1, b"\x00")
    kind = element.kind
    if width is None:
        octets = _escaped(bytes.fromhex(str(value))) if kind is Kind.BYTEA else _text(str(value), kind)
        return b"\x01" + octets + b"\x00"
    if kind is Kind.BOOLEAN:
        return b"\x01\x01" if value else b"\x01\x00"
    if kind is Kind.UUID:
        return b"\x01" + bytes.fromhex(str(value))
    if kind is Kind.NUMERIC:
        return b"\x01" + _fitting(_counted(Decimal(str(value))), 32, value, element)
    if kind in _FLOATS:
        return b"\x01" + _float_octets(float(value), kind)
    return b"\x01" + _fitting(int(value) + (1 << (8 * width - 1)), width, value, element)


def _fitting(number: int, width: int, value: object, element: SqlType) -> bytes:
    try:
        return number.to_bytes(width, "big")
    except OverflowError as problem:
        raise make_error("22003", f'value "{value}" is out of range for type {element}') from problem


def literal_of(cell: bytes, element: SqlType) -> LiteralValue:
    """The literal of a cell: the inverse of ``cell_of``."""
    if cell[0] == NULL_MARK:
        return None
    width, kind, octets = cell_width(element), element.kind, cell[1:]
    if width is None:
        return _unescaped(octets[:-1]).hex() if kind is Kind.BYTEA else octets[:-1].decode()
    if kind is Kind.BOOLEAN:
        return octets != b"\x00"
    if kind is Kind.UUID:
        return octets.hex()
    if kind is Kind.NUMERIC:
        return format(_shown(octets, element), "f")
    if kind in _FLOATS:
        return _float(octets, kind)
    return int.from_bytes(octets, "big") - (1 << (8 * width - 1))


def _text(text: str, kind: Kind) -> bytes:
    try:
        octets = (text.rstrip(" ") if kind is Kind.BPCHAR else text).encode()
    except UnicodeEncodeError as problem:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": a lone surrogate') from problem
    if b"\x00" in octets:
        raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return octets


def _escaped(octets: bytes) -> bytes:
    for plain, written in _ESCAPED:
        octets = octets.replace(plain, written)
    return octets


def _unescaped(octets: bytes) -> bytes:
    for plain, written in reversed(_ESCAPED):
        octets = octets.replace(written, plain)
    return octets


def _counted(value: Decimal) -> int:
    """In units of the last digit, from the least."""
    return int(value.scaleb(_SCALE, EXACT)) + _NUMERIC_ZERO


def _numeric_octets(value: Decimal) -> bytes:
    return _counted(value).to_bytes(32, "big")


def _shown(octets: bytes, element: SqlType) -> Decimal:
    """With the digits of the declared scale, or those that are not zero."""
    value = Decimal(int.from_bytes(octets, "big") - _NUMERIC_ZERO).scaleb(-_SCALE, EXACT)
    if element.scale is not None:
        return value.quantize(Decimal(1).scaleb(-element.scale), context=EXACT)
    plain = value.normalize(EXACT)
    exponent = plain.as_tuple().exponent
    return plain.quantize(Decimal(1), context=EXACT) if isinstance(exponent, int) and exponent > 0 else plain


def _float_octets(value: float, kind: Kind) -> bytes:
    shape, word = _FLOATS[kind]
    plain = math.nan if math.isnan(value) else value or 0.0
    try:
        (bits,) = struct.unpack(word, struct.pack(shape, plain))
    except OverflowError as problem:
        raise make_error("22003", f'value "{value}" is out of range for type {kind.value}') from problem
    width = struct.calcsize(word)
    sign = 1 << (8 * width - 1)
    turned = bits ^ ((sign << 1) - 1) if bits & sign else bits | sign
    return struct.pack(word, turned)


def _float(octets: bytes, kind: Kind) -> float:
    shape, word = _FLOATS[kind]
    (turned,) = struct.unpack(word, octets)
    sign = 1 << (8 * struct.calcsize(word) - 1)
    bits = turned ^ sign if turned & sign else turned ^ ((sign << 1) - 1)
    value: float = struct.unpack(shape, struct.pack(word, bits))[0]
    return value


# -- columns ----------------------------------------------------------------------------------------------------------


class CellColumn(NamedTuple):
    """Cell *i* is ``data[offsets[i]:offsets[i + 1]]``; the first begins at 0, the last ends with the data."""

    data: Bytes
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1


def cells_of(elements: pa.Array, element: SqlType) -> CellColumn:
    """A column of elements as cells.  Cost: linear, in NumPy; numerics and bytea take a Python step per distinct
    value."""
    rows = len(elements)
    width = cell_width(element)
    valid = validity(elements)
    if width is None:
        return _varlen_cells(elements, element, valid)
    matrix = np.zeros((rows, width + 1), np.uint8)
    matrix[:, 0] = VALUE_MARK
    if rows:
        matrix[:, 1:] = _octets(elements, element)
    if valid is not None:
        matrix[~valid] = 0
        matrix[~valid, 0] = NULL_MARK
    return CellColumn(matrix.reshape(-1), np.arange(rows + 1, dtype=np.int64) * (width + 1))


def _octets(elements: pa.Array, element: SqlType) -> Bytes:
    """uint8[rows, width]; a NULL's are anything."""
    kind, rows = element.kind, len(elements)
    width = _WIDTHS[kind]
    if kind is Kind.BOOLEAN:
        flags = elements.fill_null(False).to_numpy(zero_copy_only=False)
        octets: Bytes = flags.view(np.uint8).reshape(rows, 1)
        return octets
    if kind is Kind.UUID:
        return values_of(elements, np.dtype("V16")).view(np.uint8).reshape(rows, 16)
    if kind is Kind.NUMERIC:
        return _numeric_matrix(elements, element)
    if kind in _FLOATS:
        floats: npt.NDArray[Any] = np.array(values_of(elements, f"f{width}"))
        floats[floats == 0] = 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(f"u{width}")
        sign = bits.dtype.type(1 << (8 * width - 1))
        turned = np.where(bits & sign, ~bits, bits | sign)
    else:
        words: npt.NDArray[Any] = values_of(elements, f"u{width}")
        turned = words ^ words.dtype.type(1 << (8 * width - 1))
    return np.ascontiguousarray(turned.astype(f">u{width}")).view(np.uint8).reshape(rows, width)


def _numeric_matrix(elements: pa.Array, element: SqlType) -> Bytes:
    if element.scale is None:
        made = map_rows([elements], lambda value: _numeric_octets(unpack_numeric(value)), pa.binary(32)).array
    else:
        made = map_rows([elements], _numeric_octets, pa.binary(32)).array
    return values_of(made, np.dtype("V32")).view(np.uint8).reshape(len(elements), 32)


def _varlen_cells(elements: pa.Array, element: SqlType, valid: npt.NDArray[np.bool_] | None) -> CellColumn:
    rows = len(elements)
    if element.kind is Kind.BYTEA:
        elements = map_rows([elements], _escaped, pa.large_binary()).array
    elif element.kind is Kind.BPCHAR:
        elements = pc.utf8_rtrim(elements, " ")
    starts, sizes, data = _places(elements)
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes + 2, out=offsets[1:])
    out = np.zeros(int(offsets[-1]), np.uint8)
    out[offsets[:-1]] = VALUE_MARK if valid is None else np.where(valid, VALUE_MARK, NULL_MARK)
    body = picked(starts, sizes)
    out[picked(offsets[:-1] + 1, sizes)] = data[body]
    return CellColumn(out, offsets)


def _places(array: pa.Array) -> tuple[Int64s, Int64s, Bytes]:
    """Starts, lengths and bytes of a varlen column."""
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64), np.empty(0, np.uint8)
    places = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    octets = np.empty(0, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    return places[:-1], np.diff(places), octets


def picked(starts: Int64s, sizes: Int64s) -> Int64s:
    """The positions ``starts[i] … starts[i] + sizes[i] - 1`` of all pieces behind one another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    positions: Int64s = np.repeat(starts - (ends - sizes), sizes) + np.arange(total)
    return positions


def elements_of(cells: CellColumn, element: SqlType) -> pa.Array:
    """The column of elements that cells are: the inverse of ``cells_of``, at the same cost."""
    rows = len(cells)
    width = cell_width(element)
    if width is None:
        return _varlen_elements(cells, element)
    matrix = cells.data.reshape(rows, width + 1)
    valid = matrix[:, 0] == VALUE_MARK
    octets = np.ascontiguousarray(matrix[:, 1:])
    if element.kind is Kind.BOOLEAN:
        return pa.array(octets[:, 0] != 0, pa.bool_(), mask=~valid)
    if element.kind is Kind.UUID:
        return fixed_array(octets.reshape(-1).view("V16"), element, valid)
    if element.kind is Kind.NUMERIC:
        return _numerics(octets, valid, element)
    turned = octets.reshape(-1).view(f">u{width}").astype(f"u{width}")
    sign = turned.dtype.type(1 << (8 * width - 1))
    bits = turned ^ sign
    if element.kind in _FLOATS:
        bits = np.where(turned & sign, turned ^ sign, ~turned)
    return fixed_array(np.ascontiguousarray(bits), element, valid)


def _numerics(octets: Bytes, valid: npt.NDArray[np.bool_], element: SqlType) -> pa.Array:
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    raw = pa.Array.from_buffers(pa.binary(32), len(valid), [bitmap, pa.py_buffer(octets)])
    if element.scale is not None:
        return map_rows([raw], lambda value: _shown(value, element), arrow_type(element)).array

    def packed(value: bytes) -> bytes:
        shown = _shown(value, element)
        exponent = shown.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        return pack_numeric(int(shown.scaleb(scale, EXACT)), scale)

    return map_rows([raw], packed, arrow_type(element)).array


def _varlen_elements(cells: CellColumn, element: SqlType) -> pa.Array:
    rows = len(cells)
    starts = cells.offsets[:-1]
    valid = cells.data[starts] == VALUE_MARK if rows else np.zeros(0, np.bool_)
    sizes = np.diff(cells.offsets) - 2
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = cells.data[picked(starts + 1, sizes)]
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
    array = pa.Array.from_buffers(arrow_type(element), rows, buffers)
    return map_rows([array], _unescaped, pa.large_binary()).array if element.kind is Kind.BYTEA else array
