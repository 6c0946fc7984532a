"""Where a dataflow's results leave it: indexes, materialized views, subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from eddyline.compute.context import OperatorContext
from eddyline.compute.frozen import CollectedArrangement, FrozenArrangement, FrozenHandle
from eddyline.compute.operators.arrange import ERRORS_LAYOUT
from eddyline.compute.operators.stash import Stash
from eddyline.compute.read_state import ReadState
from eddyline.compute.stream import ArrangedOutput, Arrangement, Sealed, Stream
from eddyline.errors import DatabaseError
from eddyline.protocol.messages import RowBatch, SubscribeResponse
from eddyline.protocol.sources import Storage
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES, first_row_error
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import build_run, consolidate
from eddyline.trace.trace import TraceHandle

__all__ = ["ElsewhereExport", "Export", "IndexExport", "MaterializedViewSink", "SubscribeSink"]


#: rows written in one activation; storage sorts them, and merges several times as many
_PIECE_ROWS = 16_384


class Export(Protocol):
    """One exported collection of a dataflow on one worker."""

    id: str

    def frontier(self) -> Frontier:
        """Everything below it is published."""
        ...

    def allow_compaction(self, since: Frontier) -> None: ...

    def close(self) -> None: ...


class IndexExport:
    """An arrangement published as an index.  Its holds are the index's since on this worker."""

    def __init__(
        self,
        id: str,
        output: ArrangedOutput,
        types: tuple[SqlType, ...],
        context: OperatorContext,
    ) -> None:
        self.id = id
        #: whose result it is, if a read's
        self.read: ReadState | None = None
        self.published_ns = 0
        self.output = output
        self.types = types
        self.since = Frontier(context.as_of)
        self._as_of = context.as_of
        self._until = context.until
        traces = (output.arrangement.oks, output.arrangement.errs)
        self._handles: list[TraceHandle | FrozenHandle] = [t.handle(since=self.since, through=EMPTY) for t in traces]

    @property
    def arrangement(self) -> Arrangement | FrozenArrangement:
        return self.output.arrangement

    def frontier(self) -> Frontier:
        """Past the until of the dataflow nothing is missing."""
        frontier = self.output.frontier
        return EMPTY if frontier >= self._until else frontier

    def allow_compaction(self, since: Frontier) -> None:
        if since > self.since:
            self.since = since
            for handle in self._handles:
                handle.downgrade(since)

    def fail(self, error: DatabaseError, hasher: Hasher) -> None:
        """The end of a read that was stopped: its one time is sealed, with an error, unless it was sealed before."""
        arrangement, frontier = self.output.arrangement, self.output.frontier
        if frontier > self._as_of or not isinstance(arrangement, (Arrangement, CollectedArrangement)):
            return
        texts = (error.sqlstate, error.message, "", " ".join(t for t in (error.detail, error.hint) if t), "")
        columns = tuple(pa.array([text], pa.large_string()) for text in texts)
        errors = Batch.at(ERR_TYPES, columns, 1, self._as_of)
        if isinstance(arrangement, CollectedArrangement):
            arrangement.collect([], errors, OperatorContext(hasher, self._as_of, self._until))
        else:
            trace, until = arrangement.errs, self._until
            trace.insert(build_run(errors, ERRORS_LAYOUT, hasher, lower=trace.upper, upper=until, since=trace.since))
            arrangement.oks.advance_upper(until)
        self.output.seal(Sealed((), errors, frontier, self._until))

    def close(self) -> None:
        for handle in self._handles:
            handle.close()
        self._handles = []


class ElsewhereExport:
    """Stands for an export that runs on worker 0, on the others: it never holds the least frontier back."""

    def __init__(self, id: str) -> None:
        self.id = id

    def frontier(self) -> Frontier:
        return EMPTY

    def allow_compaction(self, since: Frontier) -> None:
        """Nothing is kept here."""

    def close(self) -> None:
        """Nothing is kept here."""


