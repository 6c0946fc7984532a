"""Substrings of whole columns by character positions: no step per row.

``Characters`` knows where each value's characters start in the column's bytes (UTF-8: every byte that is not a
continuation byte starts one).  A substring is a byte range of its row; ranges of successive rows never overlap, so
that they and the gaps between them form one array of offsets over the same bytes, of which ``take`` picks the ranges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expr.calendar import Bools, Int64s

__all__ = ["Characters", "byte_ranges", "bytes_of", "offsets_of"]

Bytes = npt.NDArray[np.uint8]


def offsets_of(array: pa.Array) -> Int64s:
    """int64[n + 1]: the byte offsets of a large_string or large_binary column."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, np.int64)
    result: Int64s = np.frombuffer(buffer, np.int64, len(array) + 1, array.offset * 8)
    return result


def bytes_of(array: pa.Array) -> Bytes:
    """The bytes under all values, those of other slices of the same buffer too."""
    buffer = array.buffers()[2]
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def byte_ranges(array: pa.Array, begin: Int64s, end: Int64s) -> pa.Array:
    """Bytes ``begin[i]`` to ``end[i]`` (absolute) of each row; the ranges must lie inside their rows.  NULLs stay."""
    rows = len(array)
    if rows == 0:
        return array
    bounds = np.empty(2 * rows, np.int64)
    bounds[0::2] = begin
    bounds[1::2] = np.maximum(begin, end)
    data = array.buffers()[2] or pa.py_buffer(b"")
    pieces = pa.Array.from_buffers(array.type, 2 * rows - 1, [None, pa.py_buffer(bounds), data])
    taken = pieces.take(pa.array(np.arange(0, 2 * rows - 1, 2)))
    return taken if array.null_count == 0 else pc.if_else(array.is_valid(), taken, pa.scalar(None, array.type))


class Characters:
    """The character starts of one large_string column; O(bytes) to make.

    ``counts``: int64[n], characters per row.
    """

    def __init__(self, array: pa.Array) -> None:
        self._array = array
        self._offsets = offsets_of(array)
        first, last = int(self._offsets[0]), int(self._offsets[-1])
        data = bytes_of(array)[first:last]
        self._ascii = not (data & 0x80).any()
        if self._ascii:
            self.counts: Int64s = np.diff(self._offsets)
            return
        is_start: Bools = (data & 0xC0) != 0x80
        self._starts = np.append(np.flatnonzero(is_start) + first, last)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_start, dtype=np.int64)])
        self._first = before[self._offsets - first]
        self.counts = np.diff(self._first)

    def byte_position(self, index: Int64s) -> Int64s:
        """The absolute byte at which character ``index[i]`` (0 to count) of row *i* starts."""
        if self._ascii:
            position: Int64s = self._offsets[:-1] + index
        else:
            position = self._starts[self._first[:-1] + index]
        return position

    def character_index(self, position: Int64s) -> Int64s:
        """The inverse of ``byte_position``."""
        if self._ascii:
            index: Int64s = position - self._offsets[:-1]
        else:
            index = np.searchsorted(self._starts, position) - self._first[:-1]
        return index

    def slices(self, start: Int64s, stop: Int64s) -> pa.Array:
        """Characters ``start[i]`` to ``stop[i]`` of each row, both cut to the row."""
        begin = np.clip(start, 0, self.counts)
        end = np.clip(stop, begin, self.counts)
        return byte_ranges(self._array, self.byte_position(begin), self.byte_position(end))
