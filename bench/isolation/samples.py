"""Latencies of one stream of reads, and what may be said of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Samples"]

_TENFOLD = 10


@dataclass
class Samples:
    """Milliseconds, read by read: from the intended start to the actual one, and from there to the answer.

    ``unanswered``: ages of reads that had not begun when the window ended.
    """

    queued_ms: list[float] = field(default_factory=list)
    served_ms: list[float] = field(default_factory=list)
    unanswered_ms: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, queued_ms: float, served_ms: float) -> None:
        """One answered read.  Any thread."""
        with self._lock:
            self.queued_ms.append(queued_ms)
            self.served_ms.append(served_ms)

    def __len__(self) -> int:
        return len(self.served_ms) + len(self.unanswered_ms)

    def _all_ms(self) -> np.ndarray:
        return np.array([q + s for q, s in zip(self.queued_ms, self.served_ms, strict=True)] + self.unanswered_ms)

    def quantile_ms(self, q: float) -> float | None:
        """From the intended start; None with fewer than 10 / (1 - q) samples.  At least so much if reads were left
        unanswered."""
        return float(np.quantile(self._all_ms(), q)) if len(self) * (1 - q) >= _TENFOLD - 1e-6 else None

    def queued_quantile_ms(self, q: float) -> float | None:
        """The wait before the start alone."""
        enough = len(self) * (1 - q) >= _TENFOLD - 1e-6
        return float(np.quantile(np.array(self.queued_ms + self.unanswered_ms), q)) if enough else None

    @property
    def worst_ms(self) -> float:
        return float(self._all_ms().max()) if len(self) else 0.0

    def merged(self, other: Samples) -> Samples:
        return Samples(
            self.queued_ms + other.queued_ms,
            self.served_ms + other.served_ms,
            self.unanswered_ms + other.unanswered_ms,
        )
