"""``eddyline serve``: a database as a PostgreSQL server, from its arguments to its exit status."""

from __future__ import annotations

import argparse
import asyncio
import errno
import importlib.util
import ipaddress
import logging
import os
import re
import signal
import ssl
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from eddyline.adapter.engine import Engine
from eddyline.adapter.login import open_login
from eddyline.adapter.memory_size import bytes_of, memory_size
from eddyline.adapter.memory_use import ServerMemory, anonymous_bytes, can_be_watched, usual_limit
from eddyline.adapter.provisioning import Provisioning
from eddyline.adapter.restoring import open_engine
from eddyline.compute.process_settings import set_aside
from eddyline.errors import Error, make_error
from eddyline.frontends.http_status import Answer, HttpStatusServer
from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.server import WireConfig, WireServer
from eddyline.frontends.progress import CompilationProgress
from eddyline.frontends.structured_log import configure_log
from eddyline.kernels.warm import warm
from eddyline.sql.password_verifier import Verifier

__all__ = ["LoopTroubles", "ServeConfig", "add_serve_arguments", "run_serve", "serve", "serve_config"]

_log = logging.getLogger("eddyline.serve")
_USAGE: Final = 2
_NO_SOCKET: Final = 73
_GRACE_S: Final = 5.0
_MOST_GRACE_S: Final = 3600.0
#: why the system refuses the connection that waits at the door
_NO_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SAY_AGAIN_S: Final = 60.0

_DESCRIPTION = """\
Serves a database to PostgreSQL's clients: psql, psycopg, asyncpg, SQLAlchemy, JDBC, and tools built on them.

With --data the database is in a directory, which is made if nothing is there, and survives whatever ends the server;
without, it is in memory: empty when the server starts, and gone when it ends.
"""
_EPILOG = """\
examples:
  a database that stays:
    eddyline serve --data ./live.eddy
    eddyline backup ./live.eddy ./monday.eddy               (while it is served, too)
  a server for this machine, and what to say to it:
    eddyline serve
    psql -h 127.0.0.1 -p 6875
    => CREATE TABLE orders (id int PRIMARY KEY, cust int, amount numeric(12,2));
    => CREATE VIEW spend AS SELECT cust, sum(amount) AS total FROM orders GROUP BY cust;
    => CREATE INDEX ON spend (cust);                       -- from here on it is kept fresh
    => COPY (SUBSCRIBE spend) TO STDOUT;                   -- its changes, as they happen
  for a network, with passwords and encryption:
    eddyline serve --listen 0.0.0.0:6875 --users users.txt --tls-cert server.crt --tls-key server.key --tls-required
  with metrics and health checks for Prometheus and others:
    eddyline serve --http 127.0.0.1:6876
    curl http://127.0.0.1:6876/metrics       (also /healthz and /readyz)

passwords: with --passwords a client shows the password of its role, as CREATE or ALTER ROLE … PASSWORD has set it; the
first one is set with `eddyline sql DIRECTORY`.  A users file has passwords for names that have none in the database: a
line `name:password` each, or `name:SCRAM-SHA-256$…` as PostgreSQL keeps it in pg_authid; # for comments.  Without
either, whoever can connect is let in under any name, which is meant for loopback addresses; for others say --trust.
The name of the database is up to the client: there is one.

SIGTERM and SIGINT: no more connections, statements under way get --grace seconds (five), exit status 0.
exit status: 2 for wrong arguments; 73 if an address or the directory cannot be had.
"""


#: what stands behind the name in a line of passwd(5) or shadow(5)
_ACCOUNT: Final = re.compile(r"[^:]*:\d+:\d+:[^:]*:/?[^:]*:[^:]*|[^:]*(?::\d*){6}:[^:]*")


