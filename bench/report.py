"""The figures as the page ``docs/benchmarks.md``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import numpy as np

from bench.catalog import CatalogFigures
from bench.changes import ChangeFigures
from bench.footprint import FootprintFigures
from bench.isolation.targets import Targets
from bench.memory import HydrationFigures
from bench.reads import LookupRates
from bench.server.page import SERVER_TEXT, ServerFigures, server_lines
from bench.speed_targets import (
    aggregate_targets,
    catalog_targets,
    change_targets,
    footprint_targets,
    lookup_targets,
    stall_targets,
    startup_targets,
    stream_targets,
    tpch_targets,
)
from bench.stalls import StallFigures
from bench.streams import StreamFigures
from bench.timing import Latency
from bench.tpch.measure import TpchFigures
from bench.tpch.page import TPCH_TEXT, tpch_lines

__all__ = ["Report", "machine"]


class Report:
    """Sections in the order in which they are added; targets are collected and come first on the page."""

    def __init__(self, *, quick: bool, command: str, pathway: str | None) -> None:
        self._head = [_HEAD.format(command=command), *machine(quick, pathway), ""]
        self._lines: list[str] = []
        self._targets = Targets()
        self._figures: dict[str, object] = {}

    def text(self) -> str:
        return "\n".join([*self._head, *self._targets.lines(), "", *self._lines, _TRAPS])

    def samples(self) -> bytes:
        """All figures with what they are made from, as JSON, by part."""
        return msgspec.json.encode(self._figures, enc_hook=_plain)

    def streams(self, figures: Sequence[StreamFigures]) -> None:
        self._figures["streams"] = figures
        stream_targets(self._targets, figures)
        lines = [
            "| stream | engine | rows/s | seconds | CPU s | with start-up | times the first, by clock | by CPU |",
            "|---|---|--:|--:|--:|--:|--:|--:|",
        ]
        for f in figures:
            lines.append(
                f"| {f.stream} | {f.engine} | {f.rows / f.seconds:,.0f} | {f.seconds:.2f} | {f.cpu_s:.2f} "
                f"| {f.process_s:.2f} s | {f.ratio:.1f}× | {f.cpu_ratio:.1f}× |"
            )
        self._section("Streams from CSV files", _STREAMS, lines)

    def changes(self, figures: Sequence[ChangeFigures]) -> None:
        self._figures["changes"] = figures
        change_targets(self._targets, figures)
        sizes = sorted({f.rows for f in figures})
        lines = [
            "| view | " + " | ".join(f"{n:,} rows: p50 / p99 ms" for n in sizes) + " |",
            "|---|" + "--:|" * len(sizes),
        ]
        for shape in dict.fromkeys(f.shape for f in figures):
            cells = [_pair(f.change) for n in sizes for f in figures if f.shape == shape and f.rows == n]
            lines.append(f"| {shape} | " + " | ".join(cells) + " |")
        self._section("A one-row change", _CHANGES, lines)

    def catalog(self, figures: Sequence[CatalogFigures]) -> None:
        self._figures["catalog"] = figures
        catalog_targets(self._targets, figures)
        lines = ["| | views touched | p50 / p99 ms | CPU ms |", "|---|--:|--:|--:|"]
        lines += [f"| {f.name} | {f.touched} | {_pair(f.change)} | {f.cpu_ms:.2f} |" for f in figures]
        self._section("A change beside many views", _CATALOG, lines)

    def lookups(self, figures: LookupRates) -> None:
        self._figures["lookups"] = figures
        lookup_targets(self._targets, figures.per_s, figures.alone)
        lines = ["| lookup | per second |", "|---|--:|"]
        lines += [f"| {name} | {per_second:,.0f} |" for name, per_second in figures.per_s.items()]
        lines += ["", f"One at a time, by index, cached plan: p50 / p99 {_pair(figures.alone)} ms."]
        self._section("Lookups", _LOOKUPS, lines)

    def aggregate(self, figures: dict[str, Latency], rows: int) -> None:
        self._figures["aggregate"] = figures
        aggregate_targets(self._targets, figures)
        lines = ["| engine | p50 ms |", "|---|--:|"]
        lines += [f"| {name} | {found.p50:.1f} |" for name, found in figures.items()]
        self._section(f"An ad-hoc aggregate over {rows:,} rows", _AGGREGATE, lines)

    def startup(self, figures: dict[str, tuple[float, float, float]]) -> None:
        self._figures["startup"] = figures
        startup_targets(self._targets, figures)
        lines = ["| | import s | connect s | first answer s | together s |", "|---|--:|--:|--:|--:|"]
        for name, (imported, connected, answered) in figures.items():
            total = imported + connected + answered
            lines.append(f"| {name} | {imported:.2f} | {connected:.2f} | {answered:.2f} | {total:.2f} |")
        self._section("Start-up", _STARTUP, lines)

    def hydration(self, figures: Sequence[HydrationFigures]) -> None:
        self._figures["hydration"] = figures
        lines = [
            "| rows | load s | index on the table s | grouped view s | other view meanwhile: p50 / p99 ms "
            "| table bytes/row | index bytes/row |",
            "|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for f in figures:
            lines.append(
                f"| {f.rows:,} | {f.load_s:.2f} | {f.index_s:.2f} | {f.grouped_s:.2f} | {_pair(f.beside)} "
                f"| {f.table_bytes_per_row:.0f} | {f.index_bytes_per_row:.0f} |"
            )
        self._section("Hydration and memory", _HYDRATION, lines)

    def stalls(self, f: StallFigures) -> None:
        self._figures["stalls"] = f
        stall_targets(self._targets, f)
        lines = [
            "| rows | changes | activations | longest activation, CPU ms | append to read: p50 / p99.9 / longest ms "
            "| held, worst / 99.9 % ms | late, worst ms |",
            "|--:|--:|--:|--:|--:|--:|--:|",
            f"| {f.rows:,} | {f.changes:,} | {f.activations:,} | {f.longest_activation:.1f} "
            f"| {f.read_p50:.2f} / {f.read_p999:.2f} / {f.read_longest:.2f} | {f.held_worst:.1f} / {f.held_usual:.1f} "
            f"| {f.late_worst:.1f} |",
        ]
        self._section("Stalls", _STALLS, lines)

    def footprints(self, figures: Sequence[FootprintFigures]) -> None:
        self._figures["footprint"] = figures
        footprint_targets(self._targets, figures)
        lines = ["| | rows | what | MB | bytes a row | times the Arrow size |", "|---|--:|---|--:|--:|--:|"]
        for f in figures:
            for what, size in f.found.items():
                arrow = f.found.get("arrow")
                of_arrow = f"{size / arrow:.2f}" if arrow else ""
                lines.append(
                    f"| {f.name} | {f.rows:,} | {what} | {size / 1e6:,.1f} | {size / f.rows:,.0f} | {of_arrow} |"
                )
        self._section("Memory", _FOOTPRINTS, lines)

    def tpch(self, figures: TpchFigures) -> None:
        self._figures["tpch"] = figures
        tpch_targets(self._targets, figures)
        self._section(f"TPC-H at scale factor {figures.scale:g}", TPCH_TEXT, tpch_lines(figures))

    def server(self, figures: ServerFigures) -> None:
        self._figures["server"] = figures
        self._section("The server beside PostgreSQL", SERVER_TEXT, server_lines(figures))

    def _section(self, title: str, text: str, lines: Sequence[str]) -> None:
        self._lines += [f"## {title}", "", text.strip(), "", *lines, ""]


def _plain(value: object) -> object:
    """For JSON: NumPy's numbers are numbers, and a lock says nothing."""
    return value.item() if isinstance(value, np.generic) else None


