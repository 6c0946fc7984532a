"""One endpoint for a replica of two runtimes.

It keeps no state about what is asked and decides nothing.  Commands go to maintenance, then to interactive, except that
``Peek`` and ``CancelPeek`` go to interactive alone; each runtime drains at its own rate, so the order of the two sends
guarantees nothing.  Responses are merged verbatim, each stream in its order.  Either end ends the endpoint: nothing is
passed on after a fatal status.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from eddyline.protocol.client import Client, ResponseQueue
from eddyline.protocol.messages import CancelPeek, Command, Peek, Response, Status

__all__ = ["Multiplexer"]


class Multiplexer:
    """A ``Client`` over two.  Any thread sends; commands reach both runtimes in one order."""

    def __init__(
        self, maintenance: Client, interactive: Client, listener: Callable[[Response], None] | None = None
    ) -> None:
        self._maintenance = maintenance
        self._interactive = interactive
        self._responses = ResponseQueue(listener)
        self._sending = threading.Lock()
        self._ending = threading.Lock()
        self._ended = False  # guarded by _ending
        for client in (maintenance, interactive):
            client.listen(self._pass, self._end)

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._responses.listen(listener, ended)

    def send(self, command: Command) -> None:
        with self._sending:
            if not isinstance(command, (Peek, CancelPeek)):
                self._maintenance.send(command)
            self._interactive.send(command)

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._responses.receive(timeout)

    def stop(self) -> None:
        self._maintenance.stop()
        self._interactive.stop()

    def close(self) -> None:
        self.stop()
        self._maintenance.close()
        self._interactive.close()
        self._responses.close()

    def _pass(self, response: Response) -> None:
        fatal = isinstance(response, Status) and response.fatal
        with self._ending:
            if self._ended:
                return
            self._ended = fatal
        if fatal:
            self.stop()
        self._responses.put(response)
        if fatal:
            self._responses.close()

    def _end(self) -> None:
        """One side is over, with or without a word."""
        with self._ending:
            self._ended = True
        self.stop()
        self._responses.close()
