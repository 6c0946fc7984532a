"""A replica of several processes' worth in this one: what they tell each other goes through bytes, and when is told.

Each process has its own mirrors, workers, mailboxes and stream of commands, as ``clusterd`` has; the controller's end
has the feeds and the merged responses of ``controller.remote``.  The sockets and their threads are left out: a
``Channel`` stands for one direction of a connection, and gives out a message when whoever drives the group says so.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from eddyline.clusterd.command_stream import CommandStream
from eddyline.clusterd.mesh import exchanged, message_of
from eddyline.clusterd.mirror import MirrorStore
from eddyline.compute.exchange import Mailboxes, Message
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.solo import Solo
from eddyline.controller.remote_responses import RemoteResponses
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.codec import (
    decode_command,
    decode_exchanged,
    decode_response,
    decode_storage_request,
    decode_storage_update,
)
from eddyline.protocol.messages import Command, Hello, Peek, PeekResponse, Response, UpdateConfiguration
from eddyline.protocol.peer_messages import Exchanged
from eddyline.protocol.storage_messages import StorageRequest, StorageUpdate, Unfollow, WriteView
from eddyline.storage.feed import StorageFeed
from eddyline.storage.store import TableStore
from eddyline.testing.channel import Channel
from eddyline.trace.hasher import Hasher

__all__ = ["GroupSettings", "Mover", "ProcessGroup", "SimulatedProcess"]


class Mover(Protocol):
    """What is driven beside workers: a direction of a connection, or a feed."""

    def move(self) -> bool:
        """One message, or one step; True if anything was done."""
        ...


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Of each process.  ``clock``: nanoseconds, for workers; ``idle_clock``: seconds, for mirrors that nobody reads.

    ``room``: storage messages that may wait in a channel before its feed does.  ``kept``: how many of so many messages
    on their way still arrive when a connection is lost.
    """

    workers: int
    interactive: bool
    clock: Callable[[], int]
    budget_rows: int = 65_536
    retention_us: int = 1_000_000
    room: int = 32
    idle_clock: Callable[[], float] = lambda: 0.0
    kept: Callable[[int], int] = lambda waiting: waiting


class SimulatedProcess:
    """One process's worth, as ``clusterd.host`` puts it together."""

    def __init__(self, group: ProcessGroup, hasher: Hasher, process: int, processes: int, its: GroupSettings) -> None:
        self.process = process
        self.alive = True
        self.mirrors = MirrorStore(hasher, retention_us=its.retention_us, clock=its.idle_clock)
        roles = (Role.MAINTENANCE, Role.INTERACTIVE) if its.interactive else (Role.SOLO,)
        self.mailboxes = {
            role: Mailboxes(
                its.workers,
                first=process * its.workers,
                all_workers=processes * its.workers,
                post=functools.partial(group.post, role, process),
            )
            for role in roles
        }
        self.replica: Pair | Solo
        if its.interactive:
            self.replica = Pair(
                self.mirrors, hasher, workers=its.workers, mailboxes=self.mailboxes, threads=False, clock=its.clock,
                budget_rows=its.budget_rows,
            )  # fmt: skip
        else:
            self.replica = Solo(
                self.mirrors, hasher, workers=its.workers, mailboxes=self.mailboxes[Role.SOLO], threads=False,
                clock=its.clock, budget_rows=its.budget_rows,
            )  # fmt: skip
        self.stream: CommandStream[Channel[Response]] = CommandStream(
            process, send=self.replica.send, pass_on=group.pass_on
        )
        self.replica.listen(self._respond, lambda: None)

    def runtime(self, role: Role) -> Runtime:
        if isinstance(self.replica, Pair):
            return self.replica.maintenance if role is Role.MAINTENANCE else self.replica.interactive
        return self.replica

    def _respond(self, response: Response) -> None:
        link = self.stream.answering
        if link is not None:
            link.put(response)


