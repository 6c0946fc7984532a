"""Encoded rows and ORDER BY prefixes: kernels against twins, and their order against the comparison."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.kernels.cells import compare_rows_twin
from eddyline.kernels.encode import encode_rows_twin
from eddyline.kernels.prefix import prefixes, prefixes_twin
from eddyline.repr.types import INTEGER, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import cell_kinds, describe
from eddyline.trace.order import row_keys


def sign(a: object, b: object) -> int:
    return int(a > b) - int(a < b)  # type: ignore[operator]  # of one orderable type


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_encoded_rows_order_as_the_comparison_does(kind: SqlType) -> None:
    rng = Random(str(kind))
    types = (kind, INTEGER)
    columns = [random_column(t, 32, rng) for t in types]
    described = describe(columns, cell_kinds(types))
    keys = row_keys(columns, types, 32).to_pylist()
    assert keys == encode_rows_twin(described, 32)
    for i in range(32):
        for j in range(32):
            assert sign(keys[i], keys[j]) == compare_rows_twin(described[None], 0, i, described[None], 0, j)


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
