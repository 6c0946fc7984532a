"""Commands and responses between the controller and a replica: frozen structs, one ordered stream each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from eddyline.expr.ir import LiteralValue, SortKey
from eddyline.plan.dataflow import DataflowDescription, Mfp
from eddyline.protocol.read_costs import UNBOUNDED, PeekPhases, ReadBounds
from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType

__all__ = [
    "AllowCompaction",
    "AllowWrites",
    "CancelPeek",
    "Command",
    "CreateDataflow",
    "CreateInstance",
    "Frontiers",
    "Hello",
    "InitializationComplete",
    "KeepSealed",
    "Peek",
    "PeekResponse",
    "Response",
    "RowBatch",
    "Schedule",
    "Status",
    "SubscribeResponse",
    "UpdateConfiguration",
]


class RowBatch(msgspec.Struct, frozen=True):
    """Rows on the wire: an Arrow IPC stream in the engine's layouts, or, in process, a ``repr.Batch`` by reference.

    Many rows may be a sequence of such: whoever reads them puts them together, and not the worker that found them.
    """

    payload: object

    @staticmethod
    def of(types: tuple[SqlType, ...], pieces: Sequence[Batch]) -> RowBatch:
        """The rows of ``pieces``, all of ``types``, in order and without a copy."""
        filled = [p for p in pieces if len(p)]
        if len(filled) > 1:
            return RowBatch(tuple(filled))
        return RowBatch(filled[0] if filled else Batch.empty(types))

    def pieces(self) -> list[Batch]:
        """At least one."""
        found = [self.payload] if isinstance(self.payload, Batch) else self.payload
        assert isinstance(found, (list, tuple)), "rows are decoded with their message"
        return list(found)

    def batch(self) -> Batch:
        """The rows as one batch.  O(rows) if they come in pieces."""
        pieces = self.pieces()
        return Batch.concat(pieces[0].types, pieces)


class Hello(msgspec.Struct, frozen=True, tag_field="op", tag="hello"):
    """``nonce``: of the connection.  ``storage``: of what views are written to; another one has none of their rows.

    ``views``: the materialized views that there are, whichever cluster writes them.
    """

    nonce: str
    storage: str = ""
    views: tuple[str, ...] = ()


class CreateInstance(msgspec.Struct, frozen=True, tag_field="op", tag="create_instance"):
    logging: bool = False


class UpdateConfiguration(msgspec.Struct, frozen=True, tag_field="op", tag="update_configuration"):
    parameters: dict[str, str]


class CreateDataflow(msgspec.Struct, frozen=True, tag_field="op", tag="create_dataflow"):
    dataflow: DataflowDescription


class Schedule(msgspec.Struct, frozen=True, tag_field="op", tag="schedule"):
    id: str


class AllowWrites(msgspec.Struct, frozen=True, tag_field="op", tag="allow_writes"):
    id: str


class KeepSealed(msgspec.Struct, frozen=True, tag_field="op", tag="keep_sealed"):
    """Others than this replica read view ``id``: it is to be sealed whenever a time closes, asked for or not."""

    id: str


class AllowCompaction(msgspec.Struct, frozen=True, tag_field="op", tag="allow_compaction"):
    """The collection may compact to ``frontier``; the empty frontier drops it."""

    id: str
    frontier: int


class Peek(msgspec.Struct, frozen=True, tag_field="op", tag="peek"):
    """Read index ``target`` at ``time``: all rows, or those whose key is one of ``keys``; then ``mfp``.

    ``limit``: so many rows (counting multiplicities) are wanted, the first in ``order`` (ties: canonical order), any if
    it is empty.  More may come, in any order.
    """

    target: str
    uuid: str
    time: int
    key_types: tuple[SqlType, ...]
    keys: tuple[tuple[LiteralValue, ...], ...] | None
    mfp: Mfp
    limit: int | None = None
    order: tuple[SortKey, ...] = ()
    bounds: ReadBounds = UNBOUNDED


class CancelPeek(msgspec.Struct, frozen=True, tag_field="op", tag="cancel_peek"):
    uuid: str


class InitializationComplete(msgspec.Struct, frozen=True, tag_field="op", tag="initialization_complete"):
    pass


Command: TypeAlias = (
    Hello
    | CreateInstance
    | UpdateConfiguration
    | CreateDataflow
    | Schedule
    | AllowWrites
    | KeepSealed
    | AllowCompaction
    | Peek
    | CancelPeek
    | InitializationComplete
)


class Frontiers(msgspec.Struct, frozen=True, tag_field="op", tag="frontiers"):
    """The write frontier (upper) of a collection; never regresses; empty after a drop."""

    id: str
    upper: int


class PeekResponse(msgspec.Struct, frozen=True, tag_field="op", tag="peek_response"):
    """Exactly one per Peek: rows, or an error (sqlstate, message, detail), or canceled.  ``hint``: of the error.

    All diffs are positive and add up to the multiplicities; equal rows may come apart.
    ``phases``: where the time went, with rows only.
    """

    uuid: str
    rows: RowBatch | None = None
    error: tuple[str, str, str | None] | None = None
    canceled: bool = False
    hint: str | None = None
    phases: PeekPhases | None = None


class SubscribeResponse(msgspec.Struct, frozen=True, tag_field="op", tag="subscribe_response"):
    """The consolidated changes of ``lower <= t < upper``.  ``upper`` empty: the end.  An error ends it.

    ``hint``: of the error.
    """

    id: str
    lower: int
    upper: int
    rows: RowBatch | None = None
    error: tuple[str, str, str | None] | None = None
    hint: str | None = None


class Status(msgspec.Struct, frozen=True, tag_field="op", tag="status"):
    """A replica-level event; ``fatal``: the replica is gone."""

    message: str
    fatal: bool = False


Response: TypeAlias = Frontiers | PeekResponse | SubscribeResponse | Status
