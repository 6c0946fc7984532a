"""ORDER BY prefixes: the kernel against its twin, and their order against the comparison."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.kernels.cells import compare_rows_twin
from eddyline.kernels.prefix import prefixes, prefixes_twin
from eddyline.repr.types import SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import cell_kinds, describe


@pytest.mark.parametrize("flags", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_prefixes_agree_with_twin_and_are_monotone(kind: SqlType, flags: int) -> None:
    column = random_column(kind, 32, Random(f"{kind}{flags}"))
    described = describe([column], cell_kinds((kind,)))
    described[0, 5] = flags
    out = np.empty(32, np.uint64)
    prefixes(described[0], out)
    assert out.tolist() == prefixes_twin(described[0], 32)
    for i in range(32):
        for j in range(32):
            if compare_rows_twin(described[None], 0, i, described[None], 0, j) < 0:
                assert out[i] <= out[j]
