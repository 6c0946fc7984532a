"""Word count, and a join with a grouped sum, from CSV files: Eddyline beside Pathway on the same files, in turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.inputs import make_orders, make_words
from bench.startup import child

__all__ = ["Sizes", "StreamFigures", "measure_streams", "pathway_version"]

_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Sizes:
    """Input rows, and interleaved repetitions.  ``small_*``: the files that are read in batches of 200 rows."""

    words: int = 2_000_000
    orders: int = 500_000
    customers: int = 50_000
    small_words: int = 200_000
    small_orders: int = 50_000
    small_customers: int = 5_000
    repetitions: int = 5


@dataclass(frozen=True)
class StreamFigures:
    """Medians over the repetitions of one engine in one mode on one stream.

    ``ratio`` and ``cpu_ratio``: the median of this one's seconds over the first engine's in the same round, by the
    clock and by CPU time; 1 for the first one.
    """

    stream: str
    engine: str
    rows: int
    seconds: float
    cpu_s: float
    process_s: float
    ratio: float
    cpu_ratio: float
    #: seconds of each round
    taken: tuple[float, ...] = ()


@dataclass(frozen=True)
class _Comparison:
    """One stream's engines; the others are compared with the first."""

    stream: str
    rows: int
    engines: dict[str, Callable[[], str]]


def measure_streams(sizes: Sizes, *, pathway_python: str | None) -> list[StreamFigures]:
    """All comparisons.  ``pathway_python``: an interpreter that has Pathway.

    AssertionError if the engines do not give the same answers.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [f for c in _comparisons(sizes, Path(folder), pathway_python) for f in _measure(c, sizes.repetitions)]


def _comparisons(sizes: Sizes, folder: Path, pathway_python: str | None) -> Iterator[_Comparison]:
    words, orders, customers = (folder / f"{n}.csv" for n in ("words", "orders", "customers"))
    make_words(words, sizes.words)
    make_orders(orders, customers, sizes.orders, sizes.customers)
    jobs = {"words": (["words", str(words)], sizes.words)}
    jobs["orders"] = (["orders", str(orders), str(customers)], sizes.orders)
    for name, (job, rows) in jobs.items():
        engines = {"Eddyline": _eddyline("--batch", "20000", *job)}
        if pathway_python is not None:
            for mode in ("static", "streaming"):
                engines[f"Pathway, {mode}"] = _pathway(pathway_python, "--mode", mode, *job)
        yield _Comparison(f"{name}, batches of 20,000", rows, engines)
        workers = {f"Eddyline, {n} workers": _eddyline("--workers", str(n), *job) for n in (2, 1)}
        yield _Comparison(f"{name}, two workers", rows, workers)
    make_words(words, sizes.small_words)
    make_orders(orders, customers, sizes.small_orders, sizes.small_customers)
    for name, rows in (("words", sizes.small_words), ("orders", sizes.small_orders)):
        job = jobs[name][0]
        engines = {"Eddyline": _eddyline("--batch", "200", *job)}
        if pathway_python is not None:
            engines["Pathway, commits"] = _pathway(pathway_python, "--mode", "commits", "--batch", "200", *job)
            engines["Pathway, static"] = _pathway(pathway_python, "--mode", "static", *job)
        yield _Comparison(f"{name}, batches of 200", rows, engines)


def _measure(comparison: _Comparison, repetitions: int) -> Iterator[StreamFigures]:
    next(iter(comparison.engines.values()))()  # loads files and kernels
    rounds: list[dict[str, dict[str, float]]] = []
    digests: set[str] = set()
    for _ in range(repetitions):
        found = {engine: json.loads(run().splitlines()[-1]) for engine, run in comparison.engines.items()}
        digests.update(f["digest"] for f in found.values())
        wrong = [(engine, f["rows"]) for engine, f in found.items() if f["rows"] != comparison.rows]
        if wrong or len(digests) > 1:
            raise AssertionError(f"{comparison.stream}: answers differ: {wrong or digests}")
        rounds.append(found)
    first = next(iter(comparison.engines))
    for engine in comparison.engines:
        yield StreamFigures(
            comparison.stream,
            engine,
            comparison.rows,
            seconds=statistics.median(r[engine]["seconds"] for r in rounds),
            cpu_s=statistics.median(r[engine]["cpu_seconds"] for r in rounds),
            process_s=statistics.median(r[engine]["process_seconds"] for r in rounds),
            ratio=statistics.median(r[engine]["seconds"] / r[first]["seconds"] for r in rounds),
            cpu_ratio=statistics.median(r[engine]["cpu_seconds"] / r[first]["cpu_seconds"] for r in rounds),
            taken=tuple(round(r[engine]["seconds"], 4) for r in rounds),
        )


def _eddyline(*arguments: str) -> Callable[[], str]:
    return lambda: child(["-m", "bench.eddyline_job", *arguments])


def pathway_version(python: str) -> str:
    """What ``python`` has installed."""
    script = "import importlib.metadata as m; print(m.version('pathway'))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def _pathway(python: str, *arguments: str) -> Callable[[], str]:
    def run() -> str:
        done = subprocess.run(
            [python, "-m", "bench.pathway_job", *arguments],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT), "PATHWAY_THREADS": "1", "PATHWAY_PROCESSES": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"Pathway failed:\n{done.stderr}")
        return done.stdout

    return run
