"""Frames: what every file of a durable directory consists of, each with its length and checksum.

A frame knows its own offset, so that bytes left from another place never pass for one, and how far the file was known
to be on the disk when the frame was written (``synced``).  Hence a file that was cut off by a loss of power can be told
from one that was damaged later: a torn end has nothing behind it that claims to have been written after it was safe.

===========  =======================================================
bytes        meaning (little-endian)
===========  =======================================================
0–3          ``EDf1``
4            kind
8–15         length of the payload
16–23        offset of the frame in its file
24–31        ``synced``: the file was safe up to here
32–35        CRC-32 of the payload, then of the bytes before
36–39        zero
===========  =======================================================
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from eddyline.storage.files import File

__all__ = ["HEADER_BYTES", "Frame", "FrameReader", "encode_frame", "write_buffers"]

_MAGIC: Final = b"EDf1"
_HEAD: Final = struct.Struct("<4sB3xQQQ")
_CHECK: Final = struct.Struct("<I4x")
HEADER_BYTES: Final = _HEAD.size + _CHECK.size
_BLOCK_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 18


class Frame(NamedTuple):
    kind: int
    payload: memoryview
    offset: int
    end: int


def encode_frame(
    kind: int, parts: Sequence[bytes | memoryview], *, offset: int, synced: int
) -> list[bytes | memoryview]:
    """The buffers of a frame with the payload ``parts``, which are not copied.  O(bytes) for the checksum."""
    length = sum(memoryview(part).nbytes for part in parts)
    head = _HEAD.pack(_MAGIC, kind, length, offset, synced)
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return [head, _CHECK.pack(zlib.crc32(head, check)), *parts]


def write_buffers(file: File, buffers: Sequence[bytes | memoryview], offset: int) -> None:
    """Writes them one after the other.  Small ones together; large ones are not put together, which would keep other
    threads from running while they are copied.
    """
    small: list[bytes | memoryview] = []
    waiting = 0
    for buffer in buffers:
        size = memoryview(buffer).nbytes
        if size < _SMALL_BYTES and waiting < _SMALL_BYTES:
            small.append(buffer)
            waiting += size
            continue
        if small:
            file.write(b"".join(small), offset)
            offset, waiting = offset + waiting, 0
            small.clear()
        file.write(buffer, offset)
        offset += size
    if small:
        file.write(b"".join(small), offset)


class FrameReader:
    """Reads the frames of ``file`` from ``offset`` up to ``end``.

    ``offset`` is behind the last good frame; ``whole`` says whether that is ``end``.
    """

    def __init__(self, file: File, *, offset: int = 0, end: int | None = None) -> None:
        self._file = file
        self.offset = offset
        self.end = file.size() if end is None else min(end, file.size())
        self._block = b""
        self._block_at = 0

    @property
    def whole(self) -> bool:
        return self.offset == self.end

    def __iter__(self) -> Iterator[Frame]:
        while (found := self._frame(self.offset)) is not None:
            frame, _ = found
            self.offset = frame.end
            yield frame

    def torn(self) -> bool:
        """Whether what follows the last good frame may be what a loss of power left of writes that were not synced.

        False if a good frame behind it was written when this was safe already: then it was damaged later.  O(bytes).
        """
        at = self.offset
        while (at := self._find(at + 1)) >= 0:
            found = self._frame(at)
            if found is not None and found[1] > self.offset:
                return False
        return True

    def _frame(self, offset: int) -> tuple[Frame, int] | None:
        """The frame at ``offset`` and its ``synced``; None if there is no good one."""
        head = self._read(offset, HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return None
        magic, kind, length, own_offset, synced = _HEAD.unpack_from(head)
        end = offset + HEADER_BYTES + length
        if magic != _MAGIC or own_offset != offset or end > self.end:
            return None
        payload = self._read(offset + HEADER_BYTES, length)
        (check,) = _CHECK.unpack_from(head, _HEAD.size)
        if len(payload) < length or zlib.crc32(head[: _HEAD.size], zlib.crc32(payload)) != check:
            return None
        return Frame(kind, payload, offset, end), synced

    def _read(self, offset: int, size: int) -> memoryview:
        inside = offset - self._block_at
        if inside < 0 or inside + size > len(self._block):
            self._block = self._file.read(offset, min(max(size, _BLOCK_BYTES), self.end - offset))
            self._block_at, inside = offset, 0
        return memoryview(self._block)[inside : inside + size]

    def _find(self, start: int) -> int:
        """Where the next frame may begin; -1 if nowhere."""
        while start + HEADER_BYTES <= self.end:
            block = self._file.read(start, min(_BLOCK_BYTES, self.end - start))
            found = block.find(_MAGIC)
            if found >= 0:
                return start + found
            start += max(len(block) - len(_MAGIC) + 1, 1)
        return -1
