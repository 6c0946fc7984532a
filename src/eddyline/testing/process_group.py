"""A replica of several processes' worth in this one: what they tell each other goes through bytes, and when is told.

Each has its own mirrors, workers and mailboxes, as ``clusterd`` has; the sockets and their threads are left out.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable

from eddyline.clusterd.mesh import exchanged, message_of
from eddyline.clusterd.mirror import MirrorStore
from eddyline.compute.exchange import Mailboxes, Message
from eddyline.compute.merge_responses import ResponseMerger
from eddyline.compute.pair import Pair
from eddyline.compute.placement import Role
from eddyline.compute.runtime import Runtime
from eddyline.compute.solo import Solo
from eddyline.protocol.client import ResponseQueue
from eddyline.protocol.codec import (
    decode_command,
    decode_peer_message,
    decode_response,
    decode_storage_request,
    decode_storage_update,
    encode,
)
from eddyline.protocol.messages import Command, Hello, Response
from eddyline.protocol.peer_messages import Exchanged
from eddyline.storage.feed import StorageFeed
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher

__all__ = ["ProcessGroup"]


class _Process:
    """One process's worth; ``post(role, worker, message)`` takes what is for another one's workers."""

    def __init__(
        self,
        group: ProcessGroup,
        store: TableStore,
        hasher: Hasher,
        *,
        process: int,
        processes: int,
        workers: int,
        interactive: bool,
        clock: Callable[[], int],
    ) -> None:
        self.down: deque[bytes] = deque()
        self.up: deque[bytes] = deque()
        self.mirrors = MirrorStore(hasher)
        self.feed = StorageFeed(
            store, hasher, send=lambda u: self.down.append(encode(u)), process=process, processes=processes
        )
        self.mirrors.connected(lambda r: self.up.append(encode(r)))
        roles = (Role.MAINTENANCE, Role.INTERACTIVE) if interactive else (Role.SOLO,)
        self.mailboxes = {
            role: Mailboxes(
                workers,
                first=process * workers,
                all_workers=processes * workers,
                post=functools.partial(group.post, role),
            )
            for role in roles
        }
        self.replica: Pair | Solo
        if interactive:
            self.replica = Pair(
                self.mirrors, hasher, workers=workers, mailboxes=self.mailboxes, threads=False, clock=clock
            )
        else:
            mailboxes = self.mailboxes[Role.SOLO]
            self.replica = Solo(self.mirrors, hasher, workers=workers, mailboxes=mailboxes, threads=False, clock=clock)

    def runtime(self, role: Role) -> Runtime:
        if isinstance(self.replica, Pair):
            return self.replica.maintenance if role is Role.MAINTENANCE else self.replica.interactive
        return self.replica

    def step_storage(self) -> bool:
        moved = bool(self.up or self.down)
        while self.up:
            self.feed.receive(decode_storage_request(self.up.popleft()))
        moved |= self.feed.step()
        while self.down:
            self.mirrors.receive(decode_storage_update(self.down.popleft()))
        return moved


class ProcessGroup:
    """``processes`` with ``workers`` each, as one replica without threads, which is commanded like others.

    Every process gets every command in one order, as if the first one had passed them on.
    """

    def __init__(
        self,
        store: TableStore,
        hasher: Hasher,
        *,
        processes: int,
        workers: int,
        interactive: bool,
        clock: Callable[[], int],
    ) -> None:
        self.workers = workers
        self._responses = ResponseQueue()
        self._merger = ResponseMerger(processes, self._responses.put)
        self._connection = 0
        self._nonce = ""
        #: what is on its way to other processes' workers, by runtime
        self._posted: dict[Role, deque[bytes]] = {role: deque() for role in Role}
        self.processes = [
            _Process(
                self, store, hasher, process=p, processes=processes, workers=workers, interactive=interactive,
                clock=clock,
            )
            for p in range(processes)
        ]  # fmt: skip
        for p, each in enumerate(self.processes):
            each.replica.listen(functools.partial(self._respond, p), lambda: None)

    @property
    def failed(self) -> bool:
        return any(each.replica.failed for each in self.processes)

    def send(self, command: Command) -> None:
        if isinstance(command, Hello) and command.nonce != self._nonce:
            self._nonce = command.nonce
            self._connection += 1
            self._merger.begin_connection()
        data = encode(command)
        for each in self.processes:
            each.replica.send(decode_command(data))

    def receive(self, timeout: float | None = None) -> Response | None:
        return self._responses.receive(timeout)

    def post(self, role: Role, worker: int, message: Message) -> None:
        """For mailboxes only."""
        self._posted[role].append(encode(exchanged(worker, message)))

    def sides(self) -> dict[str, Callable[[], bool]]:
        """A step of each worker of a runtime in every process, by role; storage and the exchange move with each."""
        return {role.value: functools.partial(self._step, role) for role in self.processes[0].mailboxes}

    def at_rest(self) -> bool:
        partial = self._merger.pending() or any(self._posted.values())
        return not partial and all(each.replica.at_rest() for each in self.processes)

    def close(self) -> None:
        for each in self.processes:
            each.replica.close()
            each.feed.close()

    def _step(self, role: Role) -> bool:
        moved = bool(self._posted[role])
        while self._posted[role]:
            message = decode_peer_message(self._posted[role].popleft())
            assert isinstance(message, Exchanged), message
            self.processes[message.worker // self.workers].mailboxes[role].send(message.worker, message_of(message))
        for each in self.processes:
            moved |= each.step_storage()
            moved |= each.runtime(role).step()
        return moved

    def _respond(self, process: int, response: Response) -> None:
        self._merger.put(process, self._connection, decode_response(encode(response)))
