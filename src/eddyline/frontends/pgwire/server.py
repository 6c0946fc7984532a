"""The server: a listening socket, its connections, and who may have one."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import ssl
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from eddyline.adapter.session import Session
from eddyline.adapter.session_list import next_process
from eddyline.errors import DatabaseError, make_error
from eddyline.frontends.pgwire.backend import Backend
from eddyline.frontends.pgwire.connection import WireConnection
from eddyline.frontends.pgwire.crew import Crew
from eddyline.frontends.pgwire.passwords import Passwords

__all__ = ["WireConfig", "WireServer"]

_log = logging.getLogger("eddyline.pgwire")
_BACKLOG: Final = 1024
_USUAL_THREADS: Final = 4 + 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class WireConfig:
    """``port`` 0: any.  ``passwords`` None: whoever comes is let in.  ``tls_required`` needs ``tls``."""

    host: str = "127.0.0.1"
    port: int = 6875
    max_connections: int = 1000
    passwords: Passwords | None = None
    _: KW_ONLY
    tls: ssl.SSLContext | None = None
    tls_required: bool = False


class WireServer:
    """``open_session``: a session of the database for a user and a database name.  Owner: the event loop."""

    def __init__(self, open_session: Callable[[str, str], Session], config: WireConfig) -> None:
        self._open_session = open_session
        self._config = config
        self._connections: set[WireConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keys: dict[int, tuple[int, Backend]] = {}  # process -> (secret, backend)
        self._crew: Crew | None = None
        self._server: asyncio.Server | None = None
        self._ending: DatabaseError | None = None

    # -- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> tuple[str, int]:
        """Listens; the address.  58000 if it cannot be had."""
        config = self._config
        self._crew = Crew(_USUAL_THREADS, config.max_connections)
        try:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._connection, config.host, config.port, backlog=_BACKLOG)
        except OSError as problem:
            raise make_error(
                "58000",
                f"cannot listen at {config.host}:{config.port}: {problem.strerror or problem}",
                hint="Is another server running there? Choose another address with --listen.",
            ) from problem
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def open_connections(self) -> tuple[WireConnection, ...]:
        return tuple(self._connections)

    @property
    def connections(self) -> int:
        """Places that are taken."""
        return len(self._keys)

    @property
    def calls(self) -> int:
        """Steps of conversations that took a thread, so far."""
        return 0 if self._crew is None else self._crew.calls

    def metrics_text(self) -> str:
        """What the server counts, in Prometheus' text format."""
        threads = 0 if self._crew is None else self._crew.threads
        return (
            "# HELP eddyline_connections Client connections that are open.\n"
            "# TYPE eddyline_connections gauge\n"
            f"eddyline_connections {len(self._keys)}\n"
            "# HELP eddyline_connection_limit Client connections that may be open.\n"
            "# TYPE eddyline_connection_limit gauge\n"
            f"eddyline_connection_limit {self._config.max_connections}\n"
            "# HELP eddyline_session_threads Threads that run clients' statements.\n"
            "# TYPE eddyline_session_threads gauge\n"
            f"eddyline_session_threads {threads}\n"
        )

    async def close(self, grace_s: float) -> None:
        """Takes no more connections; ends idle ones, lets statements end for ``grace_s`` and then cancels them."""
        self._ending = make_error("57P01", "terminating connection due to administrator command")
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.stop(self._ending, now=False)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace_s)
        for connection in list(self._connections):
            connection.stop(self._ending, now=True)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace_s)
        for task in list(self._tasks):
            task.cancel()
        if self._crew is not None:
            self._crew.close()

    def _connection(self) -> WireConnection:
        assert self._crew is not None
        return WireConnection(self, self._crew, self._config.tls, self._opened)

    def _opened(self, connection: WireConnection) -> None:
        self._connections.add(connection)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(connection, done))

    def _ended(self, connection: WireConnection, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._connections.discard(connection)
        self._keys.pop(connection.backend.process, None)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("a connection ended unexpectedly", exc_info=fault)

    # -- what backends ask, on any thread -----------------------------------------------------------------------------

    @property
    def passwords(self) -> Passwords | None:
        return self._config.passwords

    @property
    def offers_tls(self) -> bool:
        return self._config.tls is not None

    @property
    def needs_tls(self) -> bool:
        return self._config.tls_required

    def admit(self, backend: Backend) -> tuple[int, int]:
        if self._ending is not None:
            raise make_error("57P03", "the database system is shutting down")
        if len(self._keys) >= self._config.max_connections:
            raise make_error(
                "53300",
                "sorry, too many clients already",
                hint=f"There may be {self._config.max_connections}: see --max-connections.",
            )
        process, secret = next_process(), secrets.randbits(32)
        self._keys[process] = secret, backend
        return process, secret

    def open_session(self, user: str, database: str) -> Session:
        return self._open_session(user, database)

    def cancel(self, process: int, secret: int) -> None:
        known = self._keys.get(process)
        if known is not None and secrets.compare_digest(str(known[0]), str(secret)):
            known[1].cancel()
