"""COPY FROM STDIN: the statement runs on a thread of its own and reads what the client sends, as it comes.

The engine reads from an iterator; the client sends when it likes.  Between them is a bounded queue: whoever puts waits
for the engine, never for the client, so that a slow client occupies this thread and no other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from eddyline.adapter.outcome import Outcome
from eddyline.adapter.read import Interrupt
from eddyline.errors import Error, make_error

__all__ = ["CopyIn"]

_MOST_BYTES: Final = 4 << 20


class CopyIn:
    """``run``: executes the statement over the pieces of data; its outcome or its error is ``finish``'s.

    ``interrupt``: of the statement, asked for on its thread; it ends between pieces, and while it waits for them.  One
    thread feeds, finishes or gives up; another runs.  53000 if the system has no thread for it.
    """

    def __init__(self, run: Callable[[Iterator[bytes]], Outcome], interrupt: Callable[[], Interrupt]) -> None:
        self._interrupt = interrupt
        self._changed = threading.Condition()
        self._pieces: deque[bytes] = deque()  # guarded by _changed, like the rest
        self._bytes = 0
        self._complete = False
        self._reason: Error | None = None  # why no more data come
        self._outcome: Outcome | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(run,), name="eddyline-copy-in", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as problem:
            hint = "Try again when other statements have ended, or raise the limit (ulimit -u)."
            raise make_error("53000", f"no thread can be started for the COPY: {problem}", hint=hint) from problem

    def _run(self, run: Callable[[Iterator[bytes]], Outcome]) -> None:
        outcome, failure = None, None
        try:
            outcome = run(self._given())
        except BaseException as problem:  # noqa: BLE001 - it is raised where the client is answered
            failure = problem
        with self._changed:
            self._outcome, self._failure = outcome, failure
            if outcome is None and failure is None:
                self._failure = make_error("XX000", "COPY ended without an outcome")
            self._pieces.clear()
            self._changed.notify_all()

    def _given(self) -> Iterator[bytes]:
        interrupt = self._interrupt()
        while True:
            with interrupt.waking(self._look_again), self._changed:
                self._changed.wait_for(lambda: self._has_news() or interrupt.expired(), interrupt.remaining_s())
                if self._reason is not None:
                    raise self._reason
                piece = self._pieces.popleft() if self._pieces else None
                if piece is not None:
                    self._bytes -= len(piece)
                    self._changed.notify_all()
                over = piece is None and self._complete
            interrupt.check()
            if over:
                return
            if piece is not None:
                yield piece

    def _look_again(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _has_news(self) -> bool:
        return bool(self._pieces) or self._complete or self._reason is not None

    def _over(self) -> bool:
        return self._outcome is not None or self._failure is not None

    def feed(self, data: bytes) -> None:
        """Raises what the statement has failed with, if it has."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes <= _MOST_BYTES or self._over())
            if self._failure is not None:
                raise self._failure
            if self._outcome is None:  # what comes after an end-of-copy marker is not looked at
                self._pieces.append(data)
                self._bytes += len(data)
                self._changed.notify_all()

    def finish(self) -> Outcome:
        """There are no more data; waits for the statement's end."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._outcome is not None
        return self._outcome

    def interrupt(self, reason: Error) -> None:
        """From any thread: makes the statement fail with ``reason``, unless it has ended."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def give_up(self, reason: Error) -> None:
        """As ``interrupt``; waits for the statement's end."""
        self.interrupt(reason)
        self._thread.join()
