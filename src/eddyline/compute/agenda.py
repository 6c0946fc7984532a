"""Which dataflow of a worker goes next, at a cost that follows what is scheduled and not what exists.

Invariants:
I1  a live dataflow that is ``scheduled`` and may run stands in one of the queues, and none stands in one twice
    (``queued``); an entry whose dataflow was dropped is passed over;
I2  steady dataflows come before hydrating ones, but every n-th activation is hydration's while it has work;
I3  steady ones take turns, one slice a turn, the oldest first: an export comes before what imports it, and nobody
    waits for more than about a slice of each other;
I4  hydrating ones come oldest first, one after another: the memory that building takes is not taken by all at once;
I5  whoever is scheduled has everything upstream scheduled too;
I6  one that may not run yet stands in no queue; what is scheduled meanwhile stays so, and gets in line at its start.
State of the worker's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

from eddyline.compute.dataflow import Dataflow

__all__ = ["Agenda"]

_HYDRATION_SHARE = 4  # every n-th activation is for hydration, if it has work


class Agenda:
    """The live dataflows by number, which is their age, and the queues of those with something to do."""

    def __init__(self) -> None:
        self._dataflows: dict[int, Dataflow] = {}
        #: (turn, number) of scheduled steady dataflows
        self._steady: list[tuple[int, int]] = []
        #: numbers of scheduled hydrating dataflows
        self._building: list[int] = []
        #: live dataflows that hydrate, in the order of their creation
        self._hydrating: dict[int, Dataflow] = {}
        #: dataflows whose arrangements may have merges to do; the first one's turn it is
        self._debtors: deque[Dataflow] = deque()
        #: that of the steady dataflow taken last
        self._turn = 0
        self._steady_streak = 0

    def __len__(self) -> int:
        return len(self._dataflows)

    def __iter__(self) -> Iterator[Dataflow]:
        return iter(self._dataflows.values())

    def get(self, number: int) -> Dataflow | None:
        return self._dataflows.get(number)

    @property
    def hydrating(self) -> Iterable[Dataflow]:
        return self._hydrating.values()

    @property
    def building(self) -> bool:
        """Whether any live dataflow hydrates."""
        return bool(self._hydrating)

    def add(self, dataflow: Dataflow) -> None:
        """A dataflow that was just built, younger than all others."""
        self._dataflows[dataflow.number] = dataflow
        if not dataflow.hydrated:
            self._hydrating[dataflow.number] = dataflow

    def remove(self, dataflow: Dataflow) -> None:
        """A dataflow that is dropped."""
        del self._dataflows[dataflow.number]
        self._hydrating.pop(dataflow.number, None)

    def schedule(self, dataflow: Dataflow) -> None:
        """It, and everything upstream, may have something to do.  O(upstream)."""
        self._enter_behind(dataflow, dataflow.upstream)

    def schedule_after(self, moved: Dataflow, dataflow: Dataflow) -> None:
        """``moved``, which was activated and is upstream, has something for it.

        What ``moved`` depends on was scheduled with it, and needs no second look.  O(upstream).
        """
        self._enter_behind(dataflow, dataflow.upstream - moved.upstream - {moved})

    def schedule_alone(self, dataflow: Dataflow) -> None:
        """It has something to do that does not depend on what is upstream.  O(1)."""
        self._enter(dataflow)

    def start(self, dataflow: Dataflow) -> None:
        """It may run from here on."""
        if dataflow.scheduled:
            self._queue(dataflow)

    def _enter_behind(self, dataflow: Dataflow, upstream: Iterable[Dataflow]) -> None:
        for other in upstream:
            self._enter(other)
            dataflow.turn = max(dataflow.turn, other.turn)
        self._enter(dataflow)

    def _enter(self, dataflow: Dataflow) -> None:
        if not dataflow.scheduled:
            dataflow.scheduled = True
            self._queue(dataflow)

    def _queue(self, dataflow: Dataflow) -> None:
        if dataflow.queued or not dataflow.allowed.runs:
            return
        dataflow.queued = True
        if dataflow.hydrated:
            heappush(self._steady, (max(self._turn, dataflow.turn), dataflow.number))
        else:
            heappush(self._building, dataflow.number)

    def choose(self) -> Dataflow | None:
        """Takes the next one out of its queue; ``activated`` says afterwards what became of it."""
        dataflow = self._next()
        if dataflow is not None:
            dataflow.queued = False
        return dataflow

    def _next(self) -> Dataflow | None:
        self._pass_over_dropped()
        turn_of_building = self._building and self._steady_streak >= _HYDRATION_SHARE - 1
        if self._steady and not turn_of_building:
            self._steady_streak += 1
            self._turn, number = heappop(self._steady)
            dataflow = self._dataflows[number]
            # One that was quick and is scheduled again does not get before one that has used its slice up.
            dataflow.turn = self._turn + 1
            return dataflow
        self._steady_streak = 0
        return self._dataflows[heappop(self._building)] if self._building else None

    def _pass_over_dropped(self) -> None:
        while self._steady and self._steady[0][1] not in self._dataflows:
            heappop(self._steady)
        while self._building and self._building[0] not in self._dataflows:
            heappop(self._building)

    def activated(self, dataflow: Dataflow) -> None:
        """After its activation: it gets in line again if it is not done, and its merges get in theirs."""
        if dataflow.hydrated:
            self._hydrating.pop(dataflow.number, None)
        if dataflow.scheduled:
            self._queue(dataflow)
        if dataflow.unmerged and not dataflow.in_debt:
            dataflow.in_debt = True
            self._debtors.append(dataflow)

    def steady_waits(self) -> bool:
        """Whether a steady dataflow has something to do."""
        self._pass_over_dropped()
        return bool(self._steady)

    def merge(self, fuel_rows: int, touched: Callable[[Dataflow], None]) -> bool:
        """One slice of merging of the dataflow whose turn it is, which ``touched`` is told; False if there is none."""
        while self._debtors:
            dataflow = self._debtors[0]
            if dataflow.number in self._dataflows:
                touched(dataflow)
                if dataflow.merge(fuel_rows):
                    self._debtors.rotate(-1)
                    return True
            dataflow.in_debt = False
            self._debtors.popleft()
        return False

    def clear(self) -> None:
        self._dataflows.clear()
        self._hydrating.clear()
        self._steady.clear()
        self._building.clear()
        self._debtors.clear()
