"""``python -m bench [--quick] [--only PART …] [--pathway PYTHON] [--write FILE]``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from bench.catalog import measure_chain, measure_views
from bench.changes import measure_changes
from bench.footprint import measure_footprints
from bench.memory import measure_hydration
from bench.reads import measure_aggregate, measure_lookups
from bench.report import Report
from bench.server.page import measure_server
from bench.stalls import measure_stalls
from bench.startup import measure_startup
from bench.streams import Sizes, measure_streams, pathway_version
from bench.tpch.measure import measure_tpch

_PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_PARTS = (
    "startup", "streams", "lookups", "aggregate", "changes", "catalog", "stalls", "hydration", "footprint", "tpch",
    "server",
)  # fmt: skip


def main() -> None:
    arguments = _arguments()
    quick: bool = arguments.quick
    parts = arguments.only or _PARTS
    command = "python -m bench" + (" --quick" if quick else "")
    pathway = pathway_version(arguments.pathway) if arguments.pathway else None
    report = Report(quick=quick, command=command, pathway=pathway)
    for part in _PARTS:
        if part in parts:
            sys.stderr.write(f"measuring {part} …\n")
            _measure(part, report, quick, arguments.pathway)
    text = report.text()
    sys.stdout.write(text)
    if set(parts) == set(_PARTS) or arguments.write:
        page: Path = arguments.write or _PAGE
        page.write_text(text)
        page.with_suffix(".json").write_bytes(report.samples())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    parser.add_argument("--only", nargs="+", choices=_PARTS, help="measure only these parts")
    has_pathway = importlib.util.find_spec("pathway") is not None
    parser.add_argument(
        "--pathway", default=sys.executable if has_pathway else None, help="an interpreter that has Pathway"
    )
    parser.add_argument(
        "--write",
        type=Path,
        help=f"where the page goes, and its samples beside it as .json (default: {_PAGE.name} if all parts ran)",
    )
    return parser.parse_args()


def _measure(part: str, report: Report, quick: bool, pathway_python: str | None) -> None:
    match part:
        case "startup":
            report.startup(measure_startup(repetitions=3 if quick else 7, cold=True))
        case "streams":
            sizes_of_streams = Sizes(small_words=40_000, small_orders=20_000, repetitions=1) if quick else Sizes()
            report.streams(measure_streams(sizes_of_streams, pathway_python=pathway_python))
        case "lookups":
            report.lookups(measure_lookups(100_000, for_s=1.0 if quick else 5.0))
        case "aggregate":
            report.aggregate(measure_aggregate(1_000_000, samples=5 if quick else 20), 1_000_000)
        case "changes":
            sizes = (100_000, 1_000_000) if quick else (100_000, 10_000_000)
            samples, most = (200, 3.0) if quick else (1000, 15.0)
            report.changes([f for n in sizes for f in measure_changes(n, samples=samples, at_most_s=most)])
        case "catalog":
            counts, samples, most = ((1, 100), 100, 3.0) if quick else ((1, 100, 1000, 3000), 500, 15.0)
            figures = [measure_views(n, samples=samples, at_most_s=most) for n in counts]
            report.catalog([*figures, measure_chain(10, samples=samples, at_most_s=most)])
        case "hydration":
            report.hydration([measure_hydration(n) for n in ((1_000_000,) if quick else (1_000_000, 10_000_000))])
        case "stalls":
            rows, for_s = (1_000_000, 10.0) if quick else (10_000_000, 60.0)
            report.stalls(measure_stalls(rows, for_s=for_s))
        case "footprint":
            rows, updates = (500_000, 300) if quick else (4_000_000, 3600)
            report.footprints(measure_footprints(rows=rows, updates=updates))
        case "tpch":
            scale, most, rounds = (0.1, 1.0, 2) if quick else (1.0, 15.0, 5)
            report.tpch(measure_tpch(scale, pairs=5, at_most_s=most, rounds=rounds))
        case "server":
            report.server(measure_server(quick=quick))


if __name__ == "__main__":
    main()
