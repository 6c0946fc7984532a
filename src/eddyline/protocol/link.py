"""A connection that is established: messages both ways, each way on a thread of its own.

Sending never blocks: messages wait in a queue, are encoded by the thread that sends them, and small ones share a
packet.  Whatever ends one direction ends both, and is told once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from eddyline.errors import Error
from eddyline.protocol.framing import Frames

__all__ = ["Link"]

_Out = TypeVar("_Out")
_In = TypeVar("_In")
#: encoded messages that are sent at once, and how many bytes of them
_TOGETHER: Final = 256
_TOGETHER_BYTES: Final = 1 << 18


class Link(Generic[_Out, _In]):
    """``take`` gets each message on the receiving thread, in order, and may block: the other end then comes to wait.

    ``ended`` is called once, on one of the link's threads: with None after a hang-up or ``close``, with the error that
    ended it otherwise; ``idle`` whenever everything was handed to the socket.  An exception of ``take`` is not caught:
    whoever gives it knows what it means.
    """

    def __init__(
        self,
        frames: Frames,
        *,
        name: str,
        encode: Callable[[_Out], bytes],
        decode: Callable[[bytes], _In],
        take: Callable[[_In], None],
        ended: Callable[[Exception | None], None],
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._frames = frames
        self._encode = encode
        self._decode = decode
        self._take = take
        self._ended = ended
        self._idle = idle
        self._changed = threading.Condition()
        self._queue: deque[_Out] = deque()  # guarded by _changed, like the rest
        self._sending = False
        self._over = False
        self._threads = [
            threading.Thread(target=self._send_all, name=f"{name}:out", daemon=True),
            threading.Thread(target=self._receive_all, name=f"{name}:in", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def send(self, message: _Out) -> None:
        """In order with the other calls; nothing happens once the link is over.  Any thread."""
        with self._changed:
            if not self._over:
                self._queue.append(message)
                self._changed.notify_all()

    def waiting(self) -> int:
        """Messages that the socket has not taken yet."""
        with self._changed:
            return len(self._queue)

    def flush(self, timeout: float) -> bool:
        """Waits until everything is handed to the socket; False if the time is up or the link is over."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over or not (self._queue or self._sending), timeout) and (
                not self._over
            )

    def abandon(self) -> None:
        """Ends the link without waiting for its threads.  Any thread; ``close`` does the rest."""
        self._end(None)

    def close(self) -> None:
        """Ends the link and its threads, unless it is one of them that calls.  Twice is harmless."""
        self._end(None)
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join()

    def _end(self, error: Exception | None) -> None:
        with self._changed:
            first, self._over = not self._over, True
            self._queue.clear()
            self._changed.notify_all()
        if first:
            self._frames.close()
            self._ended(error)

    def _send_all(self) -> None:
        while True:
            with self._changed:
                idle, self._sending = self._sending and not self._queue, False
                self._changed.notify_all()
            if idle:
                self._idle()
            with self._changed:
                self._changed.wait_for(lambda: self._over or bool(self._queue))
                if self._over:
                    return
                self._sending = True
            try:
                self._frames.send(self._packet())
            except OSError:
                self._end(None)  # the other end is gone
                return
            except Error as error:
                self._end(error)
                return

    def _packet(self) -> list[bytes]:
        packet: list[bytes] = []
        size = 0
        while len(packet) < _TOGETHER and size < _TOGETHER_BYTES:
            with self._changed:
                if not self._queue:
                    break
                message = self._queue.popleft()
            packet.append(self._encode(message))
            size += len(packet[-1])
        return packet

    def _receive_all(self) -> None:
        while True:
            try:
                data = self._frames.receive()
                message = None if data is None else self._decode(data)
            except OSError:
                self._end(None)
                return
            except Error as error:
                self._end(error)
                return
            if message is None:
                self._end(None)
                return
            self._take(message)
