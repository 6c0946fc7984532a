"""Open loops of reads, and closed loops of what they are to be isolated from."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.isolation.anatomy import Probe
from bench.isolation.samples import Samples
from bench.isolation.sessions import Database

__all__ = [
    "LOAD",
    "Stream",
    "Window",
    "beside",
    "capacity",
    "hogs",
    "lower_to_share",
    "measured_rates",
    "run_streams",
    "settle",
]

#: the share of what the streams could do one after the other
LOAD = 0.3
_CLIENTS = 4
#: samples that a p99 wants, and a few more
_SAMPLES = 1_020
#: beyond it a stream with too few samples for a p99 goes without
_LONGEST_S = 100.0
#: a database that uses less than this share of a core has nothing left to do
_QUIET = 0.05
_QUIET_S = 0.3
_SETTLING_S = 15.0

Body = Callable[[int], object]


@dataclass
class Stream:
    """``per_s`` reads a second by a few clients; ``body`` gets a session and gives what one read does.

    ``name``: of its threads, too.
    """

    name: str
    per_s: float
    body: Callable[[Any], Body]
    clients: int = _CLIENTS
    samples: Samples = field(default_factory=Samples)


@dataclass(frozen=True)
class Window:
    """Seconds of one measurement; ``stretch``: longer if a p99 needs it."""

    for_s: float
    stretch: bool

    def of(self, slowest_per_s: float) -> float:
        if not self.stretch:
            return self.for_s
        return min(_LONGEST_S, max(self.for_s, _SAMPLES / slowest_per_s))


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


def run_streams(db: Database, streams: Sequence[Stream], for_s: float) -> dict[str, Samples]:
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
    probe = Probe.of_this_thread()
    try:
        while (arrival := arrivals.next()) is not None:
            number, due = arrival
            probe.wait()
            time.sleep(max(0.0, due - time.perf_counter()))
            start = time.perf_counter()
            probe.begin()
            body(number)
            end = time.perf_counter()
            samples.add((start - due) * 1e3, (end - start) * 1e3, probe.end(int(due * 1e9)))
    except Exception as failure:  # noqa: BLE001 - raised again by the caller's thread
        failures.append(failure)
    finally:
        probe.close()


@contextmanager
def _measured(body: Body) -> Iterator[Body]:
    """``body``, measured as a read of an open loop is: a capacity without that would be one that no stream has."""
    probe = Probe.of_this_thread()

    def read(number: int) -> object:
        probe.wait()
        probe.begin()
        answer = body(number)
        probe.end(time.perf_counter_ns())
        return answer

    try:
        yield read
    finally:
        probe.close()


def capacity(db: Database, stream: Stream, for_s: float) -> float:
    """How many reads of the stream one client gets answered a second, one after the other."""
    counts: list[float] = []

    def loop() -> None:
        with db.session() as session, _measured(stream.body(session)) as body:
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
    """Lowers all rates by one factor if together they are more than ``LOAD`` of the capacity."""
    load = sum(s.per_s / c for s, c in zip(streams, capacities, strict=True))
    if load > LOAD:
        for stream in streams:
            stream.per_s *= LOAD / load


def measured_rates(db: Database, streams: Sequence[Stream], for_s: float) -> dict[str, float]:
    """Rates at which each stream asks for ``LOAD`` of what it gets when the clients of all of them ask without pause,
    beside whatever else goes on; reads/s by name."""
    counts = {stream.name: 0 for stream in streams}
    lock = threading.Lock()

    def ask(stream: Stream, stop: threading.Event) -> None:
        with db.session() as session, _measured(stream.body(session)) as body:
            n = 0
            while not stop.is_set():
                body(n)
                n += 1
                with lock:
                    counts[stream.name] += 1

    with ExitStack() as stack:
        for stream in streams:
            bodies = [functools.partial(ask, stream)] * stream.clients
            stack.enter_context(beside(bodies, name=stream.name))
        with lock:
            before, begun = dict(counts), time.perf_counter()
        time.sleep(for_s)
        with lock:
            after, took = dict(counts), time.perf_counter() - begun
    return {name: max(1.0, LOAD * (after[name] - before[name]) / took) for name in counts}


def settle() -> None:
    """Waits until what was set up before has left nothing to do, or for a quarter of a minute.

    An idle window would otherwise measure leftovers, and what is compared with it look the better for it.
    """
    end = time.perf_counter() + _SETTLING_S
    while time.perf_counter() < end:
        used, begun = time.process_time(), time.perf_counter()
        time.sleep(_QUIET_S)
        if time.process_time() - used < _QUIET * (time.perf_counter() - begun):
            return


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
