"""The longest waits while single rows go into a large table: activations, reads of the row, holds of the GIL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.changes import load
from eddyline.compute.dataflow import Dataflow
from eddyline.testing.heartbeat import Heartbeat

__all__ = ["StallFigures", "measure_stalls"]


@dataclass(frozen=True)
class StallFigures:
    """Milliseconds.  ``held_*``: for how long a call kept a thread that only wants to run for a moment from the
    interpreter, at worst and but for one beat in a thousand; ``late_worst``: the same with waits for a core and full
    collections."""

    rows: int
    changes: int
    activations: int
    longest_activation: float
    read_p50: float
    read_p999: float
    read_longest: float
    held_worst: float
    held_usual: float
    late_worst: float
    #: each wait from append to read
    reads: tuple[float, ...] = ()


def measure_stalls(rows: int, *, for_s: float) -> StallFigures:
    """One row at a time, each read back, for ``for_s`` seconds: an index, a grouped view, a maximum and a join."""
    with load(rows) as db:
        db.executescript(
            "CREATE INDEX facts_id ON facts (id);"
            "CREATE VIEW g AS SELECT grp, count(*) AS n, sum(val) AS s, max(val) AS m FROM facts GROUP BY grp;"
            "CREATE INDEX g_grp ON g (grp);"
            "CREATE VIEW j AS SELECT f.id, f.val, g.name FROM facts f JOIN groups g ON f.grp = g.grp;"
            "CREATE INDEX j_id ON j (id)"
        )
        for name in ("facts_id", "g_grp", "j_id"):
            db.wait_hydrated(name)
        cursor = db.cursor()
        groups = rows // 100
        taken: list[float] = []
        with _activations() as activations, Heartbeat() as heart:
            begun = time.perf_counter()
            while time.perf_counter() - begun < for_s:
                i = len(taken)
                id, group = rows + i, i * 7919 % groups
                start = time.perf_counter()
                db.append("facts", pa.table({"id": [id], "grp": [group], "val": [i]}))
                if cursor.execute("SELECT name FROM j WHERE id = $1", (id,)).fetchone() is None:
                    raise AssertionError(f"row {id} is not in the join")
                taken.append(time.perf_counter() - start)
    waits = np.array(taken) * 1e3
    return StallFigures(
        rows=rows,
        changes=len(taken),
        activations=len(activations),
        longest_activation=max(activations) / 1e6,
        read_p50=float(np.median(waits)),
        read_p999=float(np.quantile(waits, 0.999)),
        read_longest=float(waits.max()),
        held_worst=heart.held.worst_ms,
        held_usual=heart.held.beyond_ms(0.001),
        reads=tuple(round(float(ms), 3) for ms in waits),
        late_worst=heart.held.latest_ms,
    )


@contextmanager
def _activations() -> Iterator[list[int]]:
    """How long each activation of a dataflow took, in nanoseconds of its thread's CPU: a busy machine adds nothing."""
    taken: list[int] = []
    activate = Dataflow.activate

    def timed(self: Dataflow, expired: Callable[[], bool]) -> bool:
        begun = time.thread_time_ns()
        moved = activate(self, expired)
        taken.append(time.thread_time_ns() - begun)
        return moved

    Dataflow.activate = timed  # type: ignore[method-assign]  # put back below
    try:
        yield taken
    finally:
        Dataflow.activate = activate  # type: ignore[method-assign]  # as it was
