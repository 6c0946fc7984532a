"""Replaces a replica that has failed, on a thread of its own, as often as it takes."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from eddyline.errors import Error, make_error

__all__ = ["Recovery"]

_log = logging.getLogger("eddyline.engine")
#: tries within a minute that come at once; the next ones wait, twice as long each time
_TRIES_PER_MINUTE: Final = 5
_LONGEST_PAUSE_SECONDS: Final = 10.0

_Replica = TypeVar("_Replica")


class Recovery(Generic[_Replica]):
    """``replace`` puts another replica in the place of the one it is given, or raises; ``refused`` is told why then,
    and it is tried again.  Both are called on the thread, without locks.

    Lock: ``_lock``, taken last, and nothing is called under it but the start of the thread.
    """

    def __init__(self, replace: Callable[[_Replica], None], refused: Callable[[Error], None]) -> None:
        self._replace = replace
        self._refused = refused
        self._lock = threading.Lock()
        self._failed: _Replica | None = None  # what is to be replaced; guarded by _lock, like the next one
        self._attended = False  # whether the thread runs
        self._ending = threading.Event()
        self._tries: deque[float] = deque()  # of the thread

    def begin(self, failed: _Replica) -> Error | None:
        """``failed`` is to be replaced.  Gives what ``attend`` gives."""
        with self._lock:
            self._failed = failed
        return self.attend()

    def attend(self) -> Error | None:
        """Sees to it that the thread runs where something is to be replaced; 58000 if the system has none for it."""
        with self._lock:
            if self._attended or self._failed is None or self._ending.is_set():
                return None
            thread = threading.Thread(target=self._run, name="eddyline-rebuild", daemon=True)
            try:
                thread.start()
                self._attended = True
            except RuntimeError as error:
                refusal = error
            else:
                return None
        _log.error("the replica failed, and nobody rebuilds it: %s", refusal)
        return make_error(
            "58000",
            f"the replica failed, and no thread can be started that rebuilds it: {refusal}",
            hint="Each statement tries again. Let other threads of the program end, or raise ulimit -u.",
        )

    def attended(self) -> bool:
        """Whether somebody is at it, or there is nothing to do."""
        with self._lock:
            return self._attended or self._failed is None

    def end(self) -> None:
        """No further try; does not wait for one that is under way."""
        self._ending.set()

    def _run(self) -> None:
        while (failed := self._next()) is not None:
            try:
                self._replace(failed)
            except Exception as error:  # noqa: BLE001 - statements wait for it: whatever it was, it is tried again
                if not self._ending.is_set():  # or it was its end that was in the way
                    _log.error("the replica does not come up: %s", error, exc_info=not isinstance(error, Error))
                    self._refused(_does_not_come_up(error))
                continue
            with self._lock:
                if self._failed is failed:
                    self._failed = None

    def _next(self) -> _Replica | None:
        """What is to be replaced, once its pause is over; None ends the thread."""
        with self._lock:
            if self._failed is None:
                self._attended = False
                return None
        over = self._ending.wait(self._pause())
        with self._lock:
            self._attended = not over
            return None if over else self._failed

    def _pause(self) -> float:
        """Seconds; counts one more try."""
        now = time.monotonic()
        self._tries.append(now)
        while self._tries[0] < now - 60:
            self._tries.popleft()
        over = len(self._tries) - _TRIES_PER_MINUTE
        return 0.0 if over <= 0 else min(2.0 ** (over - 1), _LONGEST_PAUSE_SECONDS)


def _does_not_come_up(error: Exception) -> Error:
    what = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, Error) else None
    return make_error(
        "58000",
        f"the replica failed and does not come up: {what}",
        hint=hint or "It is tried again, after 10 s at most; the log has the whole error.",
    )
