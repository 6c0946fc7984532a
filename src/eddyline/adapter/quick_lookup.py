"""Lookups by key that are asked again and again: from Python parameters to Python rows, with nothing made in between.

A plan of points (``point_plan``) is *compiled* into one object that knows how to encode the key, which cells to take,
and what they are in Python.  Its meaning is that of ``read``: where it meets anything else (values of other Python
types, rows to be netted, errors, many rows, a time that is not sealed, an index that is gone) it answers None, nothing
has happened, and the statement takes the usual way.

An object belongs to one session, whose statements come one at a time.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from eddyline.adapter.clusters import Cluster
from eddyline.adapter.engine import Engine
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.point_plan import AS_THEY_ARE, PointNode, Row, point_node
from eddyline.adapter.prepare import Prepared
from eddyline.adapter.read import SEAL_WAIT_S
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.ir import Literal, LiteralValue
from eddyline.expr.literals import literal_from_python, literal_to_python
from eddyline.plan.fast_path import PeekPlan
from eddyline.protocol.read_costs import ReadBounds
from eddyline.repr.time import Time
from eddyline.repr.types import Kind, SqlType
from eddyline.sql.statements import Select

__all__ = ["QuickLookup", "quick_lookup"]

#: an answer is smaller than this, so that only bounds below it can matter: its texts, and at most _MOST_ROWS rows of
#: _MOST_COLUMNS values of fixed width
_MOST_BYTES: Final = 1 << 20
_MOST_CHARS: Final = 1 << 16
_MOST_COLUMNS: Final = 64
_MOST_ROWS: Final = 64

#: a parameter as the literal of its type, None: not of the plain kind
_Encode: TypeAlias = Callable[[Any], LiteralValue]


def quick_lookup(engine: Engine, cluster: Cluster | None, prepared: Prepared) -> QuickLookup | None:
    """What answers the statement quickly; None if nothing does.  ``cluster``: for which it was planned, if any."""
    statement, plan = prepared.statement, prepared.plan
    if not isinstance(statement, Select) or statement.as_of is not None or statement.signals:
        return None
    if statement.late is not None:
        return None
    if plan is None or plan.clocked:
        return None
    if plan.recursions:
        return None
    query = statement.query
    limited = query.limit is not None and not isinstance(query.limit, Literal)
    if limited or query.offset is not None or not 0 < len(query.types) <= _MOST_COLUMNS:
        return None
    lookups = plan.fast if isinstance(plan.fast, PeekPlan) else plan.join
    encoders = [_encoder(t) for t in prepared.param_types]
    if lookups is None or None in encoders:
        return None
    key_columns = {facts.id: facts.key for facts in (*plan.facts.indexes, *plan.stored_keys)}
    node = point_node(engine, cluster, lookups, key_columns)
    if node is None or node.parameters != frozenset(range(1, len(encoders) + 1)):
        return None
    return QuickLookup(node, cluster, plan.tables, [e for e in encoders if e is not None], prepared)


class QuickLookup:
    """See the module."""

    def __init__(
        self,
        node: PointNode,
        cluster: Cluster | None,
        tables: tuple[str, ...],
        encoders: Sequence[_Encode],
        prepared: Prepared,
    ) -> None:
        assert isinstance(prepared.statement, Select)
        query = prepared.statement.query
        self._node = node
        self._tables = tables
        self._encoders = encoders
        self._names, self._types = query.names, query.types
        self._width = len(query.types)
        self._hidden = len(node.types) > self._width
        limit = query.limit.value if isinstance(query.limit, Literal) else None
        #: more rows than these are to be sorted, or cut
        self._most_rows = min(1 if query.order else _MOST_ROWS, _MOST_ROWS if limit is None else int(limit))
        self._decoders = [None if t.kind in AS_THEY_ARE else _decoder(t) for t in query.types]
        self._plain = not any(self._decoders)
        self._cluster = cluster if node.indexes else None

    @property
    def reader(self) -> str | None:
        """The runtime whose indexes have the rows; None where storage alone does."""
        return None if self._cluster is None else self._cluster.reader

    def answer(self, engine: Engine, parameters: Sequence[Any], bounds: ReadBounds) -> ResultSet | None:
        """The strict answer outside of a transaction block, or None."""
        found = self._literals(engine, parameters, bounds)
        if found is None:
            return None
        rows, at = found
        return ResultSet.of_literals(self._names, self._types, rows, self._ready(rows), at)

    def rows(self, engine: Engine, parameters: Sequence[Any], bounds: ReadBounds) -> list[tuple[Any, ...]] | None:
        """As ``answer``: the rows alone, as Python values."""
        found = self._literals(engine, parameters, bounds)
        return None if found is None else self._ready(found[0])

    def wait_sealed(self, engine: Engine, expired: Callable[[], bool]) -> bool:
        """Waits, not for long, for a strict read's time; True if it had to, and it may be asked once more."""
        at = self._newest(engine)
        if at is None or self._cluster is None:
            return False
        waited = False
        for index in self._node.indexes:
            waited |= bool(self._cluster.wait_sealed(index, at, SEAL_WAIT_S, expired))
        return waited

    def _literals(
        self, engine: Engine, parameters: Sequence[Any], bounds: ReadBounds
    ) -> tuple[list[tuple[LiteralValue, ...]], Time] | None:
        """The rows of the answer and their time."""
        for bound in (bounds.result, bounds.memory):
            if bound is not None and bound < _MOST_BYTES:
                return None
        if len(parameters) != len(self._encoders):
            return None
        literals = []
        for value, encode in zip(parameters, self._encoders, strict=True):
            literal = encode(value)
            if literal is None:
                return None
            literals.append(literal)
        at = self._newest(engine)
        found = None if at is None else self._node.rows(at, literals, ())
        rows = None if found is None else self._shown(found)
        return None if rows is None or at is None else (rows, at)

    def _ready(self, rows: list[tuple[LiteralValue, ...]]) -> list[tuple[Any, ...]]:
        return rows if self._plain else [self._python(row) for row in rows]

    def _newest(self, engine: Engine) -> Time | None:
        """The time of a strict read: as ``read.choose_time``; None if what it reads is gone."""
        node, store = self._node, engine.store
        at = store.newest_readable(self._tables, node.stored) if node.stored else store.newest_write(self._tables)
        if at is None:
            return None
        collections = engine.collections
        for index in node.indexes:
            readable = collections.readable(index)
            if readable is None:
                return None
            at = Time(max(at, readable[0]))
        return at

    def _shown(self, found: list[Row]) -> list[tuple[LiteralValue, ...]] | None:
        """The rows of the answer, multiplicities spelled out; None if they are many or long."""
        rows: list[tuple[LiteralValue, ...]] = []
        chars = 0
        for values, diff in found:
            for value in values:
                if type(value) is str:
                    chars += len(value)
            if diff > _MOST_ROWS or chars > _MOST_CHARS:
                return None
            row = values[: self._width] if self._hidden else values
            if diff == 1:
                rows.append(row)
            else:
                rows += [row] * diff
        return rows if len(rows) <= self._most_rows else None

    def _python(self, row: tuple[LiteralValue, ...]) -> tuple[Any, ...]:
        return tuple(
            [v if decode is None or v is None else decode(v) for decode, v in zip(self._decoders, row, strict=True)]
        )


