"""Point lookups from a second session while the flights stream in, with their latencies."""

from __future__ import annotations

import threading
import time

import eddyline

__all__ = ["Lookups"]

_PER_SECOND = 200
_CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "WN")


class Lookups:
    """``with Lookups(db) as lookups: …`` runs lookups at a fixed rate; latency counts from the intended start."""

    def __init__(self, db: eddyline.Connection) -> None:
        self._session = db.session()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-lookups")
        self.latencies: list[float] = []
        self.failure: Exception | None = None

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._session.close()

    def _run(self) -> None:
        intended = time.perf_counter()
        number = 0
        while not self._stop.is_set():
            key = [_CARRIERS[number % len(_CARRIERS)], number % 24]
            try:
                self._session.execute("SELECT * FROM carrier_hours WHERE carrier = $1 AND hour = $2", key).fetchall()
            except eddyline.Error as failure:
                self.failure = failure
                return
            self.latencies.append(time.perf_counter() - intended)
            number += 1
            intended += 1 / _PER_SECOND
            pause = intended - time.perf_counter()
            if pause > 0:
                self._stop.wait(pause)

    def quantile_ms(self, q: float) -> float:
        """The ``q`` quantile so far, in ms; 0 before the first lookup."""
        seen = sorted(self.latencies)
        return 1000 * seen[min(len(seen) - 1, int(q * len(seen)))] if seen else 0.0
