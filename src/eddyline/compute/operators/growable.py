"""NumPy arrays that grow at the end, their first axis doubling."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["grown"]


def grown(array: npt.NDArray[Any], rows: int, fill: int = 0) -> npt.NDArray[Any]:
    """``array`` if it has ``rows`` rows already, otherwise a copy with at least twice as many, the new ones ``fill``.

    Cost: amortised O(1) a row.
    """
    if len(array) >= rows:
        return array
    larger = np.full((max(rows, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger
