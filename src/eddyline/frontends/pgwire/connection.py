"""Moves the bytes of one connection: socket to backend and back, with bounded memory in both directions.

The event loop hands over what arrives.  A lookup that was asked before is answered there and then; everything else
wakes the connection's task, which advances the backend on the crew's threads and writes.  What has arrived and not yet
been taken is bounded, and so is what the client has not taken: the backend is asked for more only when it has.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final, cast

from eddyline.errors import Error, make_error
from eddyline.frontends.pgwire.backend import Backend, Host
from eddyline.frontends.pgwire.crew import Crew
from eddyline.frontends.pgwire.steps import Finish, Send, StartTls, WaitForNews

__all__ = ["WireConnection"]

_log = logging.getLogger("eddyline.pgwire")
_MOST_WAITING_BYTES: Final = 1 << 20
_NEWS_S: Final = 1.0
_AUTHENTICATION_S: Final = 60.0
#: what a client has sent before it left is done, unless it takes longer than that: nobody waits for it
_HANGING_S: Final = 0.2
#: how long a client may take to read what is left for it when its connection ends
_LAST_WORDS_S: Final = 5.0


class WireConnection(asyncio.Protocol):
    """``tls``: what encrypts it, if it is to be.  ``opened``: called with it, starts the task that runs ``serve``.

    Everything but the backend's steps runs on the event loop.
    """

    def __init__(
        self, host: Host, crew: Crew, tls: ssl.SSLContext | None, opened: Callable[[WireConnection], None]
    ) -> None:
        self._crew = crew
        self._tls = tls
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._news = asyncio.Event()  # bytes have come, the client is gone, a subscription has changes, or we stop
        self._idle = False  # the task waits for bytes
        self._heard = self._loop.time()
        self._paused = False  # reading is
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = False
        self._lost: BaseException | None = None
        self._stopping: Error | None = None
        self._now = False  # statements are not waited for
        self._hanging: asyncio.Task[None] | None = None
        self.backend = Backend(host, self._wake)
        self.backend.end = self._end

    def _wake(self) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    def _end(self, reason: Error) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.stop(reason, now=True))

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._transport.get_write_buffer_size()

    def stop(self, reason: Error, *, now: bool) -> None:
        """Ends the connection when its statement has ended; ``now``: cancels it."""
        self._stopping, self._now = reason, now
        self._news.set()
        if now:
            self.backend.cancel()

    @property
    def _ending(self) -> bool:
        """Whether it is told to end and no statement is under way, or is to be waited for."""
        conversation = self.backend.conversation
        return self._stopping is not None and (self._now or conversation is None or not conversation.mid_statement)

    async def serve(self) -> None:
        """Until the client leaves, is told to, or is stopped."""
        try:
            await self._talk()
        except (ConnectionError, TimeoutError, ssl.SSLError) as problem:
            _log.info("connection of %s was lost: %s", self._peer(), problem)
        finally:
            if self._hanging is not None:
                self._hanging.cancel()
            self.backend.cancel()
            await self._crew.run(self.backend.close)
            self._transport.close()

    def _peer(self) -> str:
        return f"{self.backend.user or 'somebody'} at {self.backend.address}"

    # -- what the event loop says -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # of a stream; uvloop's do not derive from it
        peer = transport.get_extra_info("peername")
        self.backend.address = _address_of(peer)
        self.backend.host_and_port = _host_and_port(peer)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        if self._idle and not self._inbox and self._writable.is_set() and self._stopping is None:
            answer = self.backend.answer_at_once(data)
            if answer is not None:
                self._heard = self._loop.time()
                self._transport.write(answer)
                return
        self._inbox.append(data)
        self._inbox_bytes += len(data)
        self._news.set()
        if self._inbox_bytes >= _MOST_WAITING_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Whether the connection stays open: what was asked for is answered; TLS has no half of a connection."""
        self._leave()
        return self._transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionResetError("the client is gone")
        self._writable.set()
        self._leave()

    def pause_writing(self) -> None:
        if self._lost is None:
            self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _leave(self) -> None:
        """The client will say no more."""
        self._gone = True
        self._news.set()
        if self._hanging is None and not self.backend.over:
            self._hanging = self._loop.create_task(self._cancel_what_runs())

    async def _cancel_what_runs(self) -> None:
        while not self.backend.over:
            await asyncio.sleep(_HANGING_S)
            self.backend.cancel()

    def _received(self) -> bytes:
        data = b"".join(self._inbox)
        self._inbox.clear()
        self._inbox_bytes = 0
        if self._paused:
            self._paused = False
            if not self._gone:
                self._transport.resume_reading()
        return data

    # -- talking ------------------------------------------------------------------------------------------------------

    async def _talk(self) -> None:
        while not self.backend.over:
            await self._wait_for_bytes()
            if self.backend.over or (self._gone and not self._inbox):
                return
            if self._stopping is not None and self._ending:
                await self._last_words(self._stopping)
                return
            await self._advance(self._received())

    async def _wait_for_bytes(self) -> None:
        self._heard = self._loop.time()
        while not self._inbox and not self._gone and not self._ending:
            self._news.clear()
            patience, reason = self._patience()
            self._idle = True
            try:
                await self._next_news(None if patience is None else self._heard + patience - self._loop.time())
            finally:
                self._idle = False
            nothing_new = not self._inbox and not self._gone and self._stopping is None
            if nothing_new and patience is not None and self._loop.time() >= self._heard + patience:
                self._stopping, self._now = reason, True

    async def _next_news(self, patience: float | None) -> None:
        """Until there may be news, or for so long."""
        timer = None if patience is None else self._loop.call_later(max(0.0, patience), self._news.set)
        try:
            await self._news.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _patience(self) -> tuple[float | None, Error | None]:
        """How long a client may say nothing, and what it is told after that."""
        conversation = self.backend.conversation
        if conversation is None:
            return _AUTHENTICATION_S, make_error("57014", "canceling authentication due to timeout")
        if conversation.mid_statement:
            return None, None  # not idle: COPY's data may take their time
        session = conversation.session
        if session.status == "I":
            patience = session.duration_s("idle_session_timeout")
            return patience, make_error("57P05", "terminating connection due to idle-session timeout")
        patience = session.duration_s("idle_in_transaction_session_timeout")
        return patience, make_error("25P03", "terminating connection due to idle-in-transaction timeout")

    async def _advance(self, data: bytes) -> None:
        """Feeds the backend and does what it wants, until it wants more bytes."""
        self.backend.feed(data)
        steps = self.backend.advance()
        while (step := await self._crew.run(lambda: next(steps, None))) is not None:
            match step:
                case Send():
                    await self._send(step.data)
                    if step.last:
                        return
                case StartTls():
                    await self._encrypt(step.answer)
                case WaitForNews():
                    await self._wait_for_news()
                case Finish():
                    return
            if self._gone and self.backend.over:
                return

    async def _wait_for_news(self) -> None:
        """A subscription's changes, an end, or a while.  More bytes of the client are no news: they wait."""
        if self._gone or self._stopping is not None:
            self.backend.cancel()
            return
        self._news.clear()
        await self._next_news(_NEWS_S)

    async def _send(self, data: bytes) -> None:
        """Returns when the client has taken most of it.  ConnectionError if it is gone."""
        if not data:
            return
        if self._lost is None:
            self._transport.write(data)
            await self._writable.wait()
        if self._lost is not None:
            raise ConnectionResetError(str(self._lost)) from self._lost

    async def _encrypt(self, answer: bytes) -> None:
        assert self._tls is not None, "offered only where there is one"
        self._transport.write(answer)  # nothing is awaited before the handshake, or what the client answers would come
        encrypted = await self._loop.start_tls(
            self._transport, self, self._tls, server_side=True, ssl_handshake_timeout=_AUTHENTICATION_S
        )
        if encrypted is None:
            raise ConnectionResetError("the client left during the handshake")
        self._transport = encrypted
        self.backend.encrypted()

    async def _last_words(self, reason: Error) -> None:
        data = self.backend.farewell(reason)
        try:
            await asyncio.wait_for(self._send(data), _LAST_WORDS_S)
        except TimeoutError:
            _log.debug("%s does not read", self._peer())


def _address_of(peer: object) -> str:
    """HOST:PORT of a socket's peer, as --listen takes it; empty where nobody knows."""
    host, port = _host_and_port(peer)
    if host is None:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_and_port(peer: object) -> tuple[str | None, int | None]:
    match peer:
        case (str() as host, int() as port, *_):
            return host, port
        case _:
            return None, None
