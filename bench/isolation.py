"""``python -m bench.isolation``: what reads wait for while views hydrate, and behind scans, in three arms of one run.

*Solo unsliced*: one runtime whose activations take all their input, the shape of systems without an interactive
runtime; *Solo*: one runtime as it is; *two runtimes*.  Arrivals are open-loop and latencies count from the intended
start, so that a stall is charged to every read it delays.  Kernels are warm.  One-shot reads go to the replica anyway;
lookups are also measured with the caller's own answer switched off, since that one waits for no runtime in any arm.

Traps: other load on the machine is in every figure; a quantile needs ten times as many samples beyond it.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import eddyline
from eddyline.adapter import engine as engine_module
from eddyline.adapter.engine import Engine
from eddyline.compute.solo import Solo

_HOT_ROWS = 100_000
_BIG_ROWS = 1_000_000
_LOOKUPS_PER_S = 50
_ARMS = ("Solo unsliced", "Solo", "two runtimes")


def _use(kind: object) -> None:
    vars(engine_module)["Solo"] = kind


@contextmanager
def arm(name: str) -> Iterator[eddyline.Connection]:
    """A database in the layout ``name``, with its tables filled."""
    kind: Any = Solo
    if name == "Solo unsliced":
        kind = functools.partial(Solo, activation_ns=1 << 60, budget_rows=1 << 30)
    _use(kind)
    try:
        with eddyline.connect(interactive=name == "two runtimes") as db:
            db.execute("CREATE TABLE hot (k bigint PRIMARY KEY, v bigint)")
            db.append("hot", pa.table({"k": np.arange(_HOT_ROWS), "v": np.arange(_HOT_ROWS)}))
            db.execute("CREATE INDEX hot_k ON hot (k)")
            db.execute("CREATE TABLE big (k bigint, g bigint, v bigint)")
            random = np.random.default_rng(3)
            groups, values = (random.integers(0, 1000, _BIG_ROWS) for _ in range(2))
            db.append("big", pa.table({"k": np.arange(_BIG_ROWS), "g": groups, "v": values}))
            db.execute("CREATE INDEX big_k ON big (k)")
            db.wait_hydrated("hot_k")
            db.wait_hydrated("big_k")
            yield db
    finally:
        _use(Solo)


@contextmanager
def churning(db: eddyline.Connection, loops: int = 2) -> Iterator[list[float]]:
    """Views over the big table are created, hydrated and dropped meanwhile; the seconds of each cycle."""
    stop, cycles = threading.Event(), list[float]()

    def churn(loop: int) -> None:
        with db.session() as session:
            n = 0
            while not stop.is_set():
                start, name = time.perf_counter(), f"view_{loop}_{n}"
                session.execute(
                    f"CREATE MATERIALIZED VIEW {name} AS SELECT g, count(*) AS c, sum(v) AS s FROM big GROUP BY g"
                )
                session.execute(f"CREATE INDEX {name}_g ON {name} (g)")
                session.wait_hydrated(f"{name}_g")
                session.execute(f"DROP MATERIALIZED VIEW {name}")
                cycles.append(time.perf_counter() - start)
                n += 1

    yield from _beside([functools.partial(churn, n) for n in range(loops)], stop, cycles)


@contextmanager
def scanning(db: eddyline.Connection, scanners: int = 3) -> Iterator[list[float]]:
    """Clients walk the big index in a loop meanwhile; the seconds of each walk."""
    stop, walks = threading.Event(), list[float]()

    def scan() -> None:
        with db.session() as session:
            while not stop.is_set():
                start = time.perf_counter()
                session.execute("SELECT count(*) FROM big WHERE v < 5").fetchall()
                walks.append(time.perf_counter() - start)

    yield from _beside([scan] * scanners, stop, walks)


def _beside(bodies: list[Callable[[], None]], stop: threading.Event, out: list[float]) -> Iterator[list[float]]:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    try:
        yield out
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def open_loop(body: Callable[[int], None], *, per_s: float, for_s: float) -> np.ndarray[Any, Any]:
    """Milliseconds from each intended start to the end of ``body``."""
    begun, taken = time.perf_counter(), []
    for n in range(int(per_s * for_s)):
        due = begun + n / per_s
        time.sleep(max(0.0, due - time.perf_counter()))
        body(n)
        taken.append(time.perf_counter() - due)
    return np.array(taken) * 1e3


def measure(name: str, for_s: float) -> None:
    with arm(name) as db, db.session() as session:
        cursor = session.cursor()

        def lookup(n: int) -> None:
            key = n * 7919 % _HOT_ROWS
            if cursor.execute("SELECT v FROM hot WHERE k = $1", (key,)).fetchall() != [(key,)]:
                raise AssertionError("a wrong answer")

        def read(n: int) -> None:
            cursor.execute("SELECT count(*) FROM hot WHERE v < $1", (n % 100,)).fetchall()

        for body in (lookup, read):
            open_loop(body, per_s=20, for_s=1)
        _line(name, "lookups, idle", open_loop(lookup, per_s=_LOOKUPS_PER_S, for_s=for_s))
        with churning(db) as cycles:
            _line(name, "lookups, hydration", open_loop(lookup, per_s=_LOOKUPS_PER_S, for_s=for_s))
            with replica_only():
                _line(name, "lookups by the replica, hydration", open_loop(lookup, per_s=_LOOKUPS_PER_S, for_s=for_s))
            _line(name, "one-shot reads, hydration", open_loop(read, per_s=5, for_s=for_s))
        sys.stdout.write(f"{name:14} {len(cycles)} cycles of create, hydrate, drop: {np.mean(cycles):.2f} s each\n")
        with scanning(db), replica_only():
            _line(name, "lookups by the replica, 3 scanners", open_loop(lookup, per_s=_LOOKUPS_PER_S, for_s=for_s))


@contextmanager
def replica_only() -> Iterator[None]:
    """Lookups are sent to the replica, as those of another process would be."""
    original = Engine.answer_now
    Engine.answer_now = lambda self, peek, cancelled: None  # type: ignore[method-assign]  # for a while
    try:
        yield
    finally:
        Engine.answer_now = original  # type: ignore[method-assign]  # as it was


def _line(name: str, what: str, taken: np.ndarray[Any, Any]) -> None:
    p50, p90, p99 = np.quantile(taken, (0.5, 0.9, 0.99))
    sys.stdout.write(
        f"{name:14} {what:36} p50 {p50:8.2f}  p90 {p90:8.2f}  p99 {p99:8.2f}  worst {taken.max():8.2f} ms  "
        f"n {len(taken)}\n"
    )
    sys.stdout.flush()


def main() -> None:
    for_s = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    for name in _ARMS:
        measure(name, for_s)


if __name__ == "__main__":
    main()
