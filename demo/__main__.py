"""``python -m demo``: streams a year of flights, keeps the views fresh, checks them, says a verdict per view.

A part of the year is streamed once more in either layout, for the latencies of reads side by side.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

import eddyline
from demo import changes
from demo.display import Display, Snapshot
from demo.events import Day, days
from demo.layouts import compare
from demo.lookups import Lookups
from demo.oracle import Recomputation
from demo.records import Records, load
from demo.verdicts import Verdicts
from demo.views import VIEWS

_CHECKS = 12
_ISOLATIONS = ("strict serializable", "serializable")


def stream(
    db: eddyline.Connection, records: Records, log: list[Day], display: Display
) -> tuple[Verdicts, float, list[str]]:
    """Applies the log to both engines; all views are compared a dozen times on the way and at the end.

    The verdicts, seconds per batch, and what is to be said about speed.
    """
    oracle = Recomputation(records)
    verdicts = Verdicts()
    every = max(1, len(log) // _CHECKS)
    rows, busy = 0, 0.0
    with ExitStack() as stack:
        lookups = [stack.enter_context(Lookups(db, isolation)) for isolation in _ISOLATIONS]
        for number, day in enumerate(log, 1):
            begun = time.perf_counter()
            changes.apply(db, day)
            worst = changes.worst_planes(db)
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
    return (
        verdicts,
        busy / len(log),
        [
            f"{rows:,} changes in {busy:.1f} s ({rows / busy:,.0f} rows/s); "
            f"{len(log)} batches, {1000 * busy / len(log):.1f} ms each",
            *(
                f"{len(each.latencies):,} {each.isolation} lookups meanwhile: "
                f"p50 {each.quantile_ms(0.5):.1f} ms, p99 {each.quantile_ms(0.99):.1f} ms"
                for each in lookups
            ),
        ],
    )


def main() -> int:
    started = time.perf_counter()
    records = load()
    log = list(days(records.flights))
    with Display(len(log)) as display, eddyline.connect() as db:
        display.say(f"{len(VIEWS)} views over {records.flights.num_rows:,} flights; preparing")
        changes.prepare(db, records)
        display.say(f"ready after {time.perf_counter() - started:.1f} s")
        verdicts, batch_s, figures = stream(db, records, log, display)
    for line in ("", *figures, "", *compare(records, log, batch_s)):
        display.say(line)
    display.say(f"\ncompared with a full recomputation by DuckDB; {time.perf_counter() - started:.0f} s in all\n")
    for line in verdicts.lines():
        display.say(line)
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
