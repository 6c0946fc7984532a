"""``python -m demo``: streams a year of flights, keeps the views fresh, checks them, says a verdict per view."""

from __future__ import annotations

import sys
import time

import eddyline
from demo.display import Display, Snapshot
from demo.events import Day, days
from demo.lookups import Lookups
from demo.oracle import Recomputation, differences
from demo.records import Records, load
from demo.views import TABLES, VIEWS

_CHECKS = 12
_SHOWN_DIFFERENCES = 5


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


class Verdicts:
    """Compares all views with the recomputation and remembers what failed."""

    def __init__(self) -> None:
        self.passed = {view.name: 0 for view in VIEWS}
        self.failed: dict[str, list[str]] = {}
        self.rows: dict[str, int] = {}

    def check(self, db: eddyline.Connection, oracle: Recomputation) -> None:
        for view in VIEWS:
            ours = db.execute(f"SELECT * FROM {view.name}").fetchall()
            wrong = differences(view, ours, oracle.rows(view))
            if not ours:
                wrong.append("the view is empty")
            self.rows[view.name] = len(ours)
            if wrong:
                self.failed.setdefault(view.name, wrong)
            else:
                self.passed[view.name] += 1

    @property
    def checks(self) -> int:
        return min(self.passed.values())

    def lines(self) -> list[str]:
        lines = []
        for view in VIEWS:
            wrong = self.failed.get(view.name)
            verdict = "DIFFERS" if wrong else "equal"
            lines.append(
                f"{verdict:8}{view.name:22}{self.rows[view.name]:>6} rows  {self.passed[view.name]} checks  {view.title}"
            )
            lines.extend(f"        {line}" for line in (wrong or ())[:_SHOWN_DIFFERENCES])
        return lines


def main() -> int:
    started = time.perf_counter()
    records = load()
    log = list(days(records.flights))
    oracle = Recomputation(records)
    verdicts = Verdicts()
    with Display(len(log)) as display, eddyline.connect() as db:
        display.say(f"{len(VIEWS)} views over {records.flights.num_rows:,} flights; preparing")
        prepare(db, records)
        display.say(f"ready after {time.perf_counter() - started:.1f} s")
        rows, busy = 0, 0.0
        with Lookups(db) as lookups:
            for number, day in enumerate(log, 1):
                begun = time.perf_counter()
                apply(db, day)
                worst = db.execute("SELECT * FROM worst_planes ORDER BY total DESC, tailnum").fetchall()
                took = time.perf_counter() - begun
                rows, busy = rows + day.rows, busy + took
                oracle.apply(day)
                # The first days have no late event and few planes; a check wants every view to have rows.
                if number % (len(log) // _CHECKS) == 0 or number == len(log):
                    verdicts.check(db, oracle)
                display.update(
                    Snapshot(
                        day.date.isoformat(), number, rows, rows / busy, 1000 * took,
                        lookups.quantile_ms(0.5), lookups.quantile_ms(0.99), verdicts.checks, worst,
                    )
                )  # fmt: skip
        if lookups.failure is not None:
            raise lookups.failure
        display.say(
            f"\n{rows:,} changes in {busy:.1f} s ({rows / busy:,.0f} rows/s), {len(log)} batches of "
            f"{1000 * busy / len(log):.1f} ms; {len(lookups.latencies):,} lookups meanwhile, "
            f"p50 {lookups.quantile_ms(0.5):.2f} ms, p99 {lookups.quantile_ms(0.99):.2f} ms"
        )
    display.say(f"against a full recomputation by DuckDB, after {time.perf_counter() - started:.0f} s in all:\n")
    for line in verdicts.lines():
        display.say(line)
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
