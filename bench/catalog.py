"""A change beside many views: of one table, each of another key; and through a chain of views on views.

From the append call to a strict read of a view that shows the change.  One commit changes rows of 1 % of the views, at
least of one.  CPU is the whole process's, per change: it shows what the views cost that a change does not touch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import eddyline
from bench.timing import Latency, latency

__all__ = ["CatalogFigures", "measure_chain", "measure_views"]


@dataclass(frozen=True)
class CatalogFigures:
    """``touched``: views that one change concerns; ``cpu_ms``: of the process, per change."""

    name: str
    touched: int
    change: Latency
    cpu_ms: float


def measure_views(views: int, *, samples: int, at_most_s: float) -> CatalogFigures:
    """``views`` indexed counts over one table, each of the rows of one key."""
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (k bigint, v bigint)")
        for key in range(views):
            db.execute(f"CREATE VIEW v{key} AS SELECT count(*) AS n, sum(v) AS s FROM t WHERE k = {key}")
            db.execute(f"CREATE INDEX v{key}_i ON v{key} (n)")
        for key in range(views):
            db.wait_hydrated(f"v{key}_i")
        touched = max(1, views // 100)
        cursor = db.cursor()

        def once(i: int) -> None:
            first = (i * 7919) % views
            keys = [(first + j * 101) % views for j in range(touched)]
            db.append("t", pa.table({"k": keys, "v": [i] * touched}))
            if not cursor.execute(f"SELECT n FROM v{first}").fetchall()[0][0]:
                raise AssertionError(f"change {i} is not in v{first}")

        return _measured(f"{views:,} views of one table", touched, once, samples, at_most_s)


def measure_chain(length: int, *, samples: int, at_most_s: float) -> CatalogFigures:
    """``length`` indexed views, each over the one before."""
    with eddyline.connect() as db:
        db.execute("CREATE TABLE t (k bigint, v bigint)")
        for number in range(length):
            source = f"v{number - 1}" if number else "t"
            db.execute(f"CREATE VIEW v{number} AS SELECT k, max(v) AS v FROM {source} GROUP BY k")
            db.execute(f"CREATE INDEX v{number}_i ON v{number} (k)")
        db.wait_hydrated(f"v{length - 1}_i")
        cursor = db.cursor()
        text = f"SELECT v FROM v{length - 1} WHERE k = $1"

        def once(i: int) -> None:
            db.append("t", pa.table({"k": [i], "v": [i]}))
            if cursor.execute(text, (i,)).fetchall() != [(i,)]:
                raise AssertionError(f"change {i} is not at the end of the chain")

        return _measured(f"a chain of {length} views", length, once, samples, at_most_s)


def _measured(name: str, touched: int, once: Callable[[int], None], samples: int, at_most_s: float) -> CatalogFigures:
    used = 0.0

    def body(i: int) -> None:
        nonlocal used
        before = time.process_time()
        once(i)
        used += time.process_time() - before

    change = latency(body, samples=samples, at_most_s=at_most_s)
    return CatalogFigures(name, touched, change, used / (change.samples + 10) * 1e3)
