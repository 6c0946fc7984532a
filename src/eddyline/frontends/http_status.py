"""``/metrics``, ``/healthz`` and ``/readyz`` over HTTP/1.1, for those who watch a server.

Requests have no body and answers are short, so each is read and answered whole; a connection may be used again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from eddyline.errors import make_error

__all__ = ["Answer", "HttpStatusServer"]

_log = logging.getLogger("eddyline.http")
_MOST_HEADER_BYTES: Final = 16 << 10
_PATIENCE_S: Final = 30.0
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    status: HTTPStatus
    body: str
    content_type: str = _TEXT


class HttpStatusServer:
    """``pages``: by path, what answers a GET of it.  Owner: the event loop."""

    def __init__(self, pages: Mapping[str, Callable[[], Awaitable[Answer]]]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listens; the address.  58000 if it cannot be had."""
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=_MOST_HEADER_BYTES)
        except OSError as problem:
            raise make_error(
                "58000",
                f"cannot listen at {host}:{port}: {problem.strerror or problem}",
                hint="Is another server running there? Choose another address with --http.",
            ) from problem
        found = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                continue
        except (ConnectionError, TimeoutError) as problem:
            _log.debug("a connection was lost: %s", problem)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; whether the connection may be used again."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE_S)
        except asyncio.IncompleteReadError:
            return False
        except asyncio.LimitOverrunError:
            return await self._say(writer, Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, ""), again=False)
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return await self._say(writer, Answer(HTTPStatus.BAD_REQUEST, "not an HTTP request\n"), again=False)
        headers = {name.strip().lower(): value.strip() for name, _, value in (h.partition(":") for h in lines[1:])}
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        again = words[2] == "HTTP/1.1" and headers.get("connection", "").lower() != "close" and not has_body
        answer = await self._answer(words[0], words[1].partition("?")[0])
        return await self._say(writer, answer, again=again, head_only=words[0] == "HEAD")

    async def _answer(self, method: str, path: str) -> Answer:
        page = self._pages.get(path)
        if page is None:
            known = ", ".join(sorted(self._pages))
            return Answer(HTTPStatus.NOT_FOUND, f"there is no {path}; there are {known}\n")
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} can be read with GET\n")
        return await page()

    async def _say(self, writer: asyncio.StreamWriter, answer: Answer, *, again: bool, head_only: bool = False) -> bool:
        body = answer.body.encode()
        lines = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(body)}",
            "Connection: " + ("keep-alive" if again else "close"),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head_only else body))
        await writer.drain()
        return again