class _Sealing:
    """The part that sinks share: stashes rows and errors, and hands out consolidated intervals past as_of."""

    def __init__(self, input: Stream, types: tuple[SqlType, ...], context: OperatorContext) -> None:
        self._input = input
        self._types = types
        self._context = context
        piece_rows = min(context.budget_rows, _PIECE_ROWS)
        self._rows = Stash(piece_rows)
        self._errors = Stash(piece_rows)
        self._rest: Batch | None = None
        self._first_time: int | None = None
        self.sealed = Frontier(MIN_TIME)
        #: the end of the interval being written; ``sealed`` when there is none
        self.closing = Frontier(MIN_TIME)

    def frontier(self) -> Frontier:
        return EMPTY if self.sealed >= self._context.until else self.sealed

    def ready(self) -> bool:
        return not self._input.drained() or self.closing > self.sealed or self.sealable()

    def sealable(self) -> bool:
        """An interval ends past as_of, but for a dataflow that ends before it."""
        frontier = self._input.frontier
        past = frontier > self._context.as_of or frontier >= self._context.until
        return past and frontier > self.sealed and self.sealed < self._context.until

    def take(self) -> bool:
        moved = self._rows.take(self._input)
        while self._input.errors:
            self._errors.add(self._input.errors.popleft())
            moved = True
        return moved

    def begin(self) -> None:
        """Closes the next interval; ``seal`` gives what ``piece`` has not."""
        self.closing = self._input.frontier
        self._rows.seal(self.closing)
        self._errors.seal(self.closing)

    def piece(self) -> Batch | None:
        """Consolidated rows of the interval's first time, if that time is large; None: the rest is for ``seal``."""
        piece = self._rows.piece()
        if piece is None:
            return None
        if self._first_time is None:
            self._first_time = int(piece.times.min())
        if self._rows.exhausted() or int(piece.times.max()) != self._first_time:
            self._rest = piece
            return None
        return consolidate(piece, self._context.hasher)

    def seal(self) -> tuple[Batch, Batch, Frontier]:
        """(rows, errors, lower) of the interval that ``begin`` closed."""
        lower, self.sealed = self.sealed, self.closing
        first = [] if self._rest is None else [self._rest]
        self._rest = self._first_time = None
        return self._drain(self._rows, self._types, first), self._drain(self._errors, ERR_TYPES, []), lower

    def _drain(self, stash: Stash, types: tuple[SqlType, ...], pieces: list[Batch]) -> Batch:
        while (piece := stash.piece()) is not None:
            pieces.append(piece)
        return consolidate(Batch.concat(types, pieces), self._context.hasher)


class MaterializedViewSink:
    """Writes each sealed interval to storage, where it appears in one step.  Runs on one worker, which gets all rows.

    An interval larger than ``_PIECE_ROWS``, such as the first, is written piece by piece over several activations.
    Until writes are allowed it takes nothing in, and storage hears nothing of it.
    """

    def __init__(
        self,
        name: str,
        id: str,
        input: Stream,
        types: tuple[SqlType, ...],
        *,
        storage: Storage,
        context: OperatorContext,
    ) -> None:
        self.name = name
        self.id = id
        self._sealing = _Sealing(input, types, context)
        self._storage = storage
        self._allowed = context.allowed
        self._begun = False

    def step(self) -> bool:
        if not self.pending():
            return False
        if not self._begun:
            self._begun = True
            self._storage.begin_view(self.id, self)
        sealing = self._sealing
        moved = sealing.take()
        if sealing.closing == sealing.sealed and sealing.sealable():
            sealing.begin()
        if sealing.closing == sealing.sealed:
            return moved
        piece = sealing.piece()
        if piece is not None:
            self._storage.stage_view(self.id, piece, self)
        else:
            rows, errors, lower = sealing.seal()
            self._storage.write_view(self.id, rows, errors, lower, sealing.frontier(), self)
        return True

    def pending(self) -> bool:
        return self._allowed.may_write(self.id) and self._sealing.ready()

    def frontier(self) -> Frontier:
        return self._sealing.frontier()

    def allow_compaction(self, since: Frontier) -> None:
        """Storage keeps the view; its since is storage's."""

    def close(self) -> None:
        """Nothing is held."""


class SubscribeSink:
    """Answers with the changes of each sealed interval; the first one holds the snapshot, if it is wanted.

    An error row ends the subscription with an error.  Runs on one worker, to which all rows are sent.
    """

    def __init__(
        self,
        name: str,
        id: str,
        input: Stream,
        types: tuple[SqlType, ...],
        *,
        with_snapshot: bool,
        respond: Callable[[SubscribeResponse], None],
        context: OperatorContext,
    ) -> None:
        self.name = name
        self.id = id
        self._sealing = _Sealing(input, types, context)
        self._with_snapshot = with_snapshot
        self._respond = respond
        self._context = context
        self._ended = False

    def step(self) -> bool:
        moved = self._sealing.take()
        if self._sealing.sealable():
            self._sealing.begin()
            rows, errors, lower = self._sealing.seal()
            if not self._ended:
                self._send(rows, errors, lower)
            moved = True
        return moved

    def pending(self) -> bool:
        return self._sealing.ready()

    def frontier(self) -> Frontier:
        return self._sealing.frontier()

    def allow_compaction(self, since: Frontier) -> None:
        """It keeps no state that could be compacted."""

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._respond(SubscribeResponse(self.id, self._sealing.sealed, EMPTY))

    def _send(self, rows: Batch, errors: Batch, lower: Frontier) -> None:
        failing = errors.take((errors.diffs > 0).nonzero()[0])
        if len(failing):
            self._ended = True
            first = first_row_error(failing)
            error = (first.sqlstate, first.message, first.detail)
            self._respond(SubscribeResponse(self.id, lower, EMPTY, error=error))
            return
        as_of = self._context.as_of
        if lower <= as_of:
            lower = Frontier(as_of)
            if not self._with_snapshot:
                rows = rows.take((rows.times > as_of).nonzero()[0])
        upper = self._sealing.frontier()
        self._ended = upper == EMPTY
        self._respond(SubscribeResponse(self.id, lower, upper, rows=RowBatch(rows)))
