"""``python -m bench.isolation [--quick] [--only PART …] [--write FILE]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.isolation.arms import ARMS, TWO, arm, sent_by_name
from bench.isolation.cores import measure_beside_hogs, measure_oversubscribed
from bench.isolation.hydration import Window, measure_hydration
from bench.isolation.lag import measure_lag
from bench.isolation.report import IsolationReport
from bench.isolation.scans import COSTS_MS, calibrated, measure_scans
from bench.isolation.sharing import measure_sharing
from bench.isolation.throughput import measure_throughput

_PAGE = Path(__file__).parent.parent.parent / "docs" / "benchmarks-isolation.md"
_PARTS = ("hydration", "scans", "lag", "cores", "throughput", "sharing")


def main() -> None:
    arguments = _arguments()
    quick: bool = arguments.quick
    parts: tuple[str, ...] = tuple(arguments.only or _PARTS)
    report = IsolationReport(quick=quick)
    with sent_by_name():
        for part in _PARTS:
            if part in parts:
                begun = time.perf_counter()
                _measure(part, report, quick)
                sys.stderr.write(f"{part}: {time.perf_counter() - begun:.0f} s\n")
    text = report.text()
    sys.stdout.write(text)
    if parts == _PARTS or arguments.write:
        (arguments.write or _PAGE).write_text(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.isolation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="at most three minutes; mostly too short for a p99")
    parser.add_argument("--only", nargs="+", choices=_PARTS, help="measure only these parts")
    parser.add_argument("--write", type=Path, help=f"where the page goes (default: {_PAGE.name} if all parts ran)")
    return parser.parse_args()


def _measure(part: str, report: IsolationReport, quick: bool) -> None:
    window = Window(for_s=3.0 if quick else 22.0, stretch=not quick)
    match part:
        case "hydration":
            hydration = {}
            for name in ARMS:
                with arm(name) as db:
                    hydration[name] = measure_hydration(db, window)
            report.hydration(hydration)
        case "scans":
            with arm(TWO) as db:
                walks = calibrated(db)
            scans = {}
            for name in ARMS:
                with arm(name) as db:
                    scans[name] = [measure_scans(db, walks[cost], 1.5 if quick else 12.0) for cost in COSTS_MS]
            report.scans(scans)
        case "lag":
            lag = {}
            for name in ARMS:
                with arm(name) as db:
                    lag[name] = measure_lag(db, window.for_s)
            report.lag(lag)
        case "cores":
            factors = (1, 4) if quick else (1, 2, 4)
            crowded = {times: measure_oversubscribed(times, window.for_s) for times in factors}
            report.cores(crowded, measure_beside_hogs(window.for_s))
        case "throughput":
            report.throughput(measure_throughput(3 if quick else 9))
        case "sharing":
            report.sharing(measure_sharing())


if __name__ == "__main__":
    main()
