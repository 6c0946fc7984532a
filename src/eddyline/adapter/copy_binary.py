"""COPY FROM in PostgreSQL's binary format: tuples to the columns of a table, a block of data at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.errors import DatabaseError, make_error
from eddyline.kernels.wire import BAD_COUNT, BAD_LENGTH, END, scan_tuples
from eddyline.sql.statements import BINARY_SIGNATURE

__all__ = ["Tuples", "tuple_blocks"]

_MOST_ROWS: Final = 1 << 14
_HEADER_BYTES: Final = len(BINARY_SIGNATURE) + 8
_HAS_OIDS: Final = 1 << 16
_UNKNOWN_FLAGS: Final = 0xFFFF0000


class Tuples:
    """Fields of whole tuples: that of row *r* and column *c* has ``lengths[r, c]`` bytes (-1: NULL) of ``data`` from
    ``starts[r, c]`` on.  ``first``: the number of the first tuple, from 1."""

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        first: int,
    ) -> None:
        self.data = data
        self.starts = starts
        self.lengths = lengths
        self.first = first

    def __len__(self) -> int:
        return len(self.starts)


def _bad(message: str) -> DatabaseError:
    return make_error("22P04", message)


def tuple_blocks(pieces: Iterable[bytes], columns: int) -> Iterator[Tuples]:
    """All tuples of the data; 22P04 for data that are none.

    What is kept is one piece and one incomplete tuple.
    """
    given = iter(pieces)
    data = b""
    while len(data) < _HEADER_BYTES and (piece := next(given, None)) is not None:
        data += piece
    at = _header_end(data)
    while len(data) < at and (piece := next(given, None)) is not None:
        data += piece
    if len(data) < at:
        raise _bad("invalid COPY file header (wrong length)")
    first, state = 1, np.zeros(3, np.int64)
    while True:
        octets = np.frombuffer(data, np.uint8)
        while True:
            starts = np.zeros((_MOST_ROWS, columns), np.int64)
            lengths = np.zeros((_MOST_ROWS, columns), np.int64)
            rows = int(scan_tuples(octets, at, starts, lengths, state))
            if rows:
                yield Tuples(octets, starts[:rows], lengths[:rows], first)
            first, at, status = first + rows, int(state[0]), int(state[1])
            if rows < _MOST_ROWS or status:
                break
        if status == END:
            if at < len(data) or next(given, None) is not None:
                raise _bad("received copy data after EOF marker")
            return
        if status == BAD_COUNT:
            raise _bad(f"row field count is {int(state[2])}, expected {columns}")
        if status == BAD_LENGTH:
            raise _bad("invalid field size")
        piece = next(given, None)
        if piece is None:
            if at < len(data):
                raise _bad("unexpected EOF in COPY data")
            return
        data, at = data[at:] + piece, 0


def _header_end(data: bytes) -> int:
    """Where the first tuple begins."""
    if not data.startswith(BINARY_SIGNATURE):
        raise _bad("COPY file signature not recognized")
    if len(data) < _HEADER_BYTES:
        raise _bad("invalid COPY file header (missing length)")
    flags, extension = struct.unpack_from("!Ii", data, len(BINARY_SIGNATURE))
    if flags & _HAS_OIDS:
        raise _bad("invalid COPY file header (WITH OIDS)")
    if flags & _UNKNOWN_FLAGS:
        raise _bad("unrecognized critical flags in COPY file header")
    if extension < 0:
        raise _bad("invalid COPY file header (missing length)")
    return _HEADER_BYTES + int(extension)
