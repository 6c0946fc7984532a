"""Columns of bytes put together row by row, as messages of a wire protocol, and decimal text in its binary form.

A message is a tag, a big-endian length that counts itself and what follows, and cells; a cell is a big-endian length
(-1: NULL) and that many bytes.  ``begin_messages`` writes what stands before the cells, ``append_cells`` one column
after another: ``positions`` says where each message's next byte goes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import I64, U8, VOID, read, write

__all__ = [
    "BAD_COUNT",
    "BAD_LENGTH",
    "END",
    "MORE",
    "append_cells",
    "append_cells_twin",
    "begin_messages",
    "begin_messages_twin",
    "decimal_binary",
    "decimal_binary_sizes",
    "decimal_binary_sizes_twin",
    "decimal_binary_twin",
    "scan_tuples",
    "scan_tuples_twin",
]

_MINUS: Final = 45
_POINT: Final = 46
_ZERO: Final = 48
_HEADER: Final = 8  # four int16: groups, weight, sign, scale
_NEGATIVE: Final = 0x40


@subroutine
def _put32(out: Any, at: Any, value: Any) -> None:
    out[at] = (value >> 24) & 255
    out[at + 1] = (value >> 16) & 255
    out[at + 2] = (value >> 8) & 255
    out[at + 3] = value & 255


@subroutine
def _put16(out: Any, at: Any, value: Any) -> None:
    out[at] = (value >> 8) & 255
    out[at + 1] = value & 255


@kernel(VOID(I64, I64, read(I64), write(I64), write(U8)), short=True)
def begin_messages(tag: Any, cells: Any, sizes: Any, positions: Any, out: Any) -> None:
    """Messages one behind the other: ``sizes[i]`` bytes each, tag and length included.  ``tag`` 0: neither of them;
    ``cells`` -1: no count of cells is written."""
    at = np.int64(0)
    for i in range(sizes.shape[0]):
        start = at
        if tag != 0:
            out[at] = tag
            _put32(out, at + 1, sizes[i] - 1)
            at += 5
        if cells >= 0:
            _put16(out, at, cells)
            at += 2
        positions[i] = at
        at = start + sizes[i]


@kernel(VOID(read(I64), read(U8), read(U8), I64, write(I64), write(U8)), short=True)
def append_cells(offsets: Any, data: Any, valid: Any, lengths: Any, positions: Any, out: Any) -> None:
    """One cell in each message.  ``data``: value *i* is ``data[offsets[i]:offsets[i + 1]]``; ``valid``: uint8 per
    value, or empty if none is NULL; ``lengths`` 0: the bytes alone, without their length."""
    nulls = valid.shape[0] > 0
    for i in range(positions.shape[0]):
        at = positions[i]
        if nulls and valid[i] == 0:
            if lengths != 0:
                _put32(out, at, np.int64(-1))
                at += 4
            positions[i] = at
            continue
        start, stop = offsets[i], offsets[i + 1]
        if lengths != 0:
            _put32(out, at, stop - start)
            at += 4
        for k in range(start, stop):
            out[at] = data[k]
            at += 1
        positions[i] = at


@subroutine
def _point(data: Any, start: Any, stop: Any) -> Any:
    """Where the point stands, or ``stop``."""
    for k in range(start, stop):
        if data[k] == _POINT:
            return k
    return stop


@subroutine
def _group(data: Any, first: Any, point: Any, stop: Any, weight: Any) -> Any:
    """The four digits that count 10000 ** ``weight``; the number's digits begin at ``first``."""
    value = np.int64(0)
    for j in range(4):
        place = weight * 4 + 3 - j  # the digit counts 10 ** place
        at = point - 1 - place if place >= 0 else point - place
        digit = np.int64(data[at]) - _ZERO if first <= at < stop and at != point else np.int64(0)
        value = value * 10 + digit
    return value


@subroutine
def _heaviest(data: Any, first: Any, point: Any, stop: Any, lowest: Any) -> Any:
    """The weight of the first group that is not zero; below ``lowest`` if there is none."""
    weight = (point - first + 3) // 4 - 1
    while weight >= lowest and _group(data, first, point, stop, weight) == 0:
        weight -= 1
    return weight


@subroutine
def _lightest(data: Any, first: Any, point: Any, stop: Any, lowest: Any, heaviest: Any) -> Any:
    """The weight of the last group that is not zero."""
    weight = lowest
    while weight < heaviest and _group(data, first, point, stop, weight) == 0:
        weight += 1
    return weight


