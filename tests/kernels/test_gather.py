"""Gathering cells of several runs: kernel against twin, whole and in slices."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.kernels.cells import VARLEN, cell
from eddyline.kernels.gather import gather, gather_twin, sizes, sizes_twin
from eddyline.repr.types import SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import ColumnBuffers, cell_kinds, describe


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("nulls", [0, 0.3])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_gather_agrees_with_twin(kind: SqlType, nulls: float, step: int) -> None:
    rng = Random(f"{kind}{nulls}{step}")
    columns = [[random_column(kind, 20, rng, nulls=nulls if r else 0)] for r in range(3)]
    kinds = cell_kinds((kind,))
    descs = np.array([describe(c, kinds) for c in columns])
    runs = np.array([rng.randrange(3) for _ in range(50)], np.int64)
    rows = np.array([rng.randrange(20) for _ in range(50)], np.int64)
    outs = np.zeros((1, 4), np.int64)
    sizes(descs, 0, runs, rows, outs)
    assert outs[:, 3].tolist() == sizes_twin(descs, 0, runs, rows)
    assert (outs[0, 3] > 0) == (kinds[0] in VARLEN)
    buffers = ColumnBuffers((kind,), kinds, 50, outs[:, 3].tolist(), [bool(nulls)])
    for start in range(0, 50, step):
        stop = min(start + step, 50)
        gather(descs, 0, runs, rows, start, stop, start, buffers.outs)
    (found,) = buffers.finish(50)
    found.validate(full=True)
    described = describe([found], kinds)[0]
    expected = gather_twin(descs, 0, runs, rows)[0]
    assert [repr(cell(described, row)) for row in range(50)] == [repr(value) for value in expected]
