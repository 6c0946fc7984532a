"""The figures as the page ``docs/benchmarks-isolation.md``: tables, and each target with its figure."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence

from bench.isolation.arms import SOLO, TWO, UNSLICED
from bench.isolation.cores import CoreFigures
from bench.isolation.hydration import HydrationFigures
from bench.isolation.reads import HERE_STRICT, INTROSPECTION, SENT_SERIALIZABLE, SENT_STRICT
from bench.isolation.samples import Samples
from bench.isolation.scans import ScanFigures
from bench.isolation.sharing import SharingFigures
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
        self._targets: list[tuple[str, str, str]] = []
        command = "python -m bench.isolation" + (" --quick" if quick else "")
        self._head = [_TITLE.format(command=command), *machine(quick, None), ""]

    def text(self) -> str:
        targets = ["## Targets", "", "| target, 2 cores | figure | |", "|---|--:|---|"]
        targets += [f"| {text} | {figure} | {verdict} |" for text, figure, verdict in self._targets]
        return "\n".join([*self._head, *targets, "", *self._lines, _TRAPS])

    # -- sections

    def hydration(self, figures: Mapping[str, HydrationFigures]) -> None:
        lines = []
        for name, found in figures.items():
            for stream in found.idle:
                lines += [_row(f"{name}; {stream}; idle", found.idle[stream])]
                lines += [_row(f"{name}; {stream}; hydration", found.hydrating[stream])]
        self._section("Reads while views hydrate", _HYDRATION, [_HEAD.format("arm; reads; meanwhile"), _RULE, *lines])
        self._lines += [
            "| arm | cycles of create, hydrate, drop | mean s | load | capacity, reads/s |",
            "|---|--:|--:|--:|---|",
        ]
        for name, found in figures.items():
            mean = f"{statistics.fmean(found.cycles):.2f}" if found.cycles else "none ended"
            rates = ", ".join(f"{stream} {c:,.0f}" for stream, c in found.capacity_per_s.items())
            self._lines.append(f"| {name} | {len(found.cycles)} | {mean} | {100 * found.load:.0f} % | {rates} |")
        self._lines.append("")
        if TWO in figures:
            self._hydration_targets(figures)

    def _hydration_targets(self, figures: Mapping[str, HydrationFigures]) -> None:
        two = figures[TWO]
        for stream in (SENT_STRICT, SENT_SERIALIZABLE, HERE_STRICT):
            for q, limit in ((0.5, 1.5), (0.99, 3.0)):
                ratio = _over(two.hydrating[stream], two.idle[stream], q)
                self._at_most(f"{stream}, hydration: p{100 * q:.0f} over idle", ratio, limit, "×")
        for arm, least in ((UNSLICED, 100.0), (SOLO, 5.0)):
            for stream in (SENT_STRICT, SENT_SERIALIZABLE):
                if arm in figures:
                    ratio = _over(figures[arm].hydrating[stream], two.hydrating[stream], 0.99)
                    self._at_least(f"{stream}, hydration: p99 of {arm} over two runtimes'", ratio, least, "×")
        self._at_most("introspection, hydration: p99", two.hydrating[INTROSPECTION].quantile_ms(0.99), 50.0, " ms")

    def scans(self, figures: Mapping[str, Sequence[ScanFigures]]) -> None:
        lines = [
            _row(f"{name}; walks of {found.cost_ms:.0f} ms; {stream}; {found.walks} walks", samples)
            for name, each in figures.items()
            for found in each
            for stream, samples in found.samples.items()
        ]
        self._section(
            "E1: lookups behind three scanners", _SCANS, [_HEAD.format("arm; walks; lookups"), _RULE, *lines, ""]
        )
        for stream in (SENT_STRICT, HERE_STRICT):
            worst = [f.samples[stream].worst_ms for f in figures.get(TWO, ()) if f.walks]
            if worst:
                self._at_most(f"E1, {stream}: worst, whatever the walks cost", max(worst), 25.0, " ms")

    def lag(self, figures: Mapping[str, tuple[Samples, Samples]]) -> None:
        lines = []
        for name, (idle, hydrating) in figures.items():
            lines += [_row(f"{name}; idle", idle), _row(f"{name}; hydration", hydrating)]
        self._section("Lag of a steady view", _LAG, [_HEAD.format("arm; meanwhile"), _RULE, *lines, ""])
        if TWO in figures:
            self._at_most("lag of a steady view, hydration: p99", figures[TWO][1].quantile_ms(0.99), 100.0, " ms")

    def cores(self, oversubscribed: Mapping[int, CoreFigures], beside_hogs: CoreFigures) -> None:
        lines = []
        named = {f"{times}× the cores": found for times, found in oversubscribed.items()}
        for name, found in {**named, "beside two foreign processes": beside_hogs}.items():
            for stream in found.idle:
                lines += [_row(f"{name}, {found.workers} workers; {stream}; idle", found.idle[stream])]
                lines += [_row(f"{name}, {found.workers} workers; {stream}; hydration", found.hydrating[stream])]
        self._section("Too few cores", _CORES, [_HEAD.format("maintenance; lookups; meanwhile"), _RULE, *lines, ""])
        for stream in (SENT_STRICT, HERE_STRICT):
            if 4 in oversubscribed:
                p99 = oversubscribed[4].hydrating[stream].quantile_ms(0.99)
                self._at_most(f"maintenance with 4× as many workers as cores, {stream}: p99", p99, 10.0, " ms")
            self._reported(f"beside two foreign processes, {stream}: p99", beside_hogs.hydrating[stream])

    def throughput(self, found: ThroughputFigures) -> None:
        works = (("Solo", found.solo_work), ("two, idle", found.idle_work), ("two, read", found.reading_work))
        lines = ["| maintenance of 200 commits | kernel calls | MB copied |", "|---|--:|--:|"]
        lines += [f"| {name} | {work.kernel_calls:,} | {work.bytes / 1e6:.1f} |" for name, work in works]
        text = _THROUGHPUT.format(rows=found.rows_per_s, reads=found.reads_per_s, pairs=len(found.idle))
        self._section("Throughput of maintenance", text, [*lines, ""])
        self._at_least("throughput beside an idle interactive runtime", statistics.median(found.idle), 0.97, "×")
        self._at_least("throughput beside readers at 30 %", statistics.median(found.reading), 0.85, "×")
        for name, work in works[1:]:
            calls = work.kernel_calls / max(1, found.solo_work.kernel_calls)
            copied = work.bytes / max(1, found.solo_work.bytes)
            self._at_most(f"maintenance's kernel calls over Solo's: {name}", calls, 1.03, "×")
            self._at_most(f"maintenance's copied bytes over Solo's: {name}", copied, 1.03, "×")

    def sharing(self, found: SharingFigures) -> None:
        share = 100 * found.added_bytes / found.resident_bytes
        self._at_most("resident bytes added by publishing to 48 importers", share, 1.0, " %")
        self._at_most("bytes copied by it", float(found.copied_bytes), 0.0, "")

    # -- targets

    def _at_most(self, text: str, value: float | None, limit: float, unit: str) -> None:
        self._target(f"{text} ≤ {limit:g}{unit}", value, unit, met=value is not None and value <= limit)

    def _at_least(self, text: str, value: float | None, limit: float, unit: str) -> None:
        self._target(f"{text} ≥ {limit:g}{unit}", value, unit, met=value is not None and value >= limit)

    def _target(self, text: str, value: float | None, unit: str, *, met: bool) -> None:
        verdict = "too few samples" if value is None else "met" if met else "**missed**"
        self._targets.append((text, "" if value is None else f"{value:.4g}{unit}", verdict))

    def _reported(self, text: str, samples: Samples) -> None:
        p99 = samples.quantile_ms(0.99)
        self._targets.append((text, "" if p99 is None else f"{p99:.4g} ms", "reported"))

    def _section(self, title: str, text: str, lines: Sequence[str]) -> None:
        new = [f"## {title}", "", text.strip(), "", *lines]
        self._lines += new
        sys.stderr.write("\n".join(new) + "\n")


def _row(name: str, samples: Samples) -> str:
    quantiles = " | ".join(_ms(samples.quantile_ms(q)) for q in _QUANTILES)
    waited = _ms(samples.queued_quantile_ms(0.99))
    return (
        f"| {name} | {len(samples)} | {quantiles} | {samples.worst_ms:.1f} | {waited} | {len(samples.unanswered_ms)} |"
    )


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _over(above: Samples, below: Samples, q: float) -> float | None:
    high, low = above.quantile_ms(q), below.quantile_ms(q)
    return None if high is None or low is None else high / low


_TITLE = """# Isolation

