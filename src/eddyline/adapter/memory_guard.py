"""What keeps the process below its memory limit: new work is refused first, then the largest work under way is stopped.

The kernel ends a process that takes more than there is, and every session with it.  Before that, past nine tenths of
``server_memory_limit`` whatever needs memory is refused with 53200, and past the limit itself what holds most is
stopped, one after the other, each when the last has had the time to give back what it had.  Reading by key, DELETE,
DROP, and what a session says of itself go on: they are the way out.

Invariants:
I1  statements are stopped only between ``begun`` and ``ended``, so that one that is done keeps its answer;
I2  nothing is stopped while the memory in use, free pages given back, is within the limit;
I3  a build that is stopped changes no answer: without its index or view it is computed when it is read.

Owner of the thread ``memory-guard``, which calls ``look``; everything else is for any thread.  Lock: ``_lock``, the
innermost, never held while something is stopped.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from eddyline.adapter.memory_use import anonymous_bytes
from eddyline.compute.give_back import give_back
from eddyline.errors import DatabaseError, Error, make_error

__all__ = ["MemoryGuard", "Relief", "Stoppable"]

_log = logging.getLogger("eddyline.memory")
#: the fastest that a process is expected to grow, by which the time until the next look is chosen
_GROWTH_BYTES_S: Final = 4e9
_LONGEST_S: Final = 0.5
_SHORTEST_S: Final = 0.01
#: what was stopped has so long to give back what it held before something else is stopped
_RELIEF_S: Final = 0.25
_TRIM_EVERY_S: Final = 5.0
#: what holds less than this part of the limit is not worth stopping for its size
_WORTHWHILE: Final = 32
#: a statement of which nobody knows the size is not to blame before it has lasted so long
_GROWN_S: Final = 0.1


class Stoppable(Protocol):
    """A statement under way."""

    @property
    def reading(self) -> str | None:
        """The dataflow whose answer it waits for."""

    def stop(self, failure: DatabaseError) -> None:
        """It fails with that, soon."""


class Relief(Protocol):
    """The database, as the guard asks it."""

    def weigh_dataflows(self, *, on: bool) -> None:
        """Whether dataflows are to report what they hold."""

    def held_bytes(self) -> Mapping[str, int]:
        """What they have reported, by the id of what they export."""

    def builds_under_way(self) -> Sequence[str]:
        """Ids of indexes and materialized views without their first state, newest first."""

    def stop_build(self, id: str, why: DatabaseError) -> None:
        """The index or view is kept fresh no longer, nor is what is built on it; who waits for them gets ``why``."""


class MemoryGuard:
    """Without ``watch``, or with a limit of None, nothing is refused or stopped.

    ``used``: bytes of the process that cannot be dropped.  ``trim`` gives free pages back.  Without ``threads`` the
    caller looks.
    """

    def __init__(
        self,
        relief: Relief,
        *,
        used: Callable[[], int] = anonymous_bytes,
        trim: Callable[[], None] = give_back,
        clock: Callable[[], float] = time.monotonic,
        threads: bool = True,
    ) -> None:
        self._threads = threads
        self._relief = relief
        self._used = used
        self._trim = trim
        self._clock = clock
        self._lock = threading.Lock()
        self._limit: int | None = None  # guarded by _lock, like the next three
        self._refusal: tuple[int, int] | None = None  # (bytes in use, limit)
        self._statements: dict[Stoppable, float] = {}  # when they began, oldest first
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()
        self._closed = threading.Event()
        # Of the thread alone:
        self._stopped: Stoppable | None = None
        self._patient_until = 0.0
        self._trim_at = 0.0
        self._helpless = False

    # -- for sessions ---------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """53200 while too little memory is left for new work.  O(1)."""
        with self._lock:
            refusal = self._refusal
        if refusal is not None:
            raise make_error("53200", f"the server is short of memory: {_in_use(*refusal)}", hint=_HINT)

    @contextmanager
    def under_way(self, statement: Stoppable) -> Iterator[None]:
        """While a statement runs that may be stopped."""
        with self._lock:
            self._statements[statement] = self._clock()
        try:
            yield
        finally:
            with self._lock:
                del self._statements[statement]

    # -- life -----------------------------------------------------------------------------------------------------

    def watch(self, limit: int | None) -> None:
        """The limit from now on, in bytes; None: none."""
        refusal: RuntimeError | None = None
        with self._lock:
            self._limit = limit
            if limit is not None and self._thread is None and self._threads and not self._closed.is_set():
                thread = threading.Thread(target=self._run, name="memory-guard", daemon=True)
                try:
                    thread.start()
                    self._thread = thread
                except RuntimeError as problem:  # the system has none left: the next call tries again
                    refusal = problem
        self._changed.set()
        if refusal is not None:
            _log.error("memory in use is not watched until server_memory_limit is set again: %s", refusal)

    def close(self) -> None:
        """Ends the thread.  Twice is harmless."""
        with self._lock:
            self._closed.set()
            thread = self._thread
        self._changed.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        failing = False
        while not self._closed.is_set():
            self._changed.clear()
            pause: float | None = _LONGEST_S
            try:
                pause = self.look()
                failing = False
            except Exception as problem:  # noqa: BLE001 - whatever it was: nobody else keeps the process within its limit
                # That the database closes, nobody answers, or the system has no file to say it in, passes.
                level, odd = logging.DEBUG if failing else logging.WARNING, not isinstance(problem, (Error, OSError))
                _log.log(level, "memory in use could not be looked at, or brought down: %s", problem, exc_info=odd)
                failing = True
            self._changed.wait(pause)

    # -- looking --------------------------------------------------------------------------------------------------

    def look(self) -> float | None:
        """One look, with what follows from it; seconds until the next one, None where there is no limit."""
        with self._lock:
            limit = self._limit
        if limit is None:
            self._refuse(None)
            return None
        used, refused_from = self._used(), limit - limit // 10
        now = self._clock()
        if used > refused_from and now >= self._trim_at:
            self._trim()
            self._trim_at = now + _TRIM_EVERY_S
            used = self._used()
        newly = self._refuse((used, limit) if used > refused_from else None)
        if used <= limit:
            self._helpless = False
        elif not newly:  # else nobody had the time to say what it holds
            self._stop_largest(used, limit, now)
        if used > refused_from:
            return _SHORTEST_S
        return min(_LONGEST_S, max(_SHORTEST_S, (refused_from - used) / _GROWTH_BYTES_S))

    def _refuse(self, refusal: tuple[int, int] | None) -> bool:
        """Whether that is news, and no good ones."""
        with self._lock:
            before, self._refusal = self._refusal, refusal
        if (before is None) == (refusal is None):
            return False
        self._relief.weigh_dataflows(on=refusal is not None)
        if refusal is None:
            _log.info("memory in use is down: statements that need memory are let in again")
            return False
        _log.warning("statements that need memory are refused: %s", _in_use(*refusal))
        return True

    def _stop_largest(self, used: int, limit: int, now: float) -> None:
        with self._lock:
            begun = dict(self._statements)
        statements = list(begun)
        if self._stopped is not None and self._stopped not in statements:
            self._stopped, self._trim_at = None, now  # what it held is free: given back, and looked at, first
            return
        if now < self._patient_until:
            return
        held, worthwhile = self._relief.held_bytes(), limit // _WORTHWHILE
        builds = self._relief.builds_under_way()
        weights: list[tuple[int, Stoppable | str]] = [(held.get(s.reading or "", 0), s) for s in statements]
        weights += [(held.get(b, 0), b) for b in builds]
        large = [w for w in weights if w[0] >= worthwhile]
        # Small ones are not to blame, but one whose size nobody knows may be: the one that began last.
        grown = [s for s in reversed(statements) if begun[s] <= now - _GROWN_S]
        newest: Sequence[Stoppable | str] = (*grown, *builds)
        victim = max(large, key=lambda w: w[0])[1] if large else next(iter(newest), None)
        if victim is None:
            if not self._helpless:
                self._helpless = True
                _log.error("there is nothing to stop: %s", _in_use(used, limit))
            return
        self._stop(victim, used, limit)
        self._patient_until, self._trim_at = now + _RELIEF_S, now + _RELIEF_S

    def _stop(self, victim: Stoppable | str, used: int, limit: int) -> None:
        if isinstance(victim, str):
            _log.error("the build of %s is stopped: %s", victim, _in_use(used, limit))
            self._relief.stop_build(
                victim, make_error("53200", f"the build was stopped: {_in_use(used, limit)}", hint=_HINT)
            )
            return
        _log.warning("a statement is stopped: %s", _in_use(used, limit))
        self._stopped = victim
        victim.stop(make_error("53200", f"the statement was stopped: {_in_use(used, limit)}", hint=_HINT))


def _in_use(used: int, limit: int) -> str:
    return f"{used >> 20} MB are in use, and server_memory_limit is {limit >> 20} MB"


_HINT: Final = (
    "Read or write less at once, drop or delete what is not needed, or raise server_memory_limit (ALTER SYSTEM SET)."
)
