"""A throw-away PostgreSQL 15 server: the oracle of what SQL means.

It lives in a temporary directory, listens on a free loopback port, and ends with its context.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import psycopg

__all__ = ["PostgresServer", "PostgresUnavailable"]

_BIN_DIRS = ("/usr/lib/postgresql/15/bin", "/usr/pgsql-15/bin", "/opt/homebrew/opt/postgresql@15/bin")
_START_SECONDS = 60
#: so many ports are tried, since somebody else may have one before the server listens, and what it says of that
_PORTS = 5
_TAKEN = "Address already in use"


class PostgresUnavailable(RuntimeError):
    """PostgreSQL 15's server binaries are not on this machine; the message says how to get them."""


def _bin_dir() -> Path:
    for candidate in (os.environ.get("EDDYLINE_PG_BIN"), *_BIN_DIRS):
        if candidate and (Path(candidate) / "initdb").exists():
            return Path(candidate)
    raise PostgresUnavailable(
        "PostgreSQL 15 is needed as the oracle: apt-get install postgresql-15, "
        "or set EDDYLINE_PG_BIN to its bin directory"
    )


def _unprivileged_user() -> str | None:
    """initdb refuses root: the account to run as, None to stay."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise PostgresUnavailable("running as root and there is no account 'postgres' or 'nobody' to run PostgreSQL as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """``with PostgresServer() as server: server.connect()``.

    ``durable``: commits are synced to the disk, and the settings are those of a usual installation, as for measurements
    beside another server.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._bin = _bin_dir()
        self._user = _unprivileged_user()
        self._dir = Path(tempfile.mkdtemp(prefix="eddyline-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        #: once it has started
        self.port = 0

    def __enter__(self) -> PostgresServer:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        if self._user is not None:
            shutil.chown(self._dir, self._user)
        data = self._dir / "data"
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        subprocess.run(
            [
                self._bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust",
                "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
            ],
            check=True, user=self._user, env=environment, cwd=self._dir, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for left in reversed(range(_PORTS)):
            self.port = _free_port()
            if self._listens(data, environment, last=left == 0):
                return

    def _listens(self, data: Path, environment: Mapping[str, str], *, last: bool) -> bool:
        """Starts it at ``port``; False if somebody else has that by now and it is not the ``last`` try."""
        settings = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": "",
            "timezone": "UTC", "max_connections": "50",
        }  # fmt: skip
        if not self._durable:
            settings |= {
                "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
                "shared_buffers": "64MB", "jit": "off", "autovacuum": "off",
            }  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._dir / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", data, *options],
                user=self._user, env=environment, cwd=self._dir, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers(data):
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._dir / "log").read_text(errors="replace")
                if _TAKEN in said and not last:
                    return False
                raise PostgresUnavailable(f"PostgreSQL did not start:\n{said}")
            time.sleep(0.05)
        return True

    def _answers(self, data: Path) -> bool:
        """Whether it, and not another server at the same port, takes connections."""
        try:
            with self.connect() as connection:
                return connection.execute("SHOW data_directory").fetchone() == (str(data),)
        except psycopg.Error:
            return False

    def connect(self, *, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A new connection in autocommit mode."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True, connect_timeout=5
        )

    def stop(self) -> None:
        """Ends the server by its pid and removes its directory."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast shutdown: disconnects clients
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._dir, ignore_errors=True)
