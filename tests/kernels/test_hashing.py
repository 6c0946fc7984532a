"""Hashes: the kernel against its twin, and against SQL equality."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.kernels.cells import cell, sql_key
from eddyline.kernels.hashing import hash_rows, hash_rows_twin
from eddyline.repr.types import SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.trace.columns import cell_kinds, describe

SEED = np.uint64(0x1234_5678_9ABC_DEF0)
ALL_BITS = np.uint64(2**64 - 1)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_kernel_agrees_with_twin(kind: SqlType) -> None:
    rng = Random(str(kind))
    for rows in (0, 1, 40):
        columns = [random_column(kind, rows, rng), random_column(kind, rows, rng, nulls=0)]
        described = describe(columns, cell_kinds((kind, kind)))
        fast, slow = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
        for mask in (ALL_BITS, np.uint64(15)):
            hash_rows(described, 0, SEED, mask, fast)
            hash_rows_twin(described, 0, int(SEED), int(mask), slow)
            assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_values_hash_alike_exactly_when_sql_calls_them_equal(kind: SqlType) -> None:
    rows = 120
    column = random_column(kind, rows, Random(7))
    described = describe([column], cell_kinds((kind,)))
    hashes = np.empty(rows, np.uint64)
    hash_rows(described, 0, SEED, ALL_BITS, hashes)
    values = [cell(described[0], row) for row in range(rows)]
    keys = [None if v is None else sql_key(int(described[0, 0]), v) for v in values]
    for i in range(rows):
        for j in range(i):
            assert (keys[i] == keys[j]) == (hashes[i] == hashes[j])


def test_no_columns_hash_to_a_constant() -> None:
    out = np.empty(3, np.uint64)
    hash_rows(np.empty((0, 6), np.int64), 0, SEED, ALL_BITS, out)
    assert len(set(out.tolist())) == 1
