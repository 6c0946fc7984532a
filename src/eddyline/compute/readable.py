"""What a peek needs of an index, whoever keeps it: an export of this worker, a peer, or a frozen one."""

from __future__ import annotations

from typing import Protocol

from eddyline.compute.read_state import ReadState
from eddyline.repr.time import Frontier
from eddyline.repr.types import SqlType
from eddyline.trace.snapshot import Snapshot

__all__ = ["PeekSource", "ReadableArrangement", "ReadableIndex", "ReadableTrace"]


class ReadableTrace(Protocol):
    @property
    def rows(self) -> int: ...

    def snapshot(self) -> Snapshot: ...


class ReadableArrangement(Protocol):
    @property
    def oks(self) -> ReadableTrace: ...

    @property
    def errs(self) -> ReadableTrace: ...


class ReadableIndex(Protocol):
    @property
    def types(self) -> tuple[SqlType, ...]: ...

    @property
    def arrangement(self) -> ReadableArrangement: ...


class PeekSource(ReadableIndex, Protocol):
    """An index that peeks name.  ``since``: the oldest readable time, where the commands stand.

    ``read``: whose result it is, if a read's; None for what is maintained.
    ``published_ns``: when it came to be there; 0: it was there when the peek was.
    """

    @property
    def since(self) -> Frontier: ...

    @property
    def published_ns(self) -> int: ...

    @property
    def read(self) -> ReadState | None: ...

    def frontier(self) -> Frontier: ...
