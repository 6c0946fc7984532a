"""Fresh memory is touched a piece at a time, each page of it; what is put apart is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from eddyline.trace import fresh
from eddyline.trace.fresh import apart, touch


def test_each_page_is_touched_in_bounded_pieces() -> None:
    arrays: list[npt.NDArray[Any]] = [np.ones(3000, np.int64), np.ones(0, np.int64), np.ones((500, 24), np.uint8)]
    pieces = list(touch(arrays, 8192))
    assert max(pieces) <= 8192
    assert sum(pieces) == sum(a.nbytes for a in arrays)
    for array in arrays:
        pages = array.reshape(-1).view(np.uint8)[::4096]
        assert not pages.any()


def test_little_memory_is_left_as_it_is() -> None:
    array = np.ones(1024, np.int64)
    assert list(touch([array], array.nbytes)) == []
    assert array.all()


@pytest.mark.parametrize("rows", [1, 5000, 20_000])
def test_what_is_put_apart_is_equal_and_large_arrays_are_of_memory_of_their_own(rows: int) -> None:
    arrays = (np.arange(rows, dtype=np.uint64), np.arange(rows, dtype=np.uint64)[::-1])
    kept = apart(arrays)
    assert [a.tolist() for a in kept] == [a.tolist() for a in arrays]
    assert (kept is not arrays) == (16 * rows >= fresh._APART_BYTES)
    if kept is not arrays:
        assert not any(a.flags.owndata for a in kept)
        assert all(a.flags.c_contiguous for a in kept)
