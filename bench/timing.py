"""Clocks and summaries of the measurements."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Latency", "latency", "rate", "seconds"]


@dataclass(frozen=True)
class Latency:
    """Milliseconds over ``samples`` runs; ``taken``: each of them."""

    p50: float
    p99: float
    samples: int
    taken: tuple[float, ...] = ()


def latency(body: Callable[[int], None], *, samples: int, warm: int = 10, at_most_s: float = 10.0) -> Latency:
    """How long ``body(i)`` takes; the first ``warm`` runs are not counted."""
    taken: list[float] = []
    begun = time.perf_counter()
    for i in range(warm + samples):
        start = time.perf_counter()
        body(i)
        taken.append(time.perf_counter() - start)
        if i > warm and time.perf_counter() - begun > at_most_s:
            break
    counted = np.array(taken[warm:]) * 1e3
    taken_ms = tuple(round(float(ms), 3) for ms in counted)
    return Latency(float(np.median(counted)), float(np.quantile(counted, 0.99)), len(counted), taken_ms)


def rate(body: Callable[[int], None], *, for_s: float, warm: int = 100) -> float:
    """How often a second ``body(i)`` runs."""
    for i in range(warm):
        body(i)
    begun = time.perf_counter()
    done = 0
    while (elapsed := time.perf_counter() - begun) < for_s:
        body(done)
        done += 1
    return done / elapsed


def seconds(body: Callable[[], object]) -> float:
    """How long ``body`` takes, once."""
    begun = time.perf_counter()
    body()
    return time.perf_counter() - begun
