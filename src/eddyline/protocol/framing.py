"""Frames: messages over a stream socket, each behind its length.

A frame is four bytes, the length of what follows (unsigned, little-endian), and that many bytes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Final

from eddyline.errors import make_error

__all__ = ["MOST_FRAME_BYTES", "Frames"]

#: of one frame
MOST_FRAME_BYTES: Final = (1 << 31) - 1
_HEADER: Final = struct.Struct("<I")
#: frames up to this size are sent together with their length
_SMALL_BYTES: Final = 1 << 16


class Frames:
    """A connected socket that sends and receives frames.  One thread sends, one receives; any thread closes."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def settimeout(self, seconds: float | None) -> None:
        """How long one call may wait; past it OSError (``TimeoutError``) is raised."""
        self._socket.settimeout(seconds)

    def send(self, frames: Sequence[bytes]) -> None:
        """All of them, in order.  OSError if the connection is gone; 54000 if one is longer than a frame may be."""
        small = bytearray()
        for data in frames:
            if len(data) > MOST_FRAME_BYTES:
                raise make_error("54000", f"a message of {len(data)} bytes is too large")
            small += _HEADER.pack(len(data))
            if len(data) <= _SMALL_BYTES:
                small += data
            else:
                self._socket.sendall(small)
                self._socket.sendall(data)
                small = bytearray()
        if small:
            self._socket.sendall(small)

    def receive(self, most_bytes: int = MOST_FRAME_BYTES) -> bytes | None:
        """The next frame; None at the end.  08P01 if it claims to be longer than ``most_bytes``, or is cut short."""
        header = self._exactly(_HEADER.size)
        if header is None:
            return None
        (length,) = _HEADER.unpack(header)
        if length > most_bytes:
            raise make_error(
                "08P01",
                f"a frame of {length} bytes where {most_bytes} are the most",
                hint="The other end of the socket does not speak this protocol.",
            )
        data = self._exactly(length)
        if data is None and length:
            raise make_error("08P01", "the connection ended within a frame")
        return bytes(data or b"")

    def _exactly(self, length: int) -> bytearray | None:
        """``length`` bytes; None if the connection ends before the first."""
        data = bytearray(length)
        view, done = memoryview(data), 0
        while done < length:
            count = self._socket.recv_into(view[done:])
            if not count:
                if done:
                    raise make_error("08P01", "the connection ended within a frame")
                return None
            done += count
        return data

    def close(self) -> None:
        """Ends both directions, and whoever waits in a call.  Twice is harmless."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._socket.close()  # it was not connected any more
            return
        self._socket.close()
