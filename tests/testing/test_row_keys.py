"""Encoded rows order as the comparison of rows does."""

from __future__ import annotations

from random import Random

import pytest

from eddyline.kernels.cells import compare_rows_twin
from eddyline.repr.types import INTEGER, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.testing.row_keys import row_keys
from eddyline.trace.columns import cell_kinds, describe


def sign(a: bytes, b: bytes) -> int:
    return int(a > b) - int(a < b)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_encoded_rows_order_as_the_comparison_does(kind: SqlType) -> None:
    rng = Random(str(kind))
    types = (kind, INTEGER)
    columns = [random_column(t, 32, rng) for t in types]
    described = describe(columns, cell_kinds(types))
    keys = row_keys(columns, types, 32)
    for i in range(32):
        for j in range(32):
            assert sign(keys[i], keys[j]) == compare_rows_twin(described[None], 0, i, described[None], 0, j)
