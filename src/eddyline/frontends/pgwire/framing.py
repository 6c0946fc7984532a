"""Bytes from a client cut into messages: the packet that opens a connection, then tagged messages.

Invariants:
I1  a message is given only when all of it is there; its length has been checked when its first five bytes were;
I2  what is kept is at most one incomplete message and what was fed after it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from eddyline.errors import make_error

__all__ = ["MAX_MESSAGE_BYTES", "MAX_STARTUP_BYTES", "Framing", "RawMessage"]

#: as PostgreSQL's MAX_STARTUP_PACKET_LENGTH
MAX_STARTUP_BYTES: Final = 10_000
#: of one message of a client that has not shown who it is
MAX_UNKNOWN_BYTES: Final = 65_535
#: a statement of the longest text, or a row of COPY; longer data come in more messages
MAX_MESSAGE_BYTES: Final = (256 << 20) + 1024

_TAGS: Final = frozenset(b"QPBDECHSXFdcfp")
_LEAST_STARTUP: Final = 8


class RawMessage(NamedTuple):
    """``tag``: the byte before the length; 0 for the packet that opens a connection."""

    tag: int
    payload: bytes


class Framing:
    """``trusted``: whether the client has shown who it is, and may send long messages."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0  # where the next message starts
        self.trusted = False

    def feed(self, data: bytes) -> None:
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += data

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were fed and not yet given."""
        return len(self._data) - self._at

    def next_packet(self) -> RawMessage | None:
        """The packet that opens a connection: its code and what follows; 08P01 for a length that none has."""
        if self.waiting_bytes < 4:
            return None
        (length,) = struct.unpack_from("!i", self._data, self._at)
        if not _LEAST_STARTUP <= length <= MAX_STARTUP_BYTES:
            raise make_error("08P01", "invalid length of startup packet")
        return self._take(0, 4, length - 4)

    def next_message(self) -> RawMessage | None:
        """The next tagged message; 08P01 for an unknown tag or a length that none has."""
        if self.waiting_bytes < 5:
            return None
        tag = self._data[self._at]
        (length,) = struct.unpack_from("!i", self._data, self._at + 1)
        if tag not in _TAGS:
            raise make_error("08P01", f"invalid frontend message type {tag}")
        if length < 4 or length - 4 > (MAX_MESSAGE_BYTES if self.trusted else MAX_UNKNOWN_BYTES):
            raise make_error("08P01", f"invalid message length: {length} bytes")
        return self._take(tag, 5, length - 4)

    def peek_tag(self) -> int | None:
        """The tag of the next message if all of it is there."""
        if self.waiting_bytes < 5:
            return None
        (length,) = struct.unpack_from("!i", self._data, self._at + 1)
        return self._data[self._at] if 4 <= length < self.waiting_bytes else None

    def _take(self, tag: int, header: int, size: int) -> RawMessage | None:
        start = self._at + header
        if len(self._data) - start < size:
            return None
        self._at = start + size
        payload = bytes(memoryview(self._data)[start : self._at])
        if self._at == len(self._data):
            self._data.clear()
            self._at = 0
        return RawMessage(tag, payload)
