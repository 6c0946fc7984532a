"""What clients say: one frozen class per message, read from its payload.

A payload that is not what its tag promises is 08P01; text that is not UTF-8 is 22021.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from eddyline.errors import make_error
from eddyline.frontends.pgwire.framing import RawMessage

__all__ = [
    "Bind",
    "CancelRequest",
    "ClientMessage",
    "Close",
    "CopyData",
    "CopyDone",
    "CopyFail",
    "Describe",
    "Encryption",
    "Execute",
    "Flush",
    "Parse",
    "Password",
    "Query",
    "Startup",
    "Sync",
    "Terminate",
    "read_message",
    "read_packet",
]

_PROTOCOL_MAJOR: Final = 3
_CANCEL: Final = 80877102
_SSL: Final = 80877103
_GSS: Final = 80877104


# -- opening packets


@dataclass(frozen=True, slots=True)
class Startup:
    """``minor``: of the protocol's version 3.  ``parameters``: user, database, and settings to begin with."""

    minor: int
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Encryption:
    """The client asks for an encrypted connection; ``tls`` False: by GSSAPI."""

    tls: bool


@dataclass(frozen=True, slots=True)
class CancelRequest:
    process: int
    secret: int


# -- messages


@dataclass(frozen=True, slots=True)
class Query:
    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    """``types``: an OID per parameter, 0 where it is left open; there may be fewer than parameters."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Formats: 0 text, 1 binary; none at all means text, one means that one for all."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """``statement``: a prepared statement's name is meant, not a portal's."""

    statement: bool
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """``limit``: the most rows; 0 or less: all."""

    portal: str
    limit: int


@dataclass(frozen=True, slots=True)
class Close:
    statement: bool
    name: str


@dataclass(frozen=True, slots=True)
class Sync:
    pass


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class FunctionCall:
    pass


@dataclass(frozen=True, slots=True)
class CopyData:
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    pass


@dataclass(frozen=True, slots=True)
class CopyFail:
    reason: str


@dataclass(frozen=True, slots=True)
class Password:
    """The answer to an authentication request, whatever it asked for."""

    data: bytes


ClientMessage: TypeAlias = (
    Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | FunctionCall
    | CopyData
    | CopyDone
    | CopyFail
    | Password
)


class _Payload:
    """Reads a payload from its start to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def text(self) -> str:
        """Up to the next zero byte."""
        end = self._data.find(0, self._at)
        if end < 0:
            raise make_error("08P01", "invalid string in message")
        raw = self._data[self._at : end]
        self._at = end + 1
        return decoded(raw)

    def byte(self) -> int:
        return self.take(1)[0]

    def int16(self) -> int:
        value: int = struct.unpack("!h", self.take(2))[0]
        return value

    def count(self) -> int:
        value: int = struct.unpack("!H", self.take(2))[0]
        return value

    def int32(self) -> int:
        value: int = struct.unpack("!i", self.take(4))[0]
        return value

    def uint32(self) -> int:
        value: int = struct.unpack("!I", self.take(4))[0]
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or len(self._data) - self._at < size:
            raise make_error("08P01", "insufficient data left in message")
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def end(self) -> None:
        if self.left:
            raise make_error("08P01", "invalid message format")


def decoded(raw: bytes) -> str:
    """22021 for bytes that are not UTF-8, with PostgreSQL's words."""
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        shown = " ".join(f"0x{b:02x}" for b in raw[problem.start : problem.end])
        raise make_error("22021", f'invalid byte sequence for encoding "UTF8": {shown}') from problem


def read_packet(packet: RawMessage) -> Startup | Encryption | CancelRequest:
    """The opening packet; 0A000 for another version of the protocol."""
    payload = _Payload(packet.payload)
    code = payload.int32()
    match code:
        case _ if code == _CANCEL:
            request = CancelRequest(payload.uint32(), payload.uint32())
            payload.end()
            return request
        case _ if code in (_SSL, _GSS):
            payload.end()
            return Encryption(tls=code == _SSL)
    major, minor = code >> 16, code & 0xFFFF
    if major != _PROTOCOL_MAJOR:
        raise make_error(
            "0A000",
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0",
            hint="Use version 3.0.",
        )
    return Startup(minor, _parameters(payload))


def _parameters(payload: _Payload) -> dict[str, str]:
    found: dict[str, str] = {}
    while name := payload.text():
        found[name] = payload.text()
    payload.end()
    return found


def _query(payload: _Payload) -> Query:
    return Query(payload.text())


def _parse(payload: _Payload) -> Parse:
    name, text = payload.text(), payload.text()
    return Parse(name, text, tuple(payload.uint32() for _ in range(payload.count())))


def _bind(payload: _Payload) -> Bind:
    portal, statement = payload.text(), payload.text()
    formats = _formats(payload)
    values = tuple(_value(payload) for _ in range(payload.count()))
    if len(formats) > 1 and len(formats) != len(values):
        raise make_error("08P01", f"bind message has {len(formats)} parameter formats but {len(values)} parameters")
    return Bind(portal, statement, formats, values, _formats(payload))


def _formats(payload: _Payload) -> tuple[int, ...]:
    formats = tuple(payload.int16() for _ in range(payload.count()))
    for code in formats:
        if code not in (0, 1):
            raise make_error("22023", f"unsupported format code: {code}")
    return formats


def _value(payload: _Payload) -> bytes | None:
    size = payload.int32()
    return None if size == -1 else payload.take(size)


def _target(payload: _Payload) -> tuple[bool, str]:
    kind = payload.byte()
    if kind not in b"SP":
        raise make_error("08P01", f"invalid message subtype {kind}")
    return kind == ord("S"), payload.text()


def _execute(payload: _Payload) -> Execute:
    return Execute(payload.text(), payload.int32())


_READERS: Final[dict[int, Callable[[_Payload], ClientMessage]]] = {
    ord("Q"): _query,
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): lambda payload: Describe(*_target(payload)),
    ord("E"): _execute,
    ord("C"): lambda payload: Close(*_target(payload)),
    ord("S"): lambda payload: Sync(),
    ord("H"): lambda payload: Flush(),
    ord("X"): lambda payload: Terminate(),
    ord("d"): lambda payload: CopyData(payload.rest()),
    ord("c"): lambda payload: CopyDone(),
    ord("f"): lambda payload: CopyFail(payload.text()),
    ord("p"): lambda payload: Password(payload.rest()),
}


def read_message(message: RawMessage) -> ClientMessage:
    """The message that a tag and a payload are."""
    if message.tag == ord("F"):
        return FunctionCall()
    payload = _Payload(message.payload)
    read = _READERS[message.tag](payload)
    payload.end()
    return read
