"""Read holds: while one is open, its collection stays readable from the hold's time on, and is not dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eddyline.repr.time import Frontier
from eddyline.storage.store import StoreHold

__all__ = ["HoldOwner", "ReadHold", "ReadHolds", "StoredHold"]


class HoldOwner(Protocol):
    def end_stored_hold(self, hold: StoredHold) -> None: ...

    def move_hold(self, hold: ReadHold) -> None: ...

    def end_hold(self, hold: ReadHold) -> None: ...


class ReadHold:
    """A hold on one collection.  Used under the owner of the controller's lock, like the controller itself."""

    __slots__ = ("_open", "_owner", "id", "since", "token")

    def __init__(self, owner: HoldOwner, id: str, token: int, since: Frontier) -> None:
        self._owner = owner
        self._open = True
        self.id = id
        self.token = token
        self.since = since

    def downgrade(self, since: Frontier) -> None:
        """Raises the hold; lower values change nothing."""
        if self._open and since > self.since:
            self.since = since
            self._owner.move_hold(self)

    def close(self) -> None:
        """Ends the hold; twice is harmless."""
        if self._open:
            self._open = False
            self._owner.end_hold(self)


class StoredHold:
    """A hold on everything that is stored.  Used under the owner of the controller's lock, like ``ReadHold``."""

    __slots__ = ("_in_storage", "_open", "_owner", "token")

    def __init__(self, owner: HoldOwner, token: int, in_storage: StoreHold) -> None:
        self._owner = owner
        self._in_storage = in_storage
        self._open = True
        self.token = token

    def downgrade(self, since: Frontier) -> None:
        """Raises the hold; lower values change nothing."""
        self._in_storage.downgrade(since)

    def close(self) -> None:
        """Ends the hold; twice is harmless."""
        if self._open:
            self._open = False
            self._in_storage.close()
            self._owner.end_stored_hold(self)


class ReadHolds:
    """Holds on several collections, as one."""

    __slots__ = ("holds",)

    def __init__(self, holds: Sequence[ReadHold]) -> None:
        self.holds = tuple(holds)

    def since(self) -> Frontier:
        """The least time at which all of them are readable."""
        return max((h.since for h in self.holds), default=Frontier(0))

    def downgrade(self, since: Frontier) -> None:
        for hold in self.holds:
            hold.downgrade(since)

    def close(self) -> None:
        for hold in self.holds:
            hold.close()