@kernel(VOID(read(I64), read(U8), write(I64)))
def decimal_binary_sizes(offsets: Any, data: Any, sizes: Any) -> None:
    """sizes: int64[n], bytes of each value's binary form.  ``data``: decimal text, sign and point where needed."""
    for i in range(sizes.shape[0]):
        start, stop = offsets[i], offsets[i + 1]
        sizes[i] = 0
        if start == stop:
            continue
        first = start + 1 if data[start] == _MINUS else start
        point = _point(data, first, stop)
        digits = stop - point - 1 if point < stop else np.int64(0)
        lowest = -((digits + 3) // 4)
        heaviest = _heaviest(data, first, point, stop, lowest)
        sizes[i] = _HEADER
        if heaviest >= lowest:
            sizes[i] += 2 * (heaviest - _lightest(data, first, point, stop, lowest, heaviest) + 1)


@kernel(VOID(read(I64), read(U8), read(I64), write(U8)))
def decimal_binary(offsets: Any, data: Any, targets: Any, out: Any) -> None:
    """Base-10000 groups with their count, the first one's weight, the sign and the digits after the point, as int16
    each, at ``targets[i]`` of ``out``; nothing for an empty text."""
    for i in range(targets.shape[0] - 1):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            continue
        negative = data[start] == _MINUS
        first = start + 1 if negative else start
        point = _point(data, first, stop)
        digits = stop - point - 1 if point < stop else np.int64(0)
        lowest = -((digits + 3) // 4)
        heaviest = _heaviest(data, first, point, stop, lowest)
        at = targets[i]
        groups = (targets[i + 1] - at - _HEADER) // 2
        _put16(out, at, groups)
        _put16(out, at + 2, heaviest if groups > 0 else np.int64(0))
        out[at + 4] = _NEGATIVE if negative and groups > 0 else 0
        out[at + 5] = 0
        _put16(out, at + 6, digits)
        at += _HEADER
        for k in range(groups):
            _put16(out, at, _group(data, first, point, stop, heaviest - k))
            at += 2


#: why a scan of tuples stopped
MORE: Final = 0  # at the end of the data, or of the room for rows
END: Final = 1  # at the trailer
BAD_COUNT: Final = 2  # a tuple with another number of fields, which is in the state
BAD_LENGTH: Final = 3  # a field of a length that none has


@subroutine
def _signed(data: Any, at: Any, width: Any) -> Any:
    """A big-endian integer of two or four bytes."""
    value = np.int64(0)
    for k in range(width):
        value = (value << 8) | np.int64(data[at + k])
    limit = np.int64(1) << (8 * width - 1)
    return value - 2 * limit if value >= limit else value


@kernel(I64(read(U8), I64, write(I64, 2), write(I64, 2), write(I64)))
def scan_tuples(data: Any, start: Any, starts: Any, lengths: Any, state: Any) -> Any:
    """How many whole tuples of binary COPY there are from ``start`` on: where each field is, and its length (-1: NULL).

    ``starts``, ``lengths``: int64[room, columns].  ``state``: the next position, why it stopped, the odd count.
    """
    size, columns = data.shape[0], starts.shape[1]
    at, row, status = start, 0, MORE
    while row < starts.shape[0] and at + 2 <= size:
        count = _signed(data, at, 2)
        if count == -1:
            at += 2
            status = END
            break
        if count != columns:
            status = BAD_COUNT
            state[2] = count
            break
        position, whole = at + 2, True
        for column in range(columns):
            if position + 4 > size:
                whole = False
                break
            length = _signed(data, position, 4)
            position += 4
            if length < -1:
                status = BAD_LENGTH
                whole = False
                break
            if position + max(length, np.int64(0)) > size:
                whole = False
                break
            starts[row, column], lengths[row, column] = position, length
            position += max(length, np.int64(0))
        if not whole:
            break
        at = position
        row += 1
    state[0], state[1] = at, status
    return row


# -- twins ------------------------------------------------------------------------------------------------------------


def begin_messages_twin(tag: int, cells: int, sizes: Sequence[int]) -> list[bytes]:
    """What stands before the cells of each message."""
    count = b"" if cells < 0 else struct.pack("!H", cells)
    return [(bytes([tag]) + struct.pack("!i", size - 1) if tag else b"") + count for size in sizes]


def append_cells_twin(values: Sequence[bytes | None], *, lengths: bool) -> list[bytes]:
    """The cell of each value."""
    if not lengths:
        return [value or b"" for value in values]
    return [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]


def decimal_binary_twin(text: str) -> bytes:
    sign, digits = (0x4000, text[1:]) if text.startswith("-") else (0, text)
    whole, _, fraction = digits.partition(".")
    padded = whole.rjust(-(-len(whole) // 4) * 4, "0") + fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int(padded[k : k + 4]) for k in range(0, len(padded), 4)]
    weight = -(-len(whole) // 4) - 1
    while groups and groups[0] == 0:
        del groups[0]
        weight -= 1
    while groups and groups[-1] == 0:
        del groups[-1]
    header = (len(groups), weight if groups else 0, sign if groups else 0, len(fraction))
    return struct.pack(f"!hhHh{len(groups)}h", *header, *groups)


def decimal_binary_sizes_twin(text: str) -> int:
    return len(decimal_binary_twin(text))


def scan_tuples_twin(data: bytes, columns: int) -> tuple[list[list[bytes | None]], int, int]:
    """The fields of whole tuples, the position after them, why it stopped."""
    rows: list[list[bytes | None]] = []
    at = 0
    while len(data) - at >= 2:
        (count,) = struct.unpack_from("!h", data, at)
        if count != columns:
            return (rows, at + 2, END) if count == -1 else (rows, at, BAD_COUNT)
        fields: list[bytes | None] = []
        position = at + 2
        for _ in range(columns):
            if len(data) - position < 4:
                return rows, at, MORE
            (length,) = struct.unpack_from("!i", data, position)
            if length < -1:
                return rows, at, BAD_LENGTH
            position += 4
            if len(data) - position < max(length, 0):
                return rows, at, MORE
            fields.append(None if length == -1 else data[position : position + length])
            position += max(length, 0)
        rows.append(fields)
        at = position
    return rows, at, MORE
