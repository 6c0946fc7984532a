"""Picked values of a column, as a new column.

Arrow's own ``take`` gives the interpreter's lock up and waits for it again.  For few values that costs several times
what copying them does, so those of fixed width are copied here, with the lock held.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["take_values"]

#: up to here NumPy keeps the lock too
_FEW_ROWS: Final = 512

#: by the id of the Arrow type: what has the width of a value
_WIDTHS: Final[dict[int, np.dtype[Any]]] = {
    arrow.id: np.dtype(layout)
    for arrow, layout in (
        (pa.int16(), "i2"),
        (pa.int32(), "i4"),
        (pa.int64(), "i8"),
        (pa.float32(), "i4"),
        (pa.float64(), "i8"),
        (pa.date32(), "i4"),
        (pa.time64("us"), "i8"),
        (pa.timestamp("us"), "i8"),
        (pa.decimal128(38, 0), "V16"),
    )
}


def take_values(array: pa.Array, rows: npt.NDArray[np.integer], index: pa.Array | None = None) -> pa.Array:
    """The values at ``rows``, in that order; ``index``: the same as an Arrow array, if that is at hand.  O(rows).

    It is an error to ask for a row that is not there (IndexError, checked) or for a negative one (unchecked).
    """
    width = _WIDTHS.get(array.type.id)
    if width is None or not 0 < len(rows) <= _FEW_ROWS or array.null_count:
        return array.take(pa.array(rows) if index is None else index)
    values = np.frombuffer(array.buffers()[1], width, len(array), array.offset * width.itemsize)[rows]
    return pa.Array.from_buffers(array.type, len(rows), [None, pa.py_buffer(values)])
