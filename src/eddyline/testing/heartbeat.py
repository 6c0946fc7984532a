"""How long other threads keep a thread waiting that only wants to run for a moment: the GIL budget's measure.

A *beat* sleeps half a millisecond and notes how late it woke.  A beat is late because a call held the GIL, or because
the machine had other things to do.  What the system counts tells one from the other (Linux): of its lateness a beat
takes off what it waited for a core itself, and nobody has held the GIL for longer than he computed meanwhile, so that a
holder who had no core does not count as one who worked.  Elsewhere all of a late beat counts as held.

Full garbage collections are the interpreter's, and are counted apart.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

__all__ = ["Heartbeat", "Held"]

_BEAT_NS = 500_000


class _Beat(NamedTuple):
    """``held_ms``: of its lateness, as long as somebody may have held the GIL for.  ``by``: the name of who computed
    most meanwhile.  ``collected``: whether the interpreter collected garbage meanwhile."""

    late_ms: float
    held_ms: float
    by: str
    collected: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What the beats found, full collections aside.

    ``longest_ms``: the longest holds in ms, longest first, with the name of the thread that computed meanwhile: one in
    a hundred beats, and one more.  ``collections_ms``: what each full collection computed.
    """

    longest_ms: tuple[tuple[float, str], ...]
    latest_ms: float
    beats: int
    collections_ms: tuple[float, ...]

    @property
    def worst_ms(self) -> float:
        return self.longest_ms[0][0] if self.longest_ms else 0.0

    @property
    def usual_ms(self) -> float:
        """What no more than one beat in a hundred was held for."""
        return self.beyond_ms(0.01)

    def beyond_ms(self, share: float) -> float:
        """What no more than ``share`` of the beats were held for (share <= 0.01)."""
        last = len(self.longest_ms) - 1
        return self.longest_ms[min(int(share * self.beats), last)][0] if self.longest_ms else 0.0

    def __str__(self) -> str:
        who = self.longest_ms[0][1] if self.longest_ms else "nobody"
        return (
            f"held for {self.worst_ms:.1f} ms at worst, by {who}, 99 % {self.usual_ms:.1f} ms, of {self.beats} beats, "
            f"the latest by {self.latest_ms:.1f} ms; full collections: {[round(ms) for ms in self.collections_ms]} ms"
        )


class Heartbeat:
    """``with Heartbeat() as heart: …``; afterwards ``heart.held`` is set."""

    def __init__(self) -> None:
        self.held = Held((), 0.0, 0, ())
        self._stop = threading.Event()
        self._beating = threading.Event()
        self._beats: list[_Beat] = []
        self._collections: list[tuple[int, float]] = []  # when it ended, what it computed in ms
        self._collecting: int | None = None  # its thread's time at the beginning, while one runs
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._collection)
        self._thread.start()
        self._beating.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        gc.callbacks.remove(self._collection)
        self.held = _summary(self._beats, [ms for _, ms in self._collections])

    def _collection(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._collecting = time.thread_time_ns()
        elif self._collecting is not None:
            spent = (time.thread_time_ns() - self._collecting) / 1e6
            self._collecting = None
            self._collections.append((time.perf_counter_ns(), spent))

    def _run(self) -> None:
        others, waits = _Computed(), _Waits()
        self._beating.set()
        while not self._stop.is_set():
            due = time.perf_counter_ns() + _BEAT_NS
            time.sleep(_BEAT_NS / 1e9)
            begun, late_ms = due - _BEAT_NS, (time.perf_counter_ns() - due) / 1e6
            computed, by = others.most_ms()
            held = max(0.0, min(late_ms - waits.new_ms(), computed))
            collected = self._collecting is not None or any(end >= begun for end, _ in self._collections[-2:])
            self._beats.append(_Beat(late_ms, held, by, collected))
        waits.close()


class _Computed:
    """How long the other Python threads of this process have computed since the last look."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, int]] = {}
        self.most_ms()

    def most_ms(self) -> tuple[float, str]:
        """Of the one that has most, with its name; without end where the system does not say."""
        own, most = threading.get_native_id(), (0.0, "nobody")
        seen: dict[int, tuple[str, int]] = {}
        for thread in threading.enumerate():
            tid = thread.native_id
            if tid is None or tid == own:
                continue
            computed = _thread_time_ns(tid)
            if computed is None:
                return float("inf"), "somebody"
            seen[tid] = (thread.name, computed)
            before = self._seen[tid][1] if tid in self._seen else 0
            most = max(most, ((computed - before) / 1e6, thread.name))
        self._seen = seen
        return most


def _thread_time_ns(tid: int) -> int | None:
    """Time of a core that a thread of this process has had; 0 once it has ended; None where that is unknown."""
    if not _COUNTED:
        return None
    try:
        return time.clock_gettime_ns((~tid << 3) | 6)  # Linux: the clock of a thread by its number
    except OSError:
        return 0


class _Waits:
    """How long this thread has waited for a core since the last look."""

    def __init__(self) -> None:
        self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY) if _COUNTED else -1
        self._before = 0
        self.new_ms()

    def new_ms(self) -> float:
        if self._file < 0:
            return 0.0
        waited = int(os.pread(self._file, 64, 0).split()[1])
        new, self._before = waited - self._before, waited
        return new / 1e6

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


_COUNTED = os.path.exists("/proc/thread-self/schedstat")


def _summary(beats: Sequence[_Beat], collections_ms: Sequence[float]) -> Held:
    own = [beat for beat in beats if not beat.collected]
    longest = sorted(((beat.held_ms, beat.by) for beat in own), reverse=True)[: len(own) // 100 + 1]
    latest = max((beat.late_ms for beat in beats), default=0.0)
    return Held(tuple(longest), latest, len(beats), tuple(collections_ms))
