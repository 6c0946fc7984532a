"""Connections between processes: frames, greetings, links, sockets.  Strangers are told so, and harm nobody."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from eddyline.errors import DatabaseError
from eddyline.protocol.framing import Frames
from eddyline.protocol.handshake import (
    PROTOCOL_VERSION,
    Greeting,
    Purpose,
    Welcome,
    await_greeting,
    greet,
    turn_away,
    welcome,
)
from eddyline.protocol.link import Link
from eddyline.protocol.sockets import connect_to, listen_at

WELCOME = Welcome(process=0, processes=1, workers=2, interactive=True)


@pytest.fixture
def ends() -> Iterator[tuple[Frames, Frames]]:
    left, right = socket.socketpair()
    one, other = Frames(left), Frames(right)
    yield one, other
    one.close()
    other.close()


def refused(frames: Frames, most_bytes: int = 1 << 20) -> str:
    with pytest.raises(DatabaseError) as caught:
        frames.receive(most_bytes)
    return caught.value.sqlstate


# -- frames


@pytest.mark.parametrize("sizes", [[0], [1, 0, 5], [1 << 16, (1 << 16) + 1, 3], [3_000_000, 7]])
def test_frames_arrive_whole_and_in_order(ends: tuple[Frames, Frames], sizes: list[int]) -> None:
    sent = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    sender = threading.Thread(target=ends[0].send, args=(sent,))
    sender.start()
    assert [ends[1].receive() for _ in sizes] == sent
    sender.join()


def test_the_end_between_frames_is_the_end() -> None:
    left, right = socket.socketpair()
    Frames(left).close()
    frames = Frames(right)
    assert frames.receive() is None
    frames.close()


@pytest.mark.parametrize("data", [b"\x05", struct.pack("<I", 5), struct.pack("<I", 5) + b"abc"])
def test_an_end_within_a_frame_is_an_error(data: bytes) -> None:
    left, right = socket.socketpair()
    left.sendall(data)
    left.close()
    frames = Frames(right)
    assert refused(frames) == "08P01"
    frames.close()


def test_a_length_that_cannot_be_is_refused_before_anything_is_read() -> None:
    left, right = socket.socketpair()
    left.sendall(b"GET / HTTP/1.1\r\n")
    frames = Frames(right)
    assert refused(frames, 4096) == "08P01"
    frames.close()
    left.close()


# -- greetings


def answer(frames: Frames, caught: list[DatabaseError]) -> None:
    try:
        await_greeting(frames)
        welcome(frames, WELCOME)
    except DatabaseError as error:
        caught.append(error)
        turn_away(frames, error)


def test_a_greeting_is_welcomed(ends: tuple[Frames, Frames]) -> None:
    greeting: list[Greeting] = []

    def serve() -> None:
        greeting.append(await_greeting(ends[1]))
        welcome(ends[1], WELCOME)

    server = threading.Thread(target=serve)
    server.start()
    assert greet(ends[0], Purpose.STORAGE, process=3) == WELCOME
    server.join()
    assert greeting == [Greeting(PROTOCOL_VERSION, Purpose.STORAGE, 3)]


def test_another_version_is_refused_with_what_to_do(ends: tuple[Frames, Frames]) -> None:
    caught: list[DatabaseError] = []
    ends[0].send([msgspec.msgpack.encode(Greeting(PROTOCOL_VERSION + 1, Purpose.COMMANDS))])
    answer(ends[1], caught)
    assert caught[0].sqlstate == "0A000"
    # The same as seen by the connector, which raises what it is told.
    left, right = socket.socketpair()
    far = Frames(right)

    def turn_it_away() -> None:
        far.receive()
        turn_away(far, caught[0])

    server = threading.Thread(target=turn_it_away)
    server.start()
    with pytest.raises(DatabaseError) as told:
        greet(Frames(left), Purpose.COMMANDS)
    server.join()
    assert (told.value.sqlstate, told.value.message) == ("0A000", caught[0].message)
    assert told.value.hint is not None
    assert str(PROTOCOL_VERSION) in told.value.hint


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", msgspec.msgpack.encode({"op": "hello"}), msgspec.msgpack.encode(Greeting(1, Purpose.STORAGE))[:-2]],
)
def test_what_is_no_greeting_is_refused(ends: tuple[Frames, Frames], data: bytes) -> None:
    ends[0].send([data])
    caught: list[DatabaseError] = []
    answer(ends[1], caught)
    assert caught[0].sqlstate == "08P01"


def test_a_hang_up_instead_of_an_answer_is_a_failed_connection(ends: tuple[Frames, Frames]) -> None:
    def hang_up() -> None:
        ends[1].receive()
        ends[1].close()

    server = threading.Thread(target=hang_up)
    server.start()
    with pytest.raises(DatabaseError) as caught:
        greet(ends[0], Purpose.COMMANDS)
    server.join()
    assert caught.value.sqlstate == "08006"


# -- links


class Ends:
    """Two links that face each other, and what came of them."""

    def __init__(self) -> None:
        self.arrived: list[int] = []
        self.changed = threading.Condition()
        self.ended: list[Exception | None] = []
        left, right = socket.socketpair()
        self.raw = right
        self.sender: Link[int, int] = self._link(left, [])
        self.receiver: Link[int, int] = self._link(right, self.arrived)

    def _link(self, end: socket.socket, into: list[int]) -> Link[int, int]:
        def take(message: int) -> None:
            with self.changed:
                into.append(message)
                self.changed.notify_all()

        def ended(error: Exception | None) -> None:
            with self.changed:
                self.ended.append(error)
                self.changed.notify_all()

        return Link(Frames(end), name="test", encode=msgspec.msgpack.encode, decode=decoded, take=take, ended=ended)

    def wait(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.arrived) >= count, 20)


def decoded(data: bytes) -> int:
    try:
        return msgspec.msgpack.decode(data, type=int)
    except msgspec.MsgspecError as error:
        raise DatabaseError("malformed", sqlstate="08P01") from error


def test_messages_of_a_link_arrive_in_order_and_a_hang_up_ends_both_ends_once() -> None:
    pair = Ends()
    for n in range(2000):
        pair.sender.send(n)
    pair.sender.start()
    pair.receiver.start()
    pair.wait(2000)
    assert pair.sender.flush(20)
    assert pair.arrived == list(range(2000))
    pair.sender.close()
    with pair.changed:
        assert pair.changed.wait_for(lambda: len(pair.ended) == 2, 20)
    pair.receiver.close()
    pair.sender.send(1)
    assert pair.ended == [None, None]


def test_garbage_ends_a_link_with_an_error() -> None:
    pair = Ends()
    pair.sender.start()
    Frames(pair.raw).send([b"\xc1\xc1"])
    with pair.changed:
        assert pair.changed.wait_for(lambda: bool(pair.ended), 20)
    (error,) = pair.ended
    assert isinstance(error, DatabaseError)
    assert error.sqlstate == "08P01"
    pair.sender.close()
    pair.receiver.close()


# -- sockets


def test_a_stale_socket_file_is_taken_over_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listen_at(path).close()
    assert Path(path).exists(), "closing leaves the file, as a process that was killed does"
    with pytest.raises(DatabaseError) as nobody:
        connect_to(path)
    assert nobody.value.sqlstate == "08001"
    with listen_at(path) as listener:
        with connect_to(path):
            assert Path(path).stat().st_mode & 0o777 == 0o600
        with pytest.raises(DatabaseError) as taken:
            listen_at(path)
        assert taken.value.sqlstate == "55006"
        assert listener.fileno() >= 0


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    with pytest.raises(DatabaseError) as refusal:
        listen_at(str(file))
    assert refusal.value.sqlstate == "58P02"
    assert file.read_text() == "mine"


def test_a_path_that_is_too_long_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as refusal:
        listen_at(str(tmp_path / ("x" * 120)))
    assert refusal.value.sqlstate == "22023"
