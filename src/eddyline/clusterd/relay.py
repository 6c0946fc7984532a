"""The commands that the first process of a replica passes on, on connections that carry nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from eddyline.protocol.codec import decode_command, encode
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import Purpose
from eddyline.protocol.link import Link
from eddyline.protocol.messages import Command

__all__ = ["Relay"]


class Relay:
    """``connections``: of the first process, to each other one; of another, to the first.

    ``take``: gets each command that arrives, in order, and may block; ``lost``: the ordinal of a process that is gone.
    """

    def __init__(
        self,
        connections: Mapping[int, Frames],
        *,
        take: Callable[[Command], None],
        lost: Callable[[int], None],
    ) -> None:
        self._links: list[Link[Command, Command]] = [
            Link(
                frames,
                name=f"{Purpose.PASSED_ON.value}:{other}",
                encode=encode,
                decode=decode_command,
                take=take,
                ended=functools.partial(_ended, lost, other),
            )
            for other, frames in connections.items()
        ]

    def start(self) -> None:
        """Commands arrive from here on."""
        for link in self._links:
            link.start()

    def pass_on(self, command: Command) -> None:
        """Gives a command to every other process; for the first process.  Never blocks."""
        for link in self._links:
            link.send(command)

    def close(self) -> None:
        for link in self._links:
            link.close()


def _ended(lost: Callable[[int], None], other: int, _error: Exception | None) -> None:
    lost(other)
