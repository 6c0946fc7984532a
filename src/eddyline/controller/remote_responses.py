"""What the processes of a replica answer, as the answers of one replica.

Partial answers merge: peeks by union once all have answered, frontiers by their least.

A frontier of a materialized view is passed on once storage has what is below it: the controller lets go of the view's
inputs behind it, and a replica that is built anew starts from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from eddyline.compute.merge_responses import ResponseMerger
from eddyline.protocol.messages import Frontiers, Response, Status
from eddyline.storage.store import TableStore

__all__ = ["RemoteResponses"]


class RemoteResponses:
    """Of one connection, which ends once.  ``emit`` gets the merged responses in order and must not wait for a replica;
    ``hang_up`` is called once, at the end, and must not wait either.

    Lock: ``_passing``, held while a response is passed on, which keeps their order; behind the merger's.  Any thread
    calls.
    """

    def __init__(
        self, processes: int, store: TableStore, emit: Callable[[Response], None], hang_up: Callable[[], None]
    ) -> None:
        self._store = store
        self._emit = emit
        self._hang_up = hang_up
        self._merger = ResponseMerger(processes, self._merged)
        self._passing = threading.RLock()
        self._held: dict[str, Frontiers] = {}  # guarded by _passing, like the rest
        self._over = False

    @property
    def over(self) -> bool:
        with self._passing:
            return self._over

    def put(self, process: int, response: Response) -> None:
        """What a process answers, in its order."""
        self._merger.put(process, 0, response)

    def written(self, id: str) -> None:
        """A view was written: the frontier that waits for it may go on."""
        with self._passing:
            held = self._held.get(id)
            if held is not None and not self._over and self._stored(held):
                del self._held[id]
                self._emit(held)

    def pending(self) -> bool:
        """Whether something is remembered: a partial answer, or a frontier that waits for storage."""
        with self._passing:
            held = bool(self._held)
        return held or self._merger.pending()

    def held(self) -> int:
        """How many frontiers wait for storage."""
        with self._passing:
            return len(self._held)

    def end(self, message: str, *, tell: bool) -> None:
        """Nothing is passed on from here; with ``tell`` but a fatal status.  Only the first call counts."""
        with self._passing:
            if self._over:
                return
            self._over = True
            self._held.clear()
            if tell:
                self._emit(Status(message, fatal=True))
        self._hang_up()

    def _merged(self, response: Response) -> None:
        with self._passing:
            if self._over:
                return
            if isinstance(response, Frontiers) and not self._stored(response):
                self._held[response.id] = response
                return
            if isinstance(response, Status) and response.fatal:
                self.end(response.message, tell=True)
                return
            if isinstance(response, Frontiers):
                self._held.pop(response.id, None)
            self._emit(response)

    def _stored(self, response: Frontiers) -> bool:
        """Whether storage has what the frontier speaks of; it does not keep indexes, nor what was dropped."""
        return response.id not in self._store or response.upper <= self._store.upper(response.id)
