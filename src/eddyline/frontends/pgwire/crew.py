"""Threads for calls that block, for an event loop that must not.

Few threads serve many sessions: a session that has nothing to run needs none.  But sessions wait for one another: a
statement may wait for rows that another session's transaction has locked, whose COMMIT is still to be run.  With a
fixed number of threads, all of them could wait for a call that no thread is left to make.  So there are ``usual``
threads, and one more whenever the oldest call has waited for a while and nothing has moved, up to ``most``: with a
thread for every session nothing can be stuck.  Where the system refuses a thread, calls wait and it is asked again.

A thread that waits for the disk does not count, up to ``_MOST_AWAY``: another one takes its place at once.  Otherwise
no more than ``usual`` commits could share a sync.

Owner: the event loop.  Threads take calls and hand back results, nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from eddyline.storage.waiting import hear_of_waits

__all__ = ["Crew"]

T = TypeVar("T")
_log = logging.getLogger("eddyline.pgwire")
_STUCK_S: Final = 0.02
_IDLE_S: Final = 10.0
_MOST_AWAY: Final = 64


class _Call(NamedTuple):
    run: Callable[[], Any]
    answer: asyncio.Future[Any]


class Crew:
    """``usual``, ``most``: numbers of threads."""

    def __init__(self, usual: int, most: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._usual = usual
        self._most = max(usual, most)
        self._changed = threading.Condition()
        self._calls: deque[_Call] = deque()  # guarded by _changed, like the rest
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._away = 0
        self._taken = 0  # calls ever taken, so that a look at it tells whether anything moves
        self._closed = False
        self._refused = False  # the system has refused the last thread
        self._watching = False  # the loop's own

    @property
    def threads(self) -> int:
        return len(self._threads)

    @property
    def calls(self) -> int:
        """How many were taken so far."""
        return self._taken

    async def run(self, call: Callable[[], T]) -> T:
        """What ``call`` returns or raises, run on a thread."""
        answer: asyncio.Future[T] = self._loop.create_future()
        with self._changed:
            self._calls.append(_Call(call, answer))
            if self._idle >= len(self._calls):
                self._changed.notify()
            elif self._wanted:
                self._hire()
            elif not self._watching:
                self._watching = True
                self._loop.call_later(_STUCK_S, self._look, self._taken)
        return await answer

    @property
    def _wanted(self) -> bool:
        """Whether calls for which nobody is idle get one more thread at once."""
        return len(self._threads) < min(self._usual + min(self._away, _MOST_AWAY), self._most)

    @contextmanager
    def _waits(self) -> Iterator[None]:
        """Entered by a thread whose call waits for the disk."""
        with self._changed:
            self._away += 1
            if self._idle < len(self._calls) and self._wanted:
                self._hire()
        try:
            yield
        finally:
            with self._changed:
                self._away -= 1

    def _look(self, taken: int) -> None:
        """One more thread if nothing has been taken since; looks again as long as calls wait."""
        with self._changed:
            if not self._calls or self._closed:
                self._watching = False
                return
            if self._taken == taken and len(self._threads) < self._most:
                self._hire()
            self._loop.call_later(_STUCK_S, self._look, self._taken)

    def _hire(self) -> None:
        thread = threading.Thread(target=self._work, name="eddyline-session", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
            self._refused = False
        except RuntimeError as problem:
            self._threads.discard(thread)
            told, self._refused = self._refused, True
            self._loop.call_soon_threadsafe(self._watch, None if told else problem)

    def _watch(self, refusal: RuntimeError | None) -> None:
        """Has another thread asked for, since the system refused the last one; on the loop, which says so once."""
        if refusal is not None:
            _log.error("statements wait for a thread, with %d there: %s", len(self._threads), refusal)
        if not self._watching:
            self._watching = True
            self._loop.call_later(_STUCK_S, self._look, self._taken)

    def _work(self) -> None:
        hear_of_waits(self._waits)
        while (call := self._next()) is not None:
            result, failure = None, None
            try:
                result = call.run()
            except BaseException as problem:  # noqa: BLE001 - it is raised where the call was made
                failure = problem
            self._loop.call_soon_threadsafe(_settle, call.answer, result, failure)

    def _next(self) -> _Call | None:
        with self._changed:
            self._idle += 1
            there = self._changed.wait_for(lambda: self._calls or self._closed, _IDLE_S)
            self._idle -= 1
            if self._calls:
                self._taken += 1
                return self._calls.popleft()
            if self._closed or not there or len(self._threads) > self._usual:
                self._threads.discard(threading.current_thread())
                return None
        return None

    def close(self) -> None:
        """Threads end when their calls have."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _settle(answer: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if answer.cancelled():
        return
    if failure is not None:
        answer.set_exception(failure)
    else:
        answer.set_result(result)
