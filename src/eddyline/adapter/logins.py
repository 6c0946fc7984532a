"""How many clients are logged in under each role, which may be limited."""

from __future__ import annotations

import threading
from collections import Counter

from eddyline.adapter.access_rules import Role
from eddyline.errors import make_error

__all__ = ["Logins"]


class Logins:
    """Any thread.  Roles go by their ids, so that one that is renamed keeps its count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[int] = Counter()  # guarded by _lock

    def enter(self, role: Role) -> None:
        """Takes a place, which ``leave`` gives back.  53300 past the role's limit; superusers have none."""
        with self._lock:
            if not role.superuser and 0 <= role.connection_limit <= self._counts[role.id]:
                raise make_error(
                    "53300",
                    f'too many connections for role "{role.name}"',
                    hint=f"There may be {role.connection_limit}: see ALTER ROLE … CONNECTION LIMIT.",
                )
            self._counts[role.id] += 1

    def leave(self, role: Role) -> None:
        with self._lock:
            self._counts[role.id] -= 1
            if not self._counts[role.id]:
                del self._counts[role.id]
