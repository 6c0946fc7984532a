"""The asyncio face: the same sessions, with blocking calls moved off the event loop.

Each connection has a thread of its own, since a session runs one statement at a time anyway.  Cancelling a task
cancels its statement.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from eddyline.errors import InterfaceError
from eddyline.frontends.connection import Connection, connect
from eddyline.frontends.cursor import Cursor
from eddyline.frontends.subscription import SubscriptionChange, feed_of
from eddyline.repr.late_module import LateModule

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = LateModule("asyncio")  # who calls from a coroutine has imported it

__all__ = ["AsyncConnection", "aconnect"]

P = ParamSpec("P")
T = TypeVar("T")
_CANCEL_AGAIN_SECONDS = 0.02


async def aconnect(
    path: str | os.PathLike[str] | None = None,
    *,
    workers: int = 1,
    interactive: bool = True,
    memory_limit: int | str | None = None,
    process_settings: bool | Mapping[str, str] = True,
    processes: int = 0,
) -> AsyncConnection:
    """As ``eddyline.connect``, for ``async`` code."""
    connection = await asyncio.to_thread(
        connect,
        path,
        workers=workers,
        interactive=interactive,
        memory_limit=memory_limit,
        process_settings=process_settings,
        processes=processes,
    )
    return AsyncConnection(connection)


class AsyncConnection:
    """One session for coroutines.  ``execute`` returns a ``Cursor`` whose rows are in memory already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="eddyline-aio")
        self._closed = False
        self._lock = threading.Lock()
        self._current: object = None  # the call that runs on the thread; guarded by _lock

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise InterfaceError("the session is closed")
        token = object()

        def run() -> T:
            with self._lock:
                self._current = token
            try:
                return call(*args, **kwargs)
            finally:
                with self._lock:
                    self._current = None

        waiting = self._thread.submit(run)
        future = asyncio.wrap_future(waiting)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not waiting.cancel():
                # The statement ends at once with 57014; the session is free again before the task goes on.  Once more
                # and again, for what comes before the statement has begun is for nothing.
                while not future.done():
                    self._cancel(token)
                    await asyncio.wait([future], timeout=_CANCEL_AGAIN_SECONDS)
                if not future.cancelled():
                    future.exception()
            raise

    def _cancel(self, token: object) -> None:
        """Cancels that call if it still runs, and no other: the lock keeps it from making room for the next one."""
        with self._lock:
            if self._current is token:
                self._connection.cancel()

    async def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """As ``Connection.execute``."""
        return await self._run(self._connection.execute, statement, parameters)

    async def executemany(self, statement: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """As ``Connection.executemany``."""
        return await self._run(self._connection.executemany, statement, seq_of_parameters)

    async def executescript(self, script: str) -> Cursor:
        """As ``Connection.executescript``."""
        return await self._run(self._connection.executescript, script)

    async def copy(self, statement: str, file: Any = None, parameters: Sequence[Any] | None = None) -> Cursor:
        """As ``Connection.copy``."""
        return await self._run(self._connection.copy, statement, file, parameters)

    async def append(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """As ``Connection.append``."""
        return await self._run(self._connection.append, table, data, timeout=timeout)

    async def upsert(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """As ``Connection.upsert``."""
        return await self._run(self._connection.upsert, table, data, timeout=timeout)

    async def delete(self, table: str, data: object, *, timeout: float | None = None) -> int:
        """As ``Connection.delete``."""
        return await self._run(self._connection.delete, table, data, timeout=timeout)

    async def wait_hydrated(self, name: str, *, timeout: float | None = None) -> None:
        """As ``Connection.wait_hydrated``."""
        await self._run(self._connection.wait_hydrated, name, timeout=timeout)

    async def metrics(self) -> str:
        """As ``Connection.metrics``."""
        return await self._run(self._connection.metrics)

    async def commit(self) -> None:
        """As ``Connection.commit``."""
        await self._run(self._connection.commit)

    async def rollback(self) -> None:
        """As ``Connection.rollback``."""
        await self._run(self._connection.rollback)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """As ``Connection.transaction``.  Tasks that share this connection share the transaction too."""
        block = self._connection.transaction()
        await self._run(block.__enter__)
        try:
            yield self
        except BaseException as error:
            await self._run(block.__exit__, type(error), error, error.__traceback__)
            raise
        await self._run(block.__exit__, None, None, None)

    async def subscribe(self, query: str, **options: Any) -> AsyncGenerator[SubscriptionChange, None]:
        """As ``Connection.subscribe``; leaving the ``async for`` loop ends it."""
        timeout = options.get("timeout")
        subscription = await self._run(self._connection.subscribe, query, **options)
        loop, feed, news = asyncio.get_running_loop(), feed_of(subscription), asyncio.Event()
        feed.on_news(lambda: _call_soon(loop, news.set))
        heard = loop.time()
        try:
            while not subscription.ended:
                news.clear()
                # On another thread, since it may close a time, but only for as long as that takes.
                change = await loop.run_in_executor(None, subscription.next, 0)
                if change is not None:
                    yield change
                    heard = loop.time()
                    continue
                left = None if timeout is None else heard + timeout - loop.time()
                if subscription.ended or (left is not None and left <= 0):
                    return
                patience = min((s for s in (left, feed.patience_s()) if s is not None), default=None)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), patience)
        finally:
            feed.on_news(lambda: None)
            subscription.close()

    def session(self) -> AsyncConnection:
        """Another session on this database."""
        return AsyncConnection(self._connection.session())

    async def close(self) -> None:
        """Ends the session; the connection that opened the database ends the database too.  Twice is harmless."""
        if self._closed:
            return
        try:
            await self._run(self._connection.close)
        finally:
            self._closed = True
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """From any thread.  Nothing once the loop is closed: nobody waits then."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        if not loop.is_closed():
            raise
