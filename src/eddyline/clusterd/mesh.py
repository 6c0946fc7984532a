"""The rows that workers of one runtime send to workers in other processes of the replica.

Each runtime has a mesh of its own, one connection for each pair of processes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from eddyline.compute.exchange import Channel, Mailboxes, Message
from eddyline.compute.layout import RuntimeConfig
from eddyline.protocol.codec import decode_exchanged, encode
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose
from eddyline.protocol.link import Link
from eddyline.protocol.messages import RowBatch
from eddyline.protocol.peer_messages import Exchanged
from eddyline.repr.batch import Batch
from eddyline.repr.time import Frontier

__all__ = ["Mesh", "exchanged", "message_of"]


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
    """``connections``: to every other process, by ordinal; ``lost``: gets the ordinal of a process that is gone.

    ``mailboxes`` are those of this process's workers.  Build it, build the runtime, ``start``.
    """

    def __init__(
        self, purpose: Purpose, config: RuntimeConfig, connections: Mapping[int, Frames], *, lost: Callable[[int], None]
    ) -> None:
        self._workers, processes = config.layout.workers, config.layout.processes
        self._lost = lost
        self.mailboxes = Mailboxes(
            self._workers,
            first=config.process * self._workers,
            all_workers=self._workers * processes,
            post=self._post,
        )
        self._links: dict[int, Link[Exchanged, Exchanged]] = {
            other: Link(
                frames,
                name=f"{purpose.value}:{other}",
                encode=encode,
                decode=decode_exchanged,
                take=self._take,
                ended=functools.partial(self._ended, other),
            )
            for other, frames in connections.items()
        }

    def start(self) -> None:
        """Messages arrive from here on."""
        for link in self._links.values():
            link.start()

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    def _ended(self, other: int, _error: Exception | None) -> None:
        self._lost(other)

    def _post(self, worker: int, message: Message) -> None:
        self._links[worker // self._workers].send(exchanged(worker, message))

    def _take(self, message: Exchanged) -> None:
        self.mailboxes.send(message.worker, message_of(message))
