"""Lookups over the wire while views over a large table are created, hydrated and dropped, in both layouts."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import psycopg

from bench.server.peers import Connection, Peer, eddyline_server

__all__ = ["WireIsolationFigures", "measure_wire_isolation"]

_HOT_ROWS = 100_000
_CLIENTS = 4
_PER_S = 100.0
_CHURNS = 2


@dataclass(frozen=True)
class WireIsolationFigures:
    """Milliseconds from when a lookup was due to its answer, by a client in another process than the server."""

    layout: str
    idle_p50: float
    idle_p99: float
    hydrating_p50: float
    hydrating_p99: float
    hydrating_longest: float
    samples: int
    views: int


def measure_wire_isolation(*, big_rows: int, for_s: float) -> list[WireIsolationFigures]:
    return [_measure(layout, big_rows, for_s) for layout in ("two runtimes", "one runtime")]


def _measure(layout: str, big_rows: int, for_s: float) -> WireIsolationFigures:
    with eddyline_server(None, interactive=layout == "two runtimes") as peer:
        with peer.connect() as connection:
            # No primary key: storage itself finds rows by that one, and no runtime would have a part in it.
            connection.execute("CREATE TABLE hot (k bigint, v bigint)")
            connection.execute(f"INSERT INTO hot SELECT i, i FROM generate_series(0, {_HOT_ROWS - 1}) g(i)")
            connection.execute("CREATE INDEX hot_k ON hot (k)")
            connection.execute("CREATE TABLE big (k bigint, g bigint, v bigint)")
            connection.execute(f"INSERT INTO big SELECT i, i % 1000, i % 97 FROM generate_series(1, {big_rows}) g(i)")
        _open_loop(peer, 1.0)
        idle = _open_loop(peer, for_s)
        views = [0] * _CHURNS
        stop = threading.Event()
        churns = [threading.Thread(target=_churn, args=(peer, n, views, stop)) for n in range(_CHURNS)]
        for churn in churns:
            churn.start()
        try:
            hydrating = _open_loop(peer, for_s)
        finally:
            stop.set()
            for churn in churns:
                churn.join()
        if not all(views):
            raise AssertionError("no view was hydrated meanwhile")
    return WireIsolationFigures(
        layout,
        float(np.median(idle)), float(np.quantile(idle, 0.99)),
        float(np.median(hydrating)), float(np.quantile(hydrating, 0.99)), float(hydrating.max()),
        len(hydrating), sum(views),
    )  # fmt: skip


def _open_loop(peer: Peer, for_s: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Lookups at a fixed rate by a few clients, whether earlier ones were answered or not; their milliseconds."""
    taken: list[float] = []
    failures: list[Exception] = []
    begun = time.perf_counter() + 0.2

    def ask(client: int, connection: Connection) -> None:
        n = client
        try:
            while (due := n / _PER_S) < for_s:
                time.sleep(max(0.0, begun + due - time.perf_counter()))
                key = n * 7919 % _HOT_ROWS
                found = connection.execute("SELECT v FROM hot WHERE k = %s", (key,), prepare=True).fetchall()
                taken.append((time.perf_counter() - begun - due) * 1e3)
                if found != [(key,)]:
                    raise AssertionError(f"key {key} has {found}")
                n += _CLIENTS
        except (psycopg.Error, AssertionError) as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(n, peer.connect())) for n in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return np.array(taken)


def _churn(peer: Peer, number: int, views: list[int], stop: threading.Event) -> None:
    with peer.connect() as connection:
        while not stop.is_set():
            name = f"view_{number}_{views[number]}"
            connection.execute(
                f"CREATE MATERIALIZED VIEW {name} AS SELECT g, count(*) AS c, sum(v) AS s FROM big GROUP BY g"
            )
            connection.execute(f"CREATE INDEX {name}_g ON {name} (g)")
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # waits until it is hydrated
            connection.execute(f"DROP MATERIALIZED VIEW {name}")
            views[number] += 1
