"""Reads from sessions of their own while the flights stream in, with their latencies."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import eddyline

__all__ = ["AdHocReads", "Lookups", "quantile_ms"]

_PER_SECOND = 20
_CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "WN")


def quantile_ms(latencies: Sequence[float], q: float) -> float:
    """The ``q`` quantile in ms of latencies in seconds; 0 of none."""
    seen = sorted(latencies)
    return 1000 * seen[min(len(seen) - 1, int(q * len(seen)))] if seen else 0.0


class Lookups:
    """``with Lookups(db, isolation) as lookups: …`` looks up one row of a view 20 times a second.

    The rate does not slow down when answers do: a latency counts from the moment at which the lookup was due, so a
    lookup that had to wait for the one before it says so.
    """

    def __init__(self, db: eddyline.Connection, isolation: str, per_second: float = _PER_SECOND) -> None:
        self.isolation = isolation
        self._per_second = per_second
        self.latencies: list[float] = []
        self.failure: Exception | None = None
        self._session = db.session()
        self._session.execute(f"SET transaction_isolation = '{isolation}'")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lookups:{isolation}")

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._session.close()

    def _run(self) -> None:
        due = time.perf_counter()
        number = 0
        while not self._stop.wait(max(0.0, due - time.perf_counter())):
            try:
                self.read(self._session, number)
            except eddyline.Error as failure:
                self.failure = failure
                return
            self.latencies.append(time.perf_counter() - due)
            number += 1
            due += 1 / self._per_second

    def read(self, session: eddyline.Connection, number: int) -> None:
        """The one read that is measured."""
        key = [_CARRIERS[number % len(_CARRIERS)], number % 24]
        session.execute("SELECT * FROM carrier_hours WHERE carrier = $1 AND hour = $2", key).fetchall()

    def quantile_ms(self, q: float) -> float:
        """The ``q`` quantile so far, in ms; 0 before the first lookup."""
        return quantile_ms(self.latencies, q)


class AdHocReads(Lookups):
    """Aggregates of another view that nothing maintains: each is a dataflow that lives for one answer."""

    def read(self, session: eddyline.Connection, number: int) -> None:
        query = "SELECT count(*) FROM route_variety WHERE dest > $1"
        session.execute(query, [chr(ord("A") + number % 26)]).fetchall()
