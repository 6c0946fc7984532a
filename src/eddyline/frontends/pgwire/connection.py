"""Moves the bytes of one connection: socket to backend and back, with bounded memory in both directions.

One task reads, another advances the backend on the crew's threads and writes.  What has been read and not yet been
taken is bounded, and so is what the client has not taken: the backend is asked for more only after ``drain``.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from eddyline.errors import Error, make_error
from eddyline.frontends.pgwire.backend import Backend, Host
from eddyline.frontends.pgwire.crew import Crew
from eddyline.frontends.pgwire.steps import Finish, Send, StartTls, WaitForNews

__all__ = ["WireConnection"]

_log = logging.getLogger("eddyline.pgwire")
_READ_BYTES: Final = 64 << 10
_MOST_WAITING_BYTES: Final = 1 << 20
_NEWS_S: Final = 1.0
_AUTHENTICATION_S: Final = 60.0
#: what a client has sent before it left is done, unless it takes longer than that: nobody waits for it
_HANGING_S: Final = 0.2
#: how long a client may take to read what is left for it when its connection ends
_LAST_WORDS_S: Final = 5.0


class WireConnection:
    """``tls``: what encrypts it, if it is to be.  Everything but the backend's steps runs on the event loop."""

    def __init__(
        self,
        host: Host,
        crew: Crew,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._crew = crew
        self._reader = reader
        self._writer = writer
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._news = asyncio.Event()  # bytes have come, the client is gone, a subscription has changes, or we stop
        self._room = asyncio.Event()
        self._gone = False
        self._stopping: Error | None = None
        self.backend = Backend(host, self._wake)

    def _wake(self) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    def stop(self, reason: Error, *, now: bool) -> None:
        """Ends the connection when its statement has ended; ``now``: cancels it."""
        self._stopping = reason
        self._news.set()
        if now:
            self.backend.cancel()

    async def serve(self) -> None:
        """Until the client leaves, is told to, or is stopped."""
        reading = self._loop.create_task(self._read())
        try:
            await self._talk()
        except (ConnectionError, TimeoutError, ssl.SSLError) as problem:
            _log.info("connection of %s was lost: %s", self._peer(), problem)
        finally:
            reading.cancel()
            self.backend.cancel()
            await self._crew.run(self.backend.close)
            self._writer.close()

    def _peer(self) -> str:
        return f"{self.backend.user or 'somebody'} at {self._writer.get_extra_info('peername')}"

    # -- reading ----------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(_READ_BYTES):
                self._inbox.append(data)
                self._inbox_bytes += len(data)
                self._news.set()
                while self._inbox_bytes >= _MOST_WAITING_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except (ConnectionError, ssl.SSLError) as problem:
            _log.debug("cannot read from %s: %s", self._peer(), problem)
        self._gone = True
        self._news.set()
        while not self.backend.over:
            await asyncio.sleep(_HANGING_S)
            self.backend.cancel()

    def _received(self) -> bytes:
        data = b"".join(self._inbox)
        self._inbox.clear()
        self._inbox_bytes = 0
        self._room.set()
        return data

    # -- talking ------------------------------------------------------------------------------------------------------

    async def _talk(self) -> None:
        while not self.backend.over:
            await self._wait_for_bytes()
            if self.backend.over or (self._gone and not self._inbox):
                return
            if self._stopping is not None:
                await self._last_words(self._stopping)
                return
            await self._advance(self._received())

    async def _wait_for_bytes(self) -> None:
        while not self._inbox and not self._gone and self._stopping is None:
            self._news.clear()
            patience, reason = self._patience()
            try:
                await asyncio.wait_for(self._news.wait(), patience)
            except TimeoutError:
                self._stopping = reason

    def _patience(self) -> tuple[float | None, Error | None]:
        """How long a client may say nothing, and what it is told after that."""
        conversation = self.backend.conversation
        if conversation is None:
            return _AUTHENTICATION_S, make_error("57014", "canceling authentication due to timeout")
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
        try:
            await asyncio.wait_for(self._news.wait(), _NEWS_S)
        except TimeoutError:
            return

    async def _send(self, data: bytes) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def _encrypt(self, answer: bytes) -> None:
        assert self._tls is not None, "offered only where there is one"
        self._writer.write(answer)  # not drained: the loop would read what the client answers
        await self._writer.start_tls(self._tls, ssl_handshake_timeout=_AUTHENTICATION_S)
        self.backend.encrypted()

    async def _last_words(self, reason: Error) -> None:
        data = self.backend.farewell(reason)
        try:
            await asyncio.wait_for(self._send(data), _LAST_WORDS_S)
        except TimeoutError:
            _log.debug("%s does not read", self._peer())
