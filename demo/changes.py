"""What is done to the database: its tables and views, then one day's changes after the other."""

from __future__ import annotations

import eddyline
from demo.events import Day
from demo.records import Records
from demo.views import TABLES, VIEWS

__all__ = ["apply", "prepare", "worst_planes"]


def prepare(db: eddyline.Connection, records: Records) -> None:
    """Tables, views and their indexes first, so that everything after goes through maintenance."""
    for name, columns in TABLES.items():
        db.execute(f"CREATE TABLE {name} ({columns})")
    for view in VIEWS:
        db.execute(f"CREATE VIEW {view.name} AS {view.query}")
        db.execute(f"CREATE INDEX ON {view.name} ({view.index})")
    db.execute("INSERT INTO clock VALUES (1, date '2013-01-01')")
    for name in ("airlines", "airports", "planes", "weather"):
        db.append(name, getattr(records, name))
    for view in VIEWS:
        db.wait_hydrated(view.name, timeout=120)


def apply(db: eddyline.Connection, day: Day) -> None:
    db.execute("UPDATE clock SET today = $1", [day.date])
    db.append("flights", day.added)
    if day.corrected.num_rows:
        db.upsert("flights", day.corrected)
    if day.deleted.num_rows:
        db.delete("flights", day.deleted)


def worst_planes(db: eddyline.Connection) -> list[tuple[object, ...]]:
    """The worst ten, as of the last change: a read that waits until its view has it."""
    return db.execute("SELECT * FROM worst_planes ORDER BY total DESC, tailnum").fetchall()
