"""What reads are asked of: a database in this process, or one that is served."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

__all__ = ["Database", "Session"]


class Session(Protocol):
    """Of ``eddyline.Connection``, what the measurements use; parameters are ``$1`` …"""

    def execute(self, text: str, /) -> Any: ...
    def cursor(self) -> Any: ...
    def wait_hydrated(self, name: str, /) -> None: ...


class Database(Protocol):
    def session(self) -> AbstractContextManager[Session]: ...
