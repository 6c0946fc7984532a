"""One process of a replica: its runtimes, its mirrors, and the connections of its controller.

*Commands* are taken in the order of ``command_stream``.

*Fencing.*  A controller says the epoch of its database.  Once one with a higher epoch has come, the connections of
earlier ones are hung up on, and they are refused from then on: whoever has lost the database's directory, and does not
know it yet, neither commands the replica nor feeds it.

*Starving.*  Storage may have forgotten what a process lacks, where it was without a connection while another replica
went on.  What goes on reading that would never move again: the process ends, and another one builds it anew.

*Shared fate.*  A fatal status of the runtimes, an exception that a thread does not handle, or another process of the
replica that is gone ends this process, with one line in the log and a status other than 0.

Threads: of the runtimes; one that accepts connections; one for each while it introduces itself, two afterwards.
Lock: ``_changed`` guards who is connected; nothing is waited for while it is held, but itself.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from eddyline.clusterd.command_stream import CommandStream
from eddyline.clusterd.config import ClusterdConfig
from eddyline.clusterd.meeting import meet
from eddyline.clusterd.mesh import Mesh
from eddyline.clusterd.mirror import MirrorStore
from eddyline.clusterd.relay import Relay
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.process_settings import OwnSettings
from eddyline.compute.solo import Solo
from eddyline.compute.thread_placement import ThreadPlacement, core_plan, usable_cores
from eddyline.errors import Error, make_error
from eddyline.protocol.codec import decode_from_controller, decode_storage_update, encode
from eddyline.protocol.framing import MOST_FRAME_BYTES, Frames
from eddyline.protocol.handshake import Greeting, Purpose, Welcome, await_greeting, turn_away, welcome
from eddyline.protocol.link import Link
from eddyline.protocol.measures_messages import ProcessMeasures, ReportMeasures
from eddyline.protocol.messages import Command, PeekResponse, Response, Status
from eddyline.protocol.sockets import listen_at
from eddyline.protocol.soft_assertion import soft_assertions
from eddyline.protocol.storage_messages import StorageRequest, StorageUpdate
from eddyline.trace.hasher import Hasher

__all__ = ["FAILED", "PEER_LOST", "Host"]

_log = logging.getLogger("eddyline.clusterd")
#: exit statuses
FAILED: Final = 70
PEER_LOST: Final = 71
_TICK_SECONDS: Final = 1.0
#: by then what nobody reads any more was dropped
_STARVING_TICKS: Final = 5
#: how long the end of another process may turn out to be the end of all
_FAREWELL_SECONDS: Final = 0.3

_Commands = Link[Response | ProcessMeasures, Command | ReportMeasures]
_Storage = Link[StorageRequest, StorageUpdate]


class Host:
    """Build it, then ``run``, which returns the exit status.  ``settings``: what the controller says is applied to."""

    def __init__(self, config: ClusterdConfig, settings: OwnSettings) -> None:
        self._config = config
        layout = config.compute.layout
        hasher = Hasher(config.hash_seed)
        self.mirrors = MirrorStore(hasher)
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._status: int | None = None
        self._deciding = False
        self._commands: _CommandLink | None = None
        self._storage: _StorageLink | None = None
        #: the last connection of each kind; one that has ended may be at its last message still
        self._latest: dict[Purpose, _CommandLink | _StorageLink] = {}
        self._epoch = 0  # the highest that a controller has said
        self._alone_since = time.monotonic()
        self._stream: CommandStream[_Commands] = CommandStream(
            config.compute.process, send=self._send, pass_on=self._pass_on
        )
        self._listener = listen_at(config.listen)
        self._meshes, self._relay = self._meet()
        placement = ThreadPlacement(core_plan(config.compute, list(self._meshes), usable_cores()))
        settings.place(placement)
        self._settings = settings
        mailboxes = {role: mesh.mailboxes for role, mesh in self._meshes.items()}
        workers, configure = layout.workers, settings.apply
        self.replica: Solo | Pair
        if config.interactive is None:
            self.replica = Solo(
                self.mirrors, hasher, workers=workers, mailboxes=mailboxes[Role.SOLO], configure=configure,
                on_thread=placement,
            )  # fmt: skip
        else:
            self.replica = Pair(
                self.mirrors, hasher, workers=workers, mailboxes=mailboxes, configure=configure, on_thread=placement
            )
        self.replica.listen(self._respond, lambda: self._end(FAILED, "the replica ended"))

    def _meet(self) -> tuple[dict[Role, Mesh], Relay]:
        """Connects the runtimes, and the stream of commands, to those of the other processes; waits for them."""
        config = self._config
        lead = Role.SOLO if config.interactive is None else Role.MAINTENANCE
        met = meet(config.compute, (Purpose.MAINTENANCE, Purpose.PASSED_ON))
        relay = Relay(met[Purpose.PASSED_ON], take=self._stream.take_passed_on, lost=self._peer_lost)
        meshes = {lead: Mesh(Purpose.MAINTENANCE, config.compute, met[Purpose.MAINTENANCE], lost=self._peer_lost)}
        if config.interactive is not None:
            met = meet(config.interactive, (Purpose.INTERACTIVE,))
            reads = Mesh(Purpose.INTERACTIVE, config.interactive, met[Purpose.INTERACTIVE], lost=self._peer_lost)
            meshes[Role.INTERACTIVE] = reads
        return meshes, relay

    # -- life -----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Serves until something ends the process."""
        threading.excepthook = self._thread_failed
        for mesh in self._meshes.values():
            mesh.start()
        self._relay.start()
        threading.Thread(target=self._accept, name="accept", daemon=True).start()
        if self._config.ready_fd is not None:
            os.write(self._config.ready_fd, b"\n")
            os.close(self._config.ready_fd)
        starving = 0
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._status is not None, _TICK_SECONDS):
                    break
                # A program that restores its tables has a connection to storage for a while, and no other.
                commanded = self._commands is not None
                alone = not commanded and self._storage is None
                orphaned = alone and time.monotonic() - self._alone_since > self._config.orphan_seconds
            self.mirrors.expire()
            starved = self.mirrors.starved() if commanded else None
            starving = 0 if starved is None else starving + 1
            if starving >= _STARVING_TICKS:
                self._end(FAILED, f"what it has of collection {starved} cannot be brought up to date any more")
            if orphaned:
                self._end(0, f"no controller for {self._config.orphan_seconds:g} s")
        self._close()
        assert self._status is not None, "it was waited for"
        return self._status

    def stop(self) -> None:
        """Ends the process in good order.  From a signal handler, too: on a thread of its own."""
        threading.Thread(target=self._end, args=(0, ""), name="stop", daemon=True).start()

    def _end(self, status: int, why: str) -> None:
        """The first call decides; it says why, unless the order came from outside, before the process may end."""
        with self._changed:
            if self._deciding:
                return
            self._deciding = True
        if why:
            _log.log(logging.ERROR if status else logging.INFO, "ends: %s", why)
        with self._changed:
            self._status = status
            self._changed.notify_all()
        self._stream.stop()

    def _close(self) -> None:
        self._listener.close()
        os.unlink(self._config.listen)
        with self._changed:
            links = [link for link in (self._commands, self._storage) if link is not None]
        if self._commands is not None:
            self._commands.flush(1.0)
        if self._status:
            return  # what hangs must not keep the process: whoever runs it exits at once
        for link in links:
            link.close()
        for mesh in self._meshes.values():
            mesh.close()
        self._relay.close()
        self.mirrors.close()
        self.replica.close()

    def _thread_failed(self, failure: threading.ExceptHookArgs) -> None:
        name = "a thread" if failure.thread is None else failure.thread.name
        self._end(FAILED, f"{name} failed: {failure.exc_type.__name__}: {failure.exc_value}")

    def _peer_lost(self, other: int) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._status is not None, _FAREWELL_SECONDS):
                return
        self._end(PEER_LOST, f"process {other} of the replica is gone")

    # -- connections ----------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            # A stranger that says nothing must not keep others out.
            greeter = threading.Thread(target=self._introduce, args=(connection,), name="greet", daemon=True)
            try:
                greeter.start()
            except RuntimeError as problem:  # the system gives no thread: this one may come again, and others stay
                _log.warning("refused: %s", problem)
                connection.close()

    def _introduce(self, connection: socket.socket) -> None:
        frames = Frames(connection)
        try:
            greeting = await_greeting(frames)
            purpose = greeting.purpose
            if purpose not in (Purpose.COMMANDS, Purpose.STORAGE):
                raise make_error("08P01", f"this socket is not for {purpose.value}", hint="It is the controller's.")
            # The link is in place before the other end may go on.
            link = self._take(frames, greeting)
        except Error as error:
            # Who only wants to know whether somebody listens hangs up before a greeting.
            _log.log(logging.DEBUG if error.sqlstate == "08006" else logging.WARNING, "refused: %s", error.message)
            turn_away(frames, error)
            return
        layout = self._config.compute.layout
        answer = Welcome(
            self._config.compute.process,
            layout.processes,
            layout.workers,
            self._config.interactive is not None,
            self.mirrors.seen(),
        )
        try:
            welcome(frames, answer)
        except OSError:
            link.close()
            return
        link.start()
        with self._changed:
            if self._storage is link:
                self.mirrors.connected(link.send)

    def _take(self, frames: Frames, greeting: Greeting) -> _CommandLink | _StorageLink:
        """The connection, in the place of the one before it; 55006 if its epoch is over."""
        link: _CommandLink | _StorageLink
        if greeting.purpose is Purpose.COMMANDS:
            link = _CommandLink(frames, self._command, self._commands_ended)
        else:
            link = _StorageLink(frames, self.mirrors.receive, self._storage_ended)
        with self._changed:
            if greeting.epoch < self._epoch:
                raise make_error(
                    "55006",
                    "the database was opened by somebody else since",
                    detail=f"The replica obeys epoch {self._epoch}; this connection is of epoch {greeting.epoch}.",
                    hint="Close this database and open its directory again.",
                )
            overtakes, self._epoch = greeting.epoch > self._epoch, greeting.epoch
            kinds = (Purpose.COMMANDS, Purpose.STORAGE) if overtakes else (greeting.purpose,)
            former = [self._latest[kind] for kind in kinds if kind in self._latest]
            if Purpose.COMMANDS in kinds:
                self._commands, self._alone_since = None, time.monotonic()
            if Purpose.STORAGE in kinds:
                self._storage = None
            self._latest[greeting.purpose] = link
            if isinstance(link, _CommandLink):
                self._commands = link
            else:
                self._storage = link
        for each in former:
            each.close()  # what it was at is done
            if isinstance(each, _CommandLink):
                self._stream.ended(each)  # again: its thread may have taken a hello meanwhile
        if overtakes:
            self.mirrors.renewed()
        with self._changed:
            if self._storage is link:
                self.mirrors.disconnected()
        return link

    def _commands_ended(self, link: _CommandLink, error: Exception | None) -> None:
        if error is not None:
            _log.warning("the controller's connection ended: %s", error)
        self._stream.ended(link)
        with self._changed:
            if self._commands is link:
                self._commands, self._alone_since = None, time.monotonic()

    def _storage_ended(self, link: _StorageLink, error: Exception | None) -> None:
        if error is not None:
            _log.warning("the connection to storage ended: %s", error)
        with self._changed:
            if self._storage is not link:
                return
            self._storage, self._alone_since = None, time.monotonic()
        self.mirrors.disconnected()

    # -- commands and responses -----------------------------------------------------------------------------------

    def _command(self, link: _CommandLink, command: Command | ReportMeasures) -> None:
        """A command of the controller's, or a question."""
        if isinstance(command, ReportMeasures):
            link.send(self._measured(command.number))
        else:
            self._stream.take(link, command)

    def _measured(self, number: int) -> ProcessMeasures:
        runtimes = tuple(runtime.measured() for runtime in self.replica.runtimes)
        holds, seconds = self._settings.gil.seen()
        return ProcessMeasures(number, runtimes, self.replica.hold_gap_us(), soft_assertions(), tuple(holds), seconds)

    def _send(self, command: Command) -> None:
        self.replica.send(command)

    def _pass_on(self, command: Command) -> None:
        self._relay.pass_on(command)

    def _respond(self, response: Response) -> None:
        link = self._stream.answering
        if link is not None:
            link.send(response)
        if isinstance(response, Status) and response.fatal:
            self._end(FAILED, "")  # the runtime has logged what it was


class _CommandLink(_Commands):
    def __init__(
        self,
        frames: Frames,
        take: Callable[[_CommandLink, Command | ReportMeasures], None],
        ended: Callable[[_CommandLink, Exception | None], None],
    ) -> None:
        super().__init__(
            frames,
            name="commands",
            encode=_encode_response,
            decode=decode_from_controller,
            take=lambda command: take(self, command),
            ended=lambda error: ended(self, error),
        )


class _StorageLink(_Storage):
    def __init__(
        self,
        frames: Frames,
        take: Callable[[StorageUpdate], None],
        ended: Callable[[_StorageLink, Exception | None], None],
    ) -> None:
        super().__init__(
            frames,
            name="storage",
            encode=encode,
            decode=decode_storage_update,
            take=take,
            ended=lambda error: ended(self, error),
        )


def _encode_response(response: Response | ProcessMeasures) -> bytes:
    data = encode(response)
    if len(data) <= MOST_FRAME_BYTES or not isinstance(response, PeekResponse):
        return data
    error = "54000", f"an answer of {len(data)} bytes is too large", None
    return encode(PeekResponse(response.uuid, error=error, hint="Read it in parts."))
