"""What is to be sent to a client, put together in pieces that are worth sending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.frontends.pgwire.steps import Send

__all__ = ["Output"]

_FLUSH_BYTES: Final = 64 << 10


class Output:
    """Owner: whoever advances the conversation."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0

    def say(self, data: bytes) -> None:
        self._parts.append(data)
        self._bytes += len(data)

    def take(self) -> bytes:
        """All of it, which is then gone."""
        data = b"".join(self._parts)
        self._parts.clear()
        self._bytes = 0
        return data

    def flushed(self) -> Iterator[Send]:
        """A step that sends it, if it has grown large enough."""
        if self._bytes >= _FLUSH_BYTES:
            yield Send(self.take())
