"""How long the interpreter's lock is held, as a thread sees it that only wants to run for a moment.

A sample sleeps 20 ms and notes how late it ran.  It was late because a call held the lock, or because the machine had
other things to do: the samples are an upper bound of the first.  A hold is met with the chance that its length is of
20 ms, so that long ones are seen and short ones are counted in proportion.
"""

from __future__ import annotations

import logging
import threading
import time

from eddyline.compute.measures import Durations

__all__ = ["GilSampler"]

_log = logging.getLogger("eddyline.process")

_EVERY_S = 0.02


class GilSampler:
    """Off until ``run`` says otherwise; any thread.  Cost: 50 wake-ups a second."""

    def __init__(self, found: Durations) -> None:
        self._found = found
        self._lock = threading.Lock()
        self._stop: threading.Event | None = None  # guarded by _lock; set ends the thread

    def run(self, *, on: bool) -> None:
        """Starts or stops sampling; what it is already is left alone.  That no thread can be started is logged."""
        with self._lock:
            if on == (self._stop is not None):
                return
            if self._stop is not None:
                self._stop.set()
                self._stop = None
                return
            stop = threading.Event()
            thread = threading.Thread(target=self._sample, args=(stop,), name="eddyline-gil", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has none left
                refusal = error
            else:
                self._stop = stop
                return
        _log.warning("holds of the interpreter's lock are not sampled: %s", refusal)

    def _sample(self, stop: threading.Event) -> None:
        while not stop.is_set():
            due = time.perf_counter_ns() + int(_EVERY_S * 1e9)
            time.sleep(_EVERY_S)  # an event's wait would take the lock several times
            self._found.record(max(0, time.perf_counter_ns() - due))
