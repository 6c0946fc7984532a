"""Update batches: columns with a time and a diff for each row.

Invariants:
I1  all columns, ``times`` and ``diffs`` have the same length;
I2  column *i* has the layout ``arrow_type(types[i])`` and is one contiguous array, never chunked;
I3  a batch is immutable; whoever builds one gives up writing to its buffers.
Order and consolidation are not promised.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.taking import take_values
from eddyline.repr.time import Time
from eddyline.repr.types import SqlType, arrow_type

__all__ = ["Batch", "Int64s", "concat_arrays"]

Int64s = npt.NDArray[np.int64]


class Batch:
    """``n`` updates: (row, time, diff).  ``types`` is the row type."""

    __slots__ = ("columns", "diffs", "times", "types")

    def __init__(self, types: tuple[SqlType, ...], columns: tuple[pa.Array, ...], times: Int64s, diffs: Int64s) -> None:
        self.types = types
        self.columns = columns
        self.times = times
        self.diffs = diffs

    def __len__(self) -> int:
        return len(self.times)

    @property
    def nbytes(self) -> int:
        """Bytes of its own rows, whatever buffers they are slices of.  O(columns)."""
        return self.column_bytes + self.times.nbytes + self.diffs.nbytes

    @property
    def column_bytes(self) -> int:
        """As ``nbytes``, without times and diffs."""
        return sum(int(c.nbytes) for c in self.columns)

    def __repr__(self) -> str:
        return f"Batch({len(self)} × {len(self.types)})"

    @staticmethod
    def empty(types: tuple[SqlType, ...]) -> Batch:
        return Batch(
            types,
            _empty_columns(types),
            np.empty(0, np.int64),
            np.empty(0, np.int64),
        )

    @staticmethod
    def at(types: tuple[SqlType, ...], columns: tuple[pa.Array, ...], rows: int, time: Time, diff: int = 1) -> Batch:
        """All ``rows`` rows at one time with one diff."""
        return Batch(types, columns, np.full(rows, time, np.int64), np.full(rows, diff, np.int64))

    @staticmethod
    def concat(types: tuple[SqlType, ...], batches: Sequence[Batch]) -> Batch:
        """The updates of all ``batches``, in order; no copy for a single one."""
        if not batches:
            return Batch.empty(types)
        if len(batches) == 1:
            return batches[0]
        columns = tuple(concat_arrays([b.columns[i] for b in batches]) for i in range(len(types)))
        return Batch(
            types,
            columns,
            np.concatenate([b.times for b in batches]),
            np.concatenate([b.diffs for b in batches]),
        )

    def take(self, rows: npt.NDArray[np.integer]) -> Batch:
        """The updates at positions ``rows`` (int, any order, repeats allowed)."""
        columns = tuple([take_values(c, rows) for c in self.columns])
        return Batch(self.types, columns, self.times[rows], self.diffs[rows])

    def slice(self, start: int, stop: int) -> Batch:
        """Updates ``start <= i < stop``; shares buffers."""
        return Batch(
            self.types,
            tuple(c.slice(start, stop - start) for c in self.columns),
            self.times[start:stop],
            self.diffs[start:stop],
        )

    def advanced(self, time: Time) -> Batch:
        """Times below ``time`` moved up to it."""
        return Batch(self.types, self.columns, np.maximum(self.times, time), self.diffs)

    def negated(self) -> Batch:
        return Batch(self.types, self.columns, self.times, -self.diffs)


@functools.lru_cache(maxsize=1024)
def _empty_columns(types: tuple[SqlType, ...]) -> tuple[pa.Array, ...]:
    """Kept, since most steps of most dataflows have no errors to tell of, and an array costs more than a look-up."""
    return tuple(pa.array([], type=arrow_type(t)) for t in types)


def concat_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """One contiguous array with the values of all; no copy for a single one."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
