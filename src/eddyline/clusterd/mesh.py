"""The connections between the processes of a replica: rows for workers of other processes, and commands passed on.

Each runtime has a mesh of its own.  A process listens at its own address and connects to those of lower ordinals, so
there is one connection for each pair.  Any of them that ends, ends the process: a replica lives and dies whole.
"""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Callable
from typing import Final

from eddyline.compute.exchange import Channel, Mailboxes, Message
from eddyline.compute.layout import RuntimeConfig
from eddyline.errors import Error, make_error
from eddyline.protocol.codec import decode_peer_message, encode
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose, Welcome, await_greeting, greet, turn_away, welcome
from eddyline.protocol.link import Link
from eddyline.protocol.messages import Command, RowBatch
from eddyline.protocol.peer_messages import Exchanged, PassedOn, PeerMessage
from eddyline.protocol.sockets import connect_to, listen_at
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier

__all__ = ["Mesh", "exchanged", "message_of"]

_MEET_SECONDS: Final = 120.0
_RETRY_SECONDS: Final = 0.02


def exchanged(worker: int, message: Message) -> Exchanged:
    """The message as it travels."""
    rows, errors = (None if b is None else RowBatch(b) for b in (message.rows, message.errors))
    channel = message.channel
    return Exchanged(worker, channel.dataflow, channel.operator, message.sender, message.frontier, rows, errors)


def message_of(arrived: Exchanged) -> Message:
    """The message that travelled so."""
    rows, errors = (None if b is None else b.payload for b in (arrived.rows, arrived.errors))
    assert rows is None or isinstance(rows, Batch), "rows are decoded with their message"
    assert errors is None or isinstance(errors, Batch), "rows are decoded with their message"
    return Message(
        Channel(arrived.dataflow, arrived.operator), arrived.sender, Frontier(arrived.frontier), rows, errors
    )


class Mesh:
    """``command``: gets each command that the first process passes on; ``lost``: the ordinal of a process that is gone.

    ``mailboxes`` are those of this process's workers.  Build it, ``meet``, build the runtime, ``start``.
    """

    def __init__(
        self,
        purpose: Purpose,
        config: RuntimeConfig,
        *,
        command: Callable[[Command], None],
        lost: Callable[[int], None],
    ) -> None:
        self._purpose = purpose
        self._config = config
        self._command = command
        self._lost = lost
        workers, processes = config.layout.workers, config.layout.processes
        self.mailboxes = Mailboxes(
            workers, first=config.process * workers, all_workers=workers * processes, post=self._post
        )
        self._links: dict[int, Link[PeerMessage, PeerMessage]] = {}

    def meet(self) -> None:
        """Connects to every other process of the replica; waits for them.  08001 if one does not come."""
        process, processes = self._config.process, self._config.layout.processes
        if processes == 1:
            return
        listener = listen_at(self._config.addresses[process])
        try:
            for other in range(process):
                self._link(other, self._reach(other))
            deadline = time.monotonic() + _MEET_SECONDS
            while len(self._links) < processes - 1:
                listener.settimeout(max(deadline - time.monotonic(), 0.001))
                self._admit(listener)
        except TimeoutError as error:
            raise make_error("08001", "not all processes of the replica came up") from error
        finally:
            listener.close()

    def start(self) -> None:
        """Messages arrive from here on."""
        for link in self._links.values():
            link.start()

    def pass_on(self, command: Command) -> None:
        """Gives a command to every other process; for the first process."""
        for link in self._links.values():
            link.send(PassedOn(command))

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    def _reach(self, other: int) -> Frames:
        deadline = time.monotonic() + _MEET_SECONDS
        while True:
            try:
                frames = Frames(connect_to(self._config.addresses[other]))
                break
            except Error as error:
                if error.sqlstate != "08001" or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)  # it has not come up yet
        self._check(greet(frames, self._purpose, process=self._config.process), other)
        return frames

    def _check(self, answer: Welcome, other: int) -> None:
        layout = self._config.layout
        if (answer.process, answer.processes, answer.workers) != (other, layout.processes, layout.workers):
            raise make_error("22023", f'"{self._config.addresses[other]}" is of another replica, or another process')

    def _admit(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        frames = Frames(connection)
        try:
            greeting = await_greeting(frames)
            known = greeting.process in self._links or not (
                self._config.process < greeting.process < self._config.layout.processes
            )
            if greeting.purpose is not self._purpose or known:
                raise make_error("08P01", f"process {greeting.process} is not expected here")
        except Error as error:
            turn_away(frames, error)
            return
        layout = self._config.layout
        interactive = self._purpose is Purpose.INTERACTIVE
        welcome(frames, Welcome(self._config.process, layout.processes, layout.workers, interactive))
        self._link(greeting.process, frames)

    def _link(self, other: int, frames: Frames) -> None:
        self._links[other] = Link(
            frames,
            name=f"{self._purpose.value}:{other}",
            encode=encode,
            decode=decode_peer_message,
            take=self._take,
            ended=functools.partial(self._ended, other),
        )

    def _ended(self, other: int, _error: Exception | None) -> None:
        self._lost(other)

    def _post(self, worker: int, message: Message) -> None:
        self._links[worker // self._config.layout.workers].send(exchanged(worker, message))

    def _take(self, message: PeerMessage) -> None:
        if isinstance(message, PassedOn):
            self._command(message.command)
        else:
            self.mailboxes.send(message.worker, message_of(message))
