"""Latencies of one stream of reads, and what may be said of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Breakdown", "Samples"]

_TENFOLD = 10


@dataclass(frozen=True)
class Breakdown:
    """Of some reads: how many, their mean time, and the mean time of each part, in ms."""

    reads: int
    mean_ms: float
    parts_ms: Mapping[str, float]


@dataclass
class Samples:
    """Milliseconds, read by read: from the intended start to the actual one, and from there to the answer.

    ``parts``: where that time went, as ``anatomy`` has it.
    ``unanswered``: ages of reads that had not begun when the window ended.
    """

    queued_ms: list[float] = field(default_factory=list)
    served_ms: list[float] = field(default_factory=list)
    unanswered_ms: list[float] = field(default_factory=list)
    parts: list[Mapping[str, float]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, queued_ms: float, served_ms: float, parts: Mapping[str, float]) -> None:
        """One answered read.  Any thread."""
        with self._lock:
            self.queued_ms.append(queued_ms)
            self.served_ms.append(served_ms)
            self.parts.append(parts)

    def __len__(self) -> int:
        return len(self.served_ms) + len(self.unanswered_ms)

    def _answered_ms(self) -> np.ndarray:
        return np.array([q + s for q, s in zip(self.queued_ms, self.served_ms, strict=True)])

    def _all_ms(self) -> np.ndarray:
        return np.concatenate([self._answered_ms(), np.array(self.unanswered_ms)])

    def _enough(self, q: float) -> bool:
        return len(self) * (1 - q) >= _TENFOLD - 1e-6

    def quantile_ms(self, q: float) -> float | None:
        """From the intended start; None with fewer than 10 / (1 - q) samples.  At least so much if reads were left
        unanswered."""
        return float(np.quantile(self._all_ms(), q)) if self._enough(q) else None

    def queued_quantile_ms(self, q: float) -> float | None:
        """The wait before the start alone."""
        return float(np.quantile(np.array(self.queued_ms + self.unanswered_ms), q)) if self._enough(q) else None

    @property
    def worst_ms(self) -> float:
        return float(self._all_ms().max()) if len(self) else 0.0

    def between(self, low: float, high: float) -> Breakdown | None:
        """Where the time went of the answered reads between two quantiles of the answered ones, both included; of the
        slowest one for (1, 1).  None without any."""
        if not self.served_ms:
            return None
        total = self._answered_ms()
        bounds = np.quantile(total, [low, high])
        chosen = np.flatnonzero((total >= bounds[0]) & (total <= bounds[1]))
        if not len(chosen):
            return None  # no read is just so slow
        return Breakdown(len(chosen), float(total[chosen].mean()), _means([self.parts[i] for i in chosen]))

    def merged(self, other: Samples) -> Samples:
        return Samples(
            self.queued_ms + other.queued_ms,
            self.served_ms + other.served_ms,
            self.unanswered_ms + other.unanswered_ms,
            self.parts + other.parts,
        )


def _means(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in parts for name in each)
    return {name: sum(each.get(name, 0.0) for each in parts) / len(parts) for name in names}
