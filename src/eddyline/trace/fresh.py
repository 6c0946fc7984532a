"""Memory that is taken from the system, and given back to it, in bounded parts.

Whoever writes a page for the first time waits for the system: about half a microsecond for each kilobyte.  Rows that
are dealt into buckets write all pages of what they are dealt to with the first few thousand of them.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["PIECE_BYTES", "apart", "touch"]

#: so many bytes are taken at once
PIECE_BYTES: Final = 1 << 22
_PAGE_BYTES: Final = 4096
#: what is smaller is left to the C library
_APART_BYTES: Final = 1 << 17
#: elsewhere than on Windows, anonymous memory is shared with forked children unless this is said
_ACCESS: Final = mmap.ACCESS_DEFAULT if sys.platform == "win32" else mmap.ACCESS_COPY


def touch(arrays: Sequence[npt.NDArray[Any]], piece_bytes: int = PIECE_BYTES) -> Iterator[int]:
    """Writes to each page of contiguous arrays whose contents do not matter yet; yields the bytes of each piece.

    O(pages), and nothing where all together are no more than a piece.
    """
    if sum(a.nbytes for a in arrays) <= piece_bytes:
        return
    for array in arrays:
        content = array.reshape(-1).view(np.uint8)
        for start in range(0, len(content), piece_bytes):
            piece = content[start : start + piece_bytes]
            piece[::_PAGE_BYTES] = 0
            yield len(piece)


def apart(arrays: Sequence[npt.NDArray[np.uint64]]) -> Sequence[npt.NDArray[np.uint64]]:
    """The arrays, of equal length, in pages that go back to the system with the last of them; small ones as they are.

    The C library keeps the pages of what it is given back, between arrays that live on, where another thread does not
    find them.
    """
    rows = len(arrays[0])
    size = sum(a.nbytes for a in arrays)
    if size < _APART_BYTES:
        return arrays
    kept = np.frombuffer(mmap.mmap(-1, size, access=_ACCESS), np.uint64).reshape(len(arrays), rows)
    for copy, array in zip(kept, arrays, strict=True):
        copy[:] = array
    return tuple(kept)
