"""How long other threads keep a thread waiting that only wants to run for a moment: the GIL budget's measure.

A *beat* sleeps 1 ms and notes how late it woke.  Late beats have two causes: a call that holds the GIL, and a machine
that is busy with other things.  The second is measured as well: a process of its own beats at the same time and does
nothing else.  Run as a program, this file is that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["Heartbeat", "Lateness"]

_BEAT_S = 0.001


@dataclass(frozen=True, slots=True)
class Lateness:
    """The latest beats in ms, latest first, and how many beats there were."""

    latest_ms: tuple[float, ...]
    beats: int

    @property
    def worst_ms(self) -> float:
        return self.latest_ms[0] if self.latest_ms else 0.0

    def beyond_ms(self, share: float) -> float:
        """The lateness that no more than ``share`` of the beats exceed (share <= 0.01)."""
        index = int(share * self.beats)
        return self.latest_ms[min(index, len(self.latest_ms) - 1)] if self.latest_ms else 0.0


def _beat(stopped: Callable[[], bool]) -> list[float]:
    late: list[float] = []
    while not stopped():
        due = time.perf_counter() + _BEAT_S
        time.sleep(_BEAT_S)
        late.append(1000 * (time.perf_counter() - due))
    return late


def _summary(late: Sequence[float]) -> Lateness:
    return Lateness(tuple(sorted(late, reverse=True)[: len(late) // 100 + 1]), len(late))


class Heartbeat:
    """``with Heartbeat() as heart: …``; afterwards ``here`` and ``elsewhere`` (the idle process) are set."""

    def __init__(self) -> None:
        self.here = Lateness((), 0)
        self.elsewhere = Lateness((), 0)
        self._stop = threading.Event()
        self._late: list[float] = []
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._idle = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._idle.stdout is not None
        self._idle.stdout.readline()  # it beats from here on
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        output, _err = self._idle.communicate("")
        self.here = _summary(self._late)
        self.elsewhere = _summary(json.loads(output))

    def _run(self) -> None:
        self._late = _beat(self._stop.is_set)


def _main() -> None:
    stop = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    sys.stdout.write("beating\n")
    sys.stdout.flush()
    json.dump(_beat(stop.is_set), sys.stdout)


if __name__ == "__main__":
    _main()
