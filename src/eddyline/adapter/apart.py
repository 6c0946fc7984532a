"""Calls of the main thread are made apart from it, because that is where signals interrupt.

Python runs signal handlers on the main thread, between any two steps of its code: Ctrl-C raises KeyboardInterrupt in
the middle of a commit, or between taking a lock and remembering so, and no ``finally`` mends that.  So the main thread
hands a call over to a thread of ours and waits.  An exception out of that wait cancels the call, and goes on when the
call has ended, one way or the other; a second one leaves it to end by itself.  Other threads call directly: nothing
interrupts them.  What a call needs of its caller's objects (the next rows of an iterator, a file) it gets by
``on_caller``, on the caller's thread.

Invariants:
I1  the main thread waits on bare locks only: to take one is a single step, which is either interrupted or done;
I2  a lock here means no more than "look again": what there is to do stands in the call, so that a signal at any moment
    costs a needless look at most;
I3  a call that its caller makes while it does something for another call is made by that one's thread: it holds the
    session's turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["Apart", "on_caller"]

T = TypeVar("T")

_current: Final = threading.local()
#: how late a signal may be that does not end the main thread's wait
_LOOK_S: Final = 0.1


def on_caller(request: Callable[[], T]) -> T:
    """``request()`` on the thread of whoever made the call that is under way here."""
    call: _Call | None = getattr(_current, "call", None)
    return request() if call is None else call.ask(request)


class _Flag:
    """Set by one thread, waited for and taken back by another."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            return  # it is set already

    def take(self) -> None:
        self._lock.acquire()

    def take_on_main_thread(self) -> None:
        """As ``take``, and signal handlers run meanwhile even if no signal ends a wait.

        A library that has a handler of its own for a signal may have asked the system to go on with what was
        interrupted (SA_RESTART; Polars does): Python is then not told before the wait ends by itself.
        """
        while not self._lock.acquire(timeout=_LOOK_S):
            continue


class _Call:
    """One call.  The caller writes ``answer``, ``answered`` and ``nested``, the thread that makes it the rest."""

    def __init__(self, body: Callable[[], Any]) -> None:
        self.body = body
        self.result: Any = None
        self.error: BaseException | None = None
        #: whoever makes it has begun; it may be handed over any number of times
        self.taken = False
        self.finished = False
        #: its caller waits for it no more
        self.abandoned = False
        self.request: Callable[[], Any] | None = None
        self.asked = 0
        self.answered = 0
        self.answer: tuple[Any, BaseException | None] = (None, None)
        self.nested: _Call | None = None
        self.to_caller = _Flag()
        self.to_maker = _Flag()

    def make(self, made: Callable[[], None] = lambda: None) -> None:
        """Once.  ``made`` is called when the body has ended, before the caller is told."""
        if self.taken:
            return
        self.taken = True
        previous, _current.call = getattr(_current, "call", None), self
        try:
            self.result = self.body()
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and raised there
            self.error = error
        finally:
            _current.call = previous
        made()
        self.finished = True
        self.to_caller.set()

    def ask(self, request: Callable[[], T]) -> T:
        """On the thread that makes the call: what the caller makes of ``request``."""
        self.request = request
        self.asked += 1
        self.to_caller.set()
        while self.answered < self.asked:
            if self.abandoned:
                raise KeyboardInterrupt
            self.to_maker.take()
            nested, self.nested = self.nested, None
            if nested is not None:
                nested.make()
        value, error = self.answer
        if error is not None:
            raise error
        result: T = value
        return result


class _Thread:
    """Makes one call after another.  ``idle``: says that it has nothing to do."""

    def __init__(self, idle: Callable[[_Thread], None]) -> None:
        self._idle = idle
        self._wake = _Flag()
        self._call: _Call | None = None
        self._ending = False
        #: it looks for a call once more, and never again
        self._gone = False
        self._thread = threading.Thread(target=self._work, name="eddyline-statements", daemon=True)
        self._thread.start()

    def give(self, call: _Call) -> None:
        """May be repeated, in case that it was interrupted half-way.

        If the thread was told to end meanwhile, and the call has come too late for it, the caller makes it.
        """
        self._call = call
        self._wake.set()
        if self._gone:  # else it will be found: the thread says so before it looks for the last time
            while self._thread.is_alive() and not call.taken:
                self._thread.join(_LOOK_S)
            call.make()

    def end(self) -> None:
        self._ending = True
        self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.take()
            self._make_what_was_given()
            if self._ending:
                self._gone = True
                self._make_what_was_given()
                return

    def _make_what_was_given(self) -> None:
        call = self._call
        if call is not None:
            self._call = None
            call.make(lambda: self._idle(self))


class _NoThreadError(Exception):
    pass


class Apart:
    """Of one database."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._idle: list[_Thread] = []
        self._threads: list[_Thread] = []
        #: the call for which the main thread is doing something
        self._serving: _Call | None = None
        self._closed = False

    @property
    def serving(self) -> bool:
        """Whether a call waits for what the main thread does."""
        return self._serving is not None

    def run(self, body: Callable[[], T], cancel: Callable[[], None] | None = None) -> T:
        """``body()``.  ``cancel``, on any thread, ends it early."""
        if threading.current_thread() is not threading.main_thread() or os.getpid() != self._pid or self._closed:
            return body()
        call = _Call(body)
        try:
            self._attend(call, self._taker(), cancel)
        except _NoThreadError:  # the interpreter ends, and starts no more threads
            return body()
        finally:
            if not call.finished:
                call.abandoned = True
                call.to_maker.set()
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def close(self) -> None:
        """Ends the threads, those that are busy when they are done; calls are made directly from now on."""
        self._closed = True
        for thread in self._threads:
            thread.end()

    def _taker(self) -> Callable[[_Call], None]:
        """What hands a call over to whoever will make it."""
        serving = self._serving
        if serving is not None:

            def nest(call: _Call) -> None:
                serving.nested = call
                serving.to_maker.set()

            return nest
        if self._idle:  # only the main thread takes from it
            return self._idle.pop().give
        try:
            thread = _Thread(self._idle.append)
        except RuntimeError as problem:
            raise _NoThreadError from problem
        self._threads.append(thread)
        if self._closed:  # by another thread, which may not have seen this one
            thread.end()
        return thread.give

    def _attend(self, call: _Call, give: Callable[[_Call], None], cancel: Callable[[], None] | None) -> None:
        """Until the call has ended; raises what interrupted the wait."""
        stopped: BaseException | None = None
        serving = self._serving
        while True:
            try:
                give(call)
                if stopped is not None and cancel is not None:
                    # By a thread of its own: it takes locks, and may be interrupted here.
                    threading.Thread(target=cancel, name="eddyline-cancel", daemon=True).start()
                    cancel = None
                while not call.finished:
                    if call.answered < call.asked:
                        self._answer(call, stopped)
                    else:
                        call.to_caller.take_on_main_thread()
                break
            except BaseException as problem:
                self._serving = serving
                if stopped is not None:
                    raise
                stopped = problem
        if stopped is not None:
            raise stopped

    def _answer(self, call: _Call, stopped: BaseException | None) -> None:
        """Does what the call asks for; once it was interrupted, it gets the exception."""
        request = call.request
        assert request is not None
        if stopped is not None:
            call.answer = (None, stopped)
        else:
            serving, self._serving = self._serving, call
            try:
                call.answer = (request(), None)
            except BaseException as error:  # noqa: BLE001 - it is the call's to end with
                call.answer = (None, error)
            finally:
                self._serving = serving
        call.answered = call.asked
        call.to_maker.set()
