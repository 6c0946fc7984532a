"""What the processes of a replica log goes to the log of the program that has them, whichever that is by then.

A process writes to a named pipe that it keeps open itself, at both ends.  So nothing ends while no program reads: the
system keeps the first 64 KiB or so for the next one, and what does not fit is left out; a process never waits.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import IO

__all__ = ["make_log_pipe", "relay_log"]

_log = logging.getLogger("eddyline.controller")


def make_log_pipe(path: Path) -> int:
    """A descriptor for a process to write to; the pipe is a new one, whatever had its name.  OSError."""
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def relay_log(process: int, path: Path) -> None:
    """Logs what is written to the pipe, on a thread, until nobody can write any more.

    OSError, or RuntimeError if no thread can be started.
    """
    # Without waiting for somebody who writes: if there is nobody left, it ends at once.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    lines = open(descriptor, "rb")  # noqa: SIM115 - the thread closes it
    try:
        threading.Thread(target=_relay, args=(lines,), name=f"log:{process}", daemon=True).start()
    except RuntimeError:
        lines.close()
        raise


def _relay(lines: IO[bytes]) -> None:
    with lines:
        for line in lines:
            _log.warning("%s", line.decode("utf-8", "replace").rstrip())
