"""How much an operator keeps: for those who look from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from eddyline.trace.trace import Trace

__all__ = ["StateSize", "Stateful", "size_of_traces"]


class StateSize(NamedTuple):
    """``records``: updates, groups or rows; ``batches``: the pieces they lie in; ``size``: bytes of what is kept, of
    ``capacity`` bytes that are set aside for it.
    """

    records: int
    batches: int
    size: int
    capacity: int


@runtime_checkable
class Stateful(Protocol):
    """An operator that keeps rows between activations."""

    def state_size(self) -> StateSize:
        """On the thread of the operator's worker; O(runs and columns)."""
        ...


def size_of_traces(traces: Iterable[Trace]) -> StateSize:
    """Runs are as large as their rows, so that capacity is size."""
    runs = [run for trace in traces for run in trace.snapshot().runs]
    size = sum(run.nbytes for run in runs)
    return StateSize(sum(map(len, runs)), len(runs), size, size)
