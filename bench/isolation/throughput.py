"""How fast maintenance is beside an interactive runtime: interleaved passes over the same changes."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import eddyline
from bench.isolation.anatomy import run_queues
from bench.isolation.arms import SENT, SOLO, TWO, connected
from bench.isolation.load import LOAD, Body, Stream, capacity, settle
from bench.isolation.work import maintenance_work
from eddyline.testing.counting import Counted

__all__ = ["Pass", "ThroughputFigures", "measure_throughput"]

_GROUPS = 1_000
_VIEWS = (
    "CREATE VIEW by_g AS SELECT g, count(*) AS n, sum(v) AS s, max(v) AS m FROM facts GROUP BY g",
    "CREATE VIEW joined AS SELECT f.k, d.name, f.v FROM facts f JOIN dims d ON f.g = d.g WHERE f.v < 100",
    "CREATE VIEW pairs AS SELECT DISTINCT g, v % 10 AS r FROM facts",
)
_INDEXES = ("by_g (g)", "joined (k)", "pairs (g)")


class Pass(NamedTuple):
    """Seconds of one pass: by the clock; of cores, and of waits for one, that the maintaining threads had; of cores
    that all threads of this process had."""

    took: float
    computed: float
    waited: float
    all_computed: float


class Pair(NamedTuple):
    """Passes of the same changes, one right after the other."""

    solo: Pass
    two: Pass

    @property
    def ratio(self) -> float:
        """Solo's seconds over two runtimes'."""
        return self.solo.took / self.two.took


@dataclass
class ThroughputFigures:
    """Pairs of passes, and the counted work of maintenance, which depends on no clock."""

    rows_per_s: float
    idle: list[Pair] = field(default_factory=list)
    reading: list[Pair] = field(default_factory=list)
    reads_per_s: float = 0.0
    solo_work: Counted = field(default_factory=Counted)
    idle_work: Counted = field(default_factory=Counted)
    reading_work: Counted = field(default_factory=Counted)


class _Maintained:
    """A database with three views over ``facts``, and passes of changes that leave it as it was."""

    def __init__(self, db: eddyline.Connection, threads: str, rows: int, batch_rows: int, batches: int) -> None:
        """``threads``: how the names of those that maintain begin."""
        self.db = db
        self._maintaining = run_queues(lambda name: name.startswith(threads))
        random = np.random.default_rng(11)
        db.execute("CREATE TABLE facts (k bigint PRIMARY KEY, g bigint, v bigint)")
        db.execute("CREATE TABLE dims (g bigint, name text)")
        db.append("dims", pa.table({"g": np.arange(_GROUPS), "name": [f"group {g}" for g in range(_GROUPS)]}))
        db.append("facts", _facts(random, 0, rows))
        for view, index in zip(_VIEWS, _INDEXES, strict=True):
            db.execute(view)
            db.execute(f"CREATE INDEX ON {index}")
        for view in ("by_g", "joined", "pairs"):
            db.wait_hydrated(view)
        self.batches = [_facts(random, rows + n * batch_rows, batch_rows) for n in range(batches)]
        self.rows = 2 * batch_rows * batches

    def run(self) -> Pass:
        """All batches in and out again, each seen in every view before the next one."""
        before, used, begun = self._times(), time.process_time(), time.perf_counter()
        for change in (self.db.append, self.db.delete):
            for batch in self.batches:
                change("facts", batch)
                for view in ("by_g", "joined", "pairs"):
                    self.db.execute(f"SELECT * FROM {view} WHERE {'k' if view == 'joined' else 'g'} = 5").fetchall()
        took, after = time.perf_counter() - begun, self._times()
        return Pass(took, after[0] - before[0], after[1] - before[1], time.process_time() - used)

    def _times(self) -> tuple[float, float]:
        """Seconds of cores and of waits for one that the maintaining threads have had."""
        each = self._maintaining
        return sum(q.ran_ns() for q in each) / 1e9, sum(q.waited_ns() for q in each) / 1e9

    def close(self) -> None:
        for each in self._maintaining:
            each.close()


def _facts(random: np.random.Generator, first: int, rows: int) -> pa.Table:
    groups, values = random.integers(0, _GROUPS, rows), random.integers(0, 10_000, rows)
    return pa.table({"k": np.arange(first, first + rows), "g": groups, "v": values})


def _reads(session: eddyline.Connection) -> Body:
    cursor = session.cursor()

    def look_up(n: int) -> None:
        cursor.execute("SELECT n FROM by_g WHERE g = $1", (n * 7919 % _GROUPS,)).fetchall()

    return look_up


@contextmanager
def _reading(db: eddyline.Connection, per_s: float) -> Iterator[None]:
    """Serializable lookups, ``per_s`` a second, sent to the replica."""
    stop = threading.Event()

    def read() -> None:
        with db.session() as session:
            session.execute("SET transaction_isolation = 'serializable'")
            body, due, n = _reads(session), time.perf_counter(), 0
            while not stop.wait(max(0.0, due - time.perf_counter())):
                body(n)
                n, due = n + 1, due + 1 / per_s

    thread = threading.Thread(target=read, name=f"{SENT} readers")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_throughput(
    pairs: int, *, rows: int = 200_000, batch_rows: int = 5_000, batches: int = 6
) -> ThroughputFigures:
    with ExitStack() as stack:
        solo, two = (
            _Maintained(stack.enter_context(connected(name)), threads, rows, batch_rows, batches)
            for name, threads in ((SOLO, "solo:"), (TWO, "maint:"))
        )
        for each in (solo, two):
            stack.callback(each.close)
            each.run()
        settle()
        per_s = LOAD * capacity(two.db, Stream(f"{SENT} capacity", 1.0, _reads), 1.0)
        found = ThroughputFigures(rows_per_s=solo.rows / solo.run().took, reads_per_s=per_s)
        reading = functools.partial(_reading, two.db, per_s)
        for n in range(pairs):
            found.idle.append(_pair(solo, two, n, nullcontext))
            found.reading.append(_pair(solo, two, n, reading))
    found.solo_work = maintenance_work(interactive=False)
    found.idle_work = maintenance_work(interactive=True)
    found.reading_work = maintenance_work(interactive=True, reads=5)
    return found


def _pair(solo: _Maintained, two: _Maintained, n: int, meanwhile: Callable[[], AbstractContextManager[None]]) -> Pair:
    """Two runtimes have ``meanwhile`` beside them; who goes first alternates."""

    def beside() -> Pass:
        with meanwhile():
            return two.run()

    if n % 2:
        second = beside()
        return Pair(solo.run(), second)
    first = solo.run()
    return Pair(first, beside())
