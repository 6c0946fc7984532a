"""The same days streamed with one runtime and with two, at one pace: what reads wait for, side by side."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import eddyline
from demo import changes
from demo.events import Day
from demo.lookups import AdHocReads, Lookups, quantile_ms
from demo.records import Records

__all__ = ["compare", "table"]

#: the share of the time that the batches take: either layout keeps up, so that no read waits for a backlog
_LOAD = 0.3
#: seconds of either layout: for as many lookups as a p99 wants
_SECONDS = 21.0
#: the layouts take turns of this length, so that both see the machine at its best and at its worst
_TURN_SECONDS = 3.0
_LOOKUPS_PER_SECOND = 50
_READS_PER_SECOND = 5
_ISOLATIONS = ("strict serializable", "serializable")
_QUANTILES = (0.5, 0.9, 0.99)

Latencies = Mapping[str, Sequence[float]]


def compare(records: Records, log: Sequence[Day], batch_s: float) -> list[str]:
    """A table of latencies in ms.  ``batch_s``: how long a day's batch takes; days come at ``_LOAD`` of that rate."""
    every_s = batch_s / _LOAD
    first, days = log[0], log[1 : 1 + max(1, round(_SECONDS / every_s))]
    turn = max(1, round(_TURN_SECONDS / every_s))
    with ExitStack() as stack:
        one, two = (_Paced(stack.enter_context(eddyline.connect(interactive=i)), records, first) for i in (False, True))
        for number, start in enumerate(range(0, len(days), turn)):
            for each in (one, two) if number % 2 == 0 else (two, one):
                each.stream(days[start : start + turn], every_s)
    head = f"reads during {len(days)} days once more, one every {1000 * every_s:.0f} ms; ms"
    return table(head, one.latencies, two.latencies)


def table(head: str, one: Latencies, two: Latencies) -> list[str]:
    """Quantiles side by side; "-" for one that has fewer than 10 / (1 - q) reads."""
    names = "".join(f"{f'p{100 * q:.0f}':>8}" for q in _QUANTILES)
    lines = [f"{head:<58}{'reads':>7}  one runtime:{names}  two runtimes:{names}"]
    for kind, alone in one.items():
        figures = [
            "".join(f"{_figure(latencies, q):>8}" for q in _QUANTILES) for latencies in (alone, two.get(kind, ()))
        ]
        lines.append(f"{kind:<58}{len(alone):>7}  {'':<12}{figures[0]}  {'':<13}{figures[1]}")
    return lines


def _figure(latencies: Sequence[float], q: float) -> str:
    return f"{quantile_ms(latencies, q):.1f}" if round(len(latencies) * (1 - q), 6) >= 10 else "-"


class _Paced:
    """A database that gets a batch whenever one is due, and the latencies in seconds of reads meanwhile, by kind.

    ``first``: a day without reads, in which everything that is done once is done.
    """

    def __init__(self, db: eddyline.Connection, records: Records, first: Day) -> None:
        self._db = db
        self.latencies: defaultdict[str, list[float]] = defaultdict(list)
        changes.prepare(db, records)
        changes.apply(db, first)
        changes.worst_planes(db)

    def stream(self, days: Sequence[Day], every_s: float) -> None:
        """Days follow each other as in the main phase, where a view is read after each; reads go on till the end."""
        reads: dict[str, Lookups] = {
            f"lookups, {isolation}": Lookups(self._db, isolation, _LOOKUPS_PER_SECOND) for isolation in _ISOLATIONS
        }
        reads["ad-hoc aggregates, serializable"] = AdHocReads(self._db, "serializable", _READS_PER_SECOND)
        with ExitStack() as stack:
            for each in reads.values():
                stack.enter_context(each)
            due = time.perf_counter()
            for day in days:
                changes.apply(self._db, day)
                changes.worst_planes(self._db)
                due += every_s
                time.sleep(max(0.0, due - time.perf_counter()))
        for kind, each in reads.items():
            if each.failure is not None:
                raise each.failure
            self.latencies[kind] += each.latencies
