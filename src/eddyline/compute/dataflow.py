"""One rendered dataflow on one worker: its operators in topological order, and how they are activated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eddyline.compute.allowed import Allowed
from eddyline.compute.exchange import ExchangeOperator
from eddyline.compute.exports import Export, IndexExport
from eddyline.compute.imports import ImportSourceOperator
from eddyline.compute.operators.keyed_state import KeyedState
from eddyline.compute.read_state import ReadState
from eddyline.compute.state_size import Stateful
from eddyline.compute.stream import ArrangedOutput, Arrangement, Operator, Output
from eddyline.errors import DatabaseError
from eddyline.plan.dataflow import DataflowDescription
from eddyline.repr.time import Frontier
from eddyline.trace.hasher import Hasher

__all__ = ["Dataflow"]


@dataclass(slots=True, eq=False)
class Dataflow:
    """``number``: the position of its creation among the worker's commands.  State of the worker's thread."""

    number: int
    description: DataflowDescription
    operators: Sequence[Operator]
    exports: dict[str, Export]
    arrangements: Sequence[Arrangement]
    exchanges: dict[int, ExchangeOperator]
    sources: Sequence[ImportSourceOperator]
    #: the edge behind each import, by its id
    inputs: Sequence[tuple[str, Output | ArrangedOutput]] = ()
    #: where streams begin
    outputs: Sequence[Output] = ()
    #: whether it may run, and write
    allowed: Allowed = field(default_factory=Allowed)
    #: of a one-shot read
    read: ReadState | None = None
    #: it was ended before its time
    stopped: bool = False
    #: what operators keep in traces of their own
    states: Sequence[KeyedState] = ()
    #: the sources of which it reads a selection, and is told only when rows of that change
    selected: frozenset[str] = frozenset()
    #: dataflows whose exports this one imports, and theirs, and so on
    upstream: frozenset[Dataflow] = frozenset()
    #: those that have this one upstream
    downstream: set[Dataflow] = field(default_factory=set)
    #: something may be pending; the agenda's
    scheduled: bool = False
    #: the agenda's: it stands in a queue
    queued: bool = False
    #: the agenda's: it is not activated in an earlier turn
    turn: int = 0
    hydrated: bool = False
    #: its traces may have merges to do
    unmerged: bool = False
    #: it stands in the agenda's line for merging
    in_debt: bool = False
    dropped_exports: set[str] = field(default_factory=set)
    #: how often a step of each operator took at most 2**k ns, by k, and how long they took together
    durations: list[dict[int, int]] = field(default_factory=list)
    elapsed_ns: list[int] = field(default_factory=list)
    _cursor: int = 0

    def __post_init__(self) -> None:
        self.durations = [{} for _ in self.operators]
        self.elapsed_ns = [0] * len(self.operators)

    def activate(self, expired: Callable[[], bool]) -> bool:
        """Steps operators until none has anything to do or ``expired()``; True if any did.

        Goes on where it stopped, so that no operator waits for ever behind busy ones.
        """
        moved = False
        idle = 0
        operators = self.operators
        count = len(operators)
        at = self._cursor
        while idle < count:
            operator = operators[at]
            here, at = at, at + 1 if at + 1 < count else 0
            if operator.pending() and self._timed(here, operator):
                moved = self.unmerged = True
                idle = 0
                if expired():
                    self._cursor = at
                    return True
            else:
                idle += 1
        self._cursor = at
        self.scheduled = False
        return moved

    def _timed(self, at: int, operator: Operator) -> bool:
        """One step, on the clock."""
        began = time.perf_counter_ns()
        moved = operator.step()
        took = time.perf_counter_ns() - began
        self.elapsed_ns[at] += took
        counts, power = self.durations[at], took.bit_length()
        counts[power] = counts.get(power, 0) + 1
        return moved

    def check_hydrated(self) -> None:
        """Once every export and source is past as_of the dataflow counts as steady, and its unread input as backlog."""
        if self.hydrated:
            return
        as_of = self.description.as_of
        past = [*(e.frontier() for e in self.exports.values()), *(s.frontier() for s in self.sources)]
        if all(frontier > as_of for frontier in past):
            self.hydrated = True
            for source in self.sources:
                source.set_steady()

    def merge(self, fuel_rows: int) -> bool:
        """Pays merge debt of one trace; True if there is more."""
        if self.unmerged:
            for arrangement in self.arrangements:
                for trace in (arrangement.oks, arrangement.errs):
                    if trace.work(fuel_rows):
                        return True
            if any(state.work(fuel_rows) for state in self.states):
                return True
            self.unmerged = False
        return False

    def held_bytes(self) -> int:
        """What operators keep, and what is on its way between them; imported runs, which are shared, do not count.

        O(operators, runs and batches).
        """
        waiting = sum(b.nbytes for o in self.outputs for stream in o.consumers for b in stream.updates)
        return waiting + sum(o.state_size().capacity for o in self.operators if isinstance(o, Stateful))

    def stop(self, error: DatabaseError, hasher: Hasher) -> None:
        """Ends a read part-way: its operators go, and whoever reads its result gets ``error``."""
        self.stopped = True
        for exchange in self.exchanges.values():
            exchange.abandon()
        for operator in self.operators:
            operator.close()
        self.operators, self.arrangements, self.outputs = (), (), ()
        self.hydrated = True  # nothing is to come
        self.exchanges = {}
        self._cursor = 0
        for export in self.exports.values():
            if isinstance(export, IndexExport):
                export.fail(error, hasher)

    def frontiers(self) -> list[tuple[str, Frontier]]:
        return [(id, export.frontier()) for id, export in self.exports.items()]

    def close(self) -> None:
        for export in self.exports.values():
            export.close()
        for operator in self.operators:
            operator.close()
