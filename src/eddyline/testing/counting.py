"""Counts work instead of timing it: kernel calls, and bytes of columns that were copied or made.

For gates: on one machine or another, busy or not, the counts of the same work are the same.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eddyline.kernels.kernel import Kernel
from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType
from eddyline.trace.columns import ColumnBuffers

__all__ = ["Counted", "counting"]


@dataclass
class Counted:
    """``calls`` by the kernel's name; ``bytes``: of new columns, and of times and diffs with them."""

    calls: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def kernel_calls(self) -> int:
        return self.calls.total()

    def call(self, name: str) -> None:
        with self._lock:
            self.calls[name] += 1

    def add(self, other: Counted) -> None:
        with self._lock:
            self.calls += other.calls
            self.bytes += other.bytes

    def copy(self, size: int) -> None:
        with self._lock:
            self.bytes += size


@contextmanager
def counting(on: Callable[[str], bool] = lambda thread: True) -> Iterator[Counted]:
    """What threads do meanwhile, of those whose name ``on`` accepts.  One at a time in a process."""
    counted = Counted()
    call, allocate, concat, take = Kernel.__call__, ColumnBuffers.__init__, Batch.concat, Batch.take

    def here() -> bool:
        return on(threading.current_thread().name)

    def counted_call(self: Kernel, *args: Any) -> Any:
        if here():
            counted.call(self.name)
        return call(self, *args)

    def counted_allocate(self: ColumnBuffers, *args: Any, **kwargs: Any) -> None:
        allocate(self, *args, **kwargs)
        if here():
            counted.copy(sum(b.size for column in self._buffers for b in column if b is not None))

    def counted_concat(types: tuple[SqlType, ...], batches: Sequence[Batch]) -> Batch:
        made = concat(types, batches)
        if len(batches) > 1 and here():
            counted.copy(_size(made))
        return made

    def counted_take(self: Batch, rows: np.ndarray[Any, np.dtype[np.integer]]) -> Batch:
        made = take(self, rows)
        if here():
            counted.copy(_size(made))
        return made

    patched: dict[tuple[type, str], Any] = {
        (Kernel, "__call__"): counted_call,
        (ColumnBuffers, "__init__"): counted_allocate,
        (Batch, "concat"): staticmethod(counted_concat),
        (Batch, "take"): counted_take,
    }
    before = {(kind, name): vars(kind)[name] for kind, name in patched}
    for (kind, name), value in patched.items():
        setattr(kind, name, value)
    try:
        yield counted
    finally:
        for (kind, name), value in before.items():
            setattr(kind, name, value)


def _size(batch: Batch) -> int:
    return int(sum(c.nbytes for c in batch.columns)) + batch.times.nbytes + batch.diffs.nbytes
