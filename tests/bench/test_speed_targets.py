"""Targets come first on the page, with their figures and whether they are met; the samples are told beside it."""

from __future__ import annotations

import json
from dataclasses import replace

from bench.changes import ChangeFigures
from bench.footprint import FootprintFigures
from bench.isolation.samples import Samples
from bench.isolation.targets import Targets
from bench.reads import LookupRates
from bench.report import Report
from bench.speed_targets import footprint_targets
from bench.streams import StreamFigures
from bench.timing import latency
from bench.tpch.measure import BuildFigures, RefreshFigures, TpchFigures

_CHANGES = [ChangeFigures("join", rows, latency(lambda _: None, samples=20), 0.1) for rows in (100_000, 10_000_000)]


def _slow(figures: ChangeFigures) -> ChangeFigures:
    return replace(figures, change=replace(figures.change, p50=2.5))


def test_a_target_is_met_or_missed_by_its_figure() -> None:
    report = Report(quick=True, command="bench", pathway=None)
    report.changes([_CHANGES[0], _slow(_CHANGES[1])])
    page = report.text()
    assert page.index("## Targets") < page.index("## A one-row change")
    assert "| one-row change, join, 10,000,000 rows: p50 ≤ 2 ms | 2.5 ms | **missed** |" in page
    assert "one-row change, join, 10,000,000 rows: p99 ≤ 10 ms" in page
    assert "0007-scheduling.md" in page.partition("## Why targets are missed")[2]


def test_streams_count_against_every_engine_and_against_one_worker() -> None:
    report = Report(quick=True, command="bench", pathway=None)
    figures = [
        StreamFigures("words, batches of 20,000", "Eddyline", 10, 1.0, 1.0, 1.0, ratio=1.0, cpu_ratio=1.0),
        StreamFigures("words, batches of 20,000", "Pathway, static", 10, 11.0, 1.0, 1.0, ratio=11.0, cpu_ratio=1.0),
        StreamFigures("words, batches of 200", "Pathway, commits", 10, 4.0, 1.0, 1.0, ratio=4.0, cpu_ratio=1.0),
        StreamFigures("words, two workers", "Eddyline, 2 workers", 10, 1.0, 1.0, 1.0, ratio=1.0, cpu_ratio=1.0),
        StreamFigures("words, two workers", "Eddyline, 1 workers", 10, 1.7, 1.0, 1.0, ratio=1.7, cpu_ratio=1.0),
    ]
    report.streams(figures)
    table = report.text().partition("## Why")[0]
    assert "over those of Pathway, static ≥ 10× | 11× | met |" in table
    assert "over those of Pathway, commits ≥ 5× | 4× | **missed** |" in table
    assert "words, two workers: rows/s over one's ≥ 1.6× | 1.7× | met |" in table


def test_tpch_tells_the_worst_build_and_all_that_are_above() -> None:
    report = Report(quick=True, command="bench", pathway=None)
    builds = [
        BuildFigures("q1", 1, 1.0, 1.0, 0.5, 0.5, ratio=2.0, cpu_ratio=2.0, pairs=1, taken=((1.0, 0.5),)),
        BuildFigures("q2", 1, 6.0, 6.0, 1.0, 1.0, ratio=6.0, cpu_ratio=6.0, pairs=1),
        BuildFigures("q3", missing="not there"),
    ]
    report.tpch(TpchFigures(1.0, 1.0, builds, RefreshFigures(10, 0.1, 0.1, 6.0, 60.0, 60.0, 1)))
    table, _, why = report.text().partition("## Why targets are missed")
    assert "worst build over DuckDB's (q2) ≤ 5× | 6× | **missed** |" in table
    assert "all builds over DuckDB's ≤ 4× | 4.667× | **missed** |" in table
    assert "times faster than DuckDB's recomputing ≥ 50× | 60× | met |" in table
    assert "above 5 are q2;" in why
    assert json.loads(report.samples())["tpch"]["builds"][0]["taken"] == [[1.0, 0.5]]


def test_memory_is_held_against_the_data() -> None:
    targets = Targets()
    index = {
        "arrow": 24.0,
        "steady": 80.0,
        "peak": 80.0,
        "kept of a dropped index": 1.0,
        "kept of a dropped table": 9.0,
    }
    footprint_targets(
        targets,
        [
            FootprintFigures("narrow index", 1, index),
            FootprintFigures("groups", 1, {"arrow": 24.0, "steady": 10.0, "peak": 10.0}),
            FootprintFigures("groups", 4, {"arrow": 96.0, "steady": 15.0, "peak": 15.0}),
            FootprintFigures("updates", 9, {"after a quarter": 100.0, "at the end": 120.0, "grown": 20.0}),
        ],
    )
    verdicts = [row.split("|")[-2].strip() for row in targets.table()[2:]]
    assert verdicts == ["met", "**missed**", "**missed**", "**missed**", "met"]


def test_samples_of_every_kind_are_told() -> None:
    report = Report(quick=True, command="bench", pathway=None)
    report.lookups(LookupRates({"by index, cached plan": 1e4, "join of two indexes by key, cached plan": 1.0},
                               latency(lambda _: None, samples=5)))  # fmt: skip
    samples = Samples()
    samples.add(1.0, 2.0, {"walk": 2.0})
    report._figures["wire"] = samples
    told = json.loads(report.samples())
    assert len(told["lookups"]["alone"]["taken"]) == 5
    assert told["wire"]["served_ms"] == [2.0]
