"""What the one-shot reads of a worker hold, and the end of those that hold too much.

Invariants:
I1  a read is looked at after each activation, and about once a millisecond in it;
I2  one past its bound, here or on another worker, is stopped here too, with 53200.
State of the worker's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exports import IndexExport
from eddyline.compute.frozen import FrozenIndex
from eddyline.compute.held_bytes import HeldBytes
from eddyline.compute.read_state import MemoryAccounts, ReadState
from eddyline.plan.dataflow import DataflowClass, ImportIndex
from eddyline.protocol.sources import Storage
from eddyline.repr.time import Frontier
from eddyline.trace.hasher import Hasher

__all__ = ["BoundedReads"]

#: how often what a read holds is looked at within an activation
_WEIGH_NS: Final = 1_000_000


class BoundedReads:
    """``indexes``: the worker's, by id.  ``held``: gets what dataflows hold, while somebody asks.

    ``activation_ns``: after that long an activation ends at the next operator.
    """

    def __init__(
        self,
        worker: int,
        *,
        hasher: Hasher,
        storage: Storage,
        indexes: Mapping[str, IndexExport],
        accounts: MemoryAccounts,
        held: HeldBytes,
        clock: Callable[[], int],
        activation_ns: int,
    ) -> None:
        self._worker = worker
        self._hasher = hasher
        self._storage = storage
        self._indexes = indexes
        self._accounts = accounts
        self._held = held
        self._clock = clock
        self._activation_ns = activation_ns
        #: those that may hold only so much, by number
        self._bounded: dict[int, Dataflow] = {}

    def __bool__(self) -> bool:
        return bool(self._bounded)

    def watch(self, dataflow: Dataflow, frozen: Mapping[str, FrozenIndex]) -> None:
        """What a dataflow that was just rendered waits for, and what it may hold, if it is a one-shot read."""
        description = dataflow.description
        bound = description.memory_bytes
        if bound is None and description.dataflow_class is DataflowClass.MAINTAINED:
            return
        frontiers: list[Callable[[], Frontier]] = []
        for imported in description.imports:
            if isinstance(imported, ImportIndex) and imported.id in self._indexes:
                frontiers.append(self._indexes[imported.id].frontier)
            elif imported.id in self._storage:
                frontiers.append(partial(self._storage.upper, imported.id))
        account = None if bound is None else self._accounts.take(dataflow.number, bound)
        dataflow.read = ReadState(description.as_of, frontiers, tuple(frozen.values()), account)
        if account is not None:
            self._bounded[dataflow.number] = dataflow
        for export in dataflow.exports.values():
            if isinstance(export, IndexExport):
                export.read = dataflow.read

    def dropped(self, dataflow: Dataflow) -> None:
        self._bounded.pop(dataflow.number, None)
        for id in dataflow.exports:
            self._held.forget(id)

    def expiry(self, dataflow: Dataflow, start: int) -> Callable[[], bool]:
        """Whether an activation that began at ``start`` should end: it has lasted, or holds too much."""
        account = None if dataflow.read is None else dataflow.read.memory
        if account is None:
            return lambda: self._clock() - start >= self._activation_ns
        weighed = start

        def expired() -> bool:
            nonlocal weighed
            now = self._clock()
            if now - weighed >= _WEIGH_NS:
                weighed = now
                account.report(self._worker, dataflow.held_bytes())
            return now - start >= self._activation_ns or account.exceeded

        return expired

    def weigh(self, dataflow: Dataflow) -> bool:
        """After an activation: reports what it holds where somebody asks; True if that counts against a bound."""
        account = None if dataflow.read is None else dataflow.read.memory
        if dataflow.stopped or (account is None and not self._held.wanted):
            return False
        held = dataflow.held_bytes()
        if self._held.wanted:
            for id in dataflow.exports:
                self._held.report(self._worker, id, held)
        if account is not None:
            account.report(self._worker, held)
        return account is not None

    def stop(self) -> list[Dataflow]:
        """Ends this worker's part of every read that is past its bound, here or on another worker; gives those."""
        stopped = []
        for dataflow in self._bounded.values():
            failure = None if dataflow.stopped or dataflow.read is None else dataflow.read.failure()
            if failure is not None:
                dataflow.stop(failure, self._hasher)
                stopped.append(dataflow)
        return stopped
