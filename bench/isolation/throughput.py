"""How fast maintenance is beside an interactive runtime: interleaved passes over the same changes."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import eddyline
from bench.isolation.arms import SENT, SOLO, TWO, connected
from bench.isolation.load import Body, Stream, capacity
from eddyline.compute.pair import Pair
from eddyline.testing.counting import Counted, counting
from eddyline.testing.driver import ReplicaDriver, index_on, reexport_of

__all__ = ["ThroughputFigures", "measure_throughput"]

_GROUPS = 1_000
_LOAD = 0.3
_COUNTED_ROWS = 20_000
_VIEWS = (
    "CREATE VIEW by_g AS SELECT g, count(*) AS n, sum(v) AS s, max(v) AS m FROM facts GROUP BY g",
    "CREATE VIEW joined AS SELECT f.k, d.name, f.v FROM facts f JOIN dims d ON f.g = d.g WHERE f.v < 100",
    "CREATE VIEW pairs AS SELECT DISTINCT g, v % 10 AS r FROM facts",
)
_INDEXES = ("by_g (g)", "joined (k)", "pairs (g)")


@dataclass
class ThroughputFigures:
    """Solo's seconds over two runtimes' in each pair of passes, and the counted work of a pass of maintenance."""

    rows_per_s: float
    idle: list[float] = field(default_factory=list)
    reading: list[float] = field(default_factory=list)
    reads_per_s: float = 0.0
    solo_work: Counted = field(default_factory=Counted)
    idle_work: Counted = field(default_factory=Counted)
    reading_work: Counted = field(default_factory=Counted)


class _Maintained:
    """A database with three views over ``facts``, and passes of changes that leave it as it was."""

    def __init__(self, db: eddyline.Connection, rows: int, batch_rows: int, batches: int) -> None:
        self.db = db
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

    def run(self) -> float:
        """Seconds for all batches in and out again, each seen in every view before the next one."""
        begun = time.perf_counter()
        for change in (self.db.append, self.db.delete):
            for batch in self.batches:
                change("facts", batch)
                for view in ("by_g", "joined", "pairs"):
                    self.db.execute(f"SELECT * FROM {view} WHERE {'k' if view == 'joined' else 'g'} = 5").fetchall()
        return time.perf_counter() - begun


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
            _Maintained(stack.enter_context(connected(name)), rows, batch_rows, batches) for name in (SOLO, TWO)
        )
        for each in (solo, two):
            each.run()
        per_s = _LOAD * capacity(two.db, Stream(f"{SENT} capacity", 1.0, _reads), 1.0)
        found = ThroughputFigures(rows_per_s=solo.rows / solo.run(), reads_per_s=per_s)
        reading = functools.partial(_reading, two.db, per_s)
        for n in range(pairs):
            found.idle.append(_ratio(solo, two, n, nullcontext))
            found.reading.append(_ratio(solo, two, n, reading))
    found.solo_work, found.idle_work, found.reading_work = _work(), _work(interactive=True), _work(reads=5)
    return found


def _ratio(solo: _Maintained, two: _Maintained, n: int, meanwhile: Callable[[], AbstractContextManager[None]]) -> float:
    """Solo's seconds over the other's, which has ``meanwhile`` beside it; who goes first alternates."""

    def beside() -> float:
        with meanwhile():
            return two.run()

    if n % 2:
        took = beside()
        return solo.run() / took
    alone = solo.run()
    return alone / beside()


def _work(*, interactive: bool = False, reads: int = 0) -> Counted:
    """What maintenance does for an index, a re-export of it and 200 commits, counted.

    Without threads or clocks: every run does the same.  ``reads``: lookups by an interactive runtime after each commit.
    """
    d = ReplicaDriver(interactive=interactive or reads > 0)
    at = d.table("t", [(n, n) for n in range(_COUNTED_ROWS)])
    side = "maintenance" if isinstance(d.replica, Pair) else "solo"
    counted = Counted()
    with counting() as made:
        d.create(index_on("i", "t", at), reexport_of("j", "i", at))
        d.rest(side)
    counted.add(made)
    for n in range(200):
        now = d.write("t", [(n, n), (n, -n)], [-1, 1])
        if n % 10 == 9:
            d.compact("i", now)
            d.compact("j", now)
        with counting() as made:
            d.rest(side)
        counted.add(made)
        for key in range(reads):
            d.peek("i", now, (key,))
        d.rest()
    return counted
