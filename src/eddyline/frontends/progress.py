"""Progress of what takes long, as one line that is written over on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

__all__ = ["CompilationProgress", "HydrationProgress"]

_EVERY_SECONDS = 0.2
_PATIENCE_SECONDS = 1.0


class CompilationProgress:
    """Of kernels being compiled: silent for a second, then it says what goes on."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started + _PATIENCE_SECONDS
        self._wrote = False

    def update(self, done: int, total: int) -> None:
        """``done`` of ``total`` are compiled.  A line at a time: a few on a terminal, else the first and last."""
        now = time.monotonic()
        last = done == total
        if now < self._next and not (last and self._wrote):
            return
        terminal = sys.stderr.isatty()
        if terminal or last or not self._wrote:
            line = f"eddyline: compiling kernels, once for this machine: {done} of {total}, {now - self._started:.0f} s"
            sys.stderr.write(f"\r{line}" if terminal and not last else f"\r{line}\n" if terminal else f"{line}\n")
            sys.stderr.flush()
        self._wrote = True
        self._next = now + _EVERY_SECONDS


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
