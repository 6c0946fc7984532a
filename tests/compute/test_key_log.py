"""The growing columns of group keys, against plain lists."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eddyline.compute.operators.key_log import KeyLog
from eddyline.repr.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL, NUMERIC, SMALLINT, TEXT, UUID, SqlType, numeric
from eddyline.testing.columns import random_column
from eddyline.testing.row_keys import row_keys

TYPES: list[tuple[SqlType, ...]] = [
    (),
    (TEXT,),
    (BIGINT, BOOLEAN),
    (NUMERIC, SMALLINT, numeric(12, 2)),
    (DOUBLE, UUID, TEXT, INTERVAL, BOOLEAN),
]


@pytest.mark.parametrize("types", TYPES, ids=lambda types: ",".join(map(str, types)) or "none")
@pytest.mark.parametrize("nulls_from", [0, 3, 99])
def test_rows_come_back_as_they_were_appended(types: tuple[SqlType, ...], nulls_from: int) -> None:
    rng = Random(len(types) + nulls_from)
    log = KeyLog(types)
    expected: list[object] = []
    for step in range(12):
        rows = rng.choice([0, 1, 7, 50, 600])
        columns = tuple(random_column(t, rows, rng, nulls=0.2 if step >= nulls_from else 0.0) for t in types)
        picked = np.array([rng.randrange(rows) for _ in range(rng.randrange(2 * rows + 1))] if rows else [], np.int64)
        keys = row_keys(columns, types, rows)
        log.append(columns, picked)
        expected += [keys[i] for i in picked]
        assert log.rows == len(expected)
        asked = np.array([rng.randrange(log.rows) for _ in range(40)] if log.rows else [], np.int64)
        found = log.gather(asked)
        assert row_keys(found, types, len(asked)) == [expected[i] for i in asked]
