"""``python -m demo``: streams a year of flights, keeps the views fresh, checks them, says a verdict per view."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

import eddyline
from demo.display import Display, Snapshot
from demo.events import Day, days
from demo.lookups import Lookups
from demo.oracle import Recomputation
from demo.records import Records, load
from demo.verdicts import Verdicts
from demo.views import TABLES, VIEWS

_CHECKS = 12
_ISOLATIONS = ("strict serializable", "serializable")


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


def stream(db: eddyline.Connection, records: Records, log: list[Day], display: Display) -> tuple[Verdicts, list[str]]:
    """Applies the log to both engines; all views are compared a dozen times on the way and at the end.

    The verdicts, and what is to be said about speed.
    """
    oracle = Recomputation(records)
    verdicts = Verdicts()
    every = max(1, len(log) // _CHECKS)
    rows, busy = 0, 0.0
    with ExitStack() as stack:
        lookups = [stack.enter_context(Lookups(db, isolation)) for isolation in _ISOLATIONS]
        for number, day in enumerate(log, 1):
            begun = time.perf_counter()
            apply(db, day)
            worst = db.execute("SELECT * FROM worst_planes ORDER BY total DESC, tailnum").fetchall()
            took = time.perf_counter() - begun
            rows, busy = rows + day.rows, busy + took
            oracle.apply(day)
            if number % every == 0 or number == len(log):
                verdicts.check(db, oracle)
            date = day.date.isoformat()
            display.update(Snapshot(date, number, rows, rows / busy, 1000 * took, verdicts.checks, lookups, worst))
    for each in lookups:
        if each.failure is not None:
            raise each.failure
    return verdicts, [
        f"{rows:,} changes in {busy:.1f} s ({rows / busy:,.0f} rows/s); "
        f"{len(log)} batches, {1000 * busy / len(log):.1f} ms each",
        *(
            f"{len(each.latencies):,} {each.isolation} lookups meanwhile: "
            f"p50 {each.quantile_ms(0.5):.1f} ms, p99 {each.quantile_ms(0.99):.1f} ms"
            for each in lookups
        ),
    ]


def main() -> int:
    started = time.perf_counter()
    records = load()
    log = list(days(records.flights))
    with Display(len(log)) as display, eddyline.connect() as db:
        display.say(f"{len(VIEWS)} views over {records.flights.num_rows:,} flights; preparing")
        prepare(db, records)
        display.say(f"ready after {time.perf_counter() - started:.1f} s")
        verdicts, figures = stream(db, records, log, display)
    for line in ("", *figures):
        display.say(line)
    display.say(f"\ncompared with a full recomputation by DuckDB; {time.perf_counter() - started:.0f} s in all\n")
    for line in verdicts.lines():
        display.say(line)
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