Written by `{command}`.  The figures are of one run on one machine and say nothing about others.

Three arms in one run.  *Solo unsliced*: one runtime whose activations take all their input, the shape of systems
without an interactive runtime.  *Solo sliced*: one runtime as it is.  *two runtimes*.  Solo is never slowed.
Arrivals are open-loop, and a latency counts from the intended start; a read that the end of its window finds
unanswered counts with its age, so that quantiles with unanswered reads are lower bounds.  A quantile q is given
with at least 10 / (1 - q) samples.  *sent* reads are answered by the replica, as those of another process would be;
the embedded database answers lookups on the caller's thread, which waits for no runtime in any arm.
"""

_HYDRATION = """
`hot` has 100,000 rows and an index, `big` 1,000,000.  Lookups of one row, and counts of 2,000 rows by a one-shot
dataflow, at most 50 and 12 a second, lowered together to 30 % of the capacity of two runtimes, the same in each arm;
reads of `mz_introspection.mz_dataflows` after them, by themselves.  Meanwhile two closed loops create a grouped
materialized view of `big` with an index, wait until it is hydrated, and drop it.
"""

_SCANS = """
Three clients walk an index in closed loops; the walks' cost is that of one alone, by the replica, and is set by the
number of terms in their predicate.
"""

_LAG = """
Four clients, each with a table and a view of its own, insert a row and read the view until the read shows it, ten times
a second each; the write and the read are included.
"""

_CORES = """
Two runtimes; maintenance has as many workers as said, all of which hydrate; then one worker beside two foreign
processes that compute without end.  Lookups, 50 a second each.
"""

_THROUGHPUT = """
Three views, with indexes, over 200,000 rows; a pass appends and deletes 30,000 rows in 12 commits, each seen in
every view before the next.  Solo: {rows:,.0f} rows/s.  Medians of {pairs} interleaved pairs of passes; readers send
{reads:,.0f} lookups a second.  Work is counted apart, without threads and clocks, so that every run counts the same: an
index of 20,000 rows, its re-export, and 200 commits.
"""

_TRAPS = f"""## Traps

* A shared machine: other processes were not kept away ({os.cpu_count()} cores).  A saturated machine delays every arm.
* Threads of one process share the interpreter's lock, the measuring ones included.
* Worst values are of some hundred reads each and move between runs.
"""
