"""What the processes of a replica answer, as the answers of one replica.

Partial answers merge: peeks by union once all have answered, frontiers by their least.

A frontier of a materialized view is passed on once storage has what is below it: the controller lets go of the view's
inputs behind it, and a replica that is built anew starts from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from eddyline.compute.merge_responses import ResponseMerger
from eddyline.protocol.delivery import Delivery
from eddyline.protocol.messages import Frontiers, Response, Status
from eddyline.storage.store import TableStore

__all__ = ["RemoteResponses"]


class RemoteResponses:
    """Of one connection, which ends once.  ``emit`` gets the merged responses in order, one at a time and with
    no lock held; ``hang_up`` is called once, at the end.  Neither must wait for a replica.

    Lock: ``_lock``, behind the merger's, before storage's; held for O(1).  Any thread calls.
    """

    def __init__(
        self, processes: int, store: TableStore, emit: Callable[[Response], None], hang_up: Callable[[], None]
    ) -> None:
        self._store = store
        self._emit = emit
        self._hang_up = hang_up
        self._merger = ResponseMerger(processes, self._merged)
        self._passed: Delivery[Response] = Delivery(self._pass_on)
        self._lock = threading.Lock()
        self._held: dict[str, Frontiers] = {}  # guarded by _lock, like the rest
        self._over = False
        #: it ended without a word, so that what has not been passed on by then is not
        self._silent = False

    @property
    def over(self) -> bool:
        with self._lock:
            return self._over

    def put(self, process: int, response: Response) -> None:
        """What a process answers, in its order."""
        self._merger.put(process, 0, response)

    def written(self, id: str) -> None:
        """A view was written: the frontier that waits for it may go on."""
        with self._lock:
            held = self._held.get(id)
            if held is None or self._over or not self._stored(held):
                return
            del self._held[id]
            self._passed.add(held)
        self._passed.deliver()

    def pending(self) -> bool:
        """Whether something is remembered: a partial answer, or a frontier that waits for storage."""
        with self._lock:
            held = bool(self._held)
        return held or self._merger.pending() or len(self._passed) > 0

    def held(self) -> int:
        """How many frontiers wait for storage."""
        with self._lock:
            return len(self._held)

    def end(self, message: str, *, tell: bool) -> None:
        """Nothing more is taken, not even what waits to be passed on: with ``tell`` a fatal status comes last.

        Only the first call counts.
        """
        with self._lock:
            if self._over:
                return
            self._over, self._silent = True, not tell
            self._held.clear()
            if tell:
                self._passed.add(Status(message, fatal=True))
        self._passed.deliver()
        self._hang_up()

    def _merged(self, response: Response) -> None:
        if isinstance(response, Status) and response.fatal:
            self.end(response.message, tell=True)
            return
        with self._lock:
            if self._over:
                return
            if isinstance(response, Frontiers):
                if not self._stored(response):
                    self._held[response.id] = response
                    return
                self._held.pop(response.id, None)
            self._passed.add(response)
        self._passed.deliver()

    def _pass_on(self, response: Response) -> None:
        with self._lock:
            if self._silent:
                return
        self._emit(response)

    def _stored(self, response: Frontiers) -> bool:
        """Whether storage has what the frontier speaks of; it does not keep indexes, nor what was dropped.

        Nothing is to be there below since, which is where a view that has not been written begins.
        """
        id = response.id
        return id not in self._store or response.upper <= max(self._store.since(id), self._store.upper(id))