#: what other systems keep of passwords: nobody could log in with what was hashed
_HASHED: Final = re.compile(r"\$(?:1|2[abxy]|5|6|7|y|apr1|argon2\w*)\$\S+|\{S?SHA\}\S+|md5[0-9a-f]{32}")
_MB: Final = 1 << 20
#: more than what an empty server uses: statements are refused from nine tenths of the limit on
_LEAST_ROOM: Final = 128 * _MB


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """``http`` None: none.  ``processes``: of the replica; 0: it is in the server's own."""

    wire: WireConfig
    _: KW_ONLY
    http: tuple[str, int] | None = None
    workers: int = 1
    json_log: bool = False
    data: Path | None = None
    interactive: bool = True
    grace_s: float = _GRACE_S
    memory: ServerMemory | None = None
    processes: int = 0


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--listen", default="127.0.0.1:6875", metavar="HOST:PORT", help="for clients (127.0.0.1:6875); port 0: any")
    add("--data", type=Path, metavar="DIRECTORY", help="where the database is; in memory by default")
    add("--http", metavar="HOST:PORT", help="for /metrics, /healthz and /readyz; nowhere by default")
    add("--passwords", action="store_true", help="who connects shows the password of a role (SCRAM-SHA-256)")
    add("--users", type=Path, metavar="FILE", help="likewise, and passwords of roles that have none of their own")
    add("--trust", action="store_true", help="let whoever comes in, also at an address that others can reach")
    add("--tls-cert", type=Path, metavar="FILE", help="certificate chain, PEM; clients may then encrypt")
    add("--tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    add("--tls-required", action="store_true", help="refuse connections that are not encrypted")
    add("--max-connections", type=int, default=1000, metavar="N", help="more are refused (1000)")
    add("--workers", type=int, default=1, metavar="N", help="threads that maintain views (1)")
    add(
        "--processes",
        type=int,
        default=0,
        metavar="N",
        help="the views are kept in N processes of their own, which outlive a server that is killed (none)",
    )
    add("--one-runtime", action="store_true", help="reads share a runtime with views instead of having their own")
    add(
        "--memory-limit",
        default="auto",
        metavar="SIZE",
        help="such as 4GB: past it statements end with 53200, before "
        "the system ends the server; 0: none; auto (the default): 80%% of what the machine or the container has",
    )
    add("--grace", type=float, default=_GRACE_S, metavar="SECONDS", help="for statements under way at the end (5)")
    add("--log-format", choices=("text", "json"), default="text", help="of what is said on standard error (text)")


def serve_config(arguments: argparse.Namespace) -> ServeConfig:
    """The parsed arguments, checked.  22023 for values that do not fit together, 58P01 for files that are not there."""
    host, port = _address(arguments.listen, "--listen")
    passwords = _passwords(arguments)
    if passwords is None and not arguments.trust and not _is_loopback(host):
        raise make_error(
            "22023",
            f"{host} can be reached from elsewhere, and nobody would have to show who they are",
            hint="Give --passwords or --users, or --trust if that is what you want.",
        )
    tls = _tls(arguments.tls_cert, arguments.tls_key)
    if arguments.tls_required and tls is None:
        raise make_error("22023", "--tls-required needs --tls-cert and --tls-key")
    if not 0 <= arguments.grace <= _MOST_GRACE_S:
        raise make_error("22023", f"--grace must be from 0 to {_MOST_GRACE_S:g} seconds")
    for name in ("max_connections", "workers"):
        if getattr(arguments, name) < 1:
            raise make_error("22023", f"--{name.replace('_', '-')} must be at least 1")
    if arguments.processes < 0:
        raise make_error("22023", "--processes must not be negative")
    wire = WireConfig(host, port, arguments.max_connections, passwords, tls=tls, tls_required=arguments.tls_required)
    return ServeConfig(
        wire,
        http=None if arguments.http is None else _address(arguments.http, "--http"),
        workers=arguments.workers,
        json_log=arguments.log_format == "json",
        data=arguments.data,
        interactive=not arguments.one_runtime,
        grace_s=arguments.grace,
        memory=_memory(arguments.memory_limit),
        processes=arguments.processes,
    )


def _memory(text: str) -> ServerMemory:
    """What --memory-limit says: over it goes what ALTER SYSTEM sets while the server runs."""
    if text == "auto":
        return ServerMemory(usual_limit())
    wanted = bytes_of(memory_size("--memory-limit", text)) or 0
    if wanted and not can_be_watched():
        raise make_error("22023", "--memory-limit: only Linux says how much memory of a process is in use")
    return ServerMemory(usual_limit(), wanted)


def _check_leaves_room(memory: ServerMemory | None) -> None:
    """22023 for a --memory-limit under which nothing could be done: a server without any data uses more."""
    wanted = None if memory is None else memory.wanted
    if not wanted:
        return
    least = -(-(anonymous_bytes() + _LEAST_ROOM) // _MB) * _MB
    if wanted < least:
        raise make_error(
            "22023",
            f"--memory-limit {memory_size('--memory-limit', str(wanted))} leaves no room for any data",
            hint=f"The least that is of use here is {least // _MB}MB; 0 is no limit.",
        )


def _passwords(arguments: argparse.Namespace) -> Passwords | None:
    """What --passwords and --users say; 22023 where nobody could ever come in, or --trust says the opposite."""
    if arguments.users is None and not arguments.passwords:
        return None
    if arguments.trust:
        raise make_error("22023", "--trust asks for no passwords, and --passwords and --users ask for them")
    if arguments.users is None and arguments.data is None:
        raise make_error(
            "22023",
            "a database in memory begins without passwords, so that nobody could come in",
            hint="Give --users as well, or --data with a directory whose roles have passwords.",
        )
    given = {} if arguments.users is None else _verifiers(arguments.users)
    return Passwords(given.get, os.urandom(32))


def _address(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535 or not host:
        raise make_error("22023", f"{option} takes HOST:PORT, not {text}", hint="An example is 127.0.0.1:6875.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise make_error("22023", "--tls-cert and --tls-key go together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as problem:
        raise make_error("58P01", f"cannot use {cert} with {key}: {problem}") from problem
    return context


def _verifiers(path: Path) -> dict[str, Verifier]:
    """22023 for a line that is none, without showing it: it may hold a password."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise make_error("58P01", f"cannot read {path}: {problem}") from problem
    found: dict[str, Verifier] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, secret = line.partition(":")
        if not colon or not user or not secret:
            raise make_error("22023", f"{path}, line {number}: expected name:password")
        if _ACCOUNT.fullmatch(secret):
            raise make_error(
                "22023",
                f"{path}, line {number}: this looks like a list of the system's accounts, not like a users file",
                hint="A users file has a line name:password each; a password with six colons is given as its verifier.",
            )
        if _HASHED.fullmatch(secret):
            raise make_error(
                "22023",
                f"{path}, line {number}: this password is hashed in a way that clients cannot answer",
                hint="Give the password itself, or its verifier of SCRAM-SHA-256.",
            )
        found[user] = Verifier.of_text(secret) or Verifier.of_password(secret)
    return found


def run_serve(arguments: argparse.Namespace) -> int:
    """The exit status."""
    configure_log(sys.stderr, json_lines=arguments.log_format == "json")
    try:
        config = serve_config(arguments)
    except Error as error:
        _log.error("%s", error)
        return _USAGE
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(serve(config))
    except Error as error:
        _log.error("%s", error)
        return _USAGE if error.sqlstate == "22023" else _NO_SOCKET
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed: what a message costs beside its statement is mostly the event loop's."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory


async def serve(config: ServeConfig) -> None:
    """Serves until SIGTERM or SIGINT.  58000 if an address cannot be had, and as ``open_engine``."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopTroubles())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    served = _Served(config)
    try:
        await served.start()
        await ending.wait()
        _log.info("ending: statements under way get %g s", config.grace_s)
    finally:
        await served.close()


class LoopTroubles:
    """An event loop's exception handler.  asyncio tries again to take a connection, up to a thousand times a second,
    and tells each time, traceback and all, that there is no file descriptor for it: here that is said once a minute.
    """

    def __init__(self) -> None:
        self._said_at: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if not isinstance(problem, OSError) or problem.errno not in _NO_RESOURCES or "socket" not in context:
            loop.default_exception_handler(context)
            return
        now = loop.time()
        if self._said_at is None or now >= self._said_at + _SAY_AGAIN_S:
            self._said_at = now
            _log.warning("connections wait: %s; raise the limit or lower --max-connections", problem.strerror)


class _Served:
    """The database and what serves it."""

    def __init__(self, config: ServeConfig) -> None:
        self._config = config
        self._engine: Engine | None = None
        passwords = config.wire.passwords
        wire = config.wire if passwords is None else replace(config.wire, passwords=passwords.with_roles(self._opened))
        self._wire = WireServer(lambda user, database: open_login(self._opened(), user), wire)
        pages = {"/metrics": self._metrics, "/healthz": self._healthy, "/readyz": self._is_ready}
        self._http = HttpStatusServer(pages)
        self._ready = False

    async def start(self) -> None:
        config = self._config
        if config.http is not None:
            host, port = await self._http.start(*config.http)
            _log.info("metrics and health at http://%s:%d", host, port)
        await asyncio.to_thread(warm, CompilationProgress().update)
        _check_leaves_room(config.memory)
        apart = Provisioning(config.workers, config.processes, config.interactive) if config.processes else None
        self._engine = await asyncio.to_thread(
            open_engine,
            config.data,
            workers=config.workers,
            interactive=config.interactive,
            provisioning=apart,
            server_memory=config.memory,
        )
        await asyncio.to_thread(set_aside)  # the process is the server's own: no full collection stops reads for long
        host, port = await self._wire.start()
        self._ready = True
        where = "memory" if config.data is None else f"directory {config.data}"
        _log.info("a database in %s, for PostgreSQL clients at %s:%d: psql -h %s -p %d", where, host, port, host, port)

    async def close(self) -> None:
        self._ready = False
        await self._wire.close(self._config.grace_s)
        await self._http.close()
        if self._engine is not None:
            await asyncio.to_thread(self._engine.close)

    def _opened(self) -> Engine:
        assert self._engine is not None, "opened before anybody connects"
        return self._engine

    async def _metrics(self) -> Answer:
        if self._engine is None:
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "starting\n")
        text = await asyncio.to_thread(self._engine.metrics_text)
        return Answer(HTTPStatus.OK, text + self._wire.metrics_text(), "text/plain; version=0.0.4; charset=utf-8")

    async def _healthy(self) -> Answer:
        return Answer(HTTPStatus.OK, "ok\n")

    async def _is_ready(self) -> Answer:
        if self._ready:
            return Answer(HTTPStatus.OK, "ready\n")
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "not ready\n")
