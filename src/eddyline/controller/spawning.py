"""How one process of a replica is started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

__all__ = ["Child", "Spawn", "spawn_process"]


class Child(Protocol):
    """A process that was started: the part of ``subprocess.Popen`` that its supervisor needs."""

    pid: int

    def poll(self) -> int | None:
        """None while it runs."""
        ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self, timeout: float = ...) -> int:
        """TimeoutError, or ``subprocess.TimeoutExpired``, if it still runs after so many seconds."""
        ...


#: ``(arguments, ready, log)``: the arguments of ``eddyline clusterd``, the descriptor that it is to write to once it
#: listens, and the one that its standard error is.  Both are the caller's to close.  OSError if it cannot be started.
Spawn = Callable[[Sequence[str], int, int], Child]


def spawn_process(arguments: Sequence[str], ready: int, log: int) -> Child:
    """By the interpreter that runs here: a ``Spawn``."""
    # Nothing of the host's program is run again: only the package is to be found.
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "eddyline", "clusterd", *arguments, f"--ready-fd={ready}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=[ready],
        env={**os.environ, "PYTHONPATH": path},
        # A signal of the terminal is the host's to deal with.
        start_new_session=True,
    )
