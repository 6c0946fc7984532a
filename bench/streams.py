"""Two streams read from CSV files, in Eddyline and in Pathway: word count, and a join with a grouped sum."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.inputs import make_orders, make_words
from bench.startup import child

__all__ = ["StreamFigures", "measure_streams", "pathway_version"]

_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class StreamFigures:
    """Medians.  ``process_s`` includes starting the interpreter's imports; ``seconds`` does not."""

    stream: str
    engine: str
    rows: int
    seconds: float
    process_s: float


def measure_streams(
    *, words: int, orders: int, customers: int, repetitions: int, pathway_python: str | None
) -> list[StreamFigures]:
    """Both streams in all engines, interleaved.  ``pathway_python``: an interpreter that has Pathway."""
    engines = {"Eddyline": _eddyline}
    if pathway_python is not None:
        engines["Pathway"] = lambda arguments: _pathway(pathway_python, arguments)
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        words_csv, orders_csv, customers_csv = (Path(folder) / f"{n}.csv" for n in ("words", "orders", "customers"))
        make_words(words_csv, words)
        make_orders(orders_csv, customers_csv, orders, customers)
        jobs = {"words": ["words", str(words_csv)], "orders": ["orders", str(orders_csv), str(customers_csv)]}
        rows = {"words": words, "orders": orders}
        _eddyline(jobs["words"])  # compiles, if it has to
        for _ in range(repetitions):
            for job, arguments in jobs.items():
                for engine, run in engines.items():
                    found = json.loads(run(arguments).splitlines()[-1])
                    if found["rows"] != rows[job]:
                        raise AssertionError(f"{engine} counted {found['rows']} of {rows[job]} rows of {job}")
                    taken.setdefault((job, engine), []).append((found["seconds"], found["process_seconds"]))
    return [
        StreamFigures(
            job, engine, rows[job], statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)
        )
        for (job, engine), times in taken.items()
    ]


def _eddyline(arguments: Sequence[str]) -> str:
    return child(["-m", "bench.eddyline_job", *arguments])


def pathway_version(python: str) -> str:
    """What ``python`` has installed."""
    script = "import importlib.metadata as m; print(m.version('pathway'))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def _pathway(python: str, arguments: Sequence[str]) -> str:
    done = subprocess.run(
        [python, "-m", "bench.pathway_job", *arguments],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Pathway failed:\n{done.stderr}")
    return done.stdout
