"""Lookups that are answered where their bytes arrive: on the event loop, without a thread of the crew.

Programs ask the same lookup again and again: Bind, Execute and Sync of one statement, perhaps with Parse and Describe,
in one piece, of which only the values of Bind differ.  Such a *shape* is learnt once: what to do with the values, and
the messages that surround the rows.  From then on a request is recognized by its bytes, and costs one quick lookup
(``adapter.quick_lookup``), which waits for nothing and gives few rows.

Whatever is not just that is not answered here: nothing has happened, and the bytes take the usual way.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from eddyline.adapter.asked_lookups import KnownLookup
from eddyline.adapter.named_statements import NamedStatement
from eddyline.adapter.session import Session
from eddyline.errors import Error
from eddyline.expr.ir import LiteralValue
from eddyline.frontends.pgwire import server_messages as say
from eddyline.frontends.pgwire.client_messages import Bind, ClientMessage, Describe, Execute, Parse, Sync, read_message
from eddyline.frontends.pgwire.framing import Framing
from eddyline.frontends.pgwire.portals import formats_of
from eddyline.frontends.pgwire.rows import CellWriter, row_writers, written_rows
from eddyline.frontends.pgwire.type_ids import declared_type, shape_of
from eddyline.repr.types import Kind, SqlType

__all__ = ["MOST_BYTES", "Lookups"]

#: of a request: longer ones are worth a thread
MOST_BYTES: Final = 4096
_MOST_SHAPES: Final = 128
#: how often in a row it is looked whether a request is a lookup, and every how many times after that
_EAGER: Final = 4
_SELDOM: Final = 64
_PARSE: Final = ord("P")
_BIND: Final = ord("B")
_COUNT: Final = struct.Struct("!H")
_LENGTH: Final = struct.Struct("!i")
_DIGITS: Final = re.compile(rb"-?[0-9]{1,18}")

#: a value of Bind as the literal of its parameter's type; None: the usual way shall see
_Read: TypeAlias = Callable[[bytes], LiteralValue]


@dataclass(frozen=True, slots=True)
class _Shape:
    """``name``: of the prepared statement, "" if Parse comes along.  ``head``, ``tail``: the bytes around the values
    of Bind, of which ``bind_tail`` are Bind's own; ``bind_at``: where it begins.
    """

    name: str
    statement: NamedStatement
    known: KnownLookup
    readers: tuple[_Read, ...]
    writers: tuple[CellWriter, ...]
    head: bytes
    tail: bytes
    bind_at: int
    bind_tail: int
    before: bytes


class Lookups:
    """Of one conversation, between its requests.  Owner: the event loop, while no thread advances the conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shapes: dict[tuple[bytes, bytes], _Shape] = {}
        self._looked: dict[tuple[bytes, bytes], int] = {}  # how often what is no shape was looked at
        self._last: _Shape | None = None  # which is mostly the next one, too
        self._after: dict[int, bytes] = {}  # by the number of rows: what follows them

    def answer(self, data: bytes, unnamed: NamedStatement | None) -> tuple[bytes, NamedStatement | None] | None:
        """The answer to the request that ``data`` is, and what the unnamed statement is then; None: not here.

        ``unnamed``: what it is now.  The session is idle and outside of a transaction.
        """
        found = self._as_before(data) or self._recognized(data)
        if found is None:
            return None
        shape, literals = found
        session = self._session
        if shape.name and session.statements.kept(shape.name) is not shape.statement:
            rows = None
        else:
            rows = session.rows_at_once(shape.known, literals)
        if rows is None:
            # Not this time, or no more: then it is learnt again when it has been asked again.
            self._shapes.pop((shape.head, shape.tail), None)
            self._last = None
            return None
        self._last = shape
        after = self._after.get(len(rows))
        if after is None:
            after = self._after[len(rows)] = say.command_complete(f"SELECT {len(rows)}") + say.ready_for_query("I")
        session.activity.did(shape.statement.parsed.text)
        return shape.before + written_rows(rows, shape.writers) + after, unnamed if shape.name else shape.statement

    def _as_before(self, data: bytes) -> tuple[_Shape, Sequence[LiteralValue]] | None:
        """As ``_recognized``, of the shape that was asked last, if that has one value."""
        shape = self._last
        literal = None if shape is None else _only_literal(data, shape)
        return None if shape is None or literal is None else (shape, (literal,))

    def _recognized(self, data: bytes) -> tuple[_Shape, Sequence[LiteralValue]] | None:
        """The shape of a request, and its values."""
        cut = _cut(data)
        if cut is None:
            return None
        shape = self._shapes.get((cut.head, cut.tail))
        if shape is None and self._worth_learning(cut):
            shape = self._learn(data, cut)
        if shape is None or len(cut.values) != len(shape.readers):
            return None
        if cut.bind_end != len(data) - len(cut.tail) + shape.bind_tail:
            return None
        literals = [read(value) for read, value in zip(shape.readers, cut.values, strict=True)]
        return None if None in literals else (shape, literals)

    def _worth_learning(self, cut: _Cut) -> bool:
        """Whether to look if it is a lookup by now; what has not been for some times is looked at now and then."""
        if len(self._looked) >= _MOST_SHAPES:
            self._looked.clear()
        key = (cut.head, cut.tail)
        times = self._looked[key] = self._looked.get(key, 0) + 1
        return times <= _EAGER or times % _SELDOM == 0

    def _learn(self, data: bytes, cut: _Cut) -> _Shape | None:
        """The shape of the request, if it is a lookup that has been asked before."""
        messages = _messages(data)
        statement = None if messages is None else self._statement(messages)
        if messages is None or statement is None:
            return None
        bind = next(m for m in messages if isinstance(m, Bind))
        types = statement.prepared.param_types
        columns = self._session.statements.columns(statement)
        lookup = self._session.known_lookup(statement)
        if columns is None or len(bind.values) != len(types) or lookup is None:
            return None
        names, result = [n for n, _ in columns], [t for _, t in columns]
        formats = formats_of(bind.result_formats, len(columns), "result")
        codes = formats_of(bind.formats, len(types), "parameter")
        readers = [_READERS.get((t.kind, code)) for t, code in zip(types, codes, strict=True)]
        writers = row_writers(result, formats)
        if writers is None or None in readers:
            return None
        parses = isinstance(messages[0], Parse)
        before = (say.PARSE_COMPLETE if parses else b"") + say.BIND_COMPLETE
        if any(isinstance(m, Describe) for m in messages):
            before += say.row_description(names, [shape_of(t) for t in result], formats)
        shape = _Shape(
            name="" if parses else bind.statement,
            statement=statement,
            known=lookup,
            readers=tuple(r for r in readers if r is not None),
            writers=writers,
            head=cut.head,
            tail=cut.tail,
            bind_at=cut.bind_at,
            bind_tail=2 + 2 * len(bind.result_formats),
            before=before,
        )
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        self._shapes[cut.head, cut.tail] = shape
        self._looked.pop((cut.head, cut.tail), None)
        return shape

    def _statement(self, messages: Sequence[ClientMessage]) -> NamedStatement | None:
        """What is asked, as it means now; None if that is not known without work."""
        bind = next(m for m in messages if isinstance(m, Bind))
        parse = messages[0]
        if isinstance(parse, Parse):
            declared: dict[int, SqlType] = {}
            for number, oid in enumerate(parse.types, 1):
                known = declared_type(oid, number)
                if known is not None:
                    declared[number] = known
            return self._session.statements.remembered(parse.text, declared)
        if not bind.statement:
            return None
        kept = self._session.statements.kept(bind.statement)
        return kept if kept is not None and self._session.statements.is_current(kept) else None


