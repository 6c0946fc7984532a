"""unnest over the rows of a batch: arrays side by side, in bounded pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from eddyline.compute.operators.series import Piece, Series
from eddyline.expr.array_layout import flattened
from eddyline.repr.types import SqlType, element_type

__all__ = ["unnested"]


def unnested(args: Sequence[pa.Array], types: Sequence[SqlType], piece_rows: int) -> Series:
    """For each row as many rows as its longest array has elements: one element of each array, NULL where it is shorter,
    and their number from 1 on.  A NULL array has none.  Nothing fails."""
    return Series(_pieces(args, types, piece_rows), None)


def _pieces(args: Sequence[pa.Array], types: Sequence[SqlType], piece_rows: int) -> Iterator[Piece]:
    found = [flattened(arg, element_type(t)) for arg, t in zip(args, types, strict=True)]
    counts = np.max([np.diff(offsets) for _, offsets in found], axis=0)
    ends = np.concatenate([[0], np.cumsum(counts)])
    total = int(ends[-1])
    for start in range(0, total, piece_rows):
        place = np.arange(start, min(start + piece_rows, total))
        rows = np.searchsorted(ends, place, side="right") - 1
        number = place - ends[rows]
        columns = [_column(elements, offsets, rows, number) for elements, offsets in found]
        yield Piece(rows, (*columns, pa.array(number + 1)))


def _column(elements: pa.Array, offsets: np.ndarray, rows: np.ndarray, number: np.ndarray) -> pa.Array:
    inside = number < np.diff(offsets)[rows]
    return elements.take(pa.array(np.where(inside, offsets[rows] + number, 0), mask=~inside))