def _decoder(sql_type: SqlType) -> Callable[[LiteralValue], Any]:
    return lambda value: literal_to_python(value, sql_type)


def _encoder(sql_type: SqlType) -> _Encode | None:
    """Of parameters whose Python type is the very one of their SQL type; others are for ``prepare.literals_of``."""
    kind = sql_type.kind
    if kind in INTEGER_LIMITS:
        low, high = INTEGER_LIMITS[kind]
        return lambda value: value if type(value) is int and low <= value <= high else None
    python = _PYTHON.get(kind)
    if python is None:
        return None
    if kind in (Kind.TEXT, Kind.VARCHAR):
        return _text
    if kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        zoned = kind is Kind.TIMESTAMPTZ
        return lambda value: (
            literal_from_python(value, sql_type)
            if type(value) is python and (value.tzinfo is not None) is zoned
            else None
        )
    return lambda value: literal_from_python(value, sql_type) if type(value) is python else None


_PYTHON: Final[dict[Kind, type[Any]]] = {
    Kind.BOOLEAN: bool,
    Kind.DOUBLE: float,
    Kind.TEXT: str,
    Kind.VARCHAR: str,
    Kind.DATE: datetime.date,
    Kind.TIME: datetime.time,
    Kind.TIMESTAMP: datetime.datetime,
    Kind.TIMESTAMPTZ: datetime.datetime,
    Kind.UUID: uuid.UUID,
    Kind.BYTEA: bytes,
}


def _text(value: Any) -> LiteralValue:
    """None for what is no text of the database's: NUL, lone surrogates."""
    return value if type(value) is str and (value.isascii() or _encodable(value)) and "\x00" not in value else None


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
