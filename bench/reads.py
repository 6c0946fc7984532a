"""Lookups per second, and an aggregate over a whole table beside DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

import eddyline
from bench.timing import Latency, latency, rate

__all__ = ["AGGREGATE", "LookupRates", "measure_aggregate", "measure_lookups"]

AGGREGATE = "SELECT grp, count(*) AS n, sum(val) AS s, max(val) AS m FROM facts GROUP BY grp"


@dataclass(frozen=True)
class LookupRates:
    """``alone``: single lookups by an index with a cached plan, with nothing else to do."""

    per_s: dict[str, float]
    alone: Latency


def _facts(rows: int) -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {"id": np.arange(rows), "grp": random.integers(0, 1000, rows), "val": random.integers(0, 1 << 32, rows)}
    )


def measure_lookups(rows: int, *, for_s: float) -> LookupRates:
    """Lookups a second: by an index and by a primary key with a cached plan, through a join of two indexes, and by a
    one-shot dataflow."""
    with eddyline.connect() as db:
        db.execute("CREATE TABLE facts (id bigint, grp bigint, val bigint)")
        db.append("facts", _facts(rows))
        db.execute("CREATE INDEX facts_id ON facts (id)")
        names = pa.table({"id": np.arange(1000), "name": [f"group {i}" for i in range(1000)]})
        for table, key in (("groups", ""), ("keyed", "PRIMARY KEY")):
            db.execute(f"CREATE TABLE {table} (id bigint {key}, name text)")
            db.append(table, names)
        db.execute("CREATE INDEX groups_id ON groups (id)")
        db.execute("CREATE TABLE other (id bigint, val bigint)")
        db.append("other", pa.table({"id": np.arange(1000), "val": np.arange(1000)}))
        for name in ("facts_id", "groups_id"):
            db.wait_hydrated(name)
        cursor = db.cursor()

        def indexed(i: int) -> None:
            cursor.execute("SELECT grp, val FROM facts WHERE id = $1", ((i * 7919) % rows,)).fetchall()

        def keyed(i: int) -> None:
            cursor.execute("SELECT name FROM keyed WHERE id = $1", (i % 1000,)).fetchall()

        def joined(i: int) -> None:
            cursor.execute(
                "SELECT f.val, g.name FROM facts f JOIN groups g ON g.id = f.grp WHERE f.id = $1", ((i * 7919) % rows,)
            ).fetchall()

        def one_shot(i: int) -> None:
            cursor.execute("SELECT val FROM other WHERE id = $1", (i % 1000,)).fetchall()

        per_s = {
            "by index, cached plan": rate(indexed, for_s=for_s),
            "by primary key, cached plan": rate(keyed, for_s=for_s),
            "join of two indexes by key, cached plan": rate(joined, for_s=for_s),
            "one-shot plan over 1,000 rows": rate(one_shot, for_s=for_s, warm=20),
        }
        return LookupRates(per_s, latency(indexed, samples=5000, at_most_s=for_s))


def measure_aggregate(rows: int, *, samples: int) -> dict[str, Latency]:
    """The aggregate as an ad-hoc query over an index, off an index on the grouped view, and in DuckDB on one thread."""
    facts = _facts(rows)
    figures = {}
    with eddyline.connect() as db:
        db.execute("CREATE TABLE facts (id bigint, grp bigint, val bigint)")
        db.append("facts", facts)
        db.execute("CREATE INDEX facts_id ON facts (id)")
        db.wait_hydrated("facts_id")
        cursor = db.cursor()
        figures["Eddyline, ad hoc"] = latency(lambda _: _read(cursor, AGGREGATE), samples=samples, warm=1)
        db.execute(f"CREATE VIEW grouped AS {AGGREGATE}")
        db.execute("CREATE INDEX grouped_i ON grouped (grp)")
        db.wait_hydrated("grouped_i")
        figures["Eddyline, from the maintained view"] = latency(
            lambda _: _read(cursor, "SELECT grp, n, s, m FROM grouped"), samples=samples, warm=1
        )
    with duckdb.connect(config={"threads": 1}) as duck:
        duck.execute("CREATE TABLE facts AS SELECT * FROM facts")
        figures["DuckDB, 1 thread"] = latency(lambda _: duck.sql(AGGREGATE).to_arrow_table(), samples=samples, warm=1)
    return figures


def _read(cursor: eddyline.Cursor, text: str) -> None:
    table = cursor.execute(text).arrow()
    if table.num_rows != 1000:
        raise AssertionError(f"{table.num_rows} groups, not 1000")