class _Line:
    """The two connections of the controller to one process."""

    def __init__(self, group: ProcessGroup, process: SimulatedProcess, answers: RemoteResponses) -> None:
        self._group = group
        p = process.process
        self.commands: Channel[Command] = Channel(
            decode_command, functools.partial(self._take_command, process), ended=self._commands_ended
        )
        self.responses: Channel[Response] = Channel(decode_response, self._take_response, ended=self._lost)
        self.updates: Channel[StorageUpdate] = Channel(
            decode_storage_update, process.mirrors.receive, ended=process.mirrors.disconnected
        )
        self.feed = StorageFeed(
            group.store,
            group.hasher,
            send=self.updates.put,
            written=answers.written,
            room=lambda: len(self.updates) < group.settings.room,
            process=p,
            processes=group.count,
        )
        self.updates.idle = self.feed.wake
        self.requests: Channel[StorageRequest] = Channel(decode_storage_request, self._take_request, ended=self._lost)
        self._process = process
        self._answers = answers
        self._fed = True

    @property
    def channels(self) -> tuple[Channel[Command], Channel[Response], Channel[StorageUpdate], Channel[StorageRequest]]:
        return self.commands, self.responses, self.updates, self.requests

    def move(self) -> bool:
        """A step of the feed, unless it rests and nobody has woken it."""
        if self._answers.over or not (self._fed or self.feed._awake):
            return False
        self._fed = self.feed.step()
        return self._fed

    def _take_command(self, process: SimulatedProcess, command: Command) -> None:
        process.stream.take(self.responses, command)

    def _take_request(self, request: StorageRequest) -> None:
        self._group.seen["mirror: given up"] += isinstance(request, Unfollow)
        self._group.seen["view: written"] += isinstance(request, WriteView)
        self._group.seen["mirror: resumed"] += getattr(request, "resume", None) is not None
        self.feed.receive(request)

    def _take_response(self, response: Response) -> None:
        held = self._answers.held()
        self._answers.put(self._process.process, response)
        self._group.seen["frontier: waited for storage"] += self._answers.held() > held

    def _commands_ended(self) -> None:
        self._process.stream.ended(self.responses)

    def _lost(self) -> None:
        self._answers.end("the connection to the replica was lost", tell=True)

    def hang_up(self) -> None:
        """The controller's end is over: the processes hear of it, after what is on its way."""
        for out in (self.commands, self.updates):
            out.cut(self._group.settings.kept(len(out)))
        for back in (self.responses, self.requests):
            back.close()

    def close(self) -> None:
        for each in self.channels:
            each.close()
        self.feed.close()


