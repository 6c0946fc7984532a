"""``python -m bench.isolation [--quick] [--only PART …] [--write FILE]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.isolation.anatomy import noting_phases
from bench.isolation.arms import SOLO, TWO, UNSLICED, arm, sent_by_name
from bench.isolation.cores import measure_beside_hogs, measure_oversubscribed
from bench.isolation.hydration import HydrationFigures, measure_hydration
from bench.isolation.lag import LagFigures, measure_lag
from bench.isolation.load import Window
from bench.isolation.report import IsolationReport
from bench.isolation.scans import COSTS_MS, ScanFigures, Walk, calibrated, measure_scans
from bench.isolation.sharing import measure_sharing
from bench.isolation.throughput import measure_throughput

_PAGE = Path(__file__).parent.parent.parent / "docs" / "benchmarks-isolation.md"
_PARTS = ("hydration", "scans", "lag", "cores", "throughput", "sharing")


def main() -> None:
    arguments = _arguments()
    quick: bool = arguments.quick
    parts: tuple[str, ...] = tuple(arguments.only or _PARTS)
    report = IsolationReport(quick=quick)
    with sent_by_name(), noting_phases(), _told("all"):
        _measure_arms(parts, report, quick)
        _measure_alone(parts, report, quick)
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


def _measure_arms(parts: Sequence[str], report: IsolationReport, quick: bool) -> None:
    """What is measured in all three arms: one database each."""
    if not {"hydration", "scans", "lag"} & set(parts):
        return
    hydration: dict[str, HydrationFigures] = {}
    scans: dict[str, list[ScanFigures]] = {}
    lag: dict[str, LagFigures] = {}
    walks: dict[int, Walk | None] = {}
    asked: dict[str, dict[str, float]] = {"hydration": {}, "lag": {}}
    for name in (TWO, UNSLICED, SOLO):
        with arm(name) as db:
            if "hydration" in parts:
                with _told(f"hydration, {name}"):
                    hydration[name] = measure_hydration(db, _window(3.0, 22.0, quick=quick), asked["hydration"])
            if "scans" in parts:
                with _told(f"scans, {name}"):
                    walks = walks or calibrated(db)
                    scans[name] = []
                    for n, cost in enumerate(COSTS_MS):
                        rates = None if name == TWO else scans[TWO][n].per_s
                        scans[name].append(measure_scans(db, walks[cost], _window(1.2, 12.0, quick=quick), rates))
            if "lag" in parts:
                with _told(f"lag, {name}"):
                    lag[name] = measure_lag(db, _window(3.0, 22.0, quick=quick), asked["lag"])
    if hydration:
        report.hydration(hydration)
    if scans:
        report.scans(scans)
    if lag:
        report.lag(lag)


def _measure_alone(parts: Sequence[str], report: IsolationReport, quick: bool) -> None:
    """What compares other things than the three arms."""
    if "cores" in parts:
        with _told("cores"):
            window = _window(3.0, 20.0, quick=quick)
            crowded = {times: measure_oversubscribed(times, window) for times in ((1, 4) if quick else (1, 2, 4))}
            report.cores(crowded, measure_beside_hogs(window))
    if "throughput" in parts:
        with _told("throughput"):
            report.throughput(measure_throughput(3 if quick else 9))
    if "sharing" in parts:
        with _told("sharing"):
            report.sharing(measure_sharing())


def _window(shortly_s: float, usually_s: float, *, quick: bool) -> Window:
    return Window(shortly_s if quick else usually_s, stretch=not quick)


@contextmanager
def _told(part: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    sys.stderr.write(f"{part}: {time.perf_counter() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
