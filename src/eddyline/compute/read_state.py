"""A one-shot read as a worker renders it: when what it reads was there, and how much memory it holds.

Invariants:
I1  an account is the bytes of one read on all workers of a runtime in one process; each reports its own part;
I2  once it is past its bound it stays so, and every worker is woken to end its part of the read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from eddyline.compute.frozen import FrozenIndex
from eddyline.errors import DatabaseError
from eddyline.protocol.read_costs import out_of_memory
from eddyline.repr.time import Frontier

__all__ = ["MemoryAccount", "MemoryAccounts", "ReadState"]


class MemoryAccount:
    """Any thread.  ``wake`` gets all workers of the runtime to look at the account."""

    def __init__(self, bound: int, wake: Callable[[], None]) -> None:
        self.bound = bound
        self._wake = wake
        self._lock = threading.Lock()
        self._parts: dict[int, int] = {}  # by worker; guarded by _lock
        self._held_at_end = 0  # guarded by _lock

    def report(self, worker: int, held: int) -> None:
        """``worker`` holds ``held`` bytes now."""
        with self._lock:
            self._parts[worker] = held
            total = sum(self._parts.values())
            over = total > self.bound and not self._held_at_end
            if over:
                self._held_at_end = total
        if over:
            self._wake()

    def held(self) -> int:
        with self._lock:
            return sum(self._parts.values())

    def failure(self) -> DatabaseError | None:
        """53200 once the read is past its bound."""
        with self._lock:
            held = self._held_at_end
        return out_of_memory(held, self.bound) if held else None

    @property
    def exceeded(self) -> bool:
        with self._lock:
            return self._held_at_end > 0


class MemoryAccounts:
    """The accounts of reads, opened once for all workers of a runtime in one process, ``workers`` in number."""

    def __init__(self, workers: int, wake: Callable[[], None]) -> None:
        self._workers = workers
        self._wake = wake
        self._lock = threading.Lock()
        self._open: dict[int, tuple[MemoryAccount, int]] = {}  # with the workers yet to ask; guarded by _lock

    def take(self, dataflow: int, bound: int) -> MemoryAccount:
        """The account of the read with that number, which all workers give it; each worker asks once."""
        with self._lock:
            account, left = self._open.pop(dataflow, (None, self._workers))
            if account is None:
                account = MemoryAccount(bound, self._wake)
            if left > 1:
                self._open[dataflow] = account, left - 1
        return account


class ReadState:
    """State of the worker's thread.  ``frontiers``: of what the read imports, sealed once all are past ``as_of``."""

    __slots__ = ("_as_of", "_frontiers", "_frozen", "memory", "sealed_ns")

    def __init__(
        self,
        as_of: int,
        frontiers: Sequence[Callable[[], Frontier]],
        frozen: Sequence[FrozenIndex],
        memory: MemoryAccount | None,
    ) -> None:
        self._as_of = as_of
        self._frontiers = frontiers
        self._frozen = frozen
        self.memory = memory
        #: when all that it reads was seen to be sealed
        self.sealed_ns: int | None = None

    def look(self, now_ns: int) -> None:
        """Before an activation: whether all that it reads is sealed by now."""
        waits = self.sealed_ns is None and all(f.bound for f in self._frozen)
        if waits and all(frontier() > self._as_of for frontier in self._frontiers):
            self.sealed_ns = now_ns

    @property
    def published_ns(self) -> int:
        """When the last of its indexes of the other runtime was published; 0 if it has none."""
        return max((f.published_ns for f in self._frozen), default=0)

    def failure(self) -> DatabaseError | None:
        return None if self.memory is None else self.memory.failure()
