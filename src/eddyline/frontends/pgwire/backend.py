"""One connection from its first byte: opening packets, encryption, authentication, then the conversation.

No I/O: bytes are fed, steps come out.  Whoever moves the bytes calls ``feed`` and advances ``advance`` to its end,
one at a time, on any thread; ``cancel`` may come from any other at any moment.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from eddyline.adapter.session import Session
from eddyline.adapter.session_list import Client
from eddyline.errors import Error, make_error
from eddyline.frontends.pgwire import server_messages as say
from eddyline.frontends.pgwire.client_messages import (
    CancelRequest,
    Encryption,
    Password,
    Startup,
    Terminate,
    read_message,
    read_packet,
)
from eddyline.frontends.pgwire.conversation import Conversation
from eddyline.frontends.pgwire.framing import Framing, RawMessage
from eddyline.frontends.pgwire.lookups import MOST_BYTES
from eddyline.frontends.pgwire.passwords import Passwords
from eddyline.frontends.pgwire.request_log import Caller, log_end
from eddyline.frontends.pgwire.scram import ScramExchange
from eddyline.frontends.pgwire.startup_settings import startup_settings, unknown_options
from eddyline.frontends.pgwire.steps import Finish, Send, StartTls, Step
from eddyline.sql.password_verifier import MECHANISM

__all__ = ["Backend", "Host"]

_REFUSED: Final = b"N"
_ACCEPTED: Final = b"S"


class Host(Protocol):
    """What a backend asks of the server that it belongs to; all of it quick."""

    @property
    def passwords(self) -> Passwords | None:
        """None: whoever comes is let in."""

    @property
    def offers_tls(self) -> bool: ...

    @property
    def needs_tls(self) -> bool: ...

    def admit(self, backend: Backend) -> tuple[int, int]:
        """A place among the connections: its process number and secret; 53300 where there is none, 57P03 at the end."""

    def open_session(self, user: str, database: str) -> Session: ...

    def cancel(self, process: int, secret: int) -> None:
        """Cancels what that connection runs; nothing happens if there is none, or another's secret."""


class _Stage(enum.Enum):
    OPENING = enum.auto()
    ENCRYPTING = enum.auto()  # nothing may be read until the connection is encrypted
    SASL_FIRST = enum.auto()
    SASL_FINAL = enum.auto()
    TALKING = enum.auto()
    OVER = enum.auto()


