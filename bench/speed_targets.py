"""What is to be reached, from the figures of each part; each miss names the note that has its profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.catalog import CatalogFigures
from bench.changes import ChangeFigures
from bench.footprint import FootprintFigures
from bench.isolation.targets import Targets
from bench.stalls import StallFigures
from bench.streams import StreamFigures
from bench.timing import Latency
from bench.tpch.measure import TpchFigures

__all__ = [
    "aggregate_targets",
    "catalog_targets",
    "change_targets",
    "footprint_targets",
    "lookup_targets",
    "stall_targets",
    "startup_targets",
    "stream_targets",
    "tpch_targets",
]

_STREAMS = "see *Where the time went* and *Open* of [0009-streams.md](design/0009-streams.md)"
_SMALL = "see *Small changes* and *Open* of [0007-scheduling.md](design/0007-scheduling.md)"
_BUILDS = "see *Figures* and *Open* of [0010-builds.md](design/0010-builds.md)"
_MEMORY = "see the table below, and *Memory* of [0010-builds.md](design/0010-builds.md)"
_STALLS = "see *Open* of [roadmap.md](design/roadmap.md)"
_START = "importing what is needed takes most of it; see the table below"


def startup_targets(targets: Targets, figures: Mapping[str, tuple[float, float, float]]) -> None:
    for name, most in (("kernel cache warm", 1.0), ("kernel cache fresh", 20.0)):
        if name in figures:
            imported, connected, answered = figures[name]
            told = "import and connect()" if most == 1.0 else "import, connect() and the first answer"
            value = imported + connected + (answered if most != 1.0 else 0.0)
            targets.at_most(f"{told}, {name}", value, most, " s", _START)


def stream_targets(targets: Targets, figures: Sequence[StreamFigures]) -> None:
    for stream, least in (("batches of 20,000", 10.0), ("batches of 200", 5.0)):
        for f in figures:
            if f.stream.endswith(stream) and f.engine.startswith("Pathway"):
                targets.at_least(f"{f.stream}: rows/s over those of {f.engine}", f.ratio, least, "×", _STREAMS)
    for f in figures:
        if f.engine == "Eddyline, 1 workers":
            targets.at_least(f"{f.stream}: rows/s over one's", f.ratio, 1.6, "×", _STREAMS)


def lookup_targets(targets: Targets, figures: Mapping[str, float], alone: Latency) -> None:
    wanted = {"by index, cached plan": 10_000.0, "join of two indexes by key, cached plan": 3_000.0}
    for name, least in wanted.items():
        targets.at_least(f"lookups, {name}", figures[name], least, " per second", "see the table below")
    targets.at_most("a lookup by index, cached plan: p99", alone.p99, 0.3, " ms", "see the table below")


def aggregate_targets(targets: Targets, figures: Mapping[str, Latency]) -> None:
    ours, theirs = (figures[name].p50 for name in ("Eddyline, ad hoc", "DuckDB, 1 thread"))
    targets.at_most("ad-hoc aggregate over DuckDB's", ours / theirs, 5.0, "×", _BUILDS)


def change_targets(targets: Targets, figures: Sequence[ChangeFigures]) -> None:
    few, many = min(f.rows for f in figures), max(f.rows for f in figures)
    small = {f.shape: f.change for f in figures if f.rows == few}
    for f in figures:
        if f.rows == many:
            told = f"one-row change, {f.shape}, {many:,} rows"
            targets.at_most(f"{told}: p50", f.change.p50, 2.0, " ms", _SMALL)
            targets.at_most(f"{told}: p99", f.change.p99, 10.0, " ms", _SMALL)
            targets.at_most(f"{told}: p50 over {few:,} rows'", f.change.p50 / small[f.shape].p50, 2.0, "×", _SMALL)


def catalog_targets(targets: Targets, figures: Sequence[CatalogFigures]) -> None:
    for f in figures:
        if f.name.startswith("a chain"):
            targets.at_most(f"one-row change, {f.name}: p50", f.change.p50, 6.0, " ms", _SMALL)


def tpch_targets(targets: Targets, figures: TpchFigures) -> None:
    built = [b for b in figures.builds if not b.missing]
    if built:
        worst = max(built, key=lambda b: b.ratio)
        over = [b.query for b in built if b.ratio > 5.0]
        why = f"above 5 are {', '.join(over)}; {_BUILDS}"
        targets.at_most(f"TPC-H, worst build over DuckDB's ({worst.query})", worst.ratio, 5.0, "×", why)
        ratio = sum(b.eddyline_s for b in built) / sum(b.duckdb_s for b in built)
        targets.at_most("TPC-H, all builds over DuckDB's", ratio, 4.0, "×", _BUILDS)
    if figures.refresh is not None:
        told = "TPC-H, refresh of all views, times faster than DuckDB's recomputing"
        targets.at_least(told, figures.refresh.ratio, 50.0, "×", f"{_SMALL}, and {_BUILDS}")


def footprint_targets(targets: Targets, figures: Sequence[FootprintFigures]) -> None:
    grouped: list[FootprintFigures] = []
    for f in figures:
        found = f.found
        if "kept of a dropped index" in found:
            allowed = 2 * found["arrow"] + 40 * f.rows
            told = f"memory, {f.name}"
            targets.at_most(f"{told}: over 2 × Arrow's + 40 bytes a row", found["steady"] / allowed, 1.0, "×", _MEMORY)
            targets.at_most(f"{told}: peak over Arrow's", found["peak"] / found["arrow"], 3.0, "×", _MEMORY)
            kept = max(found["kept of a dropped index"], found["kept of a dropped table"]) / found["arrow"]
            targets.at_most(f"{told}: kept of what was dropped, over Arrow's", kept, 0.25, "×", _MEMORY)
        elif f.name == "groups":
            grouped.append(f)
        elif "grown" in found:
            share = found["grown"] / found["after a quarter"]
            targets.at_most("memory, updates: grown since a quarter of them", share, 0.1, "×", _MEMORY)
    if len(grouped) > 1:
        few, many = min(grouped, key=lambda f: f.rows), max(grouped, key=lambda f: f.rows)
        told = f"memory, grouped view: over {many.rows // few.rows} times as many rows of as many groups"
        targets.at_most(told, many.found["steady"] / few.found["steady"], 2.0, "×", _MEMORY)


def stall_targets(targets: Targets, f: StallFigures) -> None:
    targets.at_most("one row at a time: longest activation", f.longest_activation, 50.0, " ms", _STALLS)
    targets.at_most("one row at a time, append to read: p99.9", f.read_p999, 5.0, " ms", _STALLS)
    targets.at_most("one row at a time: longest hold of the GIL", f.held_worst, 1.0, " ms", _STALLS)
