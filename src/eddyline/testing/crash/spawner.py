"""Processes of replicas by forking: what is loaded, and compiled, they need not load again.

The spawner is a process of its own without threads, forked from one that has loaded everything; whoever wants a process
of a replica asks it over a socket.  It may be killed in the midst of that, like any program that starts one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from eddyline.controller.spawning import Child
from eddyline.controller.survivors import Survivor, process_start
from eddyline.frontends.command_line import main

__all__ = ["Spawner"]

_LONGEST_REQUEST = 1 << 16


class Spawner:
    """To be made while this process has no threads.  ``close`` ends it, and all that it has started."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "spawner")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen()
            self._pid = os.fork()
            if not self._pid:
                try:
                    os.setpgid(0, 0)
                    _serve(listener)
                finally:
                    os._exit(1)
        # In both, so that it is so whichever comes first.
        os.setpgid(self._pid, self._pid)

    def spawn(self, arguments: Sequence[str], ready: int, log: int) -> Child:
        """A ``controller.spawning.Spawn``."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(self._address)
            socket.send_fds(connection, [json.dumps([*arguments]).encode()], [ready, log])
            pid = int(connection.recv(32))
        return Survivor(pid, process_start(pid))

    def close(self) -> None:
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(listener: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that have ended
    while True:
        connection, _ = listener.accept()
        with connection:
            request, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, 2)
            if len(descriptors) == 2:
                child = os.fork()
                if not child:
                    listener.close()
                    connection.close()
                    _become(json.loads(request), *descriptors)
                with contextlib.suppress(OSError):  # who has asked was killed meanwhile
                    connection.sendall(str(child).encode("ascii"))
            for each in descriptors:
                os.close(each)


def _become(arguments: list[str], ready: int, log: int) -> None:
    """Runs one process of a replica; does not return."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(log, 2)
        os.close(log)
        status = main(["clusterd", *arguments, f"--ready-fd={ready}"])
    except Exception:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)
