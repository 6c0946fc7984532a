"""The answers of several workers as one: peeks by union once all have answered, frontiers by their least."""

from __future__ import annotations

import threading
from collections.abc import Callable

from eddyline.protocol.messages import Frontiers, PeekResponse, Response, RowBatch, Status, SubscribeResponse
from eddyline.protocol.read_costs import PeekPhases
from eddyline.repr.batch import Batch
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier

__all__ = ["ResponseMerger", "union_of"]


class ResponseMerger:
    """``put`` takes the responses of each worker in order and passes the merged ones on, in order.

    The workers are numbered from ``first`` on.  For the processes of a replica likewise, each being one worker here.

    Frontiers of one id never regress; a drop ends them, after which the id may come again.
    """

    def __init__(self, workers: int, emit: Callable[[Response], None], *, first: int = 0) -> None:
        self._workers = workers
        self._first = first
        self._emit = emit
        # Held across ``emit``, which keeps the merged responses in order; ``emit`` must not wait for a worker.
        self._lock = threading.Lock()
        #: the connection whose responses are wanted
        self._connection = 0  # guarded by _lock, like the rest
        #: the connection that the state below is of
        self._merging = 0
        self._peeks: dict[str, list[PeekResponse]] = {}
        self._frontiers: dict[str, list[Frontier]] = {}
        self._reported: dict[str, Frontier] = {}

    def begin_connection(self) -> None:
        """What answers an earlier connection is left out, also of what is being put at the moment."""
        with self._lock:
            self._connection += 1

    def put(self, worker: int, connection: int, response: Response) -> None:
        """``connection``: how many the worker has seen begin."""
        with self._lock:
            if connection != self._connection:
                return
            if self._workers == 1:
                self._emit(response)
                return
            if self._merging != connection:
                self._merging = connection
                self._peeks.clear()
                self._frontiers.clear()
                self._reported.clear()
            match response:
                case Frontiers():
                    self._frontier(worker, response)
                case PeekResponse():
                    self._peek(response)
                case SubscribeResponse() | Status():
                    self._emit(response)

    def pending(self) -> bool:
        """Whether something is remembered: an answer that is not complete, a collection that is not over but a log."""
        with self._lock:
            return bool(self._peeks) or not all(map(is_log, self._frontiers))

    def _frontier(self, worker: int, response: Frontiers) -> None:
        id = response.id
        parts = self._frontiers.setdefault(id, [Frontier(MIN_TIME)] * self._workers)
        parts[worker - self._first] = Frontier(response.upper)
        least = min(parts)
        if least > self._reported.get(id, MIN_TIME):
            self._reported[id] = least
            self._emit(Frontiers(id, least))
        if least == EMPTY:
            # Each worker says so once, and nothing after it.
            del self._frontiers[id], self._reported[id]

    def _peek(self, response: PeekResponse) -> None:
        parts = self._peeks.setdefault(response.uuid, [])
        parts.append(response)
        if len(parts) == self._workers:
            del self._peeks[response.uuid]
            self._emit(union_of(parts))


def union_of(parts: list[PeekResponse]) -> PeekResponse:
    """One answer of the workers' answers: an error before a cancellation before rows."""
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        if part.error is not None:
            return part
    for part in parts:
        if part.canceled:
            return part
    batches = [p.rows.payload for p in parts if p.rows is not None and isinstance(p.rows.payload, Batch)]
    filled = [b for b in batches if len(b)] or batches[:1]
    phases = PeekPhases.of_workers(p.phases for p in parts)
    return PeekResponse(parts[0].uuid, rows=RowBatch(Batch.concat(filled[0].types, filled)), phases=phases)
