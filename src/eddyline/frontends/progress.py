"""Progress of a hydration, as one line that is written over on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

__all__ = ["HydrationProgress"]

_EVERY_SECONDS = 0.2


class HydrationProgress:
    """``update(rows)`` may be called often; it writes at most a few times a second, and nothing unless enabled."""

    def __init__(self, name: str, *, enabled: bool) -> None:
        self._name = name
        self._enabled = enabled
        self._started = time.monotonic()
        self._next = self._started
        self._wrote = False

    def __enter__(self) -> HydrationProgress:
        return self

    def update(self, rows: int) -> None:
        """``rows``: updates that the object holds so far."""
        now = time.monotonic()
        if self._enabled and now >= self._next:
            self._next = now + _EVERY_SECONDS
            self._write(f"hydrating {self._name}: {rows:,} rows, {now - self._started:.1f} s")

    def _write(self, line: str) -> None:
        terminal = sys.stderr.isatty()
        sys.stderr.write(f"\r{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        self._wrote = terminal

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled and error is None:
            self._write(f"hydrated {self._name} in {time.monotonic() - self._started:.1f} s")
        if self._wrote:
            sys.stderr.write("\n")
