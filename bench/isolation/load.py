"""Open loops of reads, and closed loops of what they are to be isolated from."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import eddyline
from bench.isolation.samples import Samples

__all__ = ["Stream", "beside", "capacity", "hogs", "lower_to_share", "run_streams"]

#: at most this share of what the streams could do one after the other
_LOAD = 0.3
_CLIENTS = 4

Body = Callable[[int], object]


@dataclass
class Stream:
    """``per_s`` reads a second by a few clients; ``body`` gets a session and gives what one read does.

    ``name``: of its threads, too.
    """

    name: str
    per_s: float
    body: Callable[[eddyline.Connection], Body]
    clients: int = _CLIENTS
    samples: Samples = field(default_factory=Samples)


class _Arrivals:
    """Numbers of reads in order, each to one client, until none is due before the window ends."""

    def __init__(self, per_s: float, for_s: float) -> None:
        self._lock = threading.Lock()
        self._taken = 0  # guarded by _lock
        self._per_s = per_s
        self._begun = time.perf_counter()
        self.end = self._begun + for_s

    def next(self) -> tuple[int, float] | None:
        """The number of the next read and when it is due; None at the end."""
        with self._lock:
            number, due = self._taken, self._begun + self._taken / self._per_s
            if due >= self.end or time.perf_counter() >= self.end:
                return None
            self._taken += 1
        return number, due

    def left_ms(self) -> list[float]:
        """Ages, at the end of the window, of what was due and nobody took."""
        with self._lock:
            number, ages = self._taken, list[float]()
        while (due := self._begun + number / self._per_s) < self.end:
            ages.append((self.end - due) * 1e3)
            number += 1
        return ages


def run_streams(db: eddyline.Connection, streams: Sequence[Stream], for_s: float) -> dict[str, Samples]:
    """All streams at once for ``for_s`` seconds; the samples by name.  Whatever a read raises is raised here."""
    failures: list[Exception] = []
    with ExitStack() as stack:
        prepared = []
        for stream in streams:
            bodies = [stream.body(stack.enter_context(db.session())) for _ in range(stream.clients)]
            prepared.append((stream, bodies, Samples()))
        running = [
            (samples, _Arrivals(stream.per_s, for_s), stream.name, bodies) for stream, bodies, samples in prepared
        ]
        threads = [
            threading.Thread(target=_serve, args=(arrivals, body, samples, failures), name=name)
            for samples, arrivals, name, bodies in running
            for body in bodies
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    for samples, arrivals, _name, _bodies in running:
        samples.unanswered_ms += arrivals.left_ms()
    return {name: samples for samples, _arrivals, name, _bodies in running}


def _serve(arrivals: _Arrivals, body: Body, samples: Samples, failures: list[Exception]) -> None:
    try:
        while (arrival := arrivals.next()) is not None:
            number, due = arrival
            time.sleep(max(0.0, due - time.perf_counter()))
            start = time.perf_counter()
            body(number)
            end = time.perf_counter()
            samples.add((start - due) * 1e3, (end - start) * 1e3)
    except Exception as failure:  # noqa: BLE001 - raised again by the caller's thread
        failures.append(failure)


def capacity(db: eddyline.Connection, stream: Stream, for_s: float) -> float:
    """How many reads of the stream one client gets answered a second, one after the other."""
    counts: list[float] = []

    def loop() -> None:
        with db.session() as session:
            body = stream.body(session)
            for n in range(20):
                body(n)
            begun, done = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - begun) < for_s:
                body(done)
                done += 1
            counts.append(done / elapsed)

    thread = threading.Thread(target=loop, name=stream.name)
    thread.start()
    thread.join()
    return counts[0]


def lower_to_share(streams: Sequence[Stream], capacities: Sequence[float]) -> None:
    """Lowers all rates by one factor if together they are more than ``_LOAD`` of the capacity."""
    load = sum(s.per_s / c for s, c in zip(streams, capacities, strict=True))
    if load > _LOAD:
        for stream in streams:
            stream.per_s *= _LOAD / load


@contextmanager
def beside(bodies: Sequence[Callable[[threading.Event], None]], *, name: str = "beside") -> Iterator[None]:
    """Runs each body on a thread of its own meanwhile; they end when the event is set."""
    stop, failures = threading.Event(), list[Exception]()

    def guarded(body: Callable[[threading.Event], None]) -> None:
        try:
            body(stop)
        except Exception as failure:  # noqa: BLE001 - raised again at the end
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(body,), name=name) for body in bodies]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Other processes that compute without end meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-I", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
