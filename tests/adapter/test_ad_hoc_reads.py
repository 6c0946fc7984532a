"""Reads that a dataflow of one time answers, against the same queries kept fresh, and what they may cost."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import eddyline
from eddyline.testing.counting import Counted, counting

#: over a (k, v, w, d) and b (k, x), with and without keys that an index has
QUERIES = {
    "sums": "SELECT k, count(*), sum(v), avg(v), stddev(v), bool_and(v > 3) FROM a GROUP BY k",
    "extremes": "SELECT k, min(v), max(v), min(d), max(w), sum(v) FROM a GROUP BY k",
    "whole": "SELECT count(*), sum(v), min(v), max(d), min(w), count(w) FROM a",
    "texts": "SELECT w, k, count(*), max(v) FROM a GROUP BY w, k",
    "filtered": "SELECT k, count(*) FILTER (WHERE v > 5), max(v) FILTER (WHERE v < 9) FROM a WHERE v <> 4 GROUP BY k",
    "having": "SELECT k, avg(v) FROM a GROUP BY k HAVING count(*) > 3",
    "distinct": "SELECT k, count(DISTINCT v), count(DISTINCT w), sum(v) FROM a GROUP BY k",
    "rows": "SELECT v, w FROM a WHERE v % 3 = 1",
    "inner": "SELECT a.v, b.x FROM a JOIN b ON a.v = b.x",
    "by key": "SELECT a.v, b.x, a.w FROM a JOIN b ON a.k = b.k",
    "grouped join": "SELECT b.x, count(*), sum(a.v), max(a.v) FROM a JOIN b ON a.k = b.k GROUP BY b.x",
    "left": "SELECT a.v, b.x FROM a LEFT JOIN b ON a.v = b.x AND b.k > 1",
    "full": "SELECT a.w, b.x FROM a FULL JOIN b ON a.v = b.x",
    "self": "SELECT p.v, q.v FROM a p JOIN a q ON p.w = q.w AND p.v < q.v",
    "cross": "SELECT p.x, q.x FROM b p CROSS JOIN b q WHERE p.x < q.x",
    "semi": "SELECT v, w FROM a WHERE v IN (SELECT x FROM b)",
    "anti": "SELECT v, w FROM a WHERE v NOT IN (SELECT x FROM b WHERE x IS NOT NULL)",
    "except": "SELECT v FROM a EXCEPT ALL SELECT x FROM b",
    "union": "SELECT v FROM a UNION SELECT x FROM b",
    "correlated": "SELECT x, (SELECT max(v) FROM a WHERE a.k = b.k) FROM b",
}


def fill(db: eddyline.Connection, rng: random.Random) -> None:
    def some(values: range) -> int | None:
        options: list[int | None] = [None, *values]
        return rng.choice(options)

    a = [(some(range(4)), some(range(12)), rng.choice((None, "x", "yy", "zzz")), None) for _ in range(120)]
    rows = [(k, v, w, None if v is None else f"2024-01-{v + 1:02}") for k, v, w, _ in a]
    db.executemany("INSERT INTO a VALUES ($1, $2, $3, $4)", rows)
    db.executemany("INSERT INTO b VALUES ($1, $2)", [(some(range(4)), some(range(12))) for _ in range(15)])


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("interactive", [False, True])
def test_a_read_of_one_time_answers_what_is_kept_fresh(interactive: bool, indexed: bool) -> None:
    rng = random.Random(f"{interactive}{indexed}")
    with eddyline.connect(interactive=interactive) as db:
        db.execute("CREATE TABLE a (k integer, v integer, w text, d date)")
        db.execute("CREATE TABLE b (k integer, x integer)")
        for number, query in enumerate(QUERIES.values()):
            columns = ", ".join(f"c{i}" for i in range(len(db.execute(query).description or ())))
            db.execute(f"CREATE MATERIALIZED VIEW m{number} ({columns}) AS {query}")
        if indexed:
            db.execute("CREATE INDEX a_k ON a (k)")
            db.execute("CREATE INDEX b_x ON b (x)")
        fill(db, rng)
        for change in ("SELECT 1", "DELETE FROM a WHERE v > 8 OR k IS NULL", "UPDATE b SET x = x + 1 WHERE x < 5"):
            db.execute(change)
            for number, (name, query) in enumerate(QUERIES.items()):
                found = Counter(db.execute(query).fetchall())
                assert found == Counter(db.execute(f"SELECT * FROM m{number}").fetchall()), name


def test_an_aggregate_over_an_index_copies_nothing_of_it() -> None:
    """Kernel calls by slices of the index; bytes of new columns by groups, however many rows there are."""
    costs: dict[int, Counted] = {}
    query = "SELECT grp, count(*), sum(val), max(val), avg(val) FROM facts GROUP BY grp"
    with eddyline.connect(interactive=True) as db:
        db.execute("CREATE TABLE facts (id bigint, grp bigint, val bigint)")
        db.execute("CREATE INDEX facts_id ON facts (id)")
        for rows in (65_536, 4 * 65_536):
            start = sum(costs) and 65_536
            ids = np.arange(start, rows)
            db.append("facts", pa.table({"id": ids, "grp": ids % 50, "val": ids * 7 % 1001}))
            db.wait_hydrated("facts_id")
            assert db.execute(query).arrow().num_rows == 50
            with counting(lambda thread: thread.endswith("heavy")) as counted:
                db.execute(query).arrow()
            costs[rows] = counted
    few, many = costs[65_536], costs[4 * 65_536]
    assert few.kernel_calls > 0
    assert many.bytes <= few.bytes + 4096, "only what is shown of the groups"
    slices = 4 + 3  # whole ones, and the ends of runs
    assert many.kernel_calls <= few.kernel_calls + 8 * slices
