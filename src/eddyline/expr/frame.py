"""The rows an expression is evaluated over: columns behind a selection, gathered only when they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.repr.taking import take_values

__all__ = ["Frame"]

Int64s = npt.NDArray[np.int64]


class Frame:
    """``rows`` rows.  Column *i* is ``arrays[i]`` taken at ``indexes[i]`` (None: as it is).  One thread's.

    ``names``: of the columns, for the texts of errors; they are asked for only there.
    """

    __slots__ = ("_arrays", "_indexes", "names", "rows")

    def __init__(
        self,
        arrays: Sequence[pa.Array],
        rows: int,
        indexes: list[Int64s | None] | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        self._arrays = list(arrays)
        self._indexes: list[Int64s | None] = [None] * len(self._arrays) if indexes is None else indexes
        self.rows = rows
        self.names = names

    def __len__(self) -> int:
        return len(self._arrays)

    def column(self, index: int) -> pa.Array:
        """Column ``index``, contiguous; gathered once."""
        selection = self._indexes[index]
        if selection is not None:
            self._arrays[index] = take_values(self._arrays[index], selection)
            self._indexes[index] = None
        return self._arrays[index]

    def select(self, index: Int64s) -> Frame:
        """The rows at ``index`` (int64, sorted), without touching a column.  Cost: O(columns + selected rows)."""
        composed: dict[int, Int64s] = {}
        indexes: list[Int64s | None] = []
        for old in self._indexes:
            if old is None:
                indexes.append(index)
                continue
            if id(old) not in composed:
                composed[id(old)] = old[index]
            indexes.append(composed[id(old)])
        return Frame(self._arrays, len(index), indexes, names=self.names)

    def append(self, array: pa.Array) -> None:
        """One more column, of ``rows`` values."""
        self._arrays.append(array)
        self._indexes.append(None)
