"""Where COPY reads and writes bytes: files by path, Python file objects, iterables of pieces."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from eddyline.adapter.apart import on_caller
from eddyline.errors import InterfaceError, make_error

__all__ = ["read_pieces", "seekable", "sink"]

_PIECE_BYTES = 1 << 20


def read_pieces(filename: str | None, file: Any) -> Iterator[bytes]:
    """The data of ``filename`` or, for STDIN, of ``file``, in pieces of about a megabyte.

    ``file``: an object with ``read``, bytes, or an iterable of str or bytes; str is encoded as UTF-8.  58P01, 42501
    and 42809 for files, InterfaceError for anything else.
    """
    if filename is not None:
        with _opened(filename, "rb", "reading") as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
    elif file is None:
        raise InterfaceError(
            "COPY FROM STDIN needs a file", sqlstate="22023", hint="Pass one to copy(statement, file)."
        )
    elif isinstance(file, str):
        raise InterfaceError(
            "a str could be a path or the data itself",
            sqlstate="42804",
            hint="Pass an open file, or io.StringIO around the data.",
        )
    elif isinstance(file, (bytes, bytearray, memoryview)):
        yield bytes(file)
    elif hasattr(file, "read"):
        while piece := on_caller(lambda: file.read(_PIECE_BYTES)):
            yield _encoded(piece)
    elif isinstance(file, Iterable):
        pieces = on_caller(lambda: iter(file))
        while some := on_caller(lambda: _some(pieces)):
            yield b"".join(map(_encoded, some))
    else:
        raise InterfaceError(f"COPY cannot read from a {type(file).__name__}", sqlstate="42804")


def _some(pieces: Iterator[Any]) -> list[Any]:
    """The next ones, about a megabyte of them."""
    taken, size = [], 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece) if isinstance(piece, (str, bytes)) else 1
        if size >= _PIECE_BYTES:
            break
    return taken


def seekable(filename: str | None, file: Any) -> BinaryIO | str:
    """The whole source as something that parquet readers accept."""
    if filename is None and hasattr(file, "read") and hasattr(file, "seek") and not isinstance(file, io.TextIOBase):
        stream: BinaryIO = file
        return stream
    return io.BytesIO(b"".join(read_pieces(filename, file)))


def _encoded(piece: object) -> bytes:
    if isinstance(piece, str):
        try:
            return piece.encode()
        except UnicodeEncodeError as problem:
            raise make_error("22021", 'invalid byte sequence for encoding "UTF8": a lone surrogate') from problem
    if isinstance(piece, (bytes, bytearray, memoryview)):
        return bytes(piece)
    raise InterfaceError(f"COPY reads str or bytes, not {type(piece).__name__}", sqlstate="42804")


@contextmanager
def sink(filename: str | None, file: Any) -> Iterator[Callable[[bytes], None]]:
    """A function that writes bytes to ``filename`` or, for STDOUT, to ``file``, as str where that is a text file."""
    if filename is not None:
        with _opened(filename, "wb", "writing") as stream:
            try:
                yield lambda data: _write_all(stream, data)
            except OSError as problem:
                raise make_error("58030", f'could not write file "{filename}": {problem.strerror}') from problem
    elif file is None or not hasattr(file, "write"):
        raise InterfaceError(
            "COPY TO STDOUT needs a file to write to", sqlstate="22023", hint="Pass one to copy(statement, file)."
        )
    elif isinstance(file, io.TextIOBase) or hasattr(file, "encoding"):
        yield lambda data: _write_all(file, data.decode())
    else:
        yield lambda data: _write_all(file, data)


def _write_all(file: Any, data: Any) -> None:
    """A raw file may take a part of what it is given."""
    while True:
        written = on_caller(partial(file.write, data))
        if not isinstance(file, io.RawIOBase) or written is None or written >= len(data):
            return
        data = data[written:]


def _opened(filename: str, mode: str, purpose: str) -> BinaryIO:
    try:
        stream = open(filename, mode)  # noqa: SIM115 - the caller's `with` closes it
    except IsADirectoryError as problem:
        raise make_error("42809", f'"{filename}" is a directory') from problem
    except PermissionError as problem:
        raise make_error("42501", f'could not open file "{filename}" for {purpose}: Permission denied') from problem
    except FileNotFoundError as problem:
        raise make_error(
            "58P01", f'could not open file "{filename}" for {purpose}: No such file or directory'
        ) from problem
    except (OSError, ValueError) as problem:
        raise make_error("58030", f'could not open file "{filename}" for {purpose}: {problem}') from problem
    return stream  # type: ignore[return-value]  # open() with a mode that is not a literal
