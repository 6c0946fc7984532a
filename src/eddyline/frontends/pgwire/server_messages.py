"""What the server says: functions that make the bytes of one message each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from eddyline.errors import Error
from eddyline.frontends.pgwire.type_ids import ColumnShape

__all__ = [
    "BIND_COMPLETE",
    "CLOSE_COMPLETE",
    "COPY_DONE",
    "EMPTY_QUERY",
    "NO_DATA",
    "PARSE_COMPLETE",
    "PORTAL_SUSPENDED",
    "authentication_ok",
    "authentication_sasl",
    "authentication_sasl_continue",
    "authentication_sasl_final",
    "backend_key",
    "command_complete",
    "copy_data",
    "copy_response",
    "error_response",
    "negotiate_version",
    "notice",
    "parameter_description",
    "parameter_status",
    "ready_for_query",
    "row_description",
]


def _message(tag: bytes, payload: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(payload) + 4) + payload


def _text(value: str) -> bytes:
    """A zero ends a string, so that none may be in it; errors quote what clients sent."""
    return value.encode(errors="replace").replace(b"\x00", b"") + b"\x00"


PARSE_COMPLETE: Final = _message(b"1")
BIND_COMPLETE: Final = _message(b"2")
CLOSE_COMPLETE: Final = _message(b"3")
NO_DATA: Final = _message(b"n")
EMPTY_QUERY: Final = _message(b"I")
PORTAL_SUSPENDED: Final = _message(b"s")
COPY_DONE: Final = _message(b"c")


def authentication_ok() -> bytes:
    return _message(b"R", struct.pack("!i", 0))


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    return _message(b"R", struct.pack("!i", 10) + b"".join(map(_text, mechanisms)) + b"\x00")


def authentication_sasl_continue(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!i", 11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!i", 12) + data)


def backend_key(process: int, secret: int) -> bytes:
    return _message(b"K", struct.pack("!II", process, secret))


def parameter_status(name: str, value: str) -> bytes:
    return _message(b"S", _text(name) + _text(value))


def negotiate_version(refused: Sequence[str]) -> bytes:
    """3.0 is the newest version; ``refused``: protocol options that are not understood."""
    return _message(b"v", struct.pack("!ii", 3 << 16, len(refused)) + b"".join(map(_text, refused)))


def ready_for_query(status: str) -> bytes:
    """``status``: I, T or E."""
    return _message(b"Z", status.encode())


def command_complete(tag: str) -> bytes:
    return _message(b"C", _text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return _message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(names: Sequence[str], shapes: Sequence[ColumnShape], formats: Sequence[int]) -> bytes:
    parts = [struct.pack("!H", len(names))]
    for name, shape, code in zip(names, shapes, formats, strict=True):
        parts.append(_text(name))
        parts.append(struct.pack("!IhIhih", 0, 0, shape.oid, shape.length, shape.modifier, code))
    return _message(b"T", b"".join(parts))


def copy_response(tag: bytes, columns: int, *, binary: bool) -> bytes:
    """``tag``: G for data that the client sends, H for data that it gets."""
    code = int(binary)
    return _message(tag, struct.pack(f"!bH{columns}h", code, columns, *[code] * columns))


def copy_data(data: bytes) -> bytes:
    return _message(b"d", data)


def error_response(error: Error, *, severity: str = "ERROR") -> bytes:
    fields = [("S", severity), ("V", severity), ("C", error.sqlstate), ("M", error.message)]
    fields += [(code, text) for code, text in (("D", error.detail), ("H", error.hint)) if text]
    if error.position is not None:
        fields.append(("P", str(error.position)))
    if error.context:
        fields.append(("W", error.context))
    return _message(b"E", _fields(fields))


def notice(text: str, *, severity: str, sqlstate: str) -> bytes:
    return _message(b"N", _fields([("S", severity), ("V", severity), ("C", sqlstate), ("M", text)]))


def _fields(fields: Sequence[tuple[str, str]]) -> bytes:
    return b"".join(code.encode() + _text(text) for code, text in fields) + b"\x00"
