"""``python -m bench.pathway_job words|orders FILE [FILE]``: the same job in Pathway; prints rows and seconds as JSON.

A process of its own, since Pathway owns the process it runs in.  ``seconds`` is from the start of the computation to
its end; ``process_seconds`` includes the import.
"""

from __future__ import annotations

import json
import sys
import time

_started = time.perf_counter()

import pathway as pw  # noqa: E402 - the import is part of what process_seconds measures


class _Word(pw.Schema):
    word: str


class _Order(pw.Schema):
    id: int
    cust: int
    amount: int


class _Customer(pw.Schema):
    cust: int
    region: str


def main() -> None:
    job, *files = sys.argv[1:]
    if job == "words":
        words = pw.io.csv.read(files[0], schema=_Word, mode="static")
        result = words.groupby(words.word).reduce(words.word, n=pw.reducers.count())
    else:
        orders = pw.io.csv.read(files[0], schema=_Order, mode="static")
        customers = pw.io.csv.read(files[1], schema=_Customer, mode="static")
        joined = orders.join(customers, orders.cust == customers.cust).select(customers.region, orders.amount)
        result = joined.groupby(joined.region).reduce(
            joined.region, total=pw.reducers.sum(joined.amount), n=pw.reducers.count()
        )
    seen: dict[str, int] = {}

    def on_change(key: object, row: dict[str, object], time: int, is_addition: bool) -> None:
        name, count = next(iter(row.values())), row["n"]
        assert isinstance(name, str) and isinstance(count, int)
        if is_addition:
            seen[name] = count

    pw.io.subscribe(result, on_change=on_change)
    begun = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    ended = time.perf_counter()
    sys.stdout.write(
        json.dumps({"rows": sum(seen.values()), "seconds": ended - begun, "process_seconds": ended - _started}) + "\n"
    )


if __name__ == "__main__":
    main()
