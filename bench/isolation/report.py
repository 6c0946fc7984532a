"""The figures as the page ``docs/benchmarks-isolation.md``: tables, and each target with its figure and its reason."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence

from bench.isolation import reasons
from bench.isolation.arms import SOLO, TWO, UNSLICED
from bench.isolation.cores import CoreFigures
from bench.isolation.hydration import HydrationFigures
from bench.isolation.lag import LagFigures
from bench.isolation.reads import HERE_STRICT, INTROSPECTION, SENT_SERIALIZABLE, SENT_STRICT
from bench.isolation.samples import Samples
from bench.isolation.scans import ScanFigures
from bench.isolation.sharing import SharingFigures
from bench.isolation.targets import Targets
from bench.isolation.throughput import ThroughputFigures
from bench.report import machine

__all__ = ["IsolationReport"]

_HEAD = "| {} | samples | p50 ms | p90 ms | p99 ms | worst ms | p99 of the wait before the start ms | unanswered |"
_RULE = "|---|--:|--:|--:|--:|--:|--:|--:|"
_QUANTILES = (0.5, 0.9, 0.99)


class IsolationReport:
    """Sections in the order in which they are added; targets are collected and come first on the page."""

    def __init__(self, *, quick: bool) -> None:
        self._lines: list[str] = []
        self._targets = Targets()
        self._slowest: list[str] = []
        command = "python -m bench.isolation" + (" --quick" if quick else "")
        self._head = [_TITLE.format(command=command), *machine(quick, None), ""]

    def text(self) -> str:
        slowest = []
        if self._slowest:
            columns = [*reasons.HEADINGS, "of the runtime's part: no core"]
            head = f"| reads of two runtimes | mean ms | {' | '.join(columns)} |"
            rule = "|---|" + "--:|" * (1 + len(columns))
            slowest = ["## The slowest hundredth", "", _SLOWEST.strip(), "", head, rule, *self._slowest, ""]
        return "\n".join([*self._head, *self._targets.lines(), "", *slowest, *self._lines, _TRAPS])

    # -- sections

    def hydration(self, figures: Mapping[str, HydrationFigures]) -> None:
        lines = []
        for name, found in figures.items():
            for stream in found.idle:
                lines += [_row(f"{name}; {stream}; idle", found.idle[stream])]
                lines += [_row(f"{name}; {stream}; hydration", found.hydrating[stream])]
        self._section("Reads while views hydrate", _HYDRATION, [_HEAD.format("arm; reads; meanwhile"), _RULE, *lines])
        self._lines += [
            "",
            "| arm | cycles of create, hydrate, drop | mean s | load | capacity, reads/s |",
            "|---|--:|--:|--:|---|",
        ]
        for name, found in figures.items():
            mean = f"{statistics.fmean(found.cycles):.2f}" if found.cycles else "none ended"
            rates = ", ".join(f"{stream} {c:,.0f}" for stream, c in found.capacity_per_s.items())
            self._lines.append(f"| {name} | {len(found.cycles)} | {mean} | {100 * found.load:.0f} % | {rates} |")
        self._lines.append("")
        if TWO in figures:
            for stream, samples in figures[TWO].hydrating.items():
                self._slowest_of(f"{stream}; hydration", samples)
            self._hydration_targets(figures)

    def _hydration_targets(self, figures: Mapping[str, HydrationFigures]) -> None:
        two, targets = figures[TWO], self._targets
        for stream in (SENT_STRICT, SENT_SERIALIZABLE, HERE_STRICT):
            for q, limit in ((0.5, 1.5), (0.99, 3.0)):
                targets.ratio_at_most(
                    f"{stream}, hydration: p{100 * q:.0f} over idle", two.hydrating[stream], two.idle[stream], q, limit
                )
        for arm, least in ((UNSLICED, 100.0), (SOLO, 5.0)):
            for stream in (SENT_STRICT, SENT_SERIALIZABLE):
                if arm in figures:
                    solo = figures[arm].hydrating[stream]
                    text = f"{stream}, hydration: p99 of {arm} over two runtimes'"
                    targets.ratio_at_least(text, solo, two.hydrating[stream], 0.99, least)
        targets.quantile_at_most("introspection, hydration", two.hydrating[INTROSPECTION], 0.99, 50.0)

    def scans(self, figures: Mapping[str, Sequence[ScanFigures]]) -> None:
        lines = [
            _row(
                f"{name}; walks of {found.cost_ms:.0f} ms; {stream}, {_rate(found, stream)}; {found.walks} walks", each
            )
            for name, every in figures.items()
            for found in every
            for stream, each in found.samples.items()
        ]
        self._section(
            "E1: lookups behind three scanners", _SCANS, [_HEAD.format("arm; walks; lookups"), _RULE, *lines, ""]
        )
        measured = [found for found in figures.get(TWO, ()) if found.walks]
        for found in measured:
            for stream, each in found.samples.items():
                self._slowest_of(f"{stream}; walks of {found.cost_ms:.0f} ms", each)
        for stream in (SENT_STRICT, HERE_STRICT):
            if measured:
                worst = max((found.samples[stream] for found in measured), key=lambda samples: samples.worst_ms)
                self._targets.worst_at_most(f"E1, {stream}, whatever the walks cost", worst, 25.0)

    def lag(self, figures: Mapping[str, LagFigures]) -> None:
        lines = []
        for name, found in figures.items():
            lines += [_row(f"{name}; idle", found.idle), _row(f"{name}; hydration", found.hydrating)]
        text = _LAG.format(per_s=next(iter(figures.values())).per_s)
        self._section("Lag of a steady view", text, [_HEAD.format("arm; meanwhile"), _RULE, *lines, ""])
        if TWO in figures:
            self._slowest_of("a write and the read that shows it; hydration", figures[TWO].hydrating)
            self._targets.quantile_at_most("lag of a steady view, hydration", figures[TWO].hydrating, 0.99, 100.0)

    def cores(self, oversubscribed: Mapping[int, CoreFigures], beside_hogs: CoreFigures) -> None:
        lines = []
        named = {f"{times}× the cores": found for times, found in oversubscribed.items()}
        for name, found in {**named, "beside two foreign processes": beside_hogs}.items():
            for stream in found.idle:
                what = f"{name}, {found.workers} workers; {stream}, {_rate(found, stream)}"
                lines += [_row(f"{what}; idle", found.idle[stream])]
                lines += [_row(f"{what}; hydration", found.hydrating[stream])]
                self._slowest_of(f"{stream}; {name}; hydration", found.hydrating[stream])
        self._section("Too few cores", _CORES, [_HEAD.format("maintenance; lookups; meanwhile"), _RULE, *lines, ""])
        for stream in (SENT_STRICT, HERE_STRICT):
            if 4 in oversubscribed:
                crowded = oversubscribed[4].hydrating[stream]
                text = f"maintenance with 4× as many workers as cores, {stream}"
                self._targets.quantile_at_most(text, crowded, 0.99, 10.0)
            self._targets.reported(f"beside two foreign processes, {stream}", beside_hogs.hydrating[stream], 0.99)

    def throughput(self, found: ThroughputFigures) -> None:
        works = (("Solo", found.solo_work), ("two, idle", found.idle_work), ("two, read", found.reading_work))
        lines = ["| maintenance of 200 commits | kernel calls | MB copied |", "|---|--:|--:|"]
        lines += [f"| {name} | {work.kernel_calls:,} | {work.bytes / 1e6:.1f} |" for name, work in works]
        text = _THROUGHPUT.format(rows=found.rows_per_s, reads=found.reads_per_s, pairs=len(found.idle))
        self._section("Throughput of maintenance", text, [*lines, ""])
        for text, pairs, least in (
            ("throughput beside an idle interactive runtime", found.idle, 0.97),
            ("throughput beside readers at 30 %", found.reading, 0.85),
        ):
            why = reasons.of_passes({"Solo": [p.solo for p in pairs], "two runtimes": [p.two for p in pairs]})
            self._targets.at_least(text, statistics.median(p.ratio for p in pairs), least, "×", why)
        for name, work in works[1:]:
            calls = work.kernel_calls / max(1, found.solo_work.kernel_calls)
            copied = work.bytes / max(1, found.solo_work.bytes)
            why = reasons.of_work(work, found.solo_work)
            self._targets.at_most(f"maintenance's kernel calls over Solo's: {name}", calls, 1.03, "×", why)
            self._targets.at_most(f"maintenance's copied bytes over Solo's: {name}", copied, 1.03, "×", why)

    def sharing(self, found: SharingFigures) -> None:
        share = 100 * found.added_bytes / found.resident_bytes
        why = (
            f"{found.added_bytes:,} bytes were added to {found.resident_bytes:,}; {found.copied_bytes:,} bytes "
            f"of columns and {found.kernel_calls} kernel calls were made"
        )
        self._targets.at_most("resident bytes added by publishing to 48 importers", share, 1.0, " %", why)
        self._targets.at_most("bytes copied by it", float(found.copied_bytes), 0.0, "", why)

    # -- their parts

    def _slowest_of(self, name: str, samples: Samples) -> None:
        """A row of the table of the slowest reads."""
        found = samples.between(0.99, 1.0)
        if found is not None:
            self._slowest.append(
                f"| {name}; {found.reads} reads | {found.mean_ms:.2f} | {' | '.join(reasons.in_columns(found))} |"
            )

    def _section(self, title: str, text: str, lines: Sequence[str]) -> None:
        new = [f"## {title}", "", text.strip(), "", *lines]
        self._lines += new
        sys.stderr.write("\n".join(new) + "\n")


def _rate(found: ScanFigures | CoreFigures, stream: str) -> str:
    return f"{found.per_s[stream]:.0f}/s"


def _row(name: str, samples: Samples) -> str:
    quantiles = " | ".join(_ms(samples.quantile_ms(q)) for q in _QUANTILES)
    waited = _ms(samples.queued_quantile_ms(0.99))
    return (
        f"| {name} | {len(samples)} | {quantiles} | {samples.worst_ms:.1f} | {waited} | {len(samples.unanswered_ms)} |"
    )


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


_TITLE = """# Isolation