class _Cut(NamedTuple):
    """A request around the values of its Bind; ``head``: without Bind's length.  Where Bind begins and ends."""

    head: bytes
    values: list[bytes]
    tail: bytes
    bind_at: int
    bind_end: int


def _only_literal(data: bytes, shape: _Shape) -> LiteralValue:
    """The one value of a request of that shape; None if it is another's."""
    at, head, tail = shape.bind_at, shape.head, shape.tail
    start = len(head) + 4  # of the value's length
    size = len(data) - start - 4 - len(tail)
    if len(shape.readers) != 1 or size < 0 or not data.endswith(tail) or not data.startswith(head[at + 1 :], at + 5):
        return None
    if at and not data.startswith(head[:at]):
        return None
    ends = _LENGTH.unpack_from(data, start)[0] == size and data[at] == _BIND
    if not ends or _LENGTH.unpack_from(data, at + 1)[0] != start + 3 + size + shape.bind_tail - at:
        return None
    return shape.readers[0](data[start + 4 : start + 4 + size])


def _cut(data: bytes) -> _Cut | None:
    """None if it does not look like such a request.

    A value that is NULL, or not all there, is none.
    """
    start = 0
    if data[0] == _PARSE:
        if len(data) < 6 or data[5]:
            return None  # named: it is kept, which is done once
        start = 1 + _LENGTH.unpack_from(data, 1)[0]
        if not 5 <= start < len(data):
            return None
    if data[start] != _BIND or len(data) < start + 12 or data[start + 5]:
        return None  # of a named portal
    bind_end = start + 1 + _LENGTH.unpack_from(data, start + 1)[0]
    at = data.find(0, start + 6) + 1
    if at <= 0 or at + 2 > len(data):
        return None
    at += 2 + 2 * _COUNT.unpack_from(data, at)[0]
    if at + 2 > len(data):
        return None
    count = _COUNT.unpack_from(data, at)[0]
    at += 2
    # The length of Bind is not of the shape: it is checked against where the values end.
    head, values = data[: start + 1] + data[start + 5 : at], list[bytes]()
    for _ in range(count):
        if at + 4 > len(data):
            return None
        end = at + 4 + _LENGTH.unpack_from(data, at)[0]
        if not at + 4 <= end <= len(data):
            return None
        values.append(data[at + 4 : end])
        at = end
    return _Cut(head, values, data[at:], start, bind_end)


