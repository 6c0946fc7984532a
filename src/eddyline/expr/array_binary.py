"""Arrays in PostgreSQL's binary format: dimensions, the elements' type, then each element with its length."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import DatabaseError, make_error
from eddyline.expr.array_cells import cell_of, cell_width, picked
from eddyline.expr.array_layout import EMPTY, MAX_DIMENSIONS, Parts, flattened, has_tails, join_parts, split_parts
from eddyline.expr.ir import LiteralValue
from eddyline.repr.type_facts import OID_ELEMENT, TYPE_FACTS
from eddyline.repr.types import Kind, SqlType, element_type

__all__ = ["ElementBytes", "array_octets", "read_array"]

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_HEAD: Final = struct.Struct("!iiI")
_DIMENSION: Final = struct.Struct("!ii")
_LENGTH: Final = struct.Struct("!i")
_OID: Final = struct.Struct("!I")
#: OIDs of types whose binary form is that of text
_TEXTS: Final = (18, 19, 25, 705, 1042, 1043)
_TEXT_KINDS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)

#: (bytes of all elements behind one another, where each ends and the first begins, which are not NULL; None: all)
ElementBytes = tuple[Bytes, Int64s, npt.NDArray[np.bool_] | None]


def array_octets(
    array: pa.Array, sql_type: SqlType, write: Callable[[pa.Array, SqlType], ElementBytes]
) -> tuple[Int64s, Bytes]:
    """Offsets and bytes of the values; a NULL has none.  ``write``: the elements in binary form.

    Cost: linear, in NumPy; a Python step for each array of more than one plain dimension.
    """
    element = element_type(sql_type)
    elements, offsets = flattened(array, element)
    data, ends = _with_lengths(*(_oid_bytes(elements) if sql_type.of_oids else write(elements, element)))
    present = array.is_valid().to_numpy(zero_copy_only=False)
    nulls = np.concatenate([[0], np.cumsum(elements.is_null().to_numpy(zero_copy_only=False))])[offsets]
    counts = np.diff(offsets)
    heads = _heads(array, sql_type, counts, np.diff(nulls) > 0, present)
    head_sizes = np.array([len(h) for h in heads], np.int64) if isinstance(heads, list) else _sizes(counts, present)
    body_sizes = ends[offsets[1:]] - ends[offsets[:-1]]
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(head_sizes + body_sizes, out=bounds[1:])
    out = np.empty(int(bounds[-1]), np.uint8)
    out[picked(bounds[:-1], head_sizes)] = (
        np.frombuffer(b"".join(heads), np.uint8) if isinstance(heads, list) else heads
    )
    out[picked(bounds[:-1] + head_sizes, body_sizes)] = data
    return bounds, out


def _oid_bytes(elements: pa.Array) -> ElementBytes:
    """Four bytes each, as all OIDs fit into; of what is no OID the lower half."""
    octets = elements.fill_null(0).to_numpy(zero_copy_only=False).astype(">u4").view(np.uint8)
    valid = elements.is_valid().to_numpy(zero_copy_only=False) if elements.null_count else None
    return octets, np.arange(len(elements) + 1, dtype=np.int64) * 4, valid


def _with_lengths(data: Bytes, offsets: Int64s, valid: npt.NDArray[np.bool_] | None) -> tuple[Bytes, Int64s]:
    """Each element behind its length, -1 for NULL; where they end."""
    lengths = np.diff(offsets)
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths + 4, out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint8)
    shown = lengths if valid is None else np.where(valid, lengths, -1)
    out[picked(ends[:-1], np.full(len(lengths), 4))] = np.ascontiguousarray(shown.astype(">i4")).view(np.uint8)
    out[picked(ends[:-1] + 4, lengths)] = data[picked(offsets[:-1], lengths)]
    return out, ends


def _sizes(counts: Int64s, present: npt.NDArray[np.bool_]) -> Int64s:
    sizes: Int64s = np.where(present, np.where(counts > 0, 20, 12), 0)
    return sizes


def _heads(
    array: pa.Array,
    sql_type: SqlType,
    counts: Int64s,
    nulls: npt.NDArray[np.bool_],
    present: npt.NDArray[np.bool_],
) -> Bytes | list[bytes]:
    """What stands before the elements: by one matrix, or of each array where some have other dimensions."""
    oid = OID_ELEMENT if sql_type.of_oids else TYPE_FACTS[sql_type.kind].element
    if not has_tails(array).any():
        words = np.empty((len(counts), 5), ">i4")
        words[:, 0], words[:, 1], words[:, 2] = counts > 0, nulls, oid
        words[:, 3], words[:, 4] = counts, 1
        taken = _sizes(counts, present)
        octets = words.view(np.uint8).reshape(-1)
        return octets[picked(np.arange(len(counts)) * 20, taken)]
    width = cell_width(element_type(sql_type))
    heads = []
    for value, has_null in zip(array.to_pylist(), nulls.tolist(), strict=True):
        if value is None:
            heads.append(b"")
            continue
        parts = split_parts(value, width)
        pairs = zip(parts.lengths, parts.lowers, strict=True)
        heads.append(_HEAD.pack(len(parts.lengths), has_null, oid) + b"".join(_DIMENSION.pack(*p) for p in pairs))
    return heads


def _malformed(what: str) -> DatabaseError:
    return make_error("22P03", what)


def read_array(data: bytes, sql_type: SqlType, read: Callable[[bytes, SqlType], LiteralValue]) -> LiteralValue:
    """The literal that ``data`` is.  ``read``: the literal of an element's bytes.

    22P03 for bytes that are no array, 42804 for elements of another type, 54000 for too many dimensions.
    """
    element = element_type(sql_type)
    if len(data) < _HEAD.size:
        raise _malformed("insufficient data left in message")
    dimensions, flags, oid = _HEAD.unpack_from(data)
    if not 0 <= dimensions <= MAX_DIMENSIONS:
        raise make_error(
            "54000", f"number of array dimensions ({dimensions}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        )
    if flags not in (0, 1):
        raise _malformed(f"invalid array flags: {flags}")
    expected = OID_ELEMENT if sql_type.of_oids else TYPE_FACTS[element.kind].oid
    if oid != expected and not (element.kind in _TEXT_KINDS and oid in _TEXTS):
        raise make_error("42804", f"binary data has array element type {oid} instead of expected {expected}")
    if sql_type.of_oids:
        read = _read_oid
    at = _HEAD.size + _DIMENSION.size * dimensions
    if len(data) < at:
        raise _malformed("insufficient data left in message")
    pairs = [_DIMENSION.unpack_from(data, _HEAD.size + i * _DIMENSION.size) for i in range(dimensions)]
    count = _count([length for length, _ in pairs], len(data))
    cells = []
    for _ in range(count):
        value, at = _element(data, at)
        cells.append(cell_of(None if value is None else read(value, element), element))
    if at != len(data):
        raise _malformed("improper binary format in array")
    if not cells:
        return EMPTY.hex()
    return join_parts(Parts(cells, tuple(n for n, _ in pairs), tuple(low for _, low in pairs))).hex()


def _read_oid(data: bytes, element: SqlType) -> LiteralValue:
    if len(data) != _OID.size:
        raise _malformed("incorrect binary data format")
    return int(_OID.unpack(data)[0])


def _count(lengths: Sequence[int], size: int) -> int:
    """How many elements there are: no more than fit into the message."""
    if not lengths or 0 in lengths:
        return 0
    count = 1
    for length in lengths:
        count *= length
        if length < 0 or count * _LENGTH.size > size:
            raise _malformed("insufficient data left in message")
    return count


def _element(data: bytes, at: int) -> tuple[bytes | None, int]:
    """An element's bytes, and where the next one begins."""
    if len(data) < at + _LENGTH.size:
        raise _malformed("insufficient data left in message")
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length == -1:
        return None, at
    if length < 0 or len(data) < at + length:
        raise _malformed("insufficient data left in message")
    return data[at : at + length], at + length