Written by `{command}`.  The figures are of one run on one machine and say nothing about others.

Three arms in one run.  *Solo unsliced*: one runtime whose activations take all their input, the shape of systems
without an interactive runtime.  *Solo sliced*: one runtime as it is.  *two runtimes*.  Solo is never slowed.
Arrivals are open-loop, and a latency counts from the intended start; a read that the end of its window finds
unanswered counts with its age, so that quantiles with unanswered reads are lower bounds.  A quantile q is given
with at least 10 / (1 - q) samples.  Idle windows begin once the database has nothing left to do.  *sent* reads are
answered by the replica, as those of another process would be; the embedded database answers lookups on the caller's
thread, which waits for no runtime in any arm.
"""

_SLOWEST = """
Means over the slowest hundredth of the answered reads, ms: where their time went.  *no core*: the operating system's
own count of how long the asking thread could run and had no core; *locks*: neither computing, nor without a core, nor
waiting for the runtime, which is the interpreter's lock first of all; *queue* to *finish*: the runtime's phases, as
EXPLAIN ANALYZE tells them, and how long at most a thread that answers had no core meanwhile.
"""

_HYDRATION = """
`hot` has 100,000 rows and an index, `big` 1,000,000.  Lookups of one row, and counts of 2,000 rows by a one-shot
dataflow, at most 50 and 12 a second, lowered together to 30 % of the capacity of two runtimes, the same in each arm;
reads of `mz_introspection.mz_dataflows` after them, by themselves.  Meanwhile two closed loops create a grouped
materialized view of `big` with an index, wait until it is hydrated, and drop it.
"""

_SCANS = """
Three clients walk an index in closed loops; the walks' cost is that of one alone, by the replica, and is set by the
number of terms in their predicate.  Lookups come at 30 % of what eight clients without pause get from two runtimes
beside the same walks, and as often in the other arms.
"""

_LAG = """
Four clients, each with a table and a view of its own, insert a row and read the view until the read shows it; the write
and the read are included.  {per_s:.1f} writes a second together, 30 % of what the clients get from two runtimes without
pause beside the same hydration, and as many in the other arms.
"""

_CORES = """
Two runtimes; maintenance has as many workers as said, all of which hydrate; then one worker beside two foreign
processes that compute without end.  Lookups come at 30 % of what eight clients without pause get beside the same.
"""

_THROUGHPUT = """
Three views, with indexes, over 200,000 rows; a pass appends and deletes 30,000 rows in 12 commits, each seen in
every view before the next.  Solo: {rows:,.0f} rows/s.  Medians of {pairs} interleaved pairs of passes; readers send
{reads:,.0f} lookups a second.  Work is counted apart, without threads and clocks, so that every run counts the same: an
index of 20,000 rows, its re-export, and 200 commits, with five lookups after each where it says *read*.
"""

_TRAPS = f"""## Traps

* A shared machine: other processes were not kept away ({os.cpu_count()} cores).  A saturated machine delays every arm.
* Threads of one process share the interpreter's lock, the measuring ones included.
* A full collection of the interpreter's garbage collector keeps every thread waiting, for about 0.1 s.  This program
  calls `gc.freeze()` once its database is open, as settings.md advises; what it makes later is still visited.
* Worst values move between runs, the more so the fewer reads there are.
"""
