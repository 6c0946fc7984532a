"""Rows leave in the order of their keys' hashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.compute.operators.key_order import KeyOrder
from eddyline.repr.batch import Batch, Int64s
from eddyline.repr.types import BIGINT, TEXT
from eddyline.trace.run import Uint64s

TYPES = (BIGINT, TEXT)


def numbered(hashes: Uint64s, first: int) -> Batch:
    """Rows with the numbers from ``first`` on, and diffs that tell them apart."""
    numbers = np.arange(first, first + len(hashes))
    columns = (pa.array(numbers), pa.array([f"t{n}" for n in numbers.tolist()], pa.large_string()))
    return Batch(TYPES, columns, np.full(len(hashes), 10, np.int64), numbers + 1)


def place(hashes: Uint64s) -> Int64s:
    return ((hashes >> np.uint64(4)) & np.uint64(0xFFFF)).astype(np.int64)


@pytest.mark.parametrize("bits", [64, 8, 0])
def test_each_row_leaves_once_with_its_neighbours(bits: int) -> None:
    rng = np.random.default_rng(bits)
    order = KeyOrder()
    assert not list(order.pieces(100))
    hashes = rng.integers(0, 2**63, 5000).astype(np.uint64) & np.uint64((1 << bits) - 1)
    for start in range(0, 5000, 700):
        order.add(numbered(hashes[start : start + 700], start), hashes[start : start + 700])
    assert order.rows == 5000 and order.nbytes > 0
    pieces = order.pieces(500)
    seen: list[int] = []
    last = -1
    for rows, its in pieces:
        assert order.rows == order.nbytes == 0
        numbers = rows.columns[0].to_numpy()
        assert len(rows) <= 2 * 500 + 700
        assert np.array_equal(hashes[numbers], its)
        assert np.array_equal(rows.diffs, numbers + 1)
        assert rows.columns[1].to_pylist() == [f"t{n}" for n in numbers.tolist()]
        assert len(rows) < 250 or np.ptp(place(its)) <= 0x10000 // 10, "each piece is a part of the range"
        assert place(its).min() >= last - (0 if bits == 64 else 0x10000)
        last = int(place(its).max())
        seen.extend(numbers.tolist())
    assert sorted(seen) == list(range(5000))
    for key in np.unique(hashes)[:50]:
        of_key = [n for n in seen if hashes[n] == key]
        assert of_key == sorted(of_key), "rows of one hash keep their order"
