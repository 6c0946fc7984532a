"""Arrays as bytes: cells behind one another, ``00``, and a tail where there is more than one plain dimension.

Equal arrays have equal bytes, and the order of the bytes is that of the arrays (element by element, then by length,
dimensions and subscripts), so that all else in the engine handles them as bytea.  ``docs/design/0015-arrays.md``
has the whole encoding.

Literals of arrays (``LiteralValue``) are the bytes as hex digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.expr.array_cells import CellColumn, cell_of, cell_width, cells_of, elements_of, literal_of, picked
from eddyline.expr.ir import LiteralValue
from eddyline.repr.types import SqlType, element_type, is_vector

__all__ = [
    "EMPTY",
    "MAX_DIMENSIONS",
    "Nested",
    "Parts",
    "arrays_of",
    "flattened",
    "has_tails",
    "join_parts",
    "joined",
    "literal_from_nested",
    "literal_from_values",
    "nested_of",
    "plain",
    "retailed",
    "split_parts",
    "taken",
]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: literals in lists, as deep as there are dimensions
Nested: TypeAlias = "list[Any]"

MAX_DIMENSIONS: Final = 6
EMPTY: Final = b"\x00"
_OFFSET: Final = 1 << 31
_LARGEST: Final = 2**30 - 1


class Parts(NamedTuple):
    """An array taken apart.  ``cells`` in row-major order; ``lengths`` and ``lowers`` by dimension, none if it is
    empty."""

    cells: list[bytes]
    lengths: tuple[int, ...]
    lowers: tuple[int, ...]


def split_parts(value: bytes, width: int | None) -> Parts:
    """The parts of one array whose cells have ``width`` bytes of value (``cell_width``)."""
    count = value[-1]
    if not count:
        cells = _cells(value[:-1], width)
        return Parts(cells, (len(cells),) if cells else (), (1,) if cells else ())
    numbers = value[-1 - 8 * count : -1]
    words = [int.from_bytes(numbers[i : i + 4], "big") for i in range(0, 8 * count, 4)]
    lowers = tuple(w - _OFFSET for w in words[count:])
    return Parts(_cells(value[: -3 - 8 * count], width), tuple(words[:count]), lowers)


def _cells(body: bytes, width: int | None) -> list[bytes]:
    if width is None:
        return [cell + b"\x00" for cell in body.split(b"\x00")[:-1]]
    step = width + 1
    return [body[i : i + step] for i in range(0, len(body), step)]


def join_parts(parts: Parts) -> bytes:
    """The inverse of ``split_parts``.  54000 for more than 6 dimensions or 2**30 bytes."""
    cells, lengths, lowers = parts
    if not cells:
        return EMPTY
    body = b"".join(cells)
    if len(body) > _LARGEST:
        raise make_error("54000", f"array size exceeds the maximum allowed ({_LARGEST})")
    if len(lengths) == 1 and lowers[0] == 1:
        return body + EMPTY
    if len(lengths) > MAX_DIMENSIONS:
        raise make_error(
            "54000",
            f"number of array dimensions ({len(lengths)}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
        )
    count = bytes([len(lengths)])
    numbers = b"".join(n.to_bytes(4, "big") for n in (*lengths, *(lower + _OFFSET for lower in lowers)))
    return body + EMPTY + count + numbers + count


def plain(cells: list[bytes]) -> bytes:
    """The array of one dimension of these cells."""
    return join_parts(Parts(cells, (len(cells),), (1,)))


# -- literals ---------------------------------------------------------------------------------------------------------


def literal_from_values(values: Sequence[LiteralValue], array: SqlType) -> str:
    """The literal of an array of one dimension; vectors count from 0."""
    element = element_type(array)
    cells = [cell_of(v, element) for v in values]
    return join_parts(Parts(cells, (len(cells),), (0 if is_vector(array) else 1,))).hex()


def literal_from_nested(values: Nested, array: SqlType) -> str:
    """The literal of an array of literals in lists.  2202E where the lists of one depth have different lengths."""
    lengths = _lengths(values)
    flat = _flat(values, lengths, 0)
    element = element_type(array)
    cells = [cell_of(v, element) for v in flat]
    return join_parts(Parts(cells, lengths if cells else (), (1,) * len(lengths))).hex()


def _lengths(values: Nested) -> tuple[int, ...]:
    lengths = []
    level: Any = values
    while isinstance(level, list | tuple):
        lengths.append(len(level))
        if not level:
            break
        level = level[0]
    return tuple(lengths)


def _flat(values: Any, lengths: tuple[int, ...], depth: int) -> list[Any]:
    nested = isinstance(values, list | tuple)
    if nested != (depth < len(lengths)) or (nested and len(values) != lengths[depth]):
        raise make_error("2202E", "multidimensional arrays must have array expressions with matching dimensions")
    if not nested:
        return [values]
    return [item for value in values for item in _flat(value, lengths, depth + 1)]


def nested_of(value: LiteralValue, array: SqlType) -> Nested:
    """The literals of an array in lists, as deep as it has dimensions; of a literal that is not NULL."""
    element = element_type(array)
    cells, lengths, _ = split_parts(bytes.fromhex(str(value)), cell_width(element))
    return _folded([literal_of(cell, element) for cell in cells], lengths)


def elements_of_literal(value: LiteralValue, array: SqlType) -> list[LiteralValue]:
    """As ``nested_of``, in one list whatever the dimensions.  O(elements)."""
    element = element_type(array)
    return [literal_of(cell, element) for cell in split_parts(bytes.fromhex(str(value)), cell_width(element)).cells]


def _folded(items: list[Any], lengths: Sequence[int]) -> list[Any]:
    for length in reversed(lengths[1:]):
        items = [items[i : i + length] for i in range(0, len(items), length)]
    return items


# -- columns ----------------------------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """A column of arrays taken apart: the cells of array *i* are ``cells[offsets[i]:offsets[i + 1]]``; a NULL has
    none."""

    cells: CellColumn
    offsets: Int64s


def _bounds(array: pa.Array) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Starts and ends of the values, the bytes, and the last byte of each: how many dimensions its tail has."""
    rows = len(array)
    _, offsets, data = array.buffers()
    if offsets is None or not rows or data is None or not data.size:
        return np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.empty(0, np.uint8), np.zeros(rows, np.uint8)
    places = np.frombuffer(offsets, np.int64, rows + 1, array.offset * 8)
    octets = np.frombuffer(data, np.uint8)
    starts, ends = places[:-1], places[1:]
    if array.null_count:
        ends = np.where(array.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    last = np.where(ends > starts, octets[np.maximum(ends - 1, 0)], 0)
    return starts, ends, octets, last


def has_tails(array: pa.Array) -> Bools:
    """bool[n]: which arrays have more than one dimension, or one that does not count from 1."""
    tails: Bools = _bounds(array)[3] != 0
    return tails


def taken(array: pa.Array, element: SqlType) -> Taken:
    """The cells of all arrays, their dimensions aside.  Cost: linear, in NumPy."""
    starts, ends, octets, last = _bounds(array)
    counts = last.astype(np.int64)
    tails = np.where(ends > starts, np.where(counts > 0, 3 + 8 * counts, 1), 0)
    sizes = ends - starts - tails
    body = octets[picked(starts, sizes)]
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    width = cell_width(element)
    if width is not None:
        step = width + 1
        return Taken(CellColumn(body, np.arange(len(body) // step + 1, dtype=np.int64) * step), bounds // step)
    zeros = np.flatnonzero(body == 0)
    return Taken(CellColumn(body, np.concatenate([[0], zeros + 1])), np.searchsorted(zeros, bounds))


def flattened(array: pa.Array, element: SqlType) -> tuple[pa.Array, Int64s]:
    """The elements of all arrays as one column, and where each array's begin (int64[n + 1])."""
    cells, offsets = taken(array, element)
    return elements_of(cells, element), offsets


def arrays_of(elements: pa.Array, offsets: Int64s, element: SqlType, valid: Bools | None = None) -> pa.Array:
    """Arrays of one dimension; array *i* has ``elements[offsets[i]:offsets[i + 1]]``.  The first begins at 0, the last
    ends with the elements.  Cost: linear, in NumPy."""
    return joined(cells_of(elements, element), offsets, valid)


def joined(cells: CellColumn, offsets: Int64s, valid: Bools | None = None) -> pa.Array:
    """As ``arrays_of``, of cells."""
    rows = len(offsets) - 1
    ends = cells.offsets[offsets] + np.arange(rows + 1)  # each array before made one more byte
    out = np.zeros(int(ends[-1]) if rows else 0, np.uint8)
    inner = np.ones(len(out), np.bool_)
    inner[ends[1:] - 1] = False
    out[inner] = cells.data
    bitmap = None if valid is None or valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.large_binary(), rows, [bitmap, pa.py_buffer(ends), pa.py_buffer(out)])


def retailed(arrays: pa.Array, like: pa.Array, element: SqlType, like_element: SqlType) -> pa.Array:
    """``arrays`` with the dimensions of ``like``, which has as many elements in each row."""
    values = arrays.to_pylist()
    for row in np.flatnonzero(has_tails(like)).tolist():
        found = split_parts(like[row].as_py(), cell_width(like_element))
        cells = split_parts(values[row], cell_width(element)).cells
        values[row] = join_parts(Parts(cells, found.lengths, found.lowers))
    return pa.array(values, pa.large_binary())