class ProcessGroup:
    """``processes`` as one replica without threads; a ``protocol.client.Client``, once ``connect`` was called.

    ``seen`` counts what a test may want to have happened.
    """

    def __init__(self, store: TableStore, hasher: Hasher, *, processes: int, settings: GroupSettings) -> None:
        self.store = store
        self.hasher = hasher
        self.settings = settings
        self.count = processes
        self.seen: Counter[str] = Counter()
        self.processes = [SimulatedProcess(self, hasher, p, processes, settings) for p in range(processes)]
        self._responses = ResponseQueue()
        self._answers: RemoteResponses | None = None
        self._lines: list[_Line] = []
        #: from the first process, by receiver
        self._relay: dict[int, Channel[Command]] = {
            other.process: Channel(
                decode_command,
                other.stream.take_passed_on,
                ended=functools.partial(self._peer_lost, other),
                ready=functools.partial(self._ready, other),
            )
            for other in self.processes[1:]
        }
        #: by runtime, sender and receiver
        self._mesh: dict[tuple[Role, int, int], Channel[Exchanged]] = {
            (role, one.process, other.process): Channel(
                decode_exchanged,
                functools.partial(self._take, role, other),
                ended=functools.partial(self._peer_lost, other),
            )
            for role in self.processes[0].mailboxes
            for one in self.processes
            for other in self.processes
            if one is not other
        }

    # -- the client's face

    @property
    def failed(self) -> bool:
        """Whether a process is gone, and with it the replica."""
        return not all(each.alive for each in self.processes)

    def send(self, command: Command) -> None:
        everywhere = isinstance(command, (Hello, UpdateConfiguration))
        for line in self._lines if everywhere else self._lines[:1]:
            line.commands.put(command)

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._responses.receive(timeout)

    def listen(self, listener: Callable[[Response], None], ended: Callable[[], None]) -> None:
        self._responses.listen(listener, ended)

    def answer_now(self, _peek: Peek, _cancelled: Callable[[], bool] = lambda: False) -> PeekResponse | None:
        """Nothing can be read from outside the processes."""
        return None

    def stop(self) -> None:
        if self._answers is not None:
            self._answers.end("the replica was stopped", tell=False)

    def close(self) -> None:
        self.stop()
        for line in self._lines:
            line.close()
        for each in self.processes:
            each.mirrors.close()
            each.replica.close()
        self._responses.close()

    # -- connections and processes

    def connect(self) -> None:
        """New connections in place of those that are there, of which nothing more arrives."""
        self.stop()
        for line, each in zip(self._lines, self.processes, strict=False):
            line.close()
            each.stream.ended(line.responses)
        self._responses = ResponseQueue()
        self._answers = RemoteResponses(self.count, self.store, self._responses.put, self._hang_up)
        self._lines = []
        for each in self.processes:
            line = _Line(self, each, self._answers)
            self._lines.append(line)
            each.mirrors.disconnected()
            each.mirrors.connected(line.requests.put)

    def disconnect(self) -> None:
        """The connections are lost: the controller hears it at once, the processes after what still arrives."""
        if self._answers is not None:
            self._answers.end("the connection to the replica was lost", tell=True)

    def _hang_up(self) -> None:
        for line in self._lines:
            line.hang_up()

    def lose(self, process: SimulatedProcess, *, said: bool = False) -> None:
        """The process is gone; the others hear of it.  ``said``: what it had to say to the controller arrives."""
        if not process.alive:
            return
        process.alive = False
        process.replica.stop()
        process.stream.stop()
        kept = self.settings.kept
        if self._lines:
            line = self._lines[process.process]
            line.responses.cut(len(line.responses) if said else kept(len(line.responses)))
            line.requests.cut(kept(len(line.requests)))
            line.commands.close()
            line.updates.close()
        for one, other, channel in self._between():
            if one == process.process:
                channel.cut(kept(len(channel)))
            elif other == process.process:
                channel.close()

    def notice(self) -> None:
        """A process whose runtimes have failed ends."""
        for each in self.processes:
            if each.replica.failed:
                self.lose(each, said=True)

    def _peer_lost(self, process: SimulatedProcess) -> None:
        self.seen["process: ended by another's end"] += process.alive
        self.lose(process)

    # -- between the processes

    def post(self, role: Role, process: int, worker: int, message: Message) -> None:
        """For mailboxes only: a message of a worker of ``process`` for one elsewhere."""
        self.seen["exchange: rows between processes"] += message.rows is not None
        self._mesh[role, process, worker // self.settings.workers].put(exchanged(worker, message))

    def pass_on(self, command: Command) -> None:
        """For the first process only."""
        for channel in self._relay.values():
            channel.put(command)

    def _between(self) -> list[tuple[int, int, Channel[Command] | Channel[Exchanged]]]:
        """Each channel between two processes, with its sender and receiver."""
        rows = [(one, other, channel) for (_, one, other), channel in self._mesh.items()]
        return [*((0, process, channel) for process, channel in self._relay.items()), *rows]

    def _take(self, role: Role, process: SimulatedProcess, message: Exchanged) -> None:
        process.mailboxes[role].send(message.worker, message_of(message))

    def _ready(self, process: SimulatedProcess, command: Command) -> bool:
        waits = process.stream.waits_for_hello(command)
        self.seen["hello: passed on before it was said"] += waits
        return not waits

    # -- driving

    def movers(self) -> list[Mover]:
        """All that is driven beside the workers: as many, in the same order, on every connection."""
        lines = [mover for line in self._lines for mover in (*line.channels, line)]
        return [*lines, *(channel for *_, channel in self._between())]

    def deliver(self) -> bool:
        """Everything on its way arrives; True if anything was."""
        ever = False
        while sum(mover.move() for mover in self.movers()):
            ever = True
        return ever

    def sides(self) -> dict[str, Callable[[], bool]]:
        """A step of each worker of a runtime in every process, by role; everything on its way arrives before it."""
        return {role.value: functools.partial(self._step, role) for role in self.processes[0].mailboxes}

    def _step(self, role: Role) -> bool:
        moved = self.deliver()
        for each in self.processes:
            moved |= each.runtime(role).step()
        self.notice()
        return moved

    def at_rest(self) -> bool:
        """Nothing is on its way, rendered, asked, or read from a mirror."""
        channels = [channel for line in self._lines for channel in line.channels]
        moving = not all(c.at_rest for c in (*channels, *(channel for *_, channel in self._between())))
        pending = self._answers is not None and self._answers.pending()
        read = any(m.readers for each in self.processes for m in each.mirrors._mirrors.values())
        return not (moving or pending or read) and all(each.replica.at_rest() for each in self.processes)
