"""``python -m bench.pathway_job --mode static|streaming|commits [--batch ROWS] words|orders FILE [FILE]``: the jobs of
``eddyline_job`` in Pathway; see ``bench.job_result``.

*static*: the files are read once, and there is one answer at the end.  *streaming*: the files are followed, answers
come out while they are read, at least every 100 ms.  *commits*: a connector in Python hands the rows over and commits
after every batch, which gives each batch a time of its own, as the other engine's job does.

A process of its own, since Pathway owns the process it runs in.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

_started = time.perf_counter()

import pathway as pw  # noqa: E402 - the import is part of what process_seconds measures

from bench.job_result import JobClock  # noqa: E402 - as above


class _Word(pw.Schema):
    word: str


class _Order(pw.Schema):
    id: int
    cust: int
    amount: int


class _Customer(pw.Schema):
    cust: int
    region: str


class _Commits(pw.io.python.ConnectorSubject):
    """The rows of a CSV file, a commit after every ``rows`` of them."""

    def __init__(self, path: str, rows: int, numbers: frozenset[str]) -> None:
        super().__init__()
        self._path = path
        self._rows = rows
        self._numbers = numbers

    def run(self) -> None:
        with Path(self._path).open(newline="") as file:
            reader = csv.reader(file)
            names = next(reader)
            kinds = [int if name in self._numbers else str for name in names]
            while batch := list(itertools.islice(reader, self._rows)):
                for row in batch:
                    self.next(**{n: kind(v) for n, kind, v in zip(names, kinds, row, strict=True)})
                self.commit()


def _table(arguments: argparse.Namespace, file: int, schema: Any, numbers: frozenset[str]) -> Any:
    path = arguments.files[file]
    if arguments.mode == "commits":
        return pw.io.python.read(_Commits(path, arguments.batch, numbers), schema=schema, autocommit_duration_ms=None)
    return pw.io.csv.read(path, schema=schema, mode=arguments.mode, autocommit_duration_ms=100)


def _result(arguments: argparse.Namespace) -> Any:
    if arguments.job == "words":
        words = _table(arguments, 0, _Word, frozenset())
        return words.groupby(words.word).reduce(words.word, n=pw.reducers.count())
    orders = _table(arguments, 0, _Order, frozenset({"id", "cust", "amount"}))
    customers = _table(arguments, 1, _Customer, frozenset({"cust"}))
    joined = orders.join(customers, orders.cust == customers.cust).select(customers.region, orders.amount)
    return joined.groupby(joined.region).reduce(
        joined.region, total=pw.reducers.sum(joined.amount), n=pw.reducers.count()
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("static", "streaming", "commits"), default="static")
    parser.add_argument("--batch", type=int, default=20_000)
    parser.add_argument("job", choices=("words", "orders"))
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    with Path(arguments.files[0]).open("rb") as file:
        expected = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) - 1
    seen: dict[str, tuple[int, ...]] = {}
    times = 0
    counted = 0

    def on_change(key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal counted
        counted += row["n"] if is_addition else -row["n"]
        if is_addition:
            name, *values = row.values()
            seen[name] = tuple(values)

    def on_time_end(time: int) -> None:
        nonlocal times
        times += 1
        if arguments.mode == "streaming" and counted == expected:
            # A followed file never ends, and nothing but the end of the process stops it.
            clock.report(seen, times=times)
            os._exit(0)

    pw.io.subscribe(_result(arguments), on_change=on_change, on_time_end=on_time_end)
    clock = JobClock(_started)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    clock.report(seen, times=times)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
