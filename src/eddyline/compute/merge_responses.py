"""The answers of several workers as one: peeks by union once all have answered, frontiers by their least."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from eddyline.protocol.delivery import Delivery
from eddyline.protocol.messages import Frontiers, PeekResponse, Response, RowBatch, Status, SubscribeResponse
from eddyline.protocol.read_costs import PeekPhases
from eddyline.repr.ids import is_log
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier

__all__ = ["ResponseMerger", "union_of"]

#: a response to pass on, or the parts of one
_Merged: TypeAlias = Response | list[PeekResponse]


class ResponseMerger:
    """``put`` takes the responses of each worker in order and passes the merged ones on, in order.

    The workers are numbered from ``first`` on.  For the processes of a replica likewise, each being one worker here.

    Frontiers of one id never regress; a drop ends them, after which the id may come again.
    ``emit`` is called by one thread at a time, with no lock held; who puts meanwhile does not wait for it.
    Lock: ``_lock``, held for O(workers).
    """

    def __init__(self, workers: int, emit: Callable[[Response], None], *, first: int = 0) -> None:
        self._workers = workers
        self._first = first
        self._emit = emit
        self._merged: Delivery[_Merged] = Delivery(self._pass_on)
        self._lock = threading.Lock()
        #: the connection whose responses are wanted
        self._connection = 0  # guarded by _lock, like the rest
        #: the connection that the state below is of
        self._merging = 0
        self._peeks: dict[str, list[PeekResponse]] = {}
        self._frontiers: dict[str, list[Frontier]] = {}
        self._reported: dict[str, Frontier] = {}

    def begin_connection(self) -> None:
        """What answers an earlier connection is left out from here on; one that is just being passed on is waited for,
        unless it is by this thread.
        """
        with self._lock:
            self._connection += 1
            # Nothing is added for an earlier one any more, so that what is cleared below is of such.
        self._merged.clear()

    def put(self, worker: int, connection: int, response: Response) -> None:
        """``connection``: how many the worker has seen begin."""
        with self._lock:
            if connection != self._connection:
                return
            if self._workers == 1:
                self._merged.add(response)
            else:
                self._merge(worker, connection, response)
        self._merged.deliver()

    def pending(self) -> bool:
        """Whether something is remembered: an answer that is not complete or not passed on, a collection that is not
        over but a log."""
        with self._lock:
            kept = bool(self._peeks) or not all(map(is_log, self._frontiers))
        return kept or len(self._merged) > 0

    def _pass_on(self, merged: _Merged) -> None:
        self._emit(union_of(merged) if isinstance(merged, list) else merged)

    def _merge(self, worker: int, connection: int, response: Response) -> None:
        """With the lock held."""
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
                self._merged.add(response)

    def _frontier(self, worker: int, response: Frontiers) -> None:
        id = response.id
        parts = self._frontiers.setdefault(id, [Frontier(MIN_TIME)] * self._workers)
        parts[worker - self._first] = Frontier(response.upper)
        least = min(parts)
        if least > self._reported.get(id, MIN_TIME):
            self._reported[id] = least
            self._merged.add(Frontiers(id, least))
        if least == EMPTY:
            # Each worker says so once, and nothing after it.
            del self._frontiers[id], self._reported[id]

    def _peek(self, response: PeekResponse) -> None:
        parts = self._peeks.setdefault(response.uuid, [])
        parts.append(response)
        if len(parts) == self._workers:
            # Made one answer when it is passed on, outside the lock.
            self._merged.add(self._peeks.pop(response.uuid))


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
    pieces = [piece for part in parts if part.rows is not None for piece in part.rows.pieces()]
    phases = PeekPhases.of_workers(p.phases for p in parts)
    return PeekResponse(parts[0].uuid, rows=RowBatch.of(pieces[0].types, pieces), phases=phases)
