"""The peeks of one worker that wait for their index to seal their time: the same for whoever keeps the index.

Invariants:
I1  exactly one response per peek, or one start: it waits here, or has been refused, started, canceled or forgotten;
I2  a peek is started only when the index has sealed its time and its since is not past it.
State of the worker's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eddyline.compute.peek import PeekTask, PeekTiming, canceled, peek_error
from eddyline.compute.readable import PeekSource
from eddyline.errors import NoLongerReadableError, make_error
from eddyline.protocol.messages import Peek, PeekResponse
from eddyline.trace.hasher import Hasher

__all__ = ["PeekQueue", "WaitingPeek", "answer_on_caller"]


@dataclass(frozen=True, slots=True)
class WaitingPeek:
    peek: Peek
    timing: PeekTiming


class PeekQueue:
    """``runtime``: its name in ``PeekPhases``.  ``respond`` and ``start`` get what becomes of each peek."""

    def __init__(
        self,
        runtime: str,
        hasher: Hasher,
        clock: Callable[[], int],
        *,
        respond: Callable[[PeekResponse], None],
        start: Callable[[PeekTask], None],
    ) -> None:
        self._runtime = runtime
        self._hasher = hasher
        self._clock = clock
        self._respond = respond
        self._start = start
        self._sent_ns: dict[str, int] = {}
        #: by uuid, in the order of their arrival
        self.waiting: dict[str, WaitingPeek] = {}

    def expect(self, sent_ns: Mapping[str, int]) -> None:
        """When peeks that will be taken were sent, by uuid."""
        self._sent_ns.update(sent_ns)

    def sent_ns(self, uuid: str) -> int | None:
        """When a peek that goes elsewhere was sent."""
        return self._sent_ns.pop(uuid, None)

    def take(self, peek: Peek, index: PeekSource | None) -> bool:
        """Refuses the peek, starts it, or lets it wait; True if it waits."""
        timing = PeekTiming(self._runtime, self._clock, self._sent_ns.pop(peek.uuid, None))
        if index is None:
            gone = make_error("XX000", f"index {peek.target} is not on this replica")
            self._respond(peek_error(peek.uuid, gone))
        elif peek.time < index.since:
            self._respond(peek_error(peek.uuid, NoLongerReadableError.at(peek.time, index.since)))
        elif index.frontier() > peek.time:
            self._start(PeekTask(peek, index, self._hasher, timing))
        else:
            self.waiting[peek.uuid] = WaitingPeek(peek, timing)
            return True
        return False

    def start(self, ready: Iterable[WaitingPeek], index: Callable[[str], PeekSource]) -> None:
        """Starts peeks whose index has sealed their time."""
        for waiting in ready:
            del self.waiting[waiting.peek.uuid]
            self._start(PeekTask(waiting.peek, index(waiting.peek.target), self._hasher, waiting.timing))

    def cancel(self, uuid: str) -> bool:
        """Answers a peek that waits as canceled; False if it does not wait here."""
        if self.waiting.pop(uuid, None) is None:
            return False
        self._respond(canceled(uuid))
        return True

    def dropped(self, index: str) -> None:
        """Answers the peeks of an index that is gone with an error."""
        for waiting in [w for w in self.waiting.values() if w.peek.target == index]:
            del self.waiting[waiting.peek.uuid]
            self._respond(peek_error(waiting.peek.uuid, make_error("XX000", f"index {index} was dropped")))

    def clear(self) -> None:
        """Forgets all, without a word: the connection is over."""
        self.waiting.clear()
        self._sent_ns.clear()


def answer_on_caller(
    peek: Peek,
    index: PeekSource | None,
    hasher: Hasher,
    *,
    runtime: str,
    clock: Callable[[], int],
    cancelled: Callable[[], bool],
) -> PeekResponse | None:
    """The answer, found on the caller's thread in immutable snapshots; None if the index is not there, has not sealed
    the time, or no longer has it.  Any thread.
    """
    if index is None or index.since > peek.time or index.frontier() <= peek.time:
        return None
    task = PeekTask(peek, index, hasher, PeekTiming(runtime, clock), lane="caller")
    while (response := task.step()) is None:
        if cancelled():
            return canceled(peek.uuid)
    # The index's since rises before the trace may compact to it.  If it has not passed the time by now, the snapshots
    # that were read had not either.
    return response if index.since <= peek.time else None
