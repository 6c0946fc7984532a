"""What a database weighs: resident bytes of fresh processes, one for each question.

``python -m bench.footprint NAME ROWS`` is such a process; its last line is the answer as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import eddyline
from bench.startup import child
from eddyline.compute.give_back import give_back

__all__ = ["FootprintFigures", "measure_footprints", "resident_bytes", "settled_bytes"]

_CHUNK_ROWS: Final = 250_000
_FEW_ROWS: Final = 100_000
_SETTLED_S: Final = 3.0
_AT_MOST_S: Final = 60.0
_GROUPS: Final = 10_000


@dataclass(frozen=True)
class FootprintFigures:
    """Bytes by what they are called; ``rows`` in the table."""

    name: str
    rows: int
    found: dict[str, float]


def measure_footprints(*, rows: int, updates: int) -> list[FootprintFigures]:
    """All questions; of groups at two sizes of the input.  ``updates``: commits of 100 rows."""
    asked = [("narrow index", rows), ("wide index", rows // 2), ("groups", rows // 4), ("groups", rows)]
    asked += [("updates", updates)]
    return [FootprintFigures(name, n, _asked(name, n)) for name, n in asked]


def _asked(name: str, rows: int) -> dict[str, float]:
    found: dict[str, float] = json.loads(child(["-m", "bench.footprint", name, str(rows)]).splitlines()[-1])
    return found


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def peak_bytes() -> int:
    """The most since ``forget_peak``."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def settled_bytes() -> int:
    """Resident bytes once they no longer fall: what idle time merges and gives back is gone."""
    gc.collect()
    least, since, begun = resident_bytes(), time.perf_counter(), time.perf_counter()
    while time.perf_counter() - since < _SETTLED_S and time.perf_counter() - begun < _AT_MOST_S:
        time.sleep(0.1)
        now = resident_bytes()
        if now < least - (1 << 20):
            least, since = now, time.perf_counter()
    return resident_bytes()


def lean_bytes() -> int:
    """Settled bytes without free memory, from which others are counted: none of them takes what was left before."""
    settled_bytes()
    give_back()
    return resident_bytes()


def narrow(start: int, stop: int) -> pa.Table:
    """Three bigints a row; ``grp`` is one of a fixed number of groups."""
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "grp": ids * 7919 % _GROUPS, "val": ids * 2_654_435_761 % (1 << 32)})


def wide(start: int, stop: int) -> pa.Table:
    """With two texts, of 25 and about 40 bytes."""
    made = narrow(start, stop)
    names = pa.array([f"Customer#{i:016d}" for i in range(start, stop)], pa.large_string())
    remarks = pa.array([f"{'quick ' * (i % 9)}deposits haggle {i}" for i in range(start, stop)], pa.large_string())
    return made.append_column("name", names).append_column("remark", remarks)


_COLUMNS: Final = "id bigint, grp bigint, val bigint"


def _loaded(db: eddyline.Connection, rows: int, make: Callable[[int, int], pa.Table], columns: str) -> int:
    """Makes and fills ``facts``; the Arrow bytes of its rows."""
    db.execute(f"CREATE TABLE facts ({columns})")
    size = 0
    for start in range(0, rows, _CHUNK_ROWS):
        part = make(start, min(start + _CHUNK_ROWS, rows))
        size += part.nbytes
        db.append("facts", part)
    return size


def _empty(db: eddyline.Connection) -> int:
    """Lean bytes before anything is loaded, of a process that has done all of it once, with few rows: modules and
    kernels are there."""
    _loaded(db, _FEW_ROWS, narrow, _COLUMNS)
    db.execute("CREATE INDEX i ON facts (id)")
    db.execute("CREATE VIEW g AS SELECT grp, count(*) AS n, sum(val) AS s FROM facts GROUP BY grp")
    db.execute("CREATE INDEX g_i ON g (grp)")
    db.wait_hydrated("i")
    db.wait_hydrated("g_i")
    db.execute("DROP TABLE facts CASCADE")
    return lean_bytes()


def _index(rows: int, make: Callable[[int, int], pa.Table], columns: str) -> dict[str, float]:
    """CREATE INDEX on the table, and DROP INDEX; then the table goes as well."""
    with eddyline.connect() as db:
        empty = _empty(db)
        arrow = _loaded(db, rows, make, columns)
        loaded = lean_bytes()
        forget_peak()
        db.execute("CREATE INDEX i ON facts (id)")
        db.wait_hydrated("i")
        steady, peak = settled_bytes(), peak_bytes()
        db.execute("DROP INDEX i")
        without = settled_bytes()
        db.execute("DROP TABLE facts")
        return {
            "arrow": arrow,
            "table": loaded - empty,
            "steady": steady - loaded,
            "peak": peak - loaded,
            "kept of a dropped index": without - loaded,
            "kept of a dropped table": settled_bytes() - empty,
        }


def _groups(rows: int) -> dict[str, float]:
    """A view of 10,000 groups, whatever the rows are; the index on it included."""
    with eddyline.connect() as db:
        _empty(db)
        arrow = _loaded(db, rows, narrow, _COLUMNS)
        loaded = lean_bytes()
        forget_peak()
        db.execute("CREATE VIEW g AS SELECT grp, count(*) AS n, sum(val) AS s FROM facts GROUP BY grp")
        db.execute("CREATE INDEX g_i ON g (grp)")
        db.wait_hydrated("g_i")
        steady, peak = settled_bytes(), peak_bytes()
        return {"arrow": arrow, "steady": steady - loaded, "peak": peak - loaded}


def _updates(commits: int) -> dict[str, float]:
    """Commits that replace 100 rows of 100,000; resident bytes after a quarter of them, and at the end.

    A table, an index on it, a grouped view, a maximum and a join.
    """
    rows = 100_000
    with eddyline.connect() as db:
        db.execute(f"CREATE TABLE facts ({_COLUMNS}, PRIMARY KEY (id))")
        db.append("facts", narrow(0, rows))
        db.execute("CREATE INDEX i ON facts (grp)")
        db.execute("CREATE VIEW g AS SELECT grp, count(*) AS n, sum(val) AS s, max(val) AS m FROM facts GROUP BY grp")
        db.execute("CREATE INDEX g_i ON g (grp)")
        db.execute("CREATE VIEW j AS SELECT f.id, f.val, g.n FROM facts f JOIN g ON f.grp = g.grp")
        db.execute("CREATE INDEX j_i ON j (id)")
        db.wait_hydrated("j_i")
        random = np.random.default_rng(5)
        early = 0
        for number in range(commits):
            ids = random.choice(rows, 100, replace=False)
            values = random.integers(0, 1 << 32, 100)
            db.upsert("facts", pa.table({"id": ids, "grp": ids * 7919 % _GROUPS, "val": values}))
            if number == commits // 4:
                db.execute("SELECT count(*) FROM j").fetchall()
                early = settled_bytes()
        db.execute("SELECT count(*) FROM j").fetchall()
        late = settled_bytes()
        return {"after a quarter": early, "at the end": late, "grown": late - early}


def main() -> None:
    name, rows = sys.argv[1], int(sys.argv[2])
    match name:
        case "narrow index":
            found = _index(rows, narrow, _COLUMNS)
        case "wide index":
            found = _index(rows, wide, f"{_COLUMNS}, name text, remark text")
        case "groups":
            found = _groups(rows)
        case "updates":
            found = _updates(rows)
        case _:
            raise SystemExit(f"there is no question {name}")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
