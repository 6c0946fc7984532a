"""What a peek needs of an index, whoever keeps it: an export of this worker, a peer, or a frozen one."""

from __future__ import annotations

from typing import Protocol

from eddyline.repr.types import SqlType
from eddyline.trace.snapshot import Snapshot

__all__ = ["ReadableArrangement", "ReadableIndex", "ReadableTrace"]


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
