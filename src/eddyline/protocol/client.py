"""The controller's end of a replica: commands out, responses in, each in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from eddyline.protocol.messages import Command, Response

__all__ = ["Client", "ResponseQueue"]


class Client(Protocol):
    """A replica, wherever it runs.  ``send`` never blocks on the replica's work."""

    def send(self, command: Command) -> None: ...

    def receive(self, timeout: float | None) -> Response | None:
        """The next response; None after ``timeout`` seconds (None: waits for ever) or once the replica is closed."""
        ...

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        """Responses go to ``listener`` from here on, those that wait first, each once, on any thread; ``receive`` gets
        no more.  ``ended`` is called once the replica is closed.  Both return at once.
        """
        ...

    def stop(self) -> None:
        """Asks the replica to end; does not wait for that."""
        ...

    def close(self) -> None: ...


class ResponseQueue:
    """Responses of a replica in the same process.  Any thread puts; any thread receives.

    With a ``listener`` responses go to it on a thread that put one, and nothing is queued: the listener must return
    fast and must not wait for the replica.  It is called with no lock held.
    """

    def __init__(self, listener: Callable[[Response], None] | None = None) -> None:
        self._listener = listener  # set under _changed
        self._ended: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._responses: deque[Response] = deque()  # guarded by _changed
        self._closed = False  # guarded by _changed
        #: whether responses that waited for a listener have yet to be given to it, before those that come now
        self._handing_over = False  # guarded by _changed

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        """As ``Client.listen``."""
        with self._changed:
            self._listener, self._ended, self._handing_over = listener, ended, True
            closed = self._closed  # a close from here on says so itself
        while True:
            with self._changed:
                if not self._responses:
                    self._handing_over = False
                    break
                response = self._responses.popleft()
            listener(response)
        if closed:
            ended()

    def put(self, response: Response) -> None:
        with self._changed:
            listener = self._listener
            if listener is None or self._handing_over:
                self._responses.append(response)
                self._changed.notify()
                return
        listener(response)

    def receive(self, timeout: float | None) -> Response | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._responses:
                remaining = None if deadline is None else deadline - time.monotonic()
                if self._closed or (remaining is not None and remaining <= 0):
                    return None
                self._changed.wait(remaining)
            return self._responses.popleft()

    def close(self) -> None:
        with self._changed:
            first, self._closed = not self._closed, True
            self._changed.notify_all()
        if first and self._ended is not None:
            self._ended()
