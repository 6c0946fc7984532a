"""min and max of integers in ad-hoc reads: the ends of their ranges, NULLs, rows that were there, and many groups."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

import eddyline

BITS = {"smallint": 16, "integer": 32, "bigint": 64}


@pytest.fixture(scope="module")
def db() -> Iterator[eddyline.Connection]:
    with eddyline.connect() as connection:
        yield connection


@pytest.mark.parametrize("sql_type", BITS)
@pytest.mark.parametrize("groups", [1, 3, 700])
def test_integers_at_the_ends_of_their_range(db: eddyline.Connection, sql_type: str, groups: int) -> None:
    rng, bits = random.Random(groups), BITS[sql_type]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rows = [(g, rng.choice([low, low + 1, -1, 0, 1, high - 1, high, None])) for g in range(groups) for _ in range(5)]
    db.execute("DROP TABLE IF EXISTS t")
    db.execute(f"CREATE TABLE t (g int, v {sql_type})")
    db.append("t", pa.table({"g": [g for g, _ in rows], "v": pa.array([v for _, v in rows], f"int{bits}")}))

    def check() -> None:
        of: dict[int, list[int]] = {g: [] for g, _ in rows}
        for g, v in rows:
            of[g] += [] if v is None else [v]
        expected = [(g, min(vs, default=None), max(vs, default=None)) for g, vs in sorted(of.items())]
        assert db.execute("SELECT g, min(v), max(v) FROM t GROUP BY g ORDER BY g").fetchall() == expected
        every = [v for _, v in rows if v is not None]
        assert db.execute("SELECT min(v), max(v) FROM t").fetchall() == [
            (min(every, default=None), max(every, default=None))
        ]

    check()
    for end in (low, high):
        db.execute("DELETE FROM t WHERE v = $1", [end])
        rows = [(g, v) for g, v in rows if v != end]
        check()
    db.execute("DELETE FROM t")
    assert db.execute("SELECT min(v), max(v) FROM t").fetchall() == [(None, None)]
