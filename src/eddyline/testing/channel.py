"""One direction of a connection, without sockets: messages become bytes, wait in order, and arrive one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from eddyline.protocol.codec import encode
from eddyline.protocol.messages import Command, Response
from eddyline.protocol.peer_messages import Exchanged
from eddyline.protocol.storage_messages import StorageRequest, StorageUpdate

__all__ = ["Channel"]

_Message = TypeVar("_Message", bound=Command | Response | Exchanged | StorageRequest | StorageUpdate)


class Channel(Generic[_Message]):
    """``take`` gets each message as it arrives, ``ended`` is called once, where a connection that was cut ends.

    ``ready``: whether ``take`` would return at once; while it would not, nothing arrives.  ``idle`` is called when the
    last message has left.
    """

    def __init__(
        self,
        decode: Callable[[bytes], _Message],
        take: Callable[[_Message], None],
        *,
        ended: Callable[[], None],
        ready: Callable[[_Message], bool] = lambda _message: True,
    ) -> None:
        self._decode = decode
        self._take = take
        self._ended = ended
        self._ready = ready
        self.idle: Callable[[], None] = lambda: None
        self._waiting: deque[bytes] = deque()
        self._cut = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is left to arrive."""
        return self._closed or not (self._waiting or self._cut)

    def put(self, message: _Message) -> None:
        """Nothing happens once the channel is cut or closed."""
        if not (self._cut or self._closed):
            self._waiting.append(encode(message))

    def move(self) -> bool:
        """The next message arrives, or the end; False if there is none, or it has to wait."""
        if self.at_rest:
            return False
        if not self._waiting:
            self._closed = True
            self._ended()
            return True
        message = self._decode(self._waiting[0])
        if not self._ready(message):
            return False
        self._waiting.popleft()
        self._take(message)
        if not self._waiting:
            self.idle()
        return True

    def cut(self, keep: int) -> None:
        """The sender is gone: the first ``keep`` of the messages still arrive, then the end."""
        if self._cut or self._closed:
            return
        self._cut = True
        while len(self._waiting) > keep:
            self._waiting.pop()

    def close(self) -> None:
        """The receiver is gone: nothing arrives any more, and no end is told."""
        self._closed = True
        self._waiting.clear()
