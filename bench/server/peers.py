"""The two servers that are compared: where they listen, and how they end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.server.arms import MODULE, UNSLICED_OPTION
from eddyline.testing.postgres import PostgresServer

__all__ = ["EDDYLINE", "POSTGRES", "Connection", "Peer", "both", "eddyline_server"]

EDDYLINE = "Eddyline"
POSTGRES = "PostgreSQL"
Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class Peer:
    """``process``: its id; 0 where nobody asks."""

    name: str
    port: int
    user: str = "postgres"
    process: int = 0

    def connect(self) -> Connection:
        """In autocommit."""
        return psycopg.connect(host="127.0.0.1", port=self.port, user=self.user, dbname="postgres", autocommit=True)


@contextmanager
def eddyline_server(data: Path | None, *, interactive: bool = True, unsliced: bool = False) -> Iterator[Peer]:
    """A process of its own, ended by SIGTERM.  ``interactive``: two runtimes in the replica; ``unsliced``: see
    ``bench.isolation.arms``."""
    command = [sys.executable, "-m", MODULE, "serve", "--listen", "127.0.0.1:0"]
    if unsliced:
        command.append(UNSLICED_OPTION)
    if data is not None:
        command += ["--data", str(data)]
    if not interactive:
        command.append("--one-runtime")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            found = re.search(r"clients at 127\.0\.0\.1:(\d+)", line)
            if found is not None:
                break
        else:
            raise RuntimeError("the server did not start: " + "".join(said))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Peer(EDDYLINE, int(found[1]), process=process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def both() -> Iterator[tuple[Peer, Peer]]:
    """PostgreSQL and Eddyline, each with a directory in the same file system, syncing every commit to it."""
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer(durable=True))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eddyline-bench-"))
        eddyline = stack.enter_context(eddyline_server(Path(folder) / "live.eddy"))
        yield Peer(POSTGRES, postgres.port), eddyline
