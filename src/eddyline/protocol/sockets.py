"""Unix sockets that processes of a database meet at."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from typing import Final

from eddyline.errors import make_error

__all__ = ["connect_to", "listen_at"]

#: what the system allows for a path, with its terminator
_MOST_PATH_BYTES: Final = 108


def listen_at(path: str) -> socket.socket:
    """A listening socket that only this user may connect to.

    A socket file that nobody listens at any more is taken over.  Raises 55006 where somebody does, 58P02 where
    something else has that name, 22023 for a path that is too long.
    """
    _check(path)
    file = Path(path)
    if file.exists() or file.is_symlink():
        if not stat.S_ISSOCK(file.lstat().st_mode):
            raise make_error("58P02", f'"{path}" exists and is no socket', hint="Remove it, or give another path.")
        if _answers(path):
            raise make_error("55006", f'another process listens at "{path}"', hint="End it, or give another path.")
        file.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        file.chmod(0o600)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise make_error("58030", f'could not listen at "{path}": {error}') from error
    return listener


def connect_to(path: str) -> socket.socket:
    """A connected socket.  08001 if nobody listens there, 22023 for a path that is too long."""
    _check(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise make_error("08001", f'could not connect to "{path}": {error}') from error
    return connection


def _answers(path: str) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with probe:
        return probe.connect_ex(path) == 0


def _check(path: str) -> None:
    if len(path.encode()) >= _MOST_PATH_BYTES:
        hint = f"A socket's path has {_MOST_PATH_BYTES - 1} bytes at most."
        raise make_error("22023", f'the path "{path}" is too long for a socket', hint=hint)
