"""Copying picked cells of several runs into new flat column buffers.

A pick is (run, row).  The output of a column is described by one row of ``outs`` int64[columns, OUT]: address of the
values, of the int64 offsets (varlen), of the validity bitmap (0: none, then no pick may be NULL), and the bytes
written so far (varlen; updated).  Bitmaps must be zero where they are written first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.cells import (
    BITS,
    BYTES,
    DECIMAL,
    FLOAT32,
    INT16,
    INT32,
    INTERVAL,
    NUMERIC,
    PADDED,
    UUID,
    VARLEN,
    cell,
)
from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.memory import copy_bytes, load_i64, load_u8, store_i64, store_u8
from eddyline.kernels.signatures import I64, RUNS, VOID, read, write

__all__ = ["OUT", "gather", "gather_twin", "sizes", "sizes_twin"]

OUT: Final = 4


@subroutine
def _set_bit(address: Any, position: Any) -> None:
    at = address + (position >> 3)
    store_u8(at, load_u8(at) | (np.uint64(1) << np.uint64(position & 7)))


@subroutine
def _get_bit(address: Any, position: Any) -> Any:
    return (load_u8(address + (position >> 3)) >> np.uint64(position & 7)) & np.uint64(1) != np.uint64(0)


@subroutine
def _gather_validity(descs: Any, item: Any, runs: Any, rows: Any, first: Any, start: Any, stop: Any, out: Any) -> None:
    for k in range(start, stop):
        run = runs[k]
        validity = descs[run, item, 3]
        if validity == 0 or _get_bit(validity, descs[run, item, 4] + rows[k]):
            _set_bit(out, first + k - start)


@subroutine
def _gather_texts(
    source: Any, source_offsets: Any, rows: Any, start: Any, stop: Any, values: Any, offsets: Any, written: Any
) -> Any:
    """Of one run, whose addresses need not be looked up for each pick; the bytes written so far."""
    for k in range(start, stop):
        at = source_offsets + 8 * rows[k]
        begin = load_i64(at)
        size = load_i64(at + 8) - begin
        if size > 0:
            copy_bytes(values + written, source + begin, size)
            written += size
        store_i64(offsets + 8 * (k - start + 1), written)
    return written


@subroutine
def _gather_words(source: Any, rows: Any, start: Any, stop: Any, values: Any) -> None:
    """The same for values of eight bytes."""
    for k in range(start, stop):
        store_i64(values + 8 * (k - start), load_i64(source + 8 * rows[k]))


@kernel(VOID(RUNS, I64, read(I64), read(I64), I64, I64, I64, write(I64, 2)), short=True)
def gather(
    descs: npt.NDArray[np.int64],
    skip: int,
    runs: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    start: int,
    stop: int,
    first: int,
    outs: npt.NDArray[np.int64],
) -> None:
    """Copies picks ``start <= k < stop`` to output rows from ``first`` on; column *c* is item ``skip + c`` of the runs.

    Varlen outputs grow: offset ``first`` must be written already (by the slice before; the caller writes the 0).
    """
    for column in range(outs.shape[0]):
        item = skip + column
        kind = descs[0, item, 0]
        values = outs[column, 0]
        if outs[column, 2] != 0:
            _gather_validity(descs, item, runs, rows, first, start, stop, outs[column, 2])
        if kind == BITS:
            for k in range(start, stop):
                run = runs[k]
                if _get_bit(descs[run, item, 1], descs[run, item, 4] + rows[k]):
                    _set_bit(values, first + k - start)
        elif kind in (BYTES, PADDED) and descs.shape[0] == 1:
            outs[column, 3] = _gather_texts(
                descs[0, item, 1], descs[0, item, 2], rows, start, stop, values, outs[column, 1] + 8 * first,
                outs[column, 3],
            )  # fmt: skip
        elif kind in (BYTES, PADDED):
            written = outs[column, 3]
            offsets = outs[column, 1]
            for k in range(start, stop):
                run = runs[k]
                at = descs[run, item, 2] + 8 * rows[k]
                begin = load_i64(at)
                size = load_i64(at + 8) - begin
                if size > 0:
                    copy_bytes(values + written, descs[run, item, 1] + begin, size)
                    written += size
                store_i64(offsets + 8 * (first + k - start + 1), written)
            outs[column, 3] = written
        elif kind in (INT32, FLOAT32):
            for k in range(start, stop):
                copy_bytes(values + 4 * (first + k - start), descs[runs[k], item, 1] + 4 * rows[k], 4)
        elif kind == INT16:
            for k in range(start, stop):
                copy_bytes(values + 2 * (first + k - start), descs[runs[k], item, 1] + 2 * rows[k], 2)
        elif kind in (DECIMAL, INTERVAL, UUID):
            for k in range(start, stop):
                copy_bytes(values + 16 * (first + k - start), descs[runs[k], item, 1] + 16 * rows[k], 16)
        elif kind == NUMERIC:
            for k in range(start, stop):
                copy_bytes(values + 24 * (first + k - start), descs[runs[k], item, 1] + 24 * rows[k], 24)
        elif descs.shape[0] == 1:
            _gather_words(descs[0, item, 1], rows, start, stop, values + 8 * first)
        else:
            for k in range(start, stop):
                copy_bytes(values + 8 * (first + k - start), descs[runs[k], item, 1] + 8 * rows[k], 8)


@kernel(VOID(RUNS, I64, read(I64), read(I64), write(I64, 2)), short=True)
def sizes(
    descs: npt.NDArray[np.int64],
    skip: int,
    runs: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    outs: npt.NDArray[np.int64],
) -> None:
    """outs[c, 3] = the bytes of the picked cells of column *c*, 0 unless varlen."""
    for column in range(outs.shape[0]):
        item = skip + column
        total = 0
        if descs[0, item, 0] in (BYTES, PADDED):
            for k in range(rows.shape[0]):
                at = descs[runs[k], item, 2] + 8 * rows[k]
                total += load_i64(at + 8) - load_i64(at)
        outs[column, 3] = total


def gather_twin(descs: Any, skip: int, runs: Any, rows: Any) -> list[list[Any]]:
    """The cells that ``gather`` copies, by column."""
    return [
        [cell(descs[run, item], row) for run, row in zip(runs, rows, strict=True)]
        for item in range(skip, descs.shape[1])
    ]


def sizes_twin(descs: Any, skip: int, runs: Any, rows: Any) -> list[int]:
    """What ``sizes`` fills in."""
    return [
        sum(len(value or b"") for value in column) if descs[0, skip + c, 0] in VARLEN else 0
        for c, column in enumerate(gather_twin(descs, skip, runs, rows))
    ]
