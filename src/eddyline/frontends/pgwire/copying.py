"""COPY FROM STDIN and TO STDOUT in a conversation: what is said, and what the client's messages mean meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from eddyline.adapter.copy import HANDED_OVER
from eddyline.adapter.copy_to import CopyWriter
from eddyline.adapter.named_statements import NamedStatement
from eddyline.adapter.outcome import Outcome, SubscriptionFeed
from eddyline.adapter.result_columns import CopyShape
from eddyline.adapter.session import Session
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import make_error, unsupported
from eddyline.expr.ir import Literal
from eddyline.frontends.pgwire import server_messages as say
from eddyline.frontends.pgwire.client_messages import CopyData, CopyDone, CopyFail, Flush, Sync
from eddyline.frontends.pgwire.copy_in import CopyIn
from eddyline.frontends.pgwire.output import Output
from eddyline.frontends.pgwire.rows import copy_lines, rows_at_once
from eddyline.frontends.pgwire.steps import Send, WaitForNews
from eddyline.sql.statements import Copy, CopyFormat

__all__ = ["AWAIT_MESSAGE", "AwaitMessage", "Copying"]


class AwaitMessage:
    """The statement goes on with the next message of the client's."""


AWAIT_MESSAGE: Final = AwaitMessage()


class Copying:
    """``check_cancelled`` raises 57014 if the client asked for it; the rest as in ``Conversation``."""

    def __init__(
        self, session: Session, output: Output, wake: Callable[[], None], check_cancelled: Callable[[], None]
    ) -> None:
        self._session = session
        self._output = output
        self._wake = wake
        self._check_cancelled = check_cancelled
        self._say = output.say
        self._incoming: CopyIn | None = None  # the COPY FROM STDIN under way

    def cancel(self) -> None:
        """From any thread: a COPY that waits for its client's data fails with 57014."""
        incoming = self._incoming
        if incoming is not None:
            incoming.interrupt(make_error("57014", "canceling statement due to user request"))

    def copy_in(
        self, statement: NamedStatement, arguments: Sequence[Literal], copied: CopyShape
    ) -> Generator[Any, Any, Outcome]:
        self._say(say.copy_response(b"G", copied.columns, binary=copied.binary))
        yield Send(self._output.take())
        session = self._session
        copy = CopyIn(
            lambda pieces: session.execute_bound(statement, arguments, file=pieces), lambda: session.interrupt
        )
        self._incoming = copy
        reason = make_error("08006", "the connection was lost during COPY from stdin")
        try:
            self._check_cancelled()  # a cancel that came before there was anything to interrupt
            while True:
                message = yield AWAIT_MESSAGE
                match message:
                    case CopyData():
                        copy.feed(message.data)
                    case CopyDone():
                        return copy.finish()
                    case CopyFail():
                        reason = make_error("57014", f"COPY from stdin failed: {message.reason}")
                        raise reason
                    case Sync() | Flush():
                        continue
                    case _:
                        name = type(message).__name__
                        reason = make_error("08P01", f"unexpected message {name} during COPY from stdin")
                        raise reason
        finally:
            self._incoming = None
            copy.give_up(reason)

    def copy_out(
        self, statement: NamedStatement, arguments: Sequence[Literal], copied: CopyShape
    ) -> Generator[Any, Any, Outcome]:
        """All of the rows; the outcome has none left."""
        copy = statement.prepared.statement
        assert isinstance(copy, Copy), "its shape was asked for"
        outcome = self._session.execute_bound(statement, arguments, file=HANDED_OVER)
        if outcome.feed is not None:
            return (yield from self._changes(copy, outcome.feed, copied))
        result = outcome.result
        assert result is not None, "a query's rows"
        if copied.binary and copy.format is CopyFormat.PARQUET:
            raise unsupported("COPY TO STDOUT with format parquet to a client", hint="Use text, csv or binary.")
        writer = CopyWriter(copy, result.names, result.types)
        self._say(say.copy_response(b"H", copied.columns, binary=copied.binary))
        before = self._head(writer, copied)
        step = rows_at_once(result)
        for start in range(0, result.rows, step):
            self._check_cancelled()
            rows = min(step, result.rows - start)
            lines = writer.rows([c.slice(start, rows) for c in result.columns], rows)
            self._say(copy_lines(lines, before))
            before = b""
            yield from self._output.flushed()
        self._tail(before + writer.end())
        return replace(outcome, result=None)

    def _changes(self, copy: Copy, feed: SubscriptionFeed, copied: CopyShape) -> Generator[Any, Any, Outcome]:
        feed.on_news(self._wake)
        changes = SubscriptionRows(feed)
        try:
            writer = CopyWriter(copy, changes.names, changes.types)
            self._say(say.copy_response(b"H", copied.columns, binary=copied.binary))
            before, total = self._head(writer, copied), 0
            while not changes.ended:
                self._check_cancelled()
                rows = changes.next_rows(0)
                if rows is None:
                    yield Send(self._output.take())
                    if not changes.ended:
                        yield WaitForNews()
                    continue
                step = rows_at_once(rows)
                for start in range(0, rows.rows, step):
                    count = min(step, rows.rows - start)
                    lines = writer.rows([c.slice(start, count) for c in rows.columns], count)
                    self._say(copy_lines(lines, before))
                    before, total = b"", total + count
                    yield from self._output.flushed()
            self._tail(before + writer.end())
            return Outcome(f"COPY {total}")
        finally:
            changes.close()

    def _head(self, writer: CopyWriter, copied: CopyShape) -> bytes:
        """Says what comes before the rows, or gives it where the first of them is to begin with it."""
        head = writer.begin()
        if head and not copied.binary:
            self._say(say.copy_data(head))
            return b""
        return head

    def _tail(self, data: bytes) -> None:
        if data:
            self._say(say.copy_data(data))
        self._say(say.COPY_DONE)
