"""NumPy arrays that grow at the end, in steps that nobody waits long for.

Small arrays double.  Large ones grow by an eighth, in place: the allocator moves the pages of a large block and not its
bytes, so that a step costs what it adds.  Doubling ten million rows copies and touches hundreds of megabytes while one
row is waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["grown"]

#: below this an array doubles
_DOUBLING_BYTES = 1 << 22
#: from there on it grows by one part in so many
_LARGE_STEP = 8


def grown(array: npt.NDArray[Any], rows: int, fill: int = 0) -> npt.NDArray[Any]:
    """``array`` if it has ``rows`` rows already; otherwise one with more, the new ones ``fill``.

    The old array must not be used any more, nor any view of it (unchecked): its memory may have moved.
    Cost: amortised O(1) a row; at worst the new rows, where the allocator can move pages.
    """
    if len(array) >= rows:
        return array
    filled = len(array)
    if array.nbytes < _DOUBLING_BYTES or not array.flags.owndata:
        larger = np.full((max(rows, 2 * filled), *array.shape[1:]), fill, array.dtype)
        larger[:filled] = array
        return larger
    array.resize((max(rows, filled + filled // _LARGE_STEP), *array.shape[1:]), refcheck=False)
    if fill:
        array[filled:] = fill
    return array
