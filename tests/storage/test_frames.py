"""Frames: what is written is read, whatever its size; what is not whole is not."""

from __future__ import annotations

import random

import pytest

from eddyline.storage.frames import FrameReader, encode_frame, write_buffers
from eddyline.testing.torn_files import TornFiles


@pytest.mark.parametrize(
    "sizes", [(), (0,), (1, 2, 3), (300_000,), (10, 300_000, 10, 262_144, 262_143, 5), (3_000_000,)]
)
def test_what_is_written_is_read(sizes: tuple[int, ...]) -> None:
    rng = random.Random(1)
    file = TornFiles(rng).create("f")
    payloads = [rng.randbytes(size) for size in sizes]
    buffers: list[bytes | memoryview] = []
    end = 0
    for i, payload in enumerate(payloads):
        frame = encode_frame(i % 3, [payload[:7], memoryview(payload)[7:]], offset=end, synced=0)
        buffers += frame
        end += sum(memoryview(b).nbytes for b in frame)
    write_buffers(file, buffers, 0)
    assert file.size() == end
    reader = FrameReader(file)
    assert [(f.kind, bytes(f.payload)) for f in reader] == [(i % 3, p) for i, p in enumerate(payloads)]
    assert reader.whole


@pytest.mark.parametrize("cut", [1, 20, 39, 40, 41, 45])
def test_reading_ends_before_what_is_not_whole(cut: int) -> None:
    file = TornFiles(random.Random(1)).create("f")
    first = b"".join(encode_frame(1, [b"first"], offset=0, synced=0))
    second = b"".join(encode_frame(1, [b"second"], offset=len(first), synced=0))
    file.write(first + second[: len(second) - cut], 0)
    reader = FrameReader(file)
    assert [bytes(f.payload) for f in reader] == [b"first"]
    assert not reader.whole
    assert reader.torn()


def test_a_frame_behind_what_was_safe_tells_damage_from_a_torn_end() -> None:
    file = TornFiles(random.Random(1)).create("f")
    first = b"".join(encode_frame(1, [b"first"], offset=0, synced=0))
    for synced, torn in ((0, True), (len(first), False)):
        second = b"".join(encode_frame(1, [b"second"], offset=len(first), synced=synced))
        file.write(first + second, 0)
        file.write(b"X", len(first) - 1)  # the last byte of the first one's payload
        reader = FrameReader(file)
        assert list(reader) == []
        assert reader.torn() is torn


def test_a_frame_from_another_place_is_none() -> None:
    file = TornFiles(random.Random(1)).create("f")
    file.write(b"".join(encode_frame(1, [b"moved"], offset=10, synced=0)), 0)
    assert list(FrameReader(file)) == []