def _messages(data: bytes) -> list[ClientMessage] | None:
    """The messages of a request that is one lookup by its form."""
    framing = Framing()
    framing.feed(data)
    messages: list[ClientMessage] = []
    try:
        while (raw := framing.next_message()) is not None:
            messages.append(read_message(raw))
    except Error:  # the usual way says what is wrong
        return None
    kinds = [type(m) for m in messages if type(m) is not Parse or m is not messages[0]]
    if framing.waiting_bytes or kinds not in ([Bind, Execute, Sync], [Bind, Describe, Execute, Sync]):
        return None
    for message in messages:
        match message:
            case Bind(portal="") | Parse(name="") | Describe(statement=False, name="") | Sync():
                continue
            case Execute(portal="", limit=limit) if limit <= 0:
                continue
            case _:
                return None
    bind = next(m for m in messages if isinstance(m, Bind))
    return None if isinstance(messages[0], Parse) and bind.statement else messages


def _integer(value: bytes) -> LiteralValue:
    return int(value) if _DIGITS.fullmatch(value) else None


def _binary_integer(width: int) -> _Read:
    return lambda value: int.from_bytes(value, "big", signed=True) if len(value) == width else None


def _text(value: bytes) -> LiteralValue:
    try:
        return None if 0 in value else value.decode()
    except UnicodeDecodeError:  # the usual way says so
        return None


_READERS: Final[dict[tuple[Kind, int], _Read]] = {
    **{(kind, 0): _integer for kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)},
    (Kind.SMALLINT, 1): _binary_integer(2),
    (Kind.INTEGER, 1): _binary_integer(4),
    (Kind.BIGINT, 1): _binary_integer(8),
    **{(kind, code): _text for kind in (Kind.TEXT, Kind.VARCHAR) for code in (0, 1)},
}
