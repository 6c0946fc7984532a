"""Rows numbered in the order of their arrival, readable by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.compute.operators.growable import grown
from eddyline.kernels import cells
from eddyline.kernels.gather import OUT, gather, sizes
from eddyline.repr.batch import Int64s
from eddyline.repr.types import SqlType, arrow_type
from eddyline.trace.columns import (
    SHORT_BYTES,
    SHORT_ROWS,
    address_of,
    cell_kinds,
    describe,
    gather_columns,
)

__all__ = ["KeyLog"]

UInt8s = npt.NDArray[np.uint8]


class _Column:
    """The growing buffers of one column: one bit per row of ``validity`` once there was a NULL."""

    __slots__ = ("kind", "offsets", "validity", "values")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.values: UInt8s = np.zeros(64, np.uint8)
        self.offsets: Int64s = np.zeros(17 if kind in cells.VARLEN else 0, np.int64)
        self.validity: UInt8s | None = None

    def reserve(self, rows: int, varlen: int) -> None:
        """Room for ``rows`` rows, and for ``varlen`` bytes of values if it is varlen."""
        bits = (rows + 7) // 8
        if self.kind in cells.VARLEN:
            self.offsets = grown(self.offsets, rows + 1)
            size = varlen
        else:
            size = bits if self.kind == cells.BITS else rows * cells.WIDTHS[self.kind]
        self.values = grown(self.values, size)
        if self.validity is not None:
            self.validity = grown(self.validity, bits)

    def allow_nulls(self, filled: int, rows: int) -> None:
        """The first NULL is coming: marks the ``filled`` rows that are there as valid."""
        if self.validity is None:
            self.validity = np.zeros((rows + 7) // 8, np.uint8)
            self.validity[: filled // 8] = 0xFF
            if filled % 8:
                self.validity[filled // 8] = (1 << filled % 8) - 1

    def addresses(self) -> tuple[int, int, int]:
        """Of values, offsets (0: none), validity (0: none)."""
        offsets = address_of(self.offsets) if self.kind in cells.VARLEN else 0
        return address_of(self.values), offsets, 0 if self.validity is None else address_of(self.validity)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.offsets.nbytes + (0 if self.validity is None else self.validity.nbytes)


class KeyLog:
    """An append-only list of rows in flat buffers that double: an append costs its rows, amortised, in one kernel."""

    __slots__ = ("_columns", "_descriptors", "_kinds", "_types", "_varlen", "rows")

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = tuple(types)
        self._kinds = cell_kinds(self._types)
        self._columns = [_Column(kind) for kind in self._kinds]
        #: bytes of values so far, 0 unless varlen
        self._varlen = [0] * len(self._kinds)
        self._descriptors = self._described()
        self.rows = 0

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns)

    @property
    def descriptors(self) -> Int64s:
        """int64[1, columns, WIDTH], of all rows, until the next ``append``: see ``kernels.cells``."""
        return self._descriptors

    def append(self, columns: Sequence[pa.Array], picked: Int64s) -> None:
        """Adds the rows ``picked`` of ``columns``, in that order.  O(picked), amortised."""
        count = len(picked)
        if not count:
            return
        stop = self.rows + count
        if not self._types:
            self.rows = stop
            return
        source = describe(columns, self._kinds)[None]
        runs = np.zeros(count, np.int64)
        short = count <= SHORT_ROWS
        outs = np.zeros((len(self._kinds), OUT), np.int64)
        if any(kind in cells.VARLEN for kind in self._kinds):
            (sizes.short if short else sizes)(source, 0, runs, picked, outs)
            short = short and int(outs[:, 3].sum()) <= SHORT_BYTES
        for i, column in enumerate(self._columns):
            column.reserve(stop, self._varlen[i] + int(outs[i, 3]))
            if source[0, i, 3]:
                column.allow_nulls(self.rows, stop)
            values, offsets, validity = column.addresses()
            outs[i] = (values, offsets, validity, self._varlen[i])
        (gather.short if short else gather)(source, 0, runs, picked, 0, count, self.rows, outs)
        self._varlen = outs[:, 3].tolist()
        self._descriptors = self._described()
        self.rows = stop

    def gather(self, rows: Int64s) -> tuple[pa.Array, ...]:
        """The columns of rows ``rows``: int64[m], any order, repeats allowed."""
        if not len(rows):
            return tuple(pa.array([], arrow_type(t)) for t in self._types)
        return gather_columns(self._types, self._kinds, self._descriptors, 0, np.zeros(len(rows), np.int64), rows)

    def _described(self) -> Int64s:
        """int64[1, columns, WIDTH]: see ``kernels.cells``."""
        described = []
        for column in self._columns:
            values, offsets, validity = column.addresses()
            described.append((column.kind, values, offsets, validity, 0, 0))
        return np.array(described, np.int64).reshape(1, len(described), cells.WIDTH)
