"""What may be asked of a worker while it works: for metrics.  Any thread; locks are held for O(1), or O(dataflows)."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from eddyline.compute.stream import Arrangement

__all__ = ["BOUNDS_S", "Durations", "WorkerMeasures"]

#: upper ends of the buckets of ``Durations``, in seconds; one more is without end
BOUNDS_S: Final = (
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    2.5, 5.0, 10.0,
)  # fmt: skip


class Durations:
    """A histogram of durations.  ``record`` costs about a microsecond, and is all that is done until somebody looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS_S) + 1)  # guarded by _lock
        self._total_ns = 0  # guarded by _lock

    def record(self, nanoseconds: int) -> None:
        at = bisect_left(BOUNDS_S, nanoseconds / 1e9)
        with self._lock:
            self._counts[at] += 1
            self._total_ns += nanoseconds

    def seen(self) -> tuple[list[int], float]:
        """(how many in each bucket, the sum of all in seconds)."""
        with self._lock:
            return list(self._counts), self._total_ns / 1e9

    @staticmethod
    def sum_of(parts: Iterable[Durations]) -> tuple[tuple[int, ...], float]:
        """As ``seen``, of all of them."""
        counts, total = [0] * (len(BOUNDS_S) + 1), 0.0
        for part in parts:
            found, seconds = part.seen()
            counts = [a + b for a, b in zip(counts, found, strict=True)]
            total += seconds
        return tuple(counts), total


class WorkerMeasures:
    """``activations``: how long each activation took."""

    def __init__(self) -> None:
        self.activations = Durations()
        self._lock = threading.Lock()
        self._arrangements: dict[int, Sequence[Arrangement]] = {}  # by dataflow; guarded by _lock
        self._built = self._retained = 0  # guarded by _lock

    def count(self, *, built: int = 0, retained: int = 0) -> None:
        """Maintained dataflows that were built, or that went on under a new connection."""
        with self._lock:
            self._built += built
            self._retained += retained

    def counted(self) -> tuple[int, int]:
        """(built, retained) so far."""
        with self._lock:
            return self._built, self._retained

    def rendered(self, number: int, arrangements: Sequence[Arrangement]) -> None:
        with self._lock:
            self._arrangements[number] = arrangements

    def dropped(self, number: int) -> None:
        with self._lock:
            self._arrangements.pop(number, None)

    def bytes_in_runs(self) -> int:
        """Of the arrangements of all live dataflows; one that several read counts once."""
        with self._lock:
            arrangements = [a for each in self._arrangements.values() for a in each]
        return sum(a.oks.bytes + a.errs.bytes for a in arrangements)
