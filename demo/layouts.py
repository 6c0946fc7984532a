"""The same days streamed with one runtime and with two: what reads wait for, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import eddyline
from demo import changes
from demo.events import Day
from demo.lookups import AdHocReads, Lookups
from demo.records import Records

__all__ = ["compare"]

#: days of the stream; enough for some hundred reads of each kind, and few enough for two more runs to take seconds
_DAYS = 60
_LOOKUPS_PER_SECOND = 30
_READS_PER_SECOND = 5
_ISOLATIONS = ("strict serializable", "serializable")


def compare(records: Records, log: Sequence[Day]) -> list[str]:
    """A table of p50 and p99 in ms; lookups of the embedded database run on the caller's thread in either layout."""
    days = log[:_DAYS]
    one, two = (_measure(records, days, interactive=interactive) for interactive in (False, True))
    head = f"reads during the first {len(days)} days once more, ms"
    lines = [f"{head:<52} one runtime: p50     p99   two runtimes: p50     p99"]
    for (kind, alone), (_, beside) in zip(one, two, strict=True):
        figures = [alone.quantile_ms(0.5), alone.quantile_ms(0.99), beside.quantile_ms(0.5), beside.quantile_ms(0.99)]
        lines.append(f"{kind:<52} {figures[0]:16.1f} {figures[1]:7.1f} {figures[2]:19.1f} {figures[3]:7.1f}")
    return lines


def _measure(records: Records, days: Sequence[Day], *, interactive: bool) -> list[tuple[str, Lookups]]:
    with eddyline.connect(interactive=interactive) as db:
        changes.prepare(db, records)
        with ExitStack() as stack:
            reads = [
                (f"lookups, {each.isolation}", stack.enter_context(each))
                for each in [Lookups(db, isolation, _LOOKUPS_PER_SECOND) for isolation in _ISOLATIONS]
            ]
            ad_hoc = AdHocReads(db, "serializable", _READS_PER_SECOND)
            reads.append((f"ad-hoc aggregates, {ad_hoc.isolation}", stack.enter_context(ad_hoc)))
            for day in days:
                changes.apply(db, day)
    for _, each in reads:
        if each.failure is not None:
            raise each.failure
    return reads
