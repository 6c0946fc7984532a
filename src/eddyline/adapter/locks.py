"""Write locks on tables, held by transactions from read to commit.

Invariants:
I1  a table has at most one owner, or several sharers, or one that is both; an owner may take a lock that it holds again
    (no count: release is all at once);
I2  a wait that would close a cycle of owners is refused (40P01) before it begins, so waits end.
``_mutex`` is held for O(owners) steps and never across a wait for anything but itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from eddyline.errors import make_error

__all__ = ["LockTable", "Owner"]


class Owner:
    """One transaction, as the lock table knows it: what it has alone, what it shares, what it waits for and how."""

    __slots__ = ("held", "shared", "waits_for", "waits_to_share")

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.shared: set[str] = set()
        self.waits_for: str | None = None
        self.waits_to_share = False


class LockTable:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._released = threading.Condition(self._mutex)
        self._owners: dict[str, Owner] = {}
        self._sharers: dict[str, set[Owner]] = {}
        self._closed = False

    def acquire(
        self,
        owner: Owner,
        tables: Iterable[str],
        *,
        timeout_s: float | None,
        check: Callable[[], None],
        deadline: float | None = None,
        shared: bool = False,
    ) -> None:
        """Takes the locks of ``tables`` for ``owner``, in id order.

        ``check`` raises what ends the wait from outside, such as 57014; it must be O(1), and is asked whenever a lock
        was released, after ``look_again``, and at ``deadline`` (of ``time.monotonic``; None: there is none).

        ``shared``: beside others that share them; for those who add rows and read none.

        Raises 40P01 on a deadlock, 55P03 after ``timeout_s`` of waiting for one table, 57P01 when the database closes.
        Locks taken before the failure stay with the owner until it releases.
        """
        with self._mutex:
            for table in sorted(tables):
                self._acquire_one(owner, table, timeout_s, check, deadline, shared=shared)

    def _acquire_one(
        self,
        owner: Owner,
        table: str,
        timeout_s: float | None,
        check: Callable[[], None],
        deadline: float | None,
        *,
        shared: bool,
    ) -> None:
        patient_until = None if timeout_s is None else time.monotonic() + timeout_s
        ends = [t for t in (patient_until, deadline) if t is not None]
        try:
            while blocking := self._blocking(owner, table, shared=shared):
                if self._closed:
                    raise make_error("57P01", "the database was closed")
                if self._closes_cycle(owner, blocking):
                    raise make_error("40P01", "deadlock detected", hint="Retry the transaction.")
                check()
                now = time.monotonic()
                if patient_until is not None and now >= patient_until:
                    raise make_error("55P03", "canceling statement due to lock timeout")
                owner.waits_for, owner.waits_to_share = table, shared
                self._released.wait(max(0.0, min(ends) - now) if ends else None)
        finally:
            owner.waits_for = None
        if not shared:
            self._owners[table] = owner
            owner.held.add(table)
        elif table not in owner.held:
            self._sharers.setdefault(table, set()).add(owner)
            owner.shared.add(table)

    def _blocking(self, owner: Owner, table: str, *, shared: bool) -> list[Owner]:
        """Who has to let go of the lock first."""
        alone = self._owners.get(table)
        found = [] if alone is None else [alone]
        if not shared:
            found += self._sharers.get(table, ())
        return [other for other in found if other is not owner]

    def _closes_cycle(self, owner: Owner, blocking: list[Owner]) -> bool:
        seen: set[Owner] = set()
        stack = list(blocking)
        while stack:
            other = stack.pop()
            if other is owner:
                return True
            if other not in seen and other.waits_for is not None:
                stack += self._blocking(other, other.waits_for, shared=other.waits_to_share)
            seen.add(other)
        return False

    def look_again(self) -> None:
        """Has whoever waits ``check``."""
        with self._mutex:
            self._released.notify_all()

    def close(self) -> None:
        """Ends all waits."""
        with self._mutex:
            self._closed = True
            self._released.notify_all()

    def release(self, owner: Owner) -> None:
        """Gives back every lock of ``owner``."""
        if not owner.held and not owner.shared:
            return
        with self._mutex:
            for table in owner.held:
                del self._owners[table]
            for table in owner.shared:
                sharers = self._sharers[table]
                sharers.discard(owner)
                if not sharers:
                    del self._sharers[table]
            owner.held.clear()
            owner.shared.clear()
            self._released.notify_all()
