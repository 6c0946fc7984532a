"""The values that a selective reader asks for, as hashes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eddyline.expr.text_io import literal_array
from eddyline.protocol.sources import Selection
from eddyline.repr.batch import concat_arrays
from eddyline.trace.hasher import Hasher

__all__ = ["selected_hashes"]


def selected_hashes(selection: Selection, hasher: Hasher) -> npt.NDArray[np.uint64]:
    """uint64, unique: of the values selected."""
    values = [literal_array(value, selection.type, 1) for value in selection.values]
    column = concat_arrays(values)
    return np.unique(hasher.hash_rows((column,), (selection.type,), len(column)))