class Backend:
    """``wake``: see ``Conversation``."""

    def __init__(self, host: Host, wake: Callable[[], None]) -> None:
        self._host = host
        self._wake = wake
        self._framing = Framing()
        self._stage = _Stage.OPENING
        self._encrypted = False
        self._asked: set[bool] = set()  # encryptions that were asked for
        self._startup: Startup | None = None
        self._scram: ScramExchange | None = None
        self._conversation: Conversation | None = None
        self.user = ""
        self.process = 0
        #: where the client is, for the log and for other clients
        self.address = ""
        self.host_and_port: tuple[str | None, int | None] = (None, None)
        #: ends the connection, for the reason given; any thread
        self.end: Callable[[Error], None] = lambda reason: self.cancel()

    # -- outside ----------------------------------------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation | None:
        """None until the client is let in."""
        return self._conversation

    @property
    def over(self) -> bool:
        return self._stage is _Stage.OVER

    @property
    def waiting_bytes(self) -> int:
        return self._framing.waiting_bytes

    def feed(self, data: bytes) -> None:
        self._framing.feed(data)

    def answer_at_once(self, data: bytes) -> bytes | None:
        """What ``feed`` and ``advance`` would lead to, where that takes no thread; None: nothing has happened.

        On the event loop, between the ends of ``advance``.
        """
        conversation = self._conversation
        if conversation is None or len(data) > MOST_BYTES or self._framing.waiting_bytes or self.over:
            return None
        return conversation.answer_at_once(data)

    def encrypted(self) -> None:
        """The connection is encrypted, as ``StartTls`` asked for."""
        self._encrypted = True
        self._stage = _Stage.OPENING

    def cancel(self) -> None:
        """From any thread."""
        conversation = self._conversation
        if conversation is not None:
            conversation.cancel()

    def _terminate(self) -> None:
        self.cancel()  # at once, so that no statement of it ends well any more: it may be the one that asks for this
        self.end(make_error("57P01", "terminating connection due to administrator command"))

    def close(self) -> None:
        """Rolls back and ends the session.  Twice is harmless."""
        self._stage = _Stage.OVER
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            conversation.close()

    def advance(self) -> Iterator[Step]:
        """What all complete messages that were fed lead to."""
        try:
            while self._stage not in (_Stage.OVER, _Stage.ENCRYPTING):
                if self._conversation is not None:
                    raw = self._framing.next_message()
                    if raw is None:
                        break
                    yield from self._talk(self._conversation, raw)
                else:
                    raw = self._framing.next_packet() if self._stage is _Stage.OPENING else self._framing.next_message()
                    if raw is None:
                        return
                    yield from self._open(raw)
        except Error as error:
            yield from self._end(error)
        if self._conversation is not None:
            data = self._conversation.take()
            if data:
                yield Send(data, last=True)

    def farewell(self, error: Error) -> bytes:
        """What the client is told when the server ends the connection."""
        reason = self._host.passwords.refusal(self.user) if error.sqlstate == "28P01" and self._host.passwords else ""
        log_end(self._caller, error, admitted=self._stage is _Stage.TALKING, reason=reason)
        self._stage = _Stage.OVER
        before = b"" if self._conversation is None else self._conversation.take()
        return before + say.error_response(error, severity="FATAL")

    @property
    def _caller(self) -> Caller:
        database = "" if self._startup is None else self._startup.parameters.get("database") or self.user
        return Caller(self.process, self.user, database, self.address)

    def _end(self, error: Error) -> Iterator[Step]:
        yield Send(self.farewell(error))
        yield Finish()

    # -- before -----------------------------------------------------------------------------------------------------

    def _open(self, raw: RawMessage) -> Iterator[Step]:
        match self._stage:
            case _Stage.OPENING:
                yield from self._packet(raw)
            case _:
                message = read_message(raw)
                if isinstance(message, Terminate):
                    self._stage = _Stage.OVER
                    yield Finish()
                    return
                if not isinstance(message, Password):
                    raise make_error("08P01", "expected a password response")
                yield from self._sasl(message.data)

    def _packet(self, raw: RawMessage) -> Iterator[Step]:
        match read_packet(raw):
            case Encryption() as wanted:
                yield from self._encryption(wanted)
            case CancelRequest() as request:
                self._stage = _Stage.OVER
                self._host.cancel(request.process, request.secret)
                yield Finish()
            case Startup() as startup:
                yield from self._start(startup)

    def _encryption(self, wanted: Encryption) -> Iterator[Step]:
        if wanted.tls in self._asked or self._encrypted:
            raise make_error("08P01", "encryption was asked for before")
        self._asked.add(wanted.tls)
        if not wanted.tls or not self._host.offers_tls:
            yield Send(_REFUSED)
            return
        if self._framing.waiting_bytes:
            # Somebody in between could have put it there, to be taken for what comes encrypted.
            raise make_error("08P01", "received unencrypted data after SSL request")
        self._stage = _Stage.ENCRYPTING
        yield StartTls(_ACCEPTED)

    def _start(self, startup: Startup) -> Iterator[Step]:
        user = startup.parameters.get("user", "")
        self.user, self._startup = user, startup
        if self._host.needs_tls and not self._encrypted:
            raise make_error(
                "28000", "this server takes encrypted connections only", hint="Connect with sslmode=require."
            )
        if not user:
            raise make_error("28000", "no PostgreSQL user name specified in startup packet")
        if startup.parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise make_error("0A000", "replication connections are not supported")
        refused = unknown_options(startup.parameters)
        if startup.minor or refused:
            yield Send(say.negotiate_version(refused))
        passwords = self._host.passwords
        if passwords is None:
            yield from self._admit(startup)
            return
        self._scram = ScramExchange(user, passwords.of(user))
        self._stage = _Stage.SASL_FIRST
        yield Send(say.authentication_sasl([MECHANISM]))

    def _sasl(self, data: bytes) -> Iterator[Step]:
        assert self._scram is not None and self._startup is not None
        if self._stage is _Stage.SASL_FIRST:
            answer = self._scram.first(_initial_response(data))
            self._stage = _Stage.SASL_FINAL
            yield Send(say.authentication_sasl_continue(answer))
            return
        answer = self._scram.final(data)
        yield Send(say.authentication_sasl_final(answer))
        yield from self._admit(self._startup)

    def _admit(self, startup: Startup) -> Iterator[Step]:
        # Whatever fails from here on, the connection has a place, and the server has to know which.
        self.process, secret = self._host.admit(self)
        settings = startup_settings(startup.parameters)
        session = self._host.open_session(self.user, startup.parameters.get("database") or self.user)
        session.activity.client = Client(
            self.process, *self.host_and_port, self.cancel, self._terminate, encrypted=self._encrypted
        )
        conversation = Conversation(session, self._wake, self._caller)
        self._conversation = conversation
        for name, value in settings.items():
            session.begin_with(name, value)
        self._stage = _Stage.TALKING
        self._framing.trusted = True
        conversation.greet(self.process, secret)
        yield Send(say.authentication_ok() + conversation.take())

    # -- during -------------------------------------------------------------------------------------------------------

    def _talk(self, conversation: Conversation, raw: RawMessage) -> Iterator[Step]:
        try:
            message = read_message(raw)
        except Error as error:
            steps = conversation.malformed(error, raw.tag)
        else:
            if isinstance(message, Password):
                raise make_error("08P01", f"invalid frontend message type {raw.tag}")
            steps = conversation.handle(message, self._framing.peek_tag())
        for step in steps:
            if isinstance(step, Finish):
                self._stage = _Stage.OVER
            yield step


def _initial_response(data: bytes) -> bytes:
    """What SASLInitialResponse holds; 08P01 for another mechanism."""
    name, zero, rest = data.partition(b"\x00")
    if not zero or len(rest) < 4:
        raise make_error("08P01", "malformed SASL response")
    if name.decode(errors="replace") != MECHANISM:
        raise make_error("08P01", "client selected an invalid SASL authentication mechanism")
    (length,) = struct.unpack_from("!i", rest)
    if length == -1:
        length = 0
    if length != len(rest) - 4:
        raise make_error("08P01", "malformed SASL response")
    return rest[4:]
