"""One-row changes: from the append call to a strict read that shows the changed row, by shape of the view.

The table is loaded with N rows before the views are made, each view has an index, and one view at a time exists while
it is measured.  A strict read answers at or past the newest commit, so it waits until the view has taken the change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import eddyline
from bench.timing import Latency, latency, seconds

__all__ = ["SHAPES", "ChangeFigures", "measure_changes"]

_GROUP_ROWS = 100
_CHUNK_ROWS = 250_000


@dataclass(frozen=True)
class Shape:
    """``key``: the column that the index and the read go by; ``read``: its value after a change of group g."""

    name: str
    select: str
    key: str | None
    check: str


#: facts(id, grp, val), groups(grp, name); a change adds a fact, NOT IN's adds one to ``small``
SHAPES = (
    Shape("grouped count and sum", "SELECT grp, count(*) AS n, sum(val) AS s FROM facts GROUP BY grp", "grp", "n"),
    Shape("join", "SELECT f.id, f.val, g.name FROM facts f JOIN groups g ON f.grp = g.grp", "id", "name"),
    Shape("max", "SELECT grp, max(val) AS m FROM facts GROUP BY grp", "grp", "m"),
    Shape("top 10", "SELECT id, val FROM facts ORDER BY val DESC LIMIT 10", None, "id"),
    Shape("distinct count", "SELECT grp, count(DISTINCT val) AS n FROM facts GROUP BY grp", "grp", "n"),
    Shape(
        "outer join",
        "SELECT g.grp, g.name, s.id FROM groups g LEFT JOIN facts s ON g.grp = s.grp AND s.val > 8000000000",
        "grp",
        "name",
    ),
    Shape("NOT IN", "SELECT grp, name FROM groups WHERE grp NOT IN (SELECT grp FROM small)", "grp", "name"),
)


@dataclass(frozen=True)
class ChangeFigures:
    """``hydration_s``: from CREATE INDEX to the first complete state."""

    shape: str
    rows: int
    change: Latency
    hydration_s: float


def load(rows: int) -> eddyline.Connection:
    """A database with ``rows`` facts in groups of 100."""
    db = eddyline.connect()
    db.executescript(
        "CREATE TABLE facts (id bigint, grp bigint, val bigint);"
        "CREATE TABLE groups (grp bigint, name text);"
        "CREATE TABLE small (grp bigint NOT NULL)"
    )
    random = np.random.default_rng(3)
    groups = rows // _GROUP_ROWS
    for start in range(0, rows, _CHUNK_ROWS):
        ids = np.arange(start, min(start + _CHUNK_ROWS, rows))
        table = {"id": ids, "grp": random.integers(0, groups, len(ids)), "val": random.integers(0, 1 << 32, len(ids))}
        db.append("facts", pa.table(table))
    names = pa.array([f"group {i}" for i in range(1000)]).take(pa.array(np.arange(groups) % 1000))
    db.append("groups", pa.table({"grp": np.arange(groups), "name": names}))
    db.append("small", pa.table({"grp": np.array([groups + 1])}))
    return db


def measure_changes(rows: int, *, samples: int, at_most_s: float) -> list[ChangeFigures]:
    """All shapes over ``rows`` facts."""
    figures = []
    with load(rows) as db:
        for number, shape in enumerate(SHAPES):
            view = f"v{number}"
            db.execute(f"CREATE VIEW {view} AS {shape.select}")
            db.execute(f"CREATE INDEX {view}_i ON {view} ({shape.key or 'id'})")
            hydration_s = seconds(lambda view=view: db.wait_hydrated(f"{view}_i"))  # type: ignore[misc]  # bound early
            figures.append(
                ChangeFigures(shape.name, rows, _change(db, shape, view, rows, samples, at_most_s), hydration_s)
            )
            db.execute(f"DROP VIEW {view}")
    return figures


def _change(db: eddyline.Connection, shape: Shape, view: str, rows: int, samples: int, at_most_s: float) -> Latency:
    groups = rows // _GROUP_ROWS
    cursor = db.cursor()
    text = f"SELECT {shape.check} FROM {view}" + (f" WHERE {shape.key} = $1" if shape.key else "")

    first = rows + 1_000_000 * SHAPES.index(shape)  # so that every change of every shape has an id of its own

    def once(i: int) -> None:
        group, id = (i * 7919) % groups, first + i
        if shape.name == "NOT IN":
            db.append("small", pa.table({"grp": [group]}))
        else:
            db.append("facts", pa.table({"id": [id], "grp": [group], "val": [(1 << 33) + id]}))
        found = cursor.execute(text, (id if shape.key == "id" else group,) if shape.key else None).fetchall()
        seen = not found if shape.name == "NOT IN" else (id,) in found if shape.key is None else bool(found)
        if not seen:
            raise AssertionError(f"{shape.name}: change {i} is not in {found}")

    return latency(once, samples=samples, at_most_s=at_most_s)
