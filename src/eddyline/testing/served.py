"""A database served to PostgreSQL's clients from a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType

from eddyline.adapter.engine import Engine
from eddyline.adapter.login import open_login
from eddyline.frontends.pgwire.server import WireConfig, WireServer
from eddyline.kernels.warm import warm

__all__ = ["ServedDatabase"]

_GRACE_S = 2.0


class ServedDatabase:
    """``with ServedDatabase() as served``: it listens at ``served.port`` of the loopback address.

    ``config``: but for its port, which is any that is free.
    """

    def __init__(self, config: WireConfig | None = None) -> None:
        self._config = replace(config or WireConfig(), port=0)
        if self._config.passwords is not None:
            self._config = replace(self._config, passwords=self._config.passwords.with_roles(lambda: self.engine))
        self._started: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="served", daemon=True)
        self.host = "127.0.0.1"
        self.port = 0
        self.engine: Engine
        self.server: WireServer

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{self.host}:{self.port}/postgres"

    def __enter__(self) -> ServedDatabase:
        warm()
        self.engine = Engine(process_settings=False)  # the tests' process is not ours
        self._thread.start()
        try:
            self.port = self._started.result(timeout=60)
        except BaseException:
            self.engine.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._end is not None
        with contextlib.suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(timeout=60)
        self.engine.close()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self.server = WireServer(lambda user, database: open_login(self.engine, user), self._config)
        try:
            _, port = await self.server.start()
        except BaseException as problem:
            self._started.set_exception(problem)
            raise
        self._started.set_result(port)
        await self._end.wait()
        await self.server.close(_GRACE_S)