def _pair(found: Latency) -> str:
    return f"{found.p50:.2f} / {found.p99:.2f}"


def machine(quick: bool, pathway: str | None) -> list[str]:
    """What the figures were measured on, and with."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", "numba", "pyarrow", "duckdb"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    if pathway is not None:
        versions.append(f"pathway {pathway}")
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return [
        f"* {date.today().isoformat()}, {_processor()}, {cores} cores, {sys.platform}; "
        f"load average {load} when the report began",
        "* " + ", ".join(versions),
        f"* sizes: {'--quick' if quick else 'full'}",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


_HEAD = """# Benchmarks

Written by `{command}`.  The figures are of one run on one machine and say nothing about
others; where engines are compared they ran in turns in the same run, on the same files.  They report; no test depends
on them.
"""

_STREAMS = """
*words*: one text column, words as frequent as in a natural language, counted by word.  *orders*: orders joined with
customers (a tenth as many), summed by region.  Eddyline appends each batch in a commit of its own and reads the view
after it (words: one word's count; orders: all regions), so a current answer was seen after every batch.  Pathway, on
one thread: *static* reads the files and answers once, at the end; *streaming* follows the files; *commits* gets the
rows from a connector in Python, which commits after each batch, so that each has its own time.  The engines run in
turns, and give the same answers, which is checked.  `seconds` begins when the engine is ready to read; parsing is
included.  The last columns are medians of the ratios within a round, of seconds to those of the stream's first engine.
"""

_CHANGES = """
From the call that appends one row to the answer of a strict read that shows the change: the read waits until the view
has taken the commit.  Groups have 100 rows; one view, with an index, exists at a time.
"""

_CATALOG = """
From the append call to a strict read of a view that the change touches: a commit of rows of 1 % of the views (at least
of one), each of which keeps the rows of one key; and one row through views on views.  CPU is the process's per change.
"""
_LOOKUPS = """
One client thread, one row by key through `cursor.execute(text, (value,)).fetchall()`, everything from the text to
Python objects included.
"""

_AGGREGATE = """
`SELECT grp, count(*), sum(val), max(val) … GROUP BY grp` into 1,000 groups, the result as an Arrow table.  An ad-hoc
query of Eddyline's renders a dataflow over an index, which lives for one answer; DuckDB is made for just this.
"""

_STARTUP = """
A process of its own each time, medians for the warm cache.  The first answer is a table, an insert, a view, an index on
it and a lookup.  With a fresh cache `connect()` compiles every kernel, once for the machine and version.
"""

_HYDRATION = """
The table has three bigint columns.  *index on the table*: CREATE INDEX until it is complete, while another thread makes
one-row changes to a small view of another table and reads it.  Bytes are what the process's resident size grew by,
per row: garbage and allocators' reserves included.
"""

_STALLS = """
One row at a time is appended and read back through a join, while an index on the table, a grouped view with a maximum
and the join keep up with it.  Activations are measured by their thread's CPU time.  *Held*: how long calls
kept a thread from the interpreter that wants to run for a moment twice a millisecond; what it waited for a core, and
what the system kept a holder from computing, is taken off, and full garbage collections are apart.  *Late*: all of it.
"""

_FOOTPRINTS = """
What the resident size of a fresh process grew by, garbage and allocators' reserves included, once it no longer fell.
*narrow*: three bigints; *wide*: two texts more.  *groups*: 10,000 of them, however many rows there are.  *updates*:
commits that replace 100 of 100,000 rows under an index, a grouped view and a join; resident bytes of the whole process.
"""

_TRAPS = """## Traps

* A shared machine: other processes were not kept away.  Compare within one run only.
* The first call of a kernel loads or compiles it; every measurement but *start-up* runs after that.
* Latencies are of one client.  Readers on other threads share the interpreter's lock with maintenance.
* Rows are small (two or three columns).  Wide rows and long texts cost what copying them costs.
* p99 is of a few hundred samples and moves between runs.
* Pathway's static mode does less book-keeping than its streaming mode, and it writes no answer until the end.
* By the clock, an engine that uses threads loses more on a busy machine; the ratio by CPU time shows the work.
"""
