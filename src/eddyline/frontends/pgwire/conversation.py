"""What the server does with each message of a client that is let in.

Bytes are not its business, and neither is waiting for clients: ``handle`` is a generator of steps that whoever moves
the bytes advances, on any thread, one at a time.  It blocks only for the engine.

Invariants (the protocol's own):
I1  every Query, FunctionCall and Sync is answered by exactly one ReadyForQuery, after everything else that answers it;
I2  after an error in the extended protocol, messages up to the next Sync are skipped;
I3  statements outside of a transaction block that come between two Syncs, or in one Query, are one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeAlias

from eddyline.adapter.named_statements import NamedStatement
from eddyline.adapter.notices import severity_of, sqlstate_of
from eddyline.adapter.result_columns import copy_shape
from eddyline.adapter.session import Session
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import Error, InternalError, exhausted, make_error, unsupported
from eddyline.expr.ir import Literal
from eddyline.expr.timezone import UTC, Zone, zone_of
from eddyline.frontends.pgwire import server_messages as say
from eddyline.frontends.pgwire.client_messages import (
    Bind,
    ClientMessage,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Parse,
    Query,
    Sync,
    Terminate,
)
from eddyline.frontends.pgwire.copying import AwaitMessage, Copying
from eddyline.frontends.pgwire.lookups import Lookups
from eddyline.frontends.pgwire.output import Output
from eddyline.frontends.pgwire.portals import Portal, arguments_of, formats_of
from eddyline.frontends.pgwire.request_log import Caller, RequestLog
from eddyline.frontends.pgwire.rows import data_rows, ready_rows, rows_at_once
from eddyline.frontends.pgwire.steps import Finish, Send, Step, WaitForNews
from eddyline.frontends.pgwire.type_ids import declared_type, shape_of
from eddyline.repr.types import SqlType
from eddyline.sql.statements import CloseCursor

__all__ = ["REPORTED", "Conversation"]

_log = logging.getLogger("eddyline.pgwire")
#: settings whose values clients are told, by the names they know
REPORTED: Final = (
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
)
_SYNC: Final = ord("S")
#: what is answered by ReadyForQuery even if it cannot be read
_READY_AFTER: Final = (ord("Q"), ord("F"))


_Handler: TypeAlias = Generator["Step | AwaitMessage", "ClientMessage | None", None]


class Conversation:
    """One client's session.  ``wake``: makes whoever advances a ``WaitForNews`` go on; called on any thread.

    ``caller``: whose it is, for the log.
    """

    def __init__(self, session: Session, wake: Callable[[], None], caller: Caller) -> None:
        self._session = session
        self._activity = session.activity
        self._wake = wake
        self._output = Output()
        self._say = self._output.say
        self._told: dict[str, str] = {}  # settings, as the client knows them
        self._told_of: object = None  # the state of the session's settings of which it was told
        self._unnamed: NamedStatement | None = None
        self._has_unnamed = False  # it may be there and be empty
        self._empty: set[str] = set()  # names of prepared statements without a statement
        self._portals: dict[str, Portal] = {}
        self._skipping = False
        self._in_block = False
        self._waits: _Handler | None = None  # the handler that takes the next message: COPY FROM STDIN
        self._busy = False
        self._cancelled = False
        self._lookups = Lookups(session)
        self._copying = Copying(session, self._output, wake, self._check_cancelled)
        self._requests = RequestLog(caller, session.statements.refused)

    # -- life -----------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        return self._session

    @property
    def mid_statement(self) -> bool:
        """Whether a statement waits for the client's next message: COPY FROM STDIN."""
        return self._waits is not None

    def greet(self, process: int, secret: int) -> None:
        """Says what follows on authentication."""
        self._tell_settings()
        self._say(say.backend_key(process, secret))
        self._say(say.ready_for_query("I"))

    def cancel(self) -> None:
        """From any thread: what runs, if anything does, fails with 57014."""
        if self._busy:
            self._cancelled = True
            self._session.cancel()
            self._copying.cancel()
            self._wake()

    def close(self) -> None:
        """Ends the session.  Not while ``handle`` is being advanced, except on another thread after ``cancel``."""
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()
        for portal in self._portals.values():
            portal.close()
        self._portals.clear()
        self._session.close()

    def take(self) -> bytes:
        """What is to be sent."""
        return self._output.take()

    def answer_at_once(self, data: bytes) -> bytes | None:
        """The whole answer to ``data`` if it is a lookup as it was asked before; None: nothing has happened.

        For the event loop, while nothing else advances the conversation: it does not wait.
        """
        if self._skipping or self._in_block or self._waits is not None or self._busy:
            return None
        session = self._session
        if session.status != "I" or session.settings_state is not self._told_of:
            return None
        answered = self._lookups.answer(data, self._unnamed)
        if answered is None:
            return None
        self._drop_portal("")
        if answered[1] is not self._unnamed:
            self._unnamed, self._has_unnamed = answered[1], True
        return answered[0]

    # -- messages -------------------------------------------------------------------------------------------------

    def handle(self, message: ClientMessage, following: int | None) -> Iterator[Step]:
        """``following``: the tag of the message after this one, if it is known."""
        handler, self._waits = self._waits, None
        sent: ClientMessage | None = message
        if handler is None:
            handler, sent = self._answered(message, following), None
        self._busy = True
        try:
            step = handler.send(sent)
            while True:
                if isinstance(step, AwaitMessage):
                    self._waits = handler
                    return
                yield step
                step = handler.send(None)
        except StopIteration:
            return
        finally:
            self._busy = self._waits is not None
            self._cancelled = self._cancelled and self._busy

    def malformed(self, error: Error, tag: int) -> Iterator[Step]:
        """A message that could not be read."""
        if self._waits is not None:
            yield from self.handle(CopyFail("malformed message"), None)
        elif not self._skipping:
            self._requests.begin()
            yield from self._failed(error, ready=tag in _READY_AFTER)

    def _answered(self, message: ClientMessage, following: int | None) -> _Handler:
        if self._skipping and not isinstance(message, (Sync, Terminate)):
            return
        ready = isinstance(message, (Query, FunctionCall, Sync))
        self._requests.begin()
        try:
            yield from self._dispatch(message, following)
        except Error as error:
            yield from self._failed(error, ready=ready)
        except (RecursionError, MemoryError) as problem:
            yield from self._failed(exhausted(problem), ready=ready)
        except Exception as problem:  # noqa: BLE001 - the client is told, the server goes on
            _log.exception("a statement failed unexpectedly")
            fault = InternalError(f"internal error: {type(problem).__name__}: {problem}")
            yield from self._failed(fault, ready=ready)

    def _failed(self, error: Error, *, ready: bool) -> Iterator[Step]:
        """``ready``: the message is answered by ReadyForQuery; otherwise what follows is skipped."""
        self._session.fail()
        self._say(say.error_response(error))
        self._requests.failed(error)
        if not ready:
            self._skipping = True
        else:
            yield from self._ready()

    def _dispatch(self, message: ClientMessage, following: int | None) -> _Handler:
        match message:
            case Query():
                yield from self._query(message.text)
            case Parse():
                self._parse(message)
            case Bind():
                self._bind(message)
            case Describe():
                self._describe(message)
            case Execute():
                yield from self._execute(message, alone=following == _SYNC)
            case Close():
                self._close(message)
            case Sync():
                self._skipping = False
                self._end_block()
                yield from self._ready()
            case Flush():
                yield Send(self._output.take())
            case Terminate():
                yield Finish()
            case CopyData() | CopyDone() | CopyFail():
                return  # of a COPY that has failed already
            case FunctionCall():
                raise unsupported("the function call message", hint="Call the function in a SELECT.")

    def _ready(self) -> Iterator[Step]:
        """Ends what was asked for: everything is said, and the next request may come."""
        self._skipping = False
        if self._in_block:
            try:
                self._end_block()
            except Error as error:
                self._say(say.error_response(error))
                self._requests.begin()
                self._requests.failed(error)
        status = self._session.status
        self._activity.answered()
        if status == "I":
            self._retire_portals()
        self._tell_settings()
        self._say(say.ready_for_query(status))
        yield from self._output.flushed()

    def _end_block(self) -> None:
        if self._in_block:
            self._in_block = False
            self._session.end_block()

    def _begin_block(self) -> None:
        if not self._in_block:
            self._in_block = True
            self._session.begin_block()

    def _retire_portals(self) -> None:
        """Those that have rows left live on, though their transaction is over, until their names are taken."""
        for name, portal in list(self._portals.items()):
            if portal.suspended and not portal.stale:
                portal.stale = True
            elif not portal.suspended:
                portal.close()
                del self._portals[name]

    def _tell_settings(self) -> None:
        """What has changed of the settings that clients are told."""
        state = self._session.settings_state
        if state is self._told_of:
            return
        self._told_of = state
        for name in REPORTED:
            value = self._session.setting(name)
            if value != self._told.get(name):
                self._told[name] = value
                self._say(say.parameter_status(name, value))

    @property
    def _zone(self) -> Zone:
        zone = self._session.zone
        return UTC if zone is None else zone_of(zone)

    def _check_cancelled(self) -> None:
        if self._cancelled:
            self._cancelled = False
            raise make_error("57014", "canceling statement due to user request")

    # -- simple queries -------------------------------------------------------------------------------------------

    def _query(self, text: str) -> _Handler:
        self._activity.asked(text)
        self._drop_portal("")
        self._unnamed, self._has_unnamed = None, False
        known = self._session.statements.remembered(text, {})
        shared = self._session.shared(text) if known is None else None
        if known is not None:
            yield from self._run_simple(known)
        elif shared is not None:
            yield from self._run_simple(*shared)
        else:
            statements = self._session.statements.parse(text)
            if len(statements) > 1:
                self._begin_block()
            for number, parsed in enumerate(statements):
                if number:
                    self._requests.begin()
                bound = self._session.statements.bind(parsed, {}, remember=text if len(statements) == 1 else None)
                yield from self._run_simple(bound)
            if not statements:
                self._say(say.EMPTY_QUERY)
        if self._in_block:
            self._requests.begin()
            self._end_block()
        yield from self._ready()

    def _run_simple(self, statement: NamedStatement, arguments: tuple[Literal, ...] = ()) -> _Handler:
        if statement.prepared.param_types and not arguments:
            raise make_error("42P02", "there is no parameter $1")
        portal = Portal(statement, arguments, columns=self._session.statements.columns(statement))
        portal.formats = (0,) * len(portal.columns or ())
        try:
            if portal.columns is not None:
                yield from self._run(portal, described=True)
                yield from self._give(portal, 0)
            else:
                yield from self._run(portal)
                yield from self._give(portal, 0)
        finally:
            portal.close()

    # -- extended queries -----------------------------------------------------------------------------------------

    def _parse(self, message: Parse) -> None:
        self._activity.asked(message.text)
        declared = {
            number: known
            for number, oid in enumerate(message.types, 1)
            if (known := declared_type(oid, number)) is not None
        }
        if not message.name:
            self._unnamed, self._has_unnamed = None, False
        statement = self._session.statements.prepare(message.text, declared)
        if not message.name:
            self._unnamed, self._has_unnamed = statement, True
        elif statement is not None:
            self._session.statements.add(message.name, statement)
        else:
            self._empty.add(message.name)
        self._say(say.PARSE_COMPLETE)

    def _prepared(self, name: str) -> NamedStatement | None:
        """None for the empty statement; 26000 for a name that there is not."""
        if name in self._empty:
            return None
        if name:
            return self._session.statements.get(name)
        if not self._has_unnamed:
            raise make_error("26000", "unnamed prepared statement does not exist")
        if self._unnamed is not None:
            self._unnamed = self._session.statements.current(self._unnamed)
        return self._unnamed

    def _bind(self, message: Bind) -> None:
        existing = self._portals.get(message.portal)
        if existing is not None and message.portal and not existing.stale:
            raise make_error("42P03", f'cursor "{message.portal}" already exists')
        statement = self._prepared(message.statement)
        if statement is None:
            portal = Portal(None)
        else:
            arguments = arguments_of(message, statement.prepared.param_types, self._zone)
            columns = self._session.statements.columns(statement)
            formats = formats_of(message.result_formats, len(columns or ()), "result") if columns is not None else ()
            portal = Portal(statement, arguments, formats, columns)
        self._drop_portal(message.portal)
        self._portals[message.portal] = portal
        self._say(say.BIND_COMPLETE)

    def _drop_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()

    def _portal(self, name: str) -> Portal:
        portal = self._portals.get(name)
        if portal is None:
            raise make_error("34000", f'portal "{name}" does not exist')
        return portal

    def _described_portal(self, name: str) -> Portal:
        """A portal, or a cursor that DECLARE has made: they share their names."""
        if name in self._portals or name not in self._session.cursors:
            return self._portal(name)
        columns = self._session.cursors.columns(name)
        return Portal(None, formats=(0,) * len(columns), columns=columns)

    def _describe(self, message: Describe) -> None:
        if not message.statement:
            self._describe_columns(self._described_portal(message.name))
            return
        statement = self._prepared(message.name)
        types: tuple[SqlType, ...] = () if statement is None else statement.prepared.param_types
        self._say(say.parameter_description([shape_of(t).oid for t in types]))
        columns = None if statement is None else self._session.statements.columns(statement)
        self._describe_columns(Portal(statement, formats=(0,) * len(columns or ()), columns=columns))

    def _describe_columns(self, portal: Portal) -> None:
        if portal.columns is None:
            self._say(say.NO_DATA)
            return
        names, shapes = [n for n, _ in portal.columns], [shape_of(t) for _, t in portal.columns]
        self._say(say.row_description(names, shapes, portal.formats))

    def _close(self, message: Close) -> None:
        if not message.statement:
            self._drop_portal(message.name)
            if message.name in self._session.cursors:
                self._session.cursors.close(CloseCursor(message.name))
        elif message.name:
            self._empty.discard(message.name)
            self._session.statements.discard(message.name)
        else:
            self._unnamed, self._has_unnamed = None, False
        self._say(say.CLOSE_COMPLETE)

    def _execute(self, message: Execute, *, alone: bool) -> _Handler:
        """``alone``: Sync follows, so that the statement is a transaction of its own."""
        portal = self._portal(message.portal)
        if portal.statement is None:
            self._say(say.EMPTY_QUERY)
            return
        self._activity.asked(portal.statement.parsed.text)
        if portal.outcome is None:
            if not alone:
                self._begin_block()
            yield from self._run(portal)
        elif portal.rows is None and portal.feed is None:
            raise make_error("55000", f'portal "{message.portal}" cannot be run')
        yield from self._give(portal, message.limit)

    # -- running a portal -----------------------------------------------------------------------------------------

    def _run(self, portal: Portal, *, described: bool = False) -> _Handler:
        """Runs its statement; rows are not given yet, but for COPY's.  ``described``: say what columns there are."""
        statement = portal.statement
        assert statement is not None, "the empty statement is not run"
        self._requests.runs()
        copied = copy_shape(statement.prepared.statement)
        if copied is not None and copied.inwards:
            portal.outcome = yield from self._copying.copy_in(statement, portal.arguments, copied)
        elif copied is not None:
            portal.outcome = yield from self._copying.copy_out(statement, portal.arguments, copied)
        else:
            portal.outcome = self._session.execute_bound(statement, portal.arguments)
        outcome = portal.outcome
        for text in outcome.notices:
            self._say(say.notice(text, severity=severity_of(text), sqlstate=sqlstate_of(text)))
        if outcome.feed is not None:
            outcome.feed.on_news(self._wake)
            portal.feed = SubscriptionRows(outcome.feed)
        portal.rows = outcome.result
        if described:
            self._describe_columns(portal)

    def _give(self, portal: Portal, limit: int) -> _Handler:
        """Rows of a portal that has run, at most ``limit`` if that is above 0, then its tag or that it is suspended."""
        outcome = portal.outcome
        assert outcome is not None
        if portal.feed is not None:
            given = yield from self._give_changes(portal, limit)
            tag = f"{outcome.tag} {given}" if outcome.tag == "SUBSCRIBE" else outcome.tag
        elif portal.rows is not None:
            first, last = portal.given, portal.rows.rows
            stop = last if limit <= 0 else min(last, first + limit)
            yield from self._give_rows(portal, stop)
            tag = f"SELECT {stop - first}" if outcome.tag.startswith("SELECT") else outcome.tag
        else:
            tag = outcome.tag
        if portal.suspended and limit > 0:
            self._say(say.PORTAL_SUSPENDED)
        else:
            self._say(say.command_complete(tag) if tag else say.EMPTY_QUERY)
        yield from self._output.flushed()

    def _give_rows(self, portal: Portal, stop: int) -> _Handler:
        result, zone = portal.rows, self._zone
        assert result is not None
        few = ready_rows(result, portal.formats) if portal.given == 0 and stop == result.rows else None
        if few is not None:
            self._say(few)
            portal.given = stop
            return
        step = rows_at_once(result)
        while portal.given < stop:
            self._check_cancelled()
            end = min(stop, portal.given + step)
            self._say(data_rows(result, portal.formats, portal.given, end, zone))
            portal.given = end
            yield from self._output.flushed()

    def _give_changes(self, portal: Portal, limit: int) -> Generator[Any, Any, int]:
        """Changes as they come, until the subscription's end or the limit; how many rows."""
        given = 0
        while portal.feed is not None and (limit <= 0 or given < limit):
            if portal.rows is None or portal.given >= portal.rows.rows:
                portal.rows, portal.given = portal.feed.next_rows(0), 0
                if portal.rows is None:
                    if portal.feed.ended:
                        portal.close()
                        break
                    yield Send(self._output.take())
                    yield WaitForNews()
                    self._check_cancelled()
                    continue
            stop = portal.rows.rows if limit <= 0 else min(portal.rows.rows, portal.given + limit - given)
            given += stop - portal.given
            yield from self._give_rows(portal, stop)
        return given
