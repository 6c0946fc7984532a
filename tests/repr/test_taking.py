"""Picked values are Arrow's, for every layout."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.repr.taking import take_values
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    numeric,
)
from eddyline.testing.columns import random_column

TYPES = (
    BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, NUMERIC, REAL, SMALLINT, TEXT, TIMESTAMP, TIMESTAMPTZ, UUID,
    numeric(2),
)  # fmt: skip


def _image(array: pa.Array) -> tuple[list[bool], list[bytes]]:
    """NULLs, and the other values' bytes: a NaN equals nothing."""
    there = array.is_valid().to_pylist()
    values = [pa.concat_arrays([array[i : i + 1]]) for i in range(len(array)) if there[i]]
    return there, [b"".join(b.to_pybytes() for b in v.buffers() if b is not None) for v in values]


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_picked_values_are_those_that_arrow_picks(sql_type: SqlType) -> None:
    rng = Random(str(sql_type))
    for rows in (0, 1, 7, 700):
        array = random_column(sql_type, 900, rng)
        for column in (array, array.drop_null(), array[3:], array.drop_null()[5:]):
            picks = np.array([rng.randrange(len(column)) for _ in range(rows)], np.int64)
            got, wanted = take_values(column, picks), column.take(pa.array(picks))
            assert got.type == wanted.type
            assert len(got) == rows
            assert _image(got[:20]) == _image(wanted[:20])
            assert got.null_count == wanted.null_count


def test_nothing_is_picked_of_a_column_without_buffers() -> None:
    nothing = pa.Array.from_buffers(pa.int64(), 0, [None, None])
    assert len(take_values(nothing, np.empty(0, np.int64))) == 0


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError):
        take_values(pa.array([1, 2, 3]), np.array([3]))
