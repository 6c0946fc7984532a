"""The row hash of one database: seeded, and truncated in tests to provoke collisions."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.kernels.hashing import hash_rows
from eddyline.repr.types import SqlType
from eddyline.trace.columns import SHORT_BYTES, SHORT_ROWS, cell_kinds, describe, varlen_bytes

__all__ = ["HASH_BITS_VARIABLE", "Hasher"]

#: environment variable: how many low bits of every hash to keep, 0 to 64; read when a Hasher is made
HASH_BITS_VARIABLE: Final = "EDDYLINE_HASH_BITS"

_WORD: Final = (1 << 64) - 1


class Hasher:
    """Hashes rows by SQL equality.  Immutable; one per database, shared by all its traces and exchanges.

    ``bits``: low bits kept, default from the environment, else 64; it is an error (ValueError) outside 0 .. 64.
    """

    __slots__ = ("bits", "mask", "seed")

    def __init__(self, seed: int | None = None, *, bits: int | None = None) -> None:
        if bits is None:
            bits = int(os.environ.get(HASH_BITS_VARIABLE, "64"))
        if not 0 <= bits <= 64:
            raise ValueError(f"a hash has 0 to 64 bits, not {bits}")
        self.bits = bits
        self.seed = np.uint64((secrets.randbits(64) if seed is None else seed) & _WORD)
        self.mask = np.uint64((1 << bits) - 1)

    @property
    def exact(self) -> bool:
        """Whether single words (``cells.WORDS``, no NULLs) that differ have hashes that differ: each step of a hash is
        reversible, and all of its bits are kept."""
        return self.bits == 64

    def hash_rows(self, columns: Sequence[pa.Array], types: Sequence[SqlType], rows: int) -> npt.NDArray[np.uint64]:
        """uint64[rows]: equal for rows that SQL calls equal, column by column; NULLs hash alike; ``()`` is constant.

        Integers of any width hash by value; other kinds only against the same layout.  O(cells).
        """
        return self.hash_described(describe(columns, cell_kinds(types)), rows)

    def hash_described(self, descriptors: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.uint64]:
        """The same over descriptors, whose buffers the caller keeps alive."""
        out = np.empty(rows, np.uint64)
        short = rows <= SHORT_ROWS and sum(varlen_bytes(descriptors, rows)) <= SHORT_BYTES
        run = hash_rows.short if short else hash_rows
        run(descriptors, 0, self.seed, self.mask, out)
        return out
