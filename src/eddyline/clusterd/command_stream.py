"""The order in which a process takes commands, and which connection its responses answer.

The controller says ``Hello`` and ``UpdateConfiguration`` to every process, everything else to the first, which passes
it on, with each ``Hello`` as a mark of where it stands.  So all processes take the same commands in the same order.  A
connection's responses begin once its ``Hello`` is in the stream: those of an earlier one never reach it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from eddyline.errors import make_error
from eddyline.protocol.messages import Command, Hello, UpdateConfiguration

__all__ = ["CommandStream"]

_Link = TypeVar("_Link")


class CommandStream(Generic[_Link]):
    """Of process ``process``; ``send`` gives a command to its runtimes, ``pass_on`` to all other processes.

    ``_Link``: a connection of the controller's.  Lock: ``_said`` guards who has said hello; nothing is called under it.
    """

    def __init__(self, process: int, *, send: Callable[[Command], None], pass_on: Callable[[Command], None]) -> None:
        self._process = process
        self._send = send
        self._pass_on = pass_on
        self._said = threading.Condition()
        # Guarded by _said.
        #: what the newest connection has said, unless it is gone
        self._hello: tuple[str, _Link] | None = None
        #: whether that hello has been passed on as well
        self._passed = False
        self._stopped = False
        #: where responses go; written by the thread that takes commands
        self._answering: _Link | None = None

    @property
    def answering(self) -> _Link | None:
        """The connection that responses answer at the moment; any thread."""
        return self._answering

    def take(self, link: _Link, command: Command) -> None:
        """A command of the controller's.  08P01 if it is one for the first process only."""
        if isinstance(command, UpdateConfiguration):
            self._send(command)
        elif self._process == 0:
            self._pass_on(command)
            self._put(command, link)
        elif isinstance(command, Hello):
            with self._said:
                self._hello, self._passed = (command.nonce, link), False
                self._said.notify_all()
        else:
            raise make_error("08P01", f"process {self._process} is sent a command of the first's")

    def waits_for_hello(self, command: Command) -> bool:
        """Whether ``take_passed_on`` would wait for the controller to say the same ``Hello`` here."""
        with self._said:
            return isinstance(command, Hello) and not self._stopped and not self._arrived(command.nonce)

    def take_passed_on(self, command: Command) -> None:
        """A command that the first process passes on; its ``Hello`` waits for the controller's own."""
        link: _Link | None = None
        if isinstance(command, Hello):
            with self._said:
                self._said.wait_for(lambda: self._stopped or self._arrived(command.nonce))
                if self._hello is not None and self._hello[0] == command.nonce:
                    link, self._passed = self._hello[1], True
        self._put(command, link)

    def ended(self, link: _Link) -> None:
        """The connection is gone: nothing answers it any more.

        To be called before a later one says anything to any process: its hello was perhaps never passed on, and must
        not be taken for that of a later connection.
        """
        if self._answering is link:
            self._answering = None
        with self._said:
            if self._hello is not None and self._hello[1] is link:
                self._hello = None

    def stop(self) -> None:
        """Nobody waits from here on."""
        with self._said:
            self._stopped = True
            self._said.notify_all()

    def _arrived(self, nonce: str) -> bool:
        """Whether the controller has said hello with the nonce, or with a later one.  Needs ``_said``."""
        return self._hello is not None and (self._hello[0] == nonce or not self._passed)

    def _put(self, command: Command, link: _Link | None) -> None:
        if not isinstance(command, Hello):
            self._send(command)
            return
        # What is said between these two is of no connection: a runtime begins to report at the history's end.
        self._answering = None
        self._send(command)
        self._answering = link
