"""One soak: clients for a while, samples of the server meanwhile, and a look at what is left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psycopg

from eddyline.testing.soak.clients import SETUP, Client, Faults
from eddyline.testing.soak.served_process import ServedProcess, Usage

__all__ = ["STEPS_PER_S", "SoakFigures", "soak"]

STEPS_PER_S = 60.0
_SAMPLE_S = 0.5
_SETTLING_S = 30.0
#: longer than logs may lag
_LOGGED_S = 1.5
#: of the resident size between the middle and the end, in all and beside what it was
_MOST_GROWTH = 40 << 20
_MOST_RATIO = 0.10


@dataclass
class SoakFigures:
    """``settled``: after the clients have left; ``left``: what they left behind."""

    steps: Counter[str]
    wrong: Faults
    before: Usage
    settled: Usage
    warm_bytes: int
    end_bytes: int
    left: list[str] = field(default_factory=list)
    server_errors: list[str] = field(default_factory=list)
    status: int | None = None

    def faults(self) -> list[str]:
        """What is not as it should be."""
        found = [f"{count} × {text}" for text, count in self.wrong.items()] + self.left + self.server_errors
        growth = self.end_bytes - self.warm_bytes
        if growth > _MOST_GROWTH and growth > _MOST_RATIO * self.warm_bytes:
            found.append(f"memory grew from {self.warm_bytes >> 20} to {self.end_bytes >> 20} MB")
        if self.status != 0:
            found.append(f"the server's exit status is {self.status}")
        return found

    def __str__(self) -> str:
        lines = [
            "steps: " + ", ".join(f"{name} {count:,}" for name, count in sorted(self.steps.items())),
            f"resident: {self.warm_bytes >> 20} MB from the middle on, {self.end_bytes >> 20} MB at the end",
            f"before: {self.before}; after the clients: {self.settled}",
            *(self.faults() or ["nothing was found"]),
        ]
        return "\n".join(lines)


def soak(
    seconds: float,
    clients: int,
    seed: int,
    *,
    steps_per_s: float = STEPS_PER_S,
    report: Callable[[str], object] = lambda line: None,
) -> SoakFigures:
    """``clients`` connections for so long, all against a database in a directory.

    ``steps_per_s``: of all clients, each of which waits that long between its own.
    """
    with tempfile.TemporaryDirectory(prefix="eddyline-soak-") as folder:
        with ServedProcess(Path(folder) / "live.eddy") as served:
            figures = asyncio.run(_soak(served, seconds, clients, seed, steps_per_s, report))
        figures.server_errors, figures.status = served.errors, served.status
    return figures


async def _soak(
    served: ServedProcess,
    seconds: float,
    count: int,
    seed: int,
    steps_per_s: float,
    report: Callable[[str], object],
) -> SoakFigures:
    async with await _connect(served) as connection:
        await connection.execute(SETUP)
        dataflows = await _all_dataflows(connection)
    before = served.usage()
    faults: Faults = Counter()
    stop = asyncio.Event()
    clients = [Client(n, served.port, seed, count / steps_per_s, faults) for n in range(1, count + 1)]
    running = [asyncio.create_task(client.run(stop)) for client in clients]
    samples: list[int] = []
    begun = time.monotonic()
    while time.monotonic() - begun < seconds and not any(task.done() for task in running):
        await asyncio.sleep(_SAMPLE_S)
        usage = served.usage()
        samples.append(usage.resident)
        if len(samples) % 20 == 0:
            report(f"{time.monotonic() - begun:.0f} s: {usage}")
    stop.set()
    await asyncio.gather(*running)
    steps = sum((client.steps for client in clients), Counter[str]())
    left, settled = await _left(served, before, dataflows)
    half, tenth = len(samples) // 2, max(1, len(samples) // 10)
    warm, end = int(median(samples[half : half + tenth])), int(median(samples[-tenth:]))
    return SoakFigures(steps, faults, before, settled, warm, end, left)


async def _connect(served: ServedProcess) -> psycopg.AsyncConnection[tuple[object, ...]]:
    return await psycopg.AsyncConnection.connect(
        host="127.0.0.1", port=served.port, user="soak", dbname="soak", autocommit=True
    )


async def _dataflows(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    cursor = await connection.execute("SELECT count(*) FROM mz_introspection.mz_dataflows")
    row = await cursor.fetchone()
    assert row is not None and isinstance(row[0], int)
    return row[0]


async def _all_dataflows(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    """Once the logs have told of what was set up, which takes them up to a second."""
    found = 0
    while (now := await _dataflows(connection)) > found:
        found = now
        await asyncio.sleep(_LOGGED_S)
    return found


async def _left(served: ServedProcess, before: Usage, dataflows: int) -> tuple[list[str], Usage]:
    """What the clients left behind, once that is no less; and what the server uses then."""
    deadline = time.monotonic() + _SETTLING_S
    while True:
        left = []
        connections = served.metric("eddyline_connections")
        if connections:
            left.append(f"{connections:.0f} connections are open")
        usage = served.usage()
        if usage.files > before.files + 4:
            left.append(f"{usage.files} files are open, which were {before.files}")
        if usage.threads > before.threads + _usual_threads(served):
            left.append(f"{usage.threads} threads run, which were {before.threads}")
        async with await _connect(served) as connection:
            now = await _dataflows(connection)
            if now > dataflows:
                left.append(f"{now} dataflows run, which were {dataflows}")
            with contextlib.suppress(psycopg.errors.UndefinedTable):
                await connection.execute("SET lock_timeout = '1s'; UPDATE accounts SET balance = balance WHERE id < 0")
        if not left or time.monotonic() > deadline:
            return left, usage
        await asyncio.sleep(0.5)


def _usual_threads(served: ServedProcess) -> int:
    """Threads for clients' statements that stay for the next ones."""
    return int(served.metric("eddyline_session_threads"))
