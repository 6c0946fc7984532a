"""Rows numbered in the order of their arrival, readable by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.batch import Int64s, concat_arrays
from eddyline.repr.types import SqlType, arrow_type
from eddyline.trace.compare import rows_equal

__all__ = ["KeyLog"]


class KeyLog:
    """An append-only list of rows in a logarithmic number of chunks.

    A chunk at most twice as long as the next one is joined with it, so that an append costs O(log rows) amortised.
    """

    __slots__ = ("_chunks", "_starts", "_types", "rows")

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = tuple(types)
        self._chunks: list[tuple[pa.Array, ...]] = []
        self._starts: list[int] = []
        self.rows = 0

    def append(self, columns: Sequence[pa.Array], rows: int) -> None:
        if not rows:
            return
        chunk, start = tuple(columns), self.rows
        self.rows += rows
        while self._starts and start - self._starts[-1] <= 2 * (self.rows - start):
            last = self._chunks.pop()
            start = self._starts.pop()
            chunk = tuple(concat_arrays([a, b]) for a, b in zip(last, chunk, strict=True))
        self._chunks.append(chunk)
        self._starts.append(start)

    @property
    def nbytes(self) -> int:
        return sum(int(c.nbytes) for chunk in self._chunks for c in chunk)

    def gather(self, rows: Int64s) -> tuple[pa.Array, ...]:
        """The columns of rows ``rows``: int64[m], any order, repeats allowed."""
        if not self._types:
            return ()
        if not len(rows):
            return tuple(pa.array([], arrow_type(t)) for t in self._types)
        pieces = list(self._split(rows))
        if len(pieces) == 1:
            chunk, _, local = pieces[0]
            index = pa.array(local)
            return tuple(c.take(index) for c in chunk)
        back = np.empty(len(rows), np.int64)
        back[np.concatenate([where for _, where, _ in pieces])] = np.arange(len(rows))
        order = pa.array(back)
        taken = [tuple(c.take(pa.array(local)) for c in chunk) for chunk, _, local in pieces]
        return tuple(concat_arrays([t[i] for t in taken]).take(order) for i in range(len(self._types)))

    def equal(self, rows: Int64s, columns: Sequence[pa.Array], other: Int64s) -> npt.NDArray[np.bool_]:
        """Whether SQL calls row ``rows[i]`` and row ``other[i]`` of ``columns`` equal (NULLs equal)."""
        result = np.ones(len(rows), np.bool_)
        if not self._types:
            return result
        safe = [True] * len(self._types)
        for chunk, where, local in self._split(rows):
            result[where] = rows_equal(chunk, self._types, local, columns, other[where], null_equal=safe)
        return result

    def _split(self, rows: Int64s) -> list[tuple[tuple[pa.Array, ...], Int64s, Int64s]]:
        """(chunk, positions in ``rows``, row numbers within the chunk) of each chunk that is needed."""
        if len(self._chunks) == 1:
            return [(self._chunks[0], np.arange(len(rows)), rows)]
        starts = np.array(self._starts)
        chunk_of = np.searchsorted(starts, rows, side="right") - 1
        parts = []
        for chunk in np.flatnonzero(np.bincount(chunk_of, minlength=len(starts))).tolist():
            where = np.flatnonzero(chunk_of == chunk)
            parts.append((self._chunks[chunk], where, rows[where] - starts[chunk]))
        return parts
