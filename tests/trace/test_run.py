"""Runs: their order, consolidation and time bounds; orders of rows; hashers."""

from __future__ import annotations

from functools import cmp_to_key
from random import Random

import numpy as np
import pytest

from eddyline.kernels.cells import compare_rows_twin
from eddyline.repr.batch import Int64s
from eddyline.repr.time import Time
from eddyline.repr.types import BIGINT, DOUBLE, INTEGER, INTERVAL, NUMERIC, TEXT, SqlType
from eddyline.testing.columns import ALL_TYPES, random_column
from eddyline.testing.row_keys import row_keys
from eddyline.trace.columns import cell_kinds, describe, order_descriptors
from eddyline.trace.compare import rows_equal, rows_identical
from eddyline.trace.hasher import HASH_BITS_VARIABLE, Hasher
from eddyline.trace.order import order_rows, sort_prefix
from eddyline.trace.run import Layout, consolidate
from tests.trace.multiset import Item, build, multiset, random_batch


@pytest.mark.parametrize("bits", [64, 4])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_a_run_is_its_batch_consolidated_and_sorted(kind: SqlType, bits: int) -> None:
    rng = Random(f"{kind}{bits}")
    hasher = Hasher(9, bits=bits)
    for order in ((), (Item(0, desc=True), Item(1))):
        layout = Layout((kind, INTEGER), (1,), order)
        batch = random_batch(layout.types, 150, range(2, 5), rng)
        run = build(batch, layout, hasher, lower=2, upper=5, since=3)
        assert multiset(run.batch()) == multiset(batch.advanced(Time(3)))
        assert len(multiset(run.batch())) == len(run)
        words = list(zip(run.key_hashes.tolist(), run.value_hashes.tolist(), strict=True))
        assert words == sorted(words)
        descs = run.descriptors[None]
        for i in range(1, len(run)):
            if words[i - 1] == words[i]:
                order_sign = compare_rows_twin(descs, 0, i - 1, descs, 0, i)
                assert (order_sign, int(run.times[i - 1])) < (0, int(run.times[i])) or order_sign < 0


@pytest.mark.parametrize("bits", [64, 4])
def test_consolidation_is_exact_and_idempotent(bits: int) -> None:
    rng, hasher = Random(4), Hasher(2, bits=bits)
    types = (DOUBLE, NUMERIC, INTERVAL)
    for rows in (0, 1, 2, 300):
        batch = random_batch(types, rows, range(3), rng)
        once = consolidate(batch, hasher)
        assert multiset(once) == multiset(batch)
        assert len(multiset(once)) == len(once)
        assert multiset(consolidate(once, hasher)) == multiset(once)
    assert len(consolidate(random_batch((), 10, range(1), rng), hasher)) <= 1


def test_times_outside_the_interval_are_refused() -> None:
    layout = Layout((BIGINT,), (0,))
    batch = random_batch(layout.types, 5, range(3, 4), Random(1))
    with pytest.raises(ValueError, match="outside"):
        build(batch, layout, Hasher(1), lower=4, upper=5, since=0)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_rows_order_by_items_then_canonically(kind: SqlType) -> None:
    rng = Random(str(kind))
    types = (kind, TEXT)
    columns = [random_column(t, 80, rng) for t in types]
    for order in ((), (Item(1), Item(0, desc=True)), (Item(0, desc=True, nulls_first=True),)):
        described = describe(columns, cell_kinds(types))
        items = np.concatenate((order_descriptors(described, order), described))[None]

        def compare(i: int, j: int, items: Int64s = items) -> int:
            return compare_rows_twin(items, 0, i, items, 0, j)

        expected = sorted(range(80), key=cmp_to_key(compare))
        assert order_rows(columns, types, order).tolist() == expected
    prefix = sort_prefix(columns[0], kind, desc=True, nulls_first=True)
    rows = order_rows(columns, types, (Item(0, desc=True, nulls_first=True),))
    assert (np.sort(prefix) == prefix[rows]).all()


def test_identity_is_finer_than_equality() -> None:
    rng = Random(8)
    types = (NUMERIC, DOUBLE)
    columns = [random_column(t, 60, rng) for t in types]
    left, right = np.repeat(np.arange(60), 60), np.tile(np.arange(60), 60)
    keys = row_keys(columns, types, 60)
    identical = rows_identical(columns, types, left, columns, right)
    equal = rows_equal(columns, types, left, columns, right, null_equal=(True, True))
    assert identical.tolist() == [keys[i] == keys[j] for i, j in zip(left, right, strict=True)]
    assert (identical <= equal).all() and (identical != equal).any()
    hashes = Hasher(3, bits=64).hash_rows(columns, types, 60)
    assert ((hashes[left] == hashes[right]) == equal).all()


def test_hash_bits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HASH_BITS_VARIABLE, "4")
    hashes = Hasher(1).hash_rows((random_column(BIGINT, 100, Random(1)),), (BIGINT,), 100)
    assert hashes.max() < 16
    monkeypatch.setenv(HASH_BITS_VARIABLE, "65")
    with pytest.raises(ValueError, match="64"):
        Hasher()


def test_seeds_give_different_hashes() -> None:
    column = (random_column(BIGINT, 1, Random(1)),)
    assert Hasher(1, bits=64).hash_rows(column, (BIGINT,), 1) != Hasher(2, bits=64).hash_rows(column, (BIGINT,), 1)
